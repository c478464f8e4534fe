"""The compiled engine: the whole replay as one JAX loop, one compilation for any number of hops and any settings."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, final

import numpy as np

from amble.arrays import Array, Indices, Tree
from amble.compiling.blocks import read_in_place
from amble.compiling.kept import kept_programs
from amble.compiling.kernel import is_simple, one_kernel
from amble.engines import State, act, first_lost
from amble.errors import AmbleError, need
from amble.losses.least_squares import LeastSquares
from amble.losses.objective import drawn, knows
from amble.losses.penalty import Penalty
from amble.methods import Method, RoundMethod, TokenMethod, agrees, is_pair, is_round, rules, tokens_among
from amble.methods.parameters import traced, with_traced
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule

BLOCK = 1 << 16  # hops handed to the device at a time
DENSE_FROM = 0.1  # from this share of linked pairs on, mixing by a matrix is faster than link by link (measured)


@final
class Compiled:
    def __init__(self, method: Method, problem: Problem, network: Network, initial: Array, meets: bool = False) -> None:
        self.jax = need("jax", "sim")
        self.agents, self.meets, self.rounds = problem.agents, meets, is_round(method)
        self.settings = traced(method)  # arguments of the compiled loop, so that another tau does not recompile it
        self.shape = with_traced(method, dict.fromkeys(self.settings, 0.0))
        with self.jax.enable_x64(True):
            self.objectives = self.jax.device_put(problem.compilable)
            self.initial = self.jax.device_put(np.asarray(initial, np.float64))
            self.penalty = self.jax.device_put(problem.penalty)  # None is a tree without leaves
            self.links = self.jax.device_put(_links(method, network)) if is_round(method) else ()
        self._block: tuple[Any, int, Any] = (None, -1, None)  # of which schedule, which block, its columns
        self._whole = True  # whether the loop may be one kernel
        self._called: set[str] = set()  # what was compiled by now, and need not be looked for in the cache

    def start(self) -> State:
        with self._compiling("start"):
            begin: State = _begin()(
                self.shape, self.agents, self.meets, self.settings, self.objectives, self.initial, self.penalty
            )
        return begin

    def advance(self, state: State, schedule: Schedule | Rounds | None, begin: int, end: int) -> State:
        with self._compiling("advance"):
            if self.rounds:
                state = _rounds()(self.shape, self.settings, self.objectives, self.links, state, begin, end)
            while not self.rounds and begin < end:
                assert isinstance(schedule, Schedule)
                number, stop = begin // BLOCK, min(end, (begin // BLOCK + 1) * BLOCK)
                if self._block[0] is not schedule or self._block[1] != number:
                    columns = (schedule.agent, schedule.token, *(() if schedule.role is None else (schedule.role,)))
                    self._block = (schedule, number, tuple(self._piece(column, number) for column in columns))
                span = (begin - number * BLOCK, stop - number * BLOCK, number * BLOCK)
                state = self._played(state, span)
                begin = stop
            self.jax.block_until_ready(state.x_sum)
        return state

    def _played(self, state: State, span: tuple[int, int, int]) -> State:
        """The state after the hops of a span of the block. XLA cannot compile every visit as one kernel, and says so
        only when it tries: then the loop is not one."""
        same = self.settings, self.objectives, state, self.initial, self.penalty, self._block[2]
        sums: Any = state.x_sum
        try:
            after, _ = _hops()(self.shape, *same, *span, whole=self._whole)
        except self.jax.errors.JaxRuntimeError:
            if not self._whole or "advance" in self._called or sums.is_deleted():
                raise
            self._whole = False
            after, _ = _hops()(self.shape, *same, *span, whole=False)
        played: State = after
        return played

    def _compiling(self, what: str) -> AbstractContextManager[Any]:
        """Around the call of a program. What is there already is traced no more, so it needs only its arithmetic."""
        double: AbstractContextManager[Any] = self.jax.enable_x64(True)
        return double if what in self._called else self._first(what)

    @contextmanager
    def _first(self, what: str) -> Iterator[None]:
        with self.jax.enable_x64(True), _explained(self.shape), kept_programs(self.jax):
            yield
        self._called.add(what)

    def _piece(self, column: Indices, number: int) -> Any:
        """One block of the schedule; the entry after its last hop is read in advance, but never used."""
        piece = column[number * BLOCK : (number + 1) * BLOCK]
        return self.jax.device_put(np.pad(piece, (0, BLOCK + 1 - len(piece)), mode="edge"))

    def read(self, state: State) -> tuple[Array, Array]:
        with self._compiling("read"):
            model, local = _read()(
                self.shape, self.agents, self.meets, self.settings, state, self.initial, self.penalty
            )
        return np.asarray(model), np.asarray(local)


@contextmanager
def _explained(method: Method) -> Iterator[None]:
    """Turns JAX's errors about a step that it cannot trace into one sentence."""
    errors = need("jax", "sim").errors
    try:
        yield
    except (errors.JAXTypeError, errors.JAXIndexError) as error:
        raise AmbleError(
            f"{method.label} cannot be compiled: a step uses the value of an array, or of a setting that is not a "
            "whole number, in `if`, `range`, `float()` or a NumPy function; write it with where() and other functions "
            "of amble.arrays.namespace(x), or give engine='plain'."
        ) from error


