"""One agent's loss by a function in JAX: for the compiled engine arrays stacked by agent, for NumPy compiled calls."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np

from amble.arrays import Array, Number, namespace
from amble.losses.batches import drawn_rows
from amble.losses.pytree import Layout

POWER_STEPS = 30  # of the power iteration that estimates L


@final
class About:
    """What does not change from agent to agent. JAX takes it for a constant: problems with equal ones, such as other
    splits of the same rows with the same loss, share a compiled program."""

    def __init__(self, loss: Callable[..., Any], layout: Layout, batches: Any, even: bool, size: int | None, seed: int):
        self.loss, self.layout, self.batches, self.even, self.size, self.seed = loss, layout, batches, even, size, seed
        # functions are told apart by identity: equal ones of unlike classes may be unlike
        self.key = (id(loss), layout.key, batches, even, size, seed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, About) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Stacked(NamedTuple):
    """The losses of all agents as the compiled engine takes them: arrays whose first axis is the agent."""

    about: About
    data: tuple[Any, ...]  # (N, rows, ...) each; agents with fewer rows than others repeat their first
    rows: Any  # how many each agent has
    share: Any
    smoothness: Any  # None: not known

    def agent(self, i: Any) -> "JaxObjective":
        """The objective of one agent; nothing is copied until its numbers are asked for."""
        return JaxObjective(self, i)


@final
class JaxObjective:
    """One agent's loss: of all its rows, or of those that a visit drew."""

    def __init__(self, every: Stacked, i: Any, visit: Any = None, step: int = 0) -> None:
        self.every, self.i, self.visit, self.step = every, i, visit, step

    def drawn(self, hop: Any) -> "JaxObjective":
        """The loss of the rows of one visit."""
        return self if self.every.about.size is None else JaxObjective(self.every, self.i, hop + 1)

    def again(self, step: int) -> "JaxObjective":
        """The same at a later local step of the visit, with other rows."""
        return JaxObjective(self.every, self.i, self.visit, step)

    def value(self, w: Array) -> Number:
        number: Number = self._answer(0, w)
        return number

    def grad(self, w: Array) -> Array:
        slope: Array = self._answer(1, w)
        return slope

    def _answer(self, which: int, w: Array) -> Any:
        if namespace(w) is not np:  # within the compiled engine
            return value_and_grad()[which](self.every, self.i, self.visit, self.step, w)
        import jax

        visit = None if self.visit is None else np.int64(self.visit)
        with jax.enable_x64(True):
            at = self.every, np.int64(self.i), visit, np.int64(self.step), np.asarray(w, np.float64)
            return np.asarray(value_and_grad()[which](*at))

    @property
    def share(self) -> Number:
        share: Number = self.every.share[self.i]
        return share

    @property
    def smoothness(self) -> Number:
        if self.every.smoothness is None:
            raise AttributeError("smoothness")
        smoothness: Number = self.every.smoothness[self.i]
        return smoothness


def value_at(every: Stacked, i: Any, visit: Any, step: Any, w: Any) -> Any:
    """f_i(w) of all rows (visit None), or of those drawn."""
    import jax
    import jax.numpy as jnp

    about = every.about
    params = about.layout.params(w)

    def loss(leaves: list[Any]) -> Any:
        return jnp.asarray(about.loss(params, jax.tree.unflatten(about.batches, leaves))).astype(w.dtype)

    if visit is not None:
        assert about.size is not None
        rows = drawn_rows(jnp, about.seed, len(every.rows), i, visit, step, every.rows[i], about.size)
        return every.share[i] * loss([a.at[i, rows].get(mode="promise_in_bounds") for a in every.data])
    mine = [a.at[i].get(mode="promise_in_bounds") for a in every.data]
    if about.even:
        return every.share[i] * loss(mine)
    each = jax.vmap(lambda row: loss([a[None] for a in row]))(mine)
    counted = jnp.arange(len(each)) < every.rows[i]
    return every.share[i] * jnp.sum(jnp.where(counted, each, 0.0)) / every.rows[i]


@cache
def value_and_grad() -> tuple[Callable[..., Any], Callable[..., Any]]:
    import jax

    return jax.jit(value_at), jax.jit(jax.grad(value_at, argnums=-1))


@cache
def estimate_of() -> Callable[..., Any]:
    """The largest curvature of an agent's loss at w, up to its sign, by power iteration."""
    import jax
    import jax.numpy as jnp

    def estimate(every: Stacked, i: Any, w: Any, v: Any) -> Any:
        def slope(w: Any) -> Any:
            return jax.grad(value_at, argnums=-1)(every, i, None, 0, w)

        def times(_: Any, v: Any) -> Any:
            return jax.jvp(slope, (w,), (v / jnp.linalg.norm(v),))[1]

        return jnp.linalg.norm(jax.lax.fori_loop(0, POWER_STEPS, times, v))

    return jax.jit(estimate)


@cache
def register() -> None:
    import jax

    jax.tree_util.register_static(About)
