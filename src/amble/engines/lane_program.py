"""The compiled programs of lanes.py: the first state of all lanes, their models, a piece of their hops or rounds."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from amble.arrays import Array, Tree
from amble.engines import State, act, first_lost
from amble.engines.compiled import _begin, _put, _read, _take, hear
from amble.methods import Method, agrees, is_round, rules
from amble.methods.parameters import with_traced

RECORDS = 1 << 9  # pauses at most in one piece, which is what a run of 4,096 hops has


class Shape(NamedTuple):
    """What the lanes of one program have in common."""

    method: Method  # with zeros for the numbers of its formula
    agents: int
    objectives: Any  # the kind of loss, and the sizes of its arrays
    penalty: bool
    links: Any  # of a round method: whether agents hear by a matrix, link by link, or a server
    meets: bool = False  # whether tokens meet


class Lane(NamedTuple):
    """What a lane has of its own, besides its schedule."""

    settings: dict[str, Any]
    problem: Any  # which of the problems
    network: Any  # which of the networks, of a round method


class Progress(NamedTuple):
    """Where the lanes are; JAX's arrays."""

    state: State
    ends: Any  # the hop at which each lane ends
    settled: Any  # whether it ends because its model hardly moved over a lap
    lap_model: Any  # each lane's model when its last lap ended


class Shared(NamedTuple):
    """What the lanes share; several problems or networks have a first axis for which one."""

    objectives: Tree
    penalty: Tree
    links: Tree
    initial: Array


class Points(NamedTuple):
    """Where lanes pause: pauses[0] is where they are, and at pauses[s + 1] ..."""

    pauses: Any
    open_ends: Any  # [s]: a lane that has diverged ends
    laps: Any  # [s]: a lap ends, and with it a lane that has settled
    count: Any  # how many there are; the rest fills up the arrays
    tolerance: Any


@cache
def start() -> Any:
    import jax

    def begin(shape: Shape, lanes: Lane, shared: Shared) -> State:
        def one(lane: Lane) -> State:
            f, penalty = _problem(shape, lane, shared)
            state: State = _begin()(shape.method, shape.agents, shape.meets, lane.settings, f, shared.initial, penalty)
            return state

        states: State = jax.vmap(one)(lanes)
        return states

    return jax.jit(begin, static_argnums=0)


def _several(shape: Shape, shared: Shared) -> bool:
    """Whether there are several problems."""
    return bool(shared.objectives[0].ndim > len(shape.objectives[1][0]))


def _problem(shape: Shape, lane: Lane, shared: Shared) -> tuple[Tree, Tree]:
    """The losses and the penalty of a lane's problem."""
    both = shared.objectives, shared.penalty
    return _take(both, lane.problem) if _several(shape, shared) else both


@cache
def models() -> Any:
    import jax

    def read(shape: Shape, lanes: Lane, shared: Shared, state: State) -> Any:
        return jax.vmap(lambda lane, state: _model(shape, lane, shared, state))(lanes, state)

    return jax.jit(read, static_argnums=0)


def _model(shape: Shape, lane: Lane, shared: Shared, state: State) -> Any:
    _, penalty = _problem(shape, lane, shared)
    return _read()(shape.method, shape.agents, shape.meets, lane.settings, state, shared.initial, penalty)


@cache
def piece() -> Any:
    import jax
    import jax.numpy as jnp

    def advance(
        shape: Shape,
        together: bool,
        lanes: Lane,
        shared: Shared,
        at: Progress,
        columns: Any,
        offset: Any,
        points: Points,
    ) -> Any:
        several, rounds = _several(shape, shared), is_round(shape.method)

        def over(function: Callable[..., Any], *axes: int | None) -> Callable[..., Any]:
            return jax.vmap(function, in_axes=axes) if together else function

        def hop(lane: Lane, state: State, k: Any, end: Any, i: Any, m: Any, role: Any = None) -> State:
            f = _take(shared.objectives, (lane.problem, i) if several else i)
            mine, slot, visitor = _take(state.agents, i), _take(state.slots, (i, m)), _take(state.tokens, m)
            penalty = _take(shared.penalty, lane.problem) if several else shared.penalty
            rule: Any = rules(with_traced(shape.method, lane.settings), shared.initial, penalty, shape.meets)
            new, new_slot, new_token = kept(k < end, act(rule, role, f, mine, slot, visitor), (mine, slot, visitor))
            x_sum = state.x_sum + (new.x - mine.x)
            return State(
                _put(state.agents, i, new),
                _put(state.slots, (i, m), new_slot),
                _put(state.tokens, m, new_token),
                x_sum,
                first_lost(jnp, state.lost, x_sum, k),
            )

        def one_round(lane: Lane, state: State, k: Any, end: Any) -> State:
            method: Any = with_traced(shape.method, lane.settings)
            f, _ = _problem(shape, lane, shared)
            links = _take(shared.links, lane.network) if shared.links["degree"].ndim > 1 else shared.links
            heard = hear(links, jax.vmap(method.say)(state.agents))
            agents = jax.vmap(method.round)(f, state.agents, heard, links["degree"])
            if agrees(method):
                least: Any = jnp.min(jax.vmap(method.offer)(agents))
                agents = jax.vmap(method.agreed, (0, 0, None))(f, agents, least)
            agents = kept(k < end, agents, state.agents)
            x_sum = agents.x.sum(axis=0)
            return State(agents, (), (), x_sum, first_lost(jnp, state.lost, x_sum, k))

        def kept(going: Any, new: Tree, old: Tree) -> Tree:
            """In turn, the loop itself ends with the lane."""
            return jax.tree.map(lambda a, b: jnp.where(going, a, b), new, old) if together else new

        def step(k: Any, state: State, lane: Lane, ends: Any, columns: Any) -> State:
            if rounds:
                after: State = over(one_round, 0, 0, None, 0)(lane, state, k, ends)
                return after
            here = [_take(column, k - offset) for column in columns]
            visited: State = over(hop, 0, 0, None, 0, *(0 for _ in here))(lane, state, k, ends, *here)
            return visited

        def all_pauses(lane: Lane, at: Progress, columns: Any) -> Any:
            def pause(s: Any, carried: Any) -> Any:
                (state, ends, settled, lap_model), models, local = carried
                begin, end = points.pauses[s], points.pauses[s + 1]
                stop = jnp.minimum(end, jnp.max(ends))
                state = jax.lax.fori_loop(begin, stop, lambda k, state: step(k, state, lane, ends, columns), state)
                model, mean = over(lambda lane, state: _model(shape, lane, shared, state), 0, 0)(lane, state)
                lost, going = state.lost >= 0, ends >= end
                settled = settled | (over(still, 0, 0)(model, lap_model) & points.laps[s] & going & ~lost)
                ends = jnp.where(((lost & points.open_ends[s]) | settled) & going, end, ends)
                lap_model = jnp.where(points.laps[s], model, lap_model)
                return Progress(state, ends, settled, lap_model), models.at[s].set(model), local.at[s].set(mean)

            none = jnp.zeros((RECORDS, *at.lap_model.shape))
            return jax.lax.fori_loop(0, points.count, pause, (at, none, none))

        def still(model: Any, before: Any) -> Any:
            moved, length = (jnp.sqrt(jnp.sum(vector**2)) for vector in (model - before, model))
            return (moved <= points.tolerance * length) & (points.tolerance > 0)

        if together:
            return all_pauses(lanes, at, columns)
        return jax.lax.map(lambda each: all_pauses(*each), (lanes, at, columns))

    return jax.jit(advance, static_argnums=(0, 1), donate_argnums=4)
