"""The compiled engine: the whole replay as one JAX loop, one compilation for any number of hops and any settings."""

from dataclasses import fields, replace
from functools import cache, partial
from typing import Any

import numpy as np

from amble.arrays import Tree
from amble.errors import need
from amble.methods import is_round, rules
from amble.problem import Problem
from amble.replay import State
from amble.schedule import Schedule

BLOCK = 1 << 16  # hops handed to the device at a time


class Compiled:
    def __init__(self, method: Any, problem: Problem) -> None:
        self.jax = need("jax", "sim")
        self.rounds = is_round(method)
        self.agents = problem.agents
        self.dimension = problem.dimension
        # numbers are arguments of the compiled loop, so another tau compiles nothing anew
        numbers = [f.name for f in fields(method) if isinstance(getattr(method, f.name), float)]
        self.settings = {name: getattr(method, name) for name in numbers}
        self.shape = replace(method, **dict.fromkeys(numbers, 0.0))
        with self.jax.enable_x64(True):
            self.objectives = self.jax.device_put(problem.stacked)
        self._block: tuple[int, Any, Any] = (-1, None, None)

    def start(self) -> State:
        with self.jax.enable_x64(True):
            begin: State = _begin()(self.shape, self.agents, self.dimension, self.settings, self.objectives)
        return begin

    def advance(self, state: State, schedule: Schedule | None, begin: int, end: int) -> State:
        with self.jax.enable_x64(True):
            if self.rounds:
                state = _rounds()(self.shape, self.settings, self.objectives, state, end - begin)
            while not self.rounds and begin < end:
                assert schedule is not None
                number, stop = begin // BLOCK, min(end, (begin // BLOCK + 1) * BLOCK)
                if self._block[0] != number:
                    self._block = (
                        number,
                        *(self._piece(column, number) for column in (schedule.agent, schedule.token)),
                    )
                _, agent, token = self._block
                span = (begin - number * BLOCK, stop - number * BLOCK)
                state = _hops()(self.shape, self.settings, self.objectives, state, agent, token, *span)
                begin = stop
            self.jax.block_until_ready(state.x_sum)
        return state

    def _piece(self, column: Any, number: int) -> Any:
        """One block of the schedule; the entry after its last hop is read ahead, and never used."""
        piece = column[number * BLOCK : (number + 1) * BLOCK]
        return self.jax.numpy.asarray(np.pad(piece, (0, BLOCK + 1 - len(piece)), mode="edge"))

    def read(self, state: State) -> tuple[Any, Any]:
        with self.jax.enable_x64(True):
            model, local = _read()(self.shape, state, self.agents)
        return np.asarray(model), np.asarray(local)


def _take(tree: Tree, index: Any) -> Tree:
    import jax

    return jax.tree.map(lambda a: a.at[index].get(mode="promise_in_bounds"), tree)


def _put(tree: Tree, index: Any, row: Tree) -> Tree:
    import jax

    return jax.tree.map(lambda a, b: a.at[index].set(b, mode="promise_in_bounds"), tree, row)


@cache
def _begin() -> Any:
    import jax
    import jax.numpy as jnp

    def begin(method: Any, agents: int, dimension: int, settings: dict[str, Any], objectives: Tree) -> State:
        rule = rules(replace(method, **settings))
        zero = jnp.zeros(dimension)
        each = jax.vmap(lambda f: rule.agent(f, zero))(objectives)
        if is_round(method):
            return State(each, (), (), each.x.sum(axis=0))
        M = rule.tokens
        slots = jax.tree.map(lambda a: jnp.tile(a, (agents, M, *(1,) * jnp.ndim(a))), rule.slot(zero))
        tokens = jax.tree.map(lambda a: jnp.tile(a, (M, *(1,) * jnp.ndim(a))), rule.token(zero, agents))
        return State(each, slots, tokens, each.x.sum(axis=0))

    return jax.jit(begin, static_argnums=(0, 1, 2))


@cache
def _hops() -> Any:
    import jax

    def hops(
        method: Any,
        settings: dict[str, Any],
        objectives: Tree,
        state: State,
        agent: Any,
        token: Any,
        begin: Any,
        end: Any,
    ) -> State:
        rule = rules(replace(method, **settings))

        def ahead(state: State, k: Any) -> Any:
            """The rows of hop k. They travel in the loop's state: were they read where they are used, the compiler
            would keep the arrays they come from, and copy them whole at every hop."""
            i, m = _take(agent, k), _take(token, k)
            return i, m, _take(state.agents, i), _take(state.slots, (i, m)), _take(state.tokens, m)

        def hop(k: Any, carried: Any) -> Any:
            state, (i, m, mine, slot, visitor) = carried
            new, new_slot, new_token = rule.visit(_take(objectives, i), mine, slot, visitor)
            state = State(
                _put(state.agents, i, new),
                _put(state.slots, (i, m), new_slot),
                _put(state.tokens, m, new_token),
                state.x_sum + (new.x - mine.x),
            )
            return state, ahead(state, k + 1)

        after: State = jax.lax.fori_loop(begin, end, hop, (state, ahead(state, begin)))[0]
        return after

    return jax.jit(hops, static_argnums=0, donate_argnums=3)


@cache
def _rounds() -> Any:
    import jax

    def rounds(method: Any, settings: dict[str, Any], objectives: Tree, state: State, count: Any) -> State:
        rule = replace(method, **settings)

        def one(_: Any, state: State) -> State:
            heard = jax.vmap(rule.say)(state.agents).mean(axis=0)
            agents = jax.vmap(partial(rule.round), in_axes=(0, 0, None))(objectives, state.agents, heard)
            return State(agents, (), (), agents.x.sum(axis=0))

        after: State = jax.lax.fori_loop(0, count, one, state)
        return after

    return jax.jit(rounds, static_argnums=0, donate_argnums=3)


@cache
def _read() -> Any:
    import jax

    def read(method: Any, state: State, agents: int) -> tuple[Any, Any]:
        local = state.x_sum / agents
        if is_round(method):
            return local, local
        return jax.vmap(rules(method).estimate)(state.tokens).mean(axis=0), local

    return jax.jit(read, static_argnums=(0, 2))