def _take(tree: Tree, index: Any) -> Tree:
    import jax

    return jax.tree.map(lambda a: a.at[index].get(mode="promise_in_bounds"), tree)


def _put(tree: Tree, index: Any, row: Tree) -> Tree:
    import jax

    return jax.tree.map(lambda a, b: a.at[index].set(b, mode="promise_in_bounds"), tree, row)


def _one(objectives: Tree, i: Any, hop: Any) -> Any:
    """The objective of agent i at a hop. A loss with mini-batches looks up the rows of that hop alone."""
    return drawn(objectives.agent(i), hop) if knows(objectives, "agent") else _take(objectives, i)


def _in_place(objectives: Tree, i: Any) -> Any:
    """The objective of agent i inside one kernel, where its largest part need not be copied."""
    f = _take(objectives, i)
    if not isinstance(objectives, LeastSquares):
        return f
    vectors: Any = read_in_place(objectives.vectors, i)
    return f if vectors is None else f._replace(vectors=vectors)


def _over_agents(step: Any, objectives: Tree, hop: Any, agents: int, *each: Tree) -> Tree:
    """step(f, ...) of all agents at once."""
    import jax

    if not knows(objectives, "agent"):
        return jax.vmap(step)(objectives, *each)
    return jax.vmap(lambda i, *mine: step(_one(objectives, i, hop), *mine))(jax.numpy.arange(agents), *each)


@cache
def _begin() -> Any:
    import jax
    import jax.numpy as jnp

    def begin(
        method: Method,
        agents: int,
        meets: bool,
        settings: dict[str, Any],
        objectives: Tree,
        initial: Array,
        penalty: Penalty | None,
    ) -> State:
        method = with_traced(method, settings)
        never: Any = jnp.asarray(-1)
        first = rules(method, initial, penalty, meets).agent
        each = _over_agents(lambda f: first(f, initial), objectives, -1, agents)
        if is_round(method):
            return strong(State(each, (), (), each.x.sum(axis=0), never))
        rule, M = rules(method, initial, penalty, meets), tokens_among(method, agents)
        slots = jax.tree.map(lambda a: jnp.tile(a, (agents, M, *(1,) * jnp.ndim(a))), rule.slot(initial))
        tokens = jax.vmap(lambda m: rule.token(initial, agents, m))(jnp.arange(float(M)))
        return strong(State(each, slots, tokens, each.x.sum(axis=0), never))

    def strong(state: State) -> State:
        """The types of a saved state, so that resuming from one does not recompile the loop."""
        firm: State = jax.tree.map(lambda a: jax.lax.convert_element_type(a, a.dtype), state)
        return firm

    return jax.jit(begin, static_argnums=(0, 1, 2))


