"""Two engines that replay a schedule and compute a method's numbers: compiled and plain, with equal results.

An engine has

    start()                                   the state before the first hop
    advance(state, schedule, begin, end)      the state after hops begin .. end-1; the old one must not be used again
    read(state)                               (model, local): the mean of the tokens' estimates, the mean of all x_i
                                              (model of a round method: the mean of the first p numbers that agents say;
                                              of a pair method: the mean of all x_i, too)

and a state is a State of NamedTuples of arrays, stacked by agent, by (agent, token) and by token.
For a round method a hop of the engine is a whole round, and the schedule is ignored.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from amble.arrays import BEYOND, Array, Indices, Number, Tree, chosen, tree_map
from amble.errors import AmbleError, unknown
from amble.methods import Method
from amble.methods.protocol import MeetingTokenRules
from amble.networks.meetings import DELIVER, TAKE, VISIT
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule

ENGINES = ("auto", "compiled", "plain")


class State(NamedTuple):
    agents: Tree
    slots: Tree  # () for a round method
    tokens: Tree  # () for a round method
    x_sum: Array  # sum_i x_i, kept up to date so that reading it costs nothing at any N
    lost: Indices  # the first hop after which x_sum was too large or not finite, or -1

    def on_numpy(self) -> "State":
        """A copy in NumPy arrays, the same from both engines and from disk."""
        agents, slots, tokens = (tree_map(np.array, part) for part in self[:3])
        return State(agents, slots, tokens, np.array(self.x_sum), np.array(self.lost))


class Engine(Protocol):
    """What replays a method's numbers along a schedule; the module says what each function does."""

    def start(self) -> State: ...
    def advance(self, state: State, schedule: Schedule | Rounds | None, begin: int, end: int, /) -> State: ...
    def read(self, state: State) -> tuple[Array, Array]: ...


def first_lost(xp: Any, lost: Indices, x_sum: Array, k: Number) -> Any:
    """The hop of divergence: k if the models are too large or not finite from hop k on."""
    return xp.where((lost < 0) & ~(xp.sum(xp.abs(x_sum)) < BEYOND), k, lost)


def act(rule: Any, role: Any, f: Any, agent: Tree, slot: Tree, token: Tree) -> tuple[Any, Any, Any]:
    """What a hop does; `role` is None where every hop is a visit."""
    if role is None:
        after: tuple[Any, Any, Any] = rule.visit(f, agent, slot, token)
        return after
    meeting: MeetingTokenRules = rule  # of tokens that only jump, all but deliver and take
    if isinstance(role, int | np.integer):
        if role == VISIT:
            return meeting.visit(f, agent, slot, token)
        if role == DELIVER:
            agent, token = meeting.deliver(agent, token)
        return agent, slot, meeting.take(agent) if role == TAKE else token
    visited, seen, carried = meeting.visit(f, agent, slot, token)
    if not delivers(rule):
        there = role == VISIT
        return chosen(there, visited, agent), chosen(there, seen, slot), chosen(there, carried, token)
    place, waiting = meeting.deliver(agent, token)
    leaving = chosen(role == TAKE, meeting.take(agent), token)
    return (
        chosen(role == VISIT, visited, chosen(role == DELIVER, place, agent)),
        seen,
        chosen(role == VISIT, carried, chosen(role == DELIVER, waiting, leaving)),
    )


def delivers(rule: Any) -> bool:
    """Whether tokens of these rules deliver and take where they meet; those that only jump do not."""
    return callable(getattr(rule, "deliver", None))


def engine_for(
    engine: str,
    method: Method,
    problem: Problem,
    network: Network,
    start: Array | None = None,
    meets: bool = False,
) -> Engine:
    """The engine by name; "auto" compiles unless the objectives are the user's own and not written in JAX. `start` is
    the initial model, by default zero; `meets` says that the tokens of the schedule meet."""
    initial = np.zeros(problem.dimension) if start is None else start
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if engine == "compiled" and problem.compilable is None:
        raise AmbleError(
            "the compiled engine runs built-in objectives and JaxLoss only; use engine='plain' for others of your own."
        )
    if engine == "plain" or problem.compilable is None:
        from amble.engines.plain import Plain

        return Plain(method, problem, network, initial, meets)
    from amble.engines.compiled import Compiled

    return Compiled(method, problem, network, initial, meets)
