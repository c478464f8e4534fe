"""The worked example of the paper's figure 2: five agents, two tokens, and which local copy is updated when.

Its text names agent 5 at k = 1 with token 1, agent 2 at k = 2 and k = 5 with a token each, agent 1 with token 1 and
agent 3 with token 2 in between. On a ring of five this is what two tokens do that start two agents apart: the
order below, once in a while, as link times are random.
"""

from typing import Any

import numpy as np

from amble import engines, methods, networks
from amble.errors import AmbleError
from amble.problem.problem import Problem
from amble.results.run import Run
from amble.schedule.schedule import Schedule
from amble.simulation.simulate import simulate

UPDATES = ((5, 1), (2, 2), (1, 1), (3, 2), (2, 1))  # (agent, token) at k = 1 .. 5; the paper counts from one
SEEDS_MAX = 10_000


def problem() -> Problem:
    """Any data will do: ten rows per agent."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    return Problem.from_arrays(
        X, X @ [1.0, -2.0, 0.5] + rng.normal(size=50), agents=5, name="five agents", weights="agents"
    )


def worked_example() -> Run:
    """API-BCD with two tokens on a ring of five, with the first seed whose first five hops are the paper's."""
    method, ring, rows = methods.from_settings("API-BCD", {"tokens": 2}), networks.ring(5), problem()
    for seed in range(SEEDS_MAX):
        run = simulate(method, rows, ring, hops=len(UPDATES), every=1, seed=seed, engine="plain", progress=False)
        if visits_of(run) == UPDATES:
            return run
    raise AmbleError(
        f"none of the seeds 0 to {SEEDS_MAX - 1} gives the order of visits of the paper's figure 2; "
        "raise SEEDS_MAX in amble/worked_example.py."
    )


def visits_of(run: Run) -> tuple[tuple[int, int], ...]:
    """(agent, token) of each hop, counted from one."""
    assert isinstance(run.schedule, Schedule)
    pairs = zip(run.schedule.agent.tolist(), run.schedule.token.tolist(), strict=True)
    return tuple((agent + 1, token + 1) for agent, token in pairs)


def copies_changed(run: Run) -> list[list[tuple[int, int]]]:
    """At each hop the local copies that changed, as (agent, token), counted from one: found by comparing all copies."""
    machine = engines.engine_for("plain", run.method, problem(), run.network)
    state: Any = machine.start()
    changed = []
    for k in range(run.schedule.hops):
        after = machine.advance(state, run.schedule, k, k + 1)
        places = np.argwhere((after.slots.copy != state.slots.copy).any(axis=-1))
        changed.append([(int(agent) + 1, int(token) + 1) for agent, token in places])
        state = after
    return changed