@cache
def _hops() -> Any:
    import jax
    import jax.numpy as jnp

    def hops(
        method: TokenMethod,
        settings: dict[str, Any],
        objectives: Tree,
        state: State,
        initial: Array,
        penalty: Penalty | None,
        columns: tuple[Any, ...],  # agents, tokens and, where tokens meet, roles
        begin: Any,
        end: Any,
        offset: Any,
        whole: bool = True,
    ) -> tuple[State, Any]:
        meets = len(columns) > 2

        def ahead(state: State, columns: tuple[Any, ...], k: Any) -> Any:
            """The rows of hop k. They are part of the loop's state. If they were read where they are used, the compiler
            would keep the arrays that they come from, and copy them completely at every hop."""
            i, m, *role = (_take(column, k) for column in columns)
            return (
                i,
                m,
                role[0] if meets else None,
                _take(state.agents, i),
                _take(state.slots, (i, m)),
                _take(state.tokens, m),
            )

        def loop(state: State, fixed: Any) -> State:
            settings, objectives, initial, penalty, columns, begin, end, offset = fixed
            rule = rules(with_traced(method, settings), initial, penalty, meets)

            def hop(k: Any, carried: Any) -> Any:
                state, (i, m, role, mine, slot, visitor) = carried
                f = _in_place(objectives, i) if small else _one(objectives, i, k + offset)
                new, new_slot, new_token = act(rule, role, f, mine, slot, visitor)
                state = State(
                    _put(state.agents, i, new),
                    _put(state.slots, (i, m), new_slot),
                    _put(state.tokens, m, new_token),
                    x_sum := state.x_sum + (new.x - mine.x),
                    first_lost(jnp, state.lost, x_sum, k + offset),
                )
                return state, ahead(state, columns, k + 1)

            after: State = jax.lax.fori_loop(begin, end, hop, (state, ahead(state, columns, begin)))[0]
            return after

        fixed = settings, objectives, initial, penalty, columns, begin, end, offset
        rule = rules(with_traced(method, settings), initial, penalty, meets)
        _, _, _, *rows = ahead(state, columns, begin)
        own = knows(objectives, "agent")  # a loss of the user's own may compute anything
        small = whole and not own and is_simple(rule.visit, _take(objectives, 0), *rows)
        return one_kernel(loop, state, fixed) if small else (loop(state, fixed), None)

    return jax.jit(hops, static_argnums=0, static_argnames="whole", donate_argnums=3)


def _links(method: RoundMethod, network: Network) -> dict[str, Any]:
    """Who hears whom, with which weight: as a matrix if many links make one product fastest, else link by link."""
    degree = network.degrees.astype(np.float64)
    if method.hears == "mean":
        return {"degree": degree}
    across, own = network.metropolis()
    if method.hears == "sum":
        across, own = np.ones_like(across), np.zeros_like(own)
    N, hearer = network.agents, np.repeat(np.arange(network.agents), network.degrees)
    if len(network.neighbours) >= DENSE_FROM * N * N:
        W = np.diag(own)
        W[hearer, network.neighbours] = across
        return {"degree": degree, "W": W}
    return {"degree": degree, "own": own, "across": across, "hearer": hearer, "speaker": network.neighbours}


def hear(links: dict[str, Any], said: Any) -> Any:
    """What each agent hears, one row each, where row i is what agent i said."""
    import jax
    import jax.numpy as jnp

    if "W" in links:
        return links["W"] @ said
    if "own" not in links:
        return jnp.broadcast_to(said.mean(axis=0), said.shape)
    rows = links["across"][:, None] * said[links["speaker"]]
    return links["own"][:, None] * said + jax.ops.segment_sum(
        rows, links["hearer"], said.shape[0], indices_are_sorted=True
    )


@cache
def _rounds() -> Any:
    import jax
    import jax.numpy as jnp

    def rounds(
        method: RoundMethod,
        settings: dict[str, Any],
        objectives: Tree,
        links: dict[str, Any],
        state: State,
        begin: Any,
        end: Any,
    ) -> State:
        rule = with_traced(method, settings)

        def one(k: Any, state: State) -> State:
            heard = hear(links, jax.vmap(rule.say)(state.agents))
            agents = _over_agents(rule.round, objectives, k, len(heard), state.agents, heard, links["degree"])
            if agrees(rule):
                least: Any = jnp.broadcast_to(jnp.min(jax.vmap(rule.offer)(agents)), len(heard))
                agents = _over_agents(rule.agreed, objectives, k, len(heard), agents, least)
            x_sum = agents.x.sum(axis=0)
            return State(agents, (), (), x_sum, first_lost(jnp, state.lost, x_sum, k))

        after: State = jax.lax.fori_loop(begin, end, one, state)
        return after

    return jax.jit(rounds, static_argnums=0, donate_argnums=4)


@cache
def _read() -> Any:
    import jax

    def read(
        method: Method,
        agents: int,
        meets: bool,
        settings: dict[str, Any],
        state: State,
        initial: Array,
        penalty: Penalty | None,
    ) -> tuple[Any, Any]:
        method = with_traced(method, settings)
        local = state.x_sum / agents
        if is_round(method):
            return jax.vmap(method.say)(state.agents).mean(axis=0)[: initial.shape[-1]], local
        if is_pair(method):
            return local, local
        return jax.vmap(rules(method, initial, penalty, meets).estimate)(state.tokens).mean(axis=0), local

    return jax.jit(read, static_argnums=(0, 1, 2))
