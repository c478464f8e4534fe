"""Many runs as one compiled program: each is a lane, with a setting, a problem, a network and a schedule of its own.

The lanes are runs of one shape: the same method but for the numbers of its formula, and problems of the same sizes.
They go through the same hops or rounds, and a lane that has ended keeps its state. There are these ways:

    together     a hop of every lane, then the next hop: one batched operation for all lanes
    in turn      all hops of a lane, then the next lane
    one kernel   together, on a GPU, by programs that take a few lanes through all hops (lane_kernel.py)
    by agent     together, but lanes at one agent read its loss once (lane_groups.py)

On a GPU it is one kernel where a visit is light, by agent where the loss is large, else together. On one CPU core,
together takes 0.12 us per hop of API-BCD and 2.6 us of Relay (least squares, N = 20, p = 11, M = 5), in turn 1.1 and
4.9 us. But where a visit searches for its answer by Newton's method, together is no faster (34 to 45 us against 35,
logistic, p = 31): all lanes wait for the one that takes most steps. In turn, a lane has the very digits of a single
run; together, the last one or two may differ.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from amble.arrays import Array, Flags, Indices, Tree, tree_map
from amble.engines import State, lane_program
from amble.engines.compiled import _begin, _explained, _links
from amble.engines.lane_program import IN_TURN, ONE_KERNEL, RECORDS, TOGETHER, Lane, Points, Progress, Shape, Shared
from amble.errors import need
from amble.methods import Method, is_round, tokens_among
from amble.methods.parameters import traced, with_traced
from amble.networks.network import Network
from amble.problem.problem import Problem

BLOCK = 1 << 12  # hops handed to the device at a time
LANES_MAX = 128  # on a CPU: more are no faster
STATE_BYTES_MAX = 1 << 24  # on a CPU: what its cache can hold
SHARE_OF_DEVICE = 0.25  # of a GPU's memory, for the lanes of one program
LANES_MAX_DEVICE = 1 << 16


def shape_of(method: Method, problem: Problem, network: Network, meets: bool = False) -> Shape:
    """Runs of equal shapes can be lanes of one program."""
    blank = with_traced(method, dict.fromkeys(traced(method), 0.0))
    sizes = type(problem.stacked), tuple(np.shape(leaf) for leaf in problem.stacked)
    links = tuple(_links(method, network)) if is_round(method) else ()
    return Shape(blank, problem.agents, sizes, problem.penalty is not None, links, meets)


@final
class Lanes:
    """The lanes of one program, as many as there are methods: lane l runs methods[l] on problems[l], networks[l]."""

    def __init__(
        self,
        methods: Sequence[Method],
        problems: Sequence[Problem],
        networks: Sequence[Network],
        initial: Array | None,
        meets: bool = False,
    ) -> None:
        self.jax = need("jax", "sim")
        self.shape = shape_of(methods[0], problems[0], networks[0], meets)
        self.count = len(methods)
        self.padded = 1 << (self.count - 1).bit_length()  # few sizes, so that few programs are compiled
        which_problem, own_problems = _distinct(problems)
        which_network, own_networks = _distinct(networks)
        first = own_problems[0]
        method = methods[0]
        self.on_device = self.jax.default_backend() != "cpu"
        self.way = self.way_of(self.shape.method, first)
        most = max(first.agents, 0 if is_round(method) else tokens_among(method, first.agents))
        self.numbers = np.min_scalar_type(most)  # of the schedules, as the device keeps them
        settings = [traced(method) for method in methods]
        lanes = Lane(
            {name: np.array([each[name] for each in settings]) for name in settings[0]},
            np.array(which_problem, np.int32),
            np.array(which_network, np.int32),
        )
        initial = np.zeros(first.dimension) if initial is None else np.asarray(initial, np.float64)
        links = _padded([_links(method, network) for network in own_networks]) if is_round(method) else {}
        with self.jax.enable_x64(True):
            self.lanes = self.jax.device_put(self.jax.tree.map(self._pad, lanes))
            self.shared = self.jax.device_put(
                Shared(
                    _stacked([problem.stacked for problem in own_problems]),
                    _stacked([problem.penalty for problem in own_problems]),
                    links,
                    initial,
                )
            )

    @staticmethod
    def way_of(method: Method, problem: Problem) -> str:
        """How the lanes go through their hops; `ONE_KERNEL` only where a kernel can be written for the visit."""
        backend = need("jax", "sim").default_backend()
        if backend == "cpu":
            return IN_TURN if _searches(method, problem) else TOGETHER
        return ONE_KERNEL if backend == "gpu" else TOGETHER

    def _pad(self, column: Any) -> Any:
        """Copies of the first lane, up to a power of two."""
        return np.concatenate([column, np.repeat(column[:1], self.padded - self.count, axis=0)])

    def start(self, ends: Indices) -> Progress:
        """All lanes before their first hop; `ends` are the hops at which they end."""
        with self.jax.enable_x64(True), _explained(self.shape.method):
            state = lane_program.start()(self.shape, self.lanes, self.shared)
            model, _ = lane_program.models()(self.shape, self.lanes, self.shared, state)
            none = self.jax.device_put(np.zeros(self.padded, bool))
            return Progress(state, self._ends(ends), none, model)

    def _ends(self, ends: Indices) -> Any:
        """A lane that only fills up the number has nothing to do."""
        return self.jax.device_put(np.concatenate([ends, np.zeros(self.padded - self.count, np.int64)]))

    def with_ends(self, at: Progress, ends: Indices) -> Progress:
        """The lanes with other ends."""
        with self.jax.enable_x64(True):
            return at._replace(ends=self._ends(ends))

    def advance(
        self,
        at: Progress,
        columns: Sequence[Indices],
        which: Indices,
        offset: int,
        pauses: Indices,
        open_ends: Flags,
        laps: Flags,
        tolerance: float,
    ) -> tuple[Progress, Array, Array]:
        """The lanes after hops pauses[0] .. pauses[-1] - 1, and their models and local models at pauses[1:].

        `columns` are the schedules' agents, tokens and, where tokens meet, roles from hop `offset` on, one row per
        schedule; none for rounds. `which` is the schedule of each lane.
        `open_ends` says at which of the pauses a lane that has diverged ends, `laps` at which a lap ends: there a lane
        ends that has settled.
        """
        count = len(pauses) - 1
        with self.jax.enable_x64(True), _explained(self.shape.method):
            pieces = tuple(self._column(column) for column in columns)
            room = 1 if count == 1 and self.on_device else RECORDS  # many lanes have large records
            points = Points(
                np.pad(np.asarray(pauses, np.int64), (0, room - count), mode="edge"),
                np.pad(open_ends, (0, room - count)),
                np.pad(laps, (0, room - count)),
                np.int64(count),
                np.float64(tolerance),
            )
            after, models, local = lane_program.piece()(
                self.shape, self.way, self.lanes, self.shared, at, pieces, self._pad(np.asarray(which, np.int32)),
                np.int64(offset), points,
            )  # fmt: skip
            if self.on_device:  # what was not recorded stays there
                models, local = models[:count], local[:count]
            axes = (0, 1, 2) if self.way == IN_TURN else (1, 0, 2)
            taken = [np.asarray(each).transpose(axes)[: self.count, :count] for each in (models, local)]
        return after, taken[0], taken[1]

    def _column(self, column: Any) -> Any:
        """A piece of the schedules as the device wants it: one row per schedule in turn, else one per hop. Their number
        is a power of two, so that few programs are compiled. The entry after the last hop is read in advance, but never
        used."""
        more = (1 << (len(column) - 1).bit_length()) - len(column), BLOCK + 1 - column.shape[1]
        small = np.asarray(column).astype(self.numbers, copy=False)
        if self.on_device:
            return lane_program.laid()(self.jax.device_put(small), *more)
        laid = np.pad(small, ((0, more[0]), (0, more[1])), mode="edge")
        return self.jax.device_put(laid if self.way == IN_TURN else laid.T)

    def read(self, at: Progress) -> tuple[Array, Array]:
        """The models and local models of all lanes."""
        with self.jax.enable_x64(True):
            model, local = lane_program.models()(self.shape, self.lanes, self.shared, at.state)
        return np.asarray(model)[: self.count], np.asarray(local)[: self.count]

    def states(self, at: Progress) -> list[State]:
        """The state of each lane, in NumPy arrays."""
        agents, slots, tokens = (tree_map(np.asarray, part) for part in at.state[:3])
        x_sum, lost = np.asarray(at.state.x_sum), np.asarray(at.state.lost)
        whole = State(agents, slots, tokens, x_sum, lost)
        return [tree_map(lambda a: a[k], whole) for k in range(self.count)]  # noqa: B023


def lanes_that_fit(method: Method, problem: Problem, network: Network, meets: bool = False) -> int:
    """How many lanes of this shape one program should have: a power of two."""
    jax = need("jax", "sim")
    shape = shape_of(method, problem, network, meets)
    with jax.enable_x64(True):
        one = jax.eval_shape(
            lambda *each: _begin()(shape.method, shape.agents, meets, *each),
            traced(method), problem.stacked, np.zeros(problem.dimension), problem.penalty,
        )  # fmt: skip
    state = 8 * sum(int(leaf.size) for leaf in jax.tree.leaves(one))
    if is_round(method):  # each lane has its own copy of what all agents use at once
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
