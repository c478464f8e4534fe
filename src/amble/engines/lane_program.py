"""The compiled programs of lanes.py: the first state of all lanes, their models, a piece of their hops or rounds."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, Tree
from amble.engines import State, act, delivers, first_lost, lane_groups, lane_kernel, row_kernel
from amble.engines.compiled import _begin, _put, _read, _take, hear
from amble.methods import Method, agrees, is_round, rules
from amble.methods.parameters import with_traced
from amble.networks.meetings import DELIVER, TAKE, VISIT

# how lanes go through their hops: together, or in turn; together, and those at one agent read its loss once; together
# in one kernel, where that can be, else by agent or together; the same kernel without a GPU, for tests
TOGETHER, IN_TURN, BY_AGENT, ONE_KERNEL, INTERPRETED = "together", "in turn", "by agent", "one kernel", "interpreted"
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
def laid() -> Any:
    """A piece of the schedules, one row per hop, filled up to so many more schedules and hops."""
    import jax
    import jax.numpy as jnp

    def lay(rows: Any, schedules: int, hops: int) -> Any:
        return jnp.pad(rows, ((0, schedules), (0, hops)), mode="edge").T

    return jax.jit(lay, static_argnums=(1, 2))


@cache
def piece() -> Any:
    import jax
    import jax.numpy as jnp

    def advance(
        shape: Shape,
        way: str,
        lanes: Lane,
        shared: Shared,
        at: Progress,
        columns: Any,  # agents, tokens and, where tokens meet, roles: a row per hop or, in turn, per schedule
        which: Any,  # of the schedules, one per lane
        offset: Any,
        points: Points,
    ) -> Any:
        several, rounds = _several(shape, shared), is_round(shape.method)
        together = way != IN_TURN

        def over(function: Callable[..., Any], *axes: int | None) -> Callable[..., Any]:
            return jax.vmap(function, in_axes=axes) if together else function

        def visited(f: Tree, mine: Any, slot: Tree, visitor: Tree, x_sum: Any, lost: Any, end: Any, *own: Any) -> Any:
            """What hop k changes in one lane; rows of the agent, the slot and the token are for lanes that go on."""
            settings, role, penalty, initial, k = own
            rule: Any = rules(with_traced(shape.method, settings), initial, penalty, shape.meets)
            new, slot, token = act(rule, role, f, mine, slot, visitor)
            x_sum = kept(k < end, x_sum + (new.x - mine.x), x_sum)
            return new, slot, token, x_sum, first_lost(jnp, lost, x_sum, k)

        def alone(role: int, f: Tree, *own: Any) -> Any:
            """The same where the role is known beforehand; only visits change models."""
            *each, initial, k = own
            after: Any = visited(f, *each, role if shape.meets else None, None, initial, k)
            return after if role == VISIT else (*after[:3], *each[3:5])

        def hop(lane: Lane, state: State, k: Any, end: Any, i: Any, m: Any, role: Any = None) -> State:
            f = _take(shared.objectives, (lane.problem, i) if several else i)
            rows = _take(state.agents, i), _take(state.slots, (i, m)), _take(state.tokens, m)
            penalty = _take(shared.penalty, lane.problem) if several else shared.penalty
            *new, x_sum, lost = visited(
                f, *rows, state.x_sum, state.lost, end, lane.settings, role, penalty, shared.initial, k
            )
            agent, slot, token = kept(k < end, tuple(new), rows)
            return State(
                _put(state.agents, i, agent), _put(state.slots, (i, m), slot), _put(state.tokens, m, token), x_sum, lost
            )  # fmt: skip

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

        def step(k: Any, state: State, lane: Lane, ends: Any, which: Any) -> State:
            if rounds:
                after: State = over(one_round, 0, 0, None, 0)(lane, state, k, ends)
                return after
            row = k - offset
            at = [_take(_take(column, row), which) if together else _take(column, (which, row)) for column in columns]
            here = [each.astype(np.int32) for each in at]
            visited: State = over(hop, 0, 0, None, 0, *(0 for _ in here))(lane, state, k, ends, *here)
            return visited

        def rows_of(state: State) -> tuple[Any, ...]:
            """The shapes of what the visit of one lane reads of its own; see `visited`."""
            depths = (shared.objectives, 1 + several), (state.agents, 2), (state.slots, 3), (state.tokens, 2)
            parts = [
                jax.tree.map(lambda a, d=d: lane_kernel.shape_of(a.shape[d:], a.dtype), tree) for tree, d in depths
            ]
            rest = state.x_sum, state.lost, at.ends, lanes.settings
            parts += [jax.tree.map(lambda a: lane_kernel.shape_of(a.shape[1:], a.dtype), each) for each in rest]
            return *parts, lane_kernel.shape_of((), np.int32) if shape.meets else None

        kernel = None
        alike = not rounds and shared.penalty is None
        if way in (ONE_KERNEL, INTERPRETED) and alike and lane_kernel.counts(at.state):
            same = None, shared.initial, lane_kernel.shape_of((), np.int64)
            kernel = lane_kernel.traced(visited, at.state.lost.shape[0], rows_of(at.state), same)
        by_agent = way == BY_AGENT or (
            way == ONE_KERNEL and kernel is None and not rounds and lane_groups.pays(rows_of(at.state)[0])
        )
        by_agent = by_agent and not rounds and shared.penalty is None
        problems = jax.tree.leaves(shared.objectives)[0].shape[0] if several else 1
        steps = {}  # of each role that changes anything: the step, and which arrays it changes
        if by_agent:
            loss, *rest, _ = rows_of(at.state)
            meeting = shape.meets and delivers(rules(shape.method, shared.initial, None, True))
            for role in (VISIT, DELIVER, TAKE) if meeting else (VISIT,):
                step_of_role: Any = partial(alone, role)
                each: Any = (loss if role == VISIT else None, *rest), (shared.initial, np.int64(0))
                steps[role] = step_of_role, lane_groups.changes(step_of_role, *each)

        def hops(begin: Any, stop: Any, state: State, lane: Lane, ends: Any, which: Any) -> State:
            after: State
            problem = lane.problem if several else None
            if kernel is not None:
                span = jnp.stack([begin - offset, jnp.maximum(begin, stop) - offset, offset]).astype(np.int64)
                return lane_kernel.play(
                    kernel, shared.objectives, state, lane.settings, shared.initial, ends, columns, (which, problem),
                    span, way == INTERPRETED,
                )  # fmt: skip
            if by_agent:

                def grouped(k: Any, state: State) -> State:
                    i, m, *role = [_take(_take(column, k - offset), which).astype(np.int32) for column in columns]
                    for what, (step, changed) in steps.items():
                        these: Any = role[0] == what if role else None
                        visiting = partial(lane_groups.visiting, i, problem, shape.agents, problems)
                        part = visiting(these) if what == VISIT else lane_groups.doing(these)
                        state = lane_groups.hop(
                            step, changed, part, shared.objectives, state, lane.settings, ends, (i, m), shared.initial,
                            k, row_kernel.put if way == ONE_KERNEL else lane_groups.put_by_xla,
                        )  # fmt: skip
                    return state

                after = jax.lax.fori_loop(begin, stop, grouped, state)
                return after
            after = jax.lax.fori_loop(begin, stop, lambda k, s: step(k, s, lane, ends, which), state)
            return after

        def all_pauses(lane: Lane, at: Progress, which: Any) -> Any:
            def pause(s: Any, carried: Any) -> Any:
                (state, ends, settled, lap_model), models, local = carried
                begin, end = points.pauses[s], points.pauses[s + 1]
                state = hops(begin, jnp.minimum(end, jnp.max(ends)), state, lane, ends, which)
                whole = lane_kernel.narrowed(state, at.state) if kernel is not None else state
                model, mean = over(lambda lane, state: _model(shape, lane, shared, state), 0, 0)(lane, whole)
                lost, going = state.lost >= 0, ends >= end
                settled = settled | (over(still, 0, 0)(model, lap_model) & points.laps[s] & going & ~lost)
                ends = jnp.where(((lost & points.open_ends[s]) | settled) & going, end, ends)
                lap_model = jnp.where(points.laps[s], model, lap_model)
                return Progress(state, ends, settled, lap_model), models.at[s].set(model), local.at[s].set(mean)

            none = jnp.zeros((len(points.laps), *at.lap_model.shape))
            begun = at._replace(state=lane_kernel.widened(at.state)) if kernel is not None else at
            end, *records = jax.lax.fori_loop(0, points.count, pause, (begun, none, none))
            if kernel is not None:
                end = end._replace(state=lane_kernel.narrowed(end.state, at.state))
            return end, *records

        def still(model: Any, before: Any) -> Any:
            moved, length = (jnp.sqrt(jnp.sum(vector**2)) for vector in (model - before, model))
            return (moved <= points.tolerance * length) & (points.tolerance > 0)

        if together:
            return all_pauses(lanes, at, which)
        return jax.lax.map(lambda each: all_pauses(*each), (lanes, at, which))

    return jax.jit(advance, static_argnums=(0, 1), donate_argnums=4)
