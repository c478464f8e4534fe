"""One vocabulary for NumPy and JAX: what is written with these runs on either."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

Array = Any  # a NumPy or JAX array (or a JAX tracer); the namespace decides, not the type
Tree = Any  # a NamedTuple of arrays


def namespace(x: Array) -> Any:
    """numpy or jax.numpy, whichever the array belongs to."""
    return x.__array_namespace__()


def while_loop(xp: Any, condition: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
    """`while condition(state): state = body(state)`, by Python on NumPy and by lax under JAX."""
    if xp is np:
        while condition(state):
            state = body(state)
        return state
    import jax

    return jax.lax.while_loop(condition, body, state)


def norm(x: Array) -> Array:
    """|x|, the Euclidean length of a vector."""
    xp = namespace(x)
    return xp.sqrt(xp.sum(x * x))


def tree_map(function: Callable[..., Array], *trees: Tree) -> Tree:
    """Apply a function to the matching arrays of NamedTuples (no JAX needed)."""
    kind = cast(Any, type(trees[0]))
    return kind(*(function(*leaves) for leaves in zip(*trees, strict=True)))
