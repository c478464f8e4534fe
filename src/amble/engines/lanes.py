"""Many runs as one compiled program: each is a lane, with a setting, a problem, a network and a schedule of its own.

The lanes are runs of one shape: the same method but for the numbers of its formula, and problems of the same sizes.
They go through the same hops or rounds, and a lane that has ended keeps its state. There are two ways:

    together   a hop of every lane, then the next hop: one batched operation for all lanes
    in turn    all hops of a lane, then the next lane

On a GPU it is always together. On one CPU core, together takes 0.12 us per hop of API-BCD and 2.6 us of Relay (least
squares, N = 20, p = 11, M = 5), in turn 1.1 and 4.9 us. But where a visit searches for its answer by Newton's method,
together is no faster (34 to 45 us against 35, logistic, p = 31): all lanes wait for the one that takes most steps. In
turn, a lane has the very digits of a single run; together, the last one or two may differ.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np

from amble.arrays import Array, Flags, Indices, Tree, tree_map
from amble.engines import State, first_lost
from amble.engines.compiled import _begin, _explained, _links, _put, _read, _take, hear
from amble.errors import need
from amble.methods import Method, is_round, rules
from amble.methods.parameters import traced, with_traced
from amble.networks.network import Network
from amble.problem.problem import Problem

BLOCK = 1 << 12  # hops handed to the device at a time
RECORDS = 1 << 9  # pauses at most in one call, which is what a run of 4,096 hops has
LANES_MAX = 128  # on a CPU: more are no faster
STATE_BYTES_MAX = 1 << 24  # on a CPU: what its cache can hold
SHARE_OF_DEVICE = 0.25  # of a GPU's memory, for the lanes of one program
LANES_MAX_DEVICE = 1 << 16


class Shape(NamedTuple):
    """What the lanes of one program have in common."""

    method: Method  # with zeros for the numbers of its formula
    agents: int
    objectives: Any  # the kind of loss, and the sizes of its arrays
    penalty: bool
    links: Any  # of a round method: whether agents hear by a matrix, link by link, or a server


def shape_of(method: Method, problem: Problem, network: Network) -> Shape:
    """Runs of equal shapes can be lanes of one program."""
    blank = with_traced(method, dict.fromkeys(traced(method), 0.0))
    sizes = type(problem.stacked), tuple(np.shape(leaf) for leaf in problem.stacked)
    links = tuple(_links(method, network)) if is_round(method) else ()
    return Shape(blank, problem.agents, sizes, problem.penalty is not None, links)


class Lane(NamedTuple):
    """What a lane has of its own, besides its schedule."""

    settings: dict[str, Any]
    problem: Any  # which of the problems
    network: Any  # which of the networks, of a round method


class Progress(NamedTuple):
    """Where the lanes are."""

    state: State
    ends: Indices  # the hop at which each lane ends
    settled: Flags  # whether it ends because its model hardly moved over a lap
    lap_model: Array  # each lane's model when its last lap ended


@final
class Lanes:
    """The lanes of one program, as many as there are methods: lane l runs methods[l] on problems[l], networks[l]."""

    def __init__(
        self, methods: Sequence[Method], problems: Sequence[Problem], networks: Sequence[Network], initial: Array | None
    ) -> None:
        self.jax = need("jax", "sim")
        self.shape = shape_of(methods[0], problems[0], networks[0])
        self.count = len(methods)
        self.padded = 1 << (self.count - 1).bit_length()  # few sizes, so that few programs are compiled
        which_problem, own_problems = _distinct(problems)
        which_network, own_networks = _distinct(networks)
        first = own_problems[0]
        self.together = self.jax.default_backend() != "cpu" or not _searches(self.shape.method, first)
        settings = [traced(method) for method in methods]
        lanes = Lane(
            {name: np.array([each[name] for each in settings]) for name in settings[0]},
            np.array(which_problem, np.int32),
            np.array(which_network, np.int32),
        )
        initial = np.zeros(first.dimension) if initial is None else np.asarray(initial, np.float64)
        rounds = is_round(self.shape.method)
        links = _padded([_links(methods[0], network) for network in own_networks]) if rounds else ()
        with self.jax.enable_x64(True):
            self.lanes = self.jax.device_put(self.jax.tree.map(self._pad, lanes))
            self.objectives = self.jax.device_put(_stacked([problem.stacked for problem in own_problems]))
            self.penalty = self.jax.device_put(_stacked([problem.penalty for problem in own_problems]))
            self.links = self.jax.device_put(links)
            self.initial = self.jax.device_put(initial)
        self.fixed = (self.objectives, self.penalty, self.links, self.initial)

    def _pad(self, column: Any) -> Any:
        """Copies of the first lane, up to a power of two."""
        return np.concatenate([column, np.repeat(column[:1], self.padded - self.count, axis=0)])

    def start(self, ends: Indices) -> Progress:
        """All lanes before their first hop; `ends` are the hops at which they end."""
        with self.jax.enable_x64(True), _explained(self.shape.method):
            state = _start()(self.shape, self.lanes, *self.fixed)
            model, _ = _reads()(self.shape, self.lanes, *self.fixed, state)
            none = self.jax.numpy.zeros(self.padded, bool)
            return Progress(state, self._ends(ends), none, model)

    def _ends(self, ends: Indices) -> Any:
        """A lane that only fills up the number has nothing to do."""
        return self.jax.numpy.asarray(np.concatenate([ends, np.zeros(self.padded - self.count, np.int64)]))

    def with_ends(self, at: Progress, ends: Indices) -> Progress:
        """The lanes with other ends."""
        with self.jax.enable_x64(True):
            return at._replace(ends=self._ends(ends))

    def advance(
        self,
        at: Progress,
        agent: Indices | None,
        token: Indices | None,
        offset: int,
        pauses: Indices,
        open_ends: Flags,
        laps: Flags,
        tolerance: float,
    ) -> tuple[Progress, Array, Array]:
        """The lanes after hops pauses[0] .. pauses[-1] - 1, and their models and local models at pauses[1:].

        `agent` and `token` are the schedules' columns from hop `offset` on, one row per lane, or None for rounds.
        `open_ends` says at which of the pauses a lane that has diverged ends, `laps` at which a lap ends: there a lane
        ends that has settled.
        """
        count = len(pauses) - 1
        with self.jax.enable_x64(True), _explained(self.shape.method):
            columns = () if agent is None else tuple(self._columns(column) for column in (agent, token))
            after, models, local = _piece()(
                self.shape,
                self.together,
                self.lanes,
                *self.fixed,
                at,
                columns,
                np.int64(offset),
                np.pad(np.asarray(pauses, np.int64), (0, RECORDS - count), mode="edge"),
                np.pad(open_ends, (0, RECORDS - count)),
                np.pad(laps, (0, RECORDS - count)),
                np.int64(count),
                np.float64(tolerance),
            )
            axes = (1, 0, 2) if self.together else (0, 1, 2)
            taken = [np.asarray(each).transpose(axes)[: self.count, :count] for each in (models, local)]
        return after, taken[0], taken[1]

    def _columns(self, column: Any) -> Any:
        """A piece of the schedules as the device wants it: one row per hop together, one per lane in turn. The entry
        after the last hop is read in advance, but never used."""
        padded = self._pad(np.pad(column, ((0, 0), (0, BLOCK + 1 - column.shape[1])), mode="edge"))
        return self.jax.numpy.asarray(padded.T if self.together else padded)

    def read(self, at: Progress) -> tuple[Array, Array]:
        """The models and local models of all lanes."""
        with self.jax.enable_x64(True):
            model, local = _reads()(self.shape, self.lanes, *self.fixed, at.state)
        return np.asarray(model)[: self.count], np.asarray(local)[: self.count]

    def states(self, at: Progress) -> list[State]:
        """The state of each lane, in NumPy arrays."""
        agents, slots, tokens = (tree_map(np.asarray, part) for part in at.state[:3])
        x_sum, lost = np.asarray(at.state.x_sum), np.asarray(at.state.lost)
        return [
            State(*(tree_map(lambda a: a[k], part) for part in (agents, slots, tokens)), x_sum[k], lost[k])  # noqa: B023
            for k in range(self.count)
        ]


def lanes_that_fit(method: Method, problem: Problem, network: Network) -> int:
    """How many lanes of this shape one program should have: a power of two."""
    jax = need("jax", "sim")
    shape = shape_of(method, problem, network)
    rounds = is_round(method)
    with jax.enable_x64(True):
        one = jax.eval_shape(
            lambda settings, f, initial, penalty: _begin()(shape.method, shape.agents, settings, f, initial, penalty),
            traced(method), problem.stacked, np.zeros(problem.dimension), problem.penalty,
        )  # fmt: skip
    state = sum(leaf.size * 8 for leaf in jax.tree.leaves(one))
    if rounds:  # each lane has its own copy of what all agents use at once
        state += sum(np.asarray(leaf).nbytes for leaf in problem.stacked)
        state += sum(np.asarray(leaf).nbytes for leaf in _links(method, network).values())
    if jax.default_backend() == "cpu":
        return _power(min(LANES_MAX, STATE_BYTES_MAX // max(state, 1)))
    records = 2 * RECORDS * problem.dimension * 8
    memory = jax.devices()[0].memory_stats()["bytes_limit"]
    return _power(min(LANES_MAX_DEVICE, SHARE_OF_DEVICE * memory / (2 * state + records + 8 * BLOCK)))


def _power(count: float) -> int:
    """The largest power of two up to this, and at least one."""
    return 1 << max(0, int(max(count, 1)).bit_length() - 1)


def _searches(method: Method, problem: Problem) -> bool:
    """Whether a visit solves systems that are its own, or searches for its answer in steps whose number varies."""
    quadratic = bool(getattr(problem.stacked, "quadratic", False))
    return problem.penalty is not None or (not quadratic and not {"prox", "hessian"}.isdisjoint(method.work))


def _distinct(things: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Which of the different things each one is, and these."""
    numbers: dict[int, int] = {}
    which = [numbers.setdefault(id(thing), len(numbers)) for thing in things]
    return which, list({id(thing): thing for thing in things}.values())


