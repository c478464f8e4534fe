"""The compute seconds of a visit: by a fixed model, or measured on this machine."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.losses.objective import Objective
from amble.methods import Method, agrees, is_pair, is_round, rules
from amble.methods.optional import gifts_in_visit, own_flops
from amble.problem.problem import Problem
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule
from amble.schedule.timing import Timing

FLOPS_PER_S = 1e9  # the fixed cost model's agent: one operation per nanosecond
CALIBRATED_AGENTS_MAX = 64
CALIBRATED_LAPS, CALIBRATED_LAPS_LEAST = 7, 3
CALIBRATED_S = 1.0  # after this long, the least number of laps is enough


def compute_seconds(timing: Timing, method: Method, problem: Problem) -> Array:
    """Seconds of one visit at each agent, slowdown included."""
    N = problem.agents
    if timing.compute == "model":
        seconds = modelled(method, problem)
    elif timing.compute == "measured":
        seconds = measured(method, problem)
    else:
        seconds = np.full(N, float(timing.compute))
    return seconds * timing.factors(N)


def modelled(method: Method, problem: Problem) -> Array:
    """Operations of the objective's calls, at one per nanosecond; a call of your own objective counts as one us."""
    losses: Any = problem.stacked if problem.own is None else problem.trains
    if losses is None:
        return np.full(problem.agents, 1e-6)
    own = own_flops(method, problem.dimension)
    if problem.penalty is not None:
        own += problem.penalty.flops(problem.dimension)
    flops = own + sum(times * losses.flops(kind) for kind, times in method.work.items())
    if looks := gifts_in_visit(method, losses).looks:
        flops = flops + looks * (own + losses.flops("grad"))
    return np.asarray(flops, np.float64) / FLOPS_PER_S


def measured(method: Method, problem: Problem, clock: Callable[[], float] = time.perf_counter) -> Array:
    """Each agent's median over some real laps of a token, in NumPy, on this machine. Of many agents only the first 64
    are timed, and the others get their median.
    """
    start = np.zeros(problem.dimension)
    timed = min(problem.agents, CALIBRATED_AGENTS_MAX)
    losses = [problem.objective(i) for i in range(timed)]
    first = rules(method, None, problem.penalty).agent
    agents = [first(f, start) for f in losses]
    visit = visits_of(method, len(losses), problem, start)
    laps = np.zeros((CALIBRATED_LAPS, timed))
    begun = time.perf_counter()
    for lap in range(CALIBRATED_LAPS):
        if lap >= CALIBRATED_LAPS_LEAST and time.perf_counter() - begun > CALIBRATED_S:
            laps = laps[:lap]
            break
        heard = np.mean([method.say(agent) if is_round(method) else agent.x for agent in agents], axis=0)
        for i, f in enumerate(losses):
            begin = clock()
            agents[i] = visit(i, f, agents[i], heard)
            laps[lap, i] = clock() - begin
    seconds = np.median(laps, axis=0)
    return np.concatenate([seconds, np.full(problem.agents - timed, np.median(seconds))])


def visits_of(
    method: Method, timed: int, problem: Problem, start: Array
) -> Callable[[int, Objective, Any, Array], Any]:
    """One visit of a token, or one step of an agent: from what agent i remembers before to what it does after."""
    if agrees(method):

        def agreed(i: int, f: Objective, agent: Any, heard: Array) -> Any:  # noqa: ARG001
            agent = method.round(f, agent, heard, np.float64(1.0))
            return method.agreed(f, agent, method.offer(agent))

        return agreed
    if is_round(method):
        return lambda i, f, agent, heard: method.round(f, agent, heard, np.float64(1.0))  # noqa: ARG005
    if is_pair(method):
        return lambda i, f, agent, heard: method.pair(f, agent)  # noqa: ARG005
    rule = rules(method, None, problem.penalty)
    slots, token = [rule.slot(start) for _ in range(timed)], rule.token(start, problem.agents, 0)

    def visit(i: int, f: Objective, agent: Any, heard: Array) -> Any:  # noqa: ARG001
        nonlocal token
        agent, slots[i], token = rule.visit(f, agent, slots[i], token)
        return agent

    return visit


def computed_s(method: Method, schedule: Schedule, compute_s: Array) -> Array:
    """The compute seconds that end at each hop. Of a pair method's, the gradient that is done when its messenger leaves
    home again: an agent computes while the messenger is away."""
    if not is_pair(method):
        return np.where(schedule.visits, compute_s[schedule.agent], 0.0)
    home = schedule.agent == schedule.token
    home[np.unique(schedule.token, return_index=True)[1]] = False  # the first time, no gradient is done
    return np.where(home, compute_s[schedule.agent], 0.0)


def idle_shares(method: Method, schedule: Schedule | Rounds, compute_s: Array) -> Array:
    """Of each agent, the share of the schedule's time in which it did not compute."""
    if schedule.hops == 0 or schedule.time_s[-1] == 0:
        return np.ones(len(compute_s))
    if isinstance(schedule, Rounds):
        busy_s = schedule.hops * compute_s
    else:
        busy_s = np.zeros(len(compute_s))
        np.add.at(busy_s, schedule.agent, computed_s(method, schedule, compute_s))
    return np.asarray(1 - busy_s / schedule.time_s[-1])