def _stacked(trees: Sequence[Tree]) -> Tree:
    """Trees with a first axis for which one; a single one has none, so that nothing has to be chosen."""
    return trees[0] if len(trees) == 1 else tree_map(lambda *leaves: np.stack(leaves), *trees) if trees[0] else None


def _padded(links: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The links of several networks; those that have fewer get some of weight zero."""
    if len(links) == 1:
        return links[0]
    stacked = {}
    for name in links[0]:
        length = max(len(each[name]) for each in links)
        mode: Any = {"mode": "edge"} if name in ("hearer", "speaker") else {}  # hearers stay in order
        stacked[name] = np.stack(
            [each[name] if len(each[name]) == length else np.pad(each[name], (0, length - len(each[name])), **mode)
             for each in links]
        )  # fmt: skip
    return stacked


@cache
def _start() -> Any:
    import jax

    def start(shape: Shape, lanes: Lane, objectives: Tree, penalty: Tree, links: Tree, initial: Array) -> State:  # noqa: ARG001
        def one(lane: Lane) -> State:
            own = _choose(shape, lane, objectives, penalty)
            state: State = _begin()(shape.method, shape.agents, lane.settings, own[0], initial, own[1])
            return state

        states: State = jax.vmap(one)(lanes)
        return states

    return jax.jit(start, static_argnums=0)


def _choose(shape: Shape, lane: Lane, objectives: Tree, penalty: Tree) -> tuple[Tree, Tree]:
    """The losses and the penalty of a lane's problem."""
    several = objectives[0].ndim > len(shape.objectives[1][0])
    return (_take(objectives, lane.problem), _take(penalty, lane.problem)) if several else (objectives, penalty)


@cache
def _reads() -> Any:
    import jax

    def reads(shape: Shape, lanes: Lane, objectives: Tree, penalty: Tree, links: Tree, initial: Array, state: State) -> Any:  # noqa: ARG001, E501
        return jax.vmap(lambda lane, state: _model(shape, lane, objectives, penalty, initial, state))(lanes, state)

    return jax.jit(reads, static_argnums=0)


def _model(shape: Shape, lane: Lane, objectives: Tree, penalty: Tree, initial: Array, state: State) -> Any:
    _, own_penalty = _choose(shape, lane, objectives, penalty)
    return _read()(shape.method, shape.agents, lane.settings, state, initial, own_penalty)


@cache
def _piece() -> Any:
    import jax
    import jax.numpy as jnp

    def piece(
        shape: Shape,
        together: bool,
        lanes: Lane,
        objectives: Tree,
        penalty: Tree,
        links: Tree,
        initial: Array,
        at: Progress,
        columns: Any,
        offset: Any,
        pauses: Any,
        open_ends: Any,
        laps: Any,
        count: Any,
        tolerance: Any,
    ) -> Any:
        several = objectives[0].ndim > len(shape.objectives[1][0])
        rounds = is_round(shape.method)

        def over(function: Callable[..., Any], *axes: int | None) -> Callable[..., Any]:
            return jax.vmap(function, in_axes=axes) if together else function

        def rows(lane: Lane, state: State, i: Any, m: Any) -> Any:
            f = _take(objectives, (lane.problem, i) if several else i)
            return f, _take(state.agents, i), _take(state.slots, (i, m)), _take(state.tokens, m)

        def hop(lane: Lane, state: State, k: Any, end: Any, i: Any, m: Any) -> State:
            f, mine, slot, visitor = rows(lane, state, i, m)
            own_penalty = _take(penalty, lane.problem) if several else penalty
            rule = rules(with_traced(shape.method, lane.settings), initial, own_penalty)
            new, new_slot, new_token = kept(k < end, rule.visit(f, mine, slot, visitor), (mine, slot, visitor))
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
            f, _ = _choose(shape, lane, objectives, penalty)
            own_links = _take(links, lane.network) if links["degree"].ndim > 1 else links
            heard = hear(own_links, jax.vmap(method.say)(state.agents))
            agents = kept(k < end, jax.vmap(method.round)(f, state.agents, heard, own_links["degree"]), state.agents)
            x_sum = agents.x.sum(axis=0)
            return State(agents, (), (), x_sum, first_lost(jnp, state.lost, x_sum, k))

        def kept(going: Any, new: Tree, old: Tree) -> Tree:
            """In turn, the loop itself ends with the lane."""
            return jax.tree.map(lambda a, b: jnp.where(going, a, b), new, old) if together else new

        def step(k: Any, state: State, lane: Lane, ends: Any, columns: Any) -> State:
            if rounds:
                after: State = over(one_round, 0, 0, None, 0)(lane, state, k, ends)
                return after
            i, m = (_take(column, k - offset) for column in columns)
            after = over(hop, 0, 0, None, 0, 0, 0)(lane, state, k, ends, i, m)
            return after

        def all_pauses(lane: Lane, at: Progress, columns: Any) -> Any:
            def pause(s: Any, carried: Any) -> Any:
                (state, ends, settled, lap_model), models, local = carried
                end = pauses[s + 1]
                stop = jnp.minimum(end, jnp.max(ends))
                state = jax.lax.fori_loop(pauses[s], stop, lambda k, state: step(k, state, lane, ends, columns), state)
                model, mean = over(lambda *each: _model(shape, each[0], objectives, penalty, initial, each[1]), 0, 0)(
                    lane, state
                )
                lost, going = state.lost >= 0, ends >= end
                still = over(lambda *each: moved(*each) <= tolerance * moved(each[0], 0.0), 0, 0)(model, lap_model)
                settled = settled | (still & going & ~lost & laps[s] & (tolerance > 0))
                ends = jnp.where(((lost & open_ends[s]) | settled) & going, end, ends)
                lap_model = jnp.where(laps[s], model, lap_model)
                return Progress(state, ends, settled, lap_model), models.at[s].set(model), local.at[s].set(mean)

            none = jnp.zeros((RECORDS, *at.lap_model.shape))
            return jax.lax.fori_loop(0, count, pause, (at, none, none))

        def moved(one: Any, other: Any) -> Any:
            return jnp.sqrt(jnp.sum((one - other) ** 2))

        if together:
            return all_pauses(lanes, at, columns)
        return jax.lax.map(lambda each: all_pauses(*each), (lanes, at, columns))

    return jax.jit(piece, static_argnums=(0, 1), donate_argnums=7)
