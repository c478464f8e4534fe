"""Array functions for NumPy and JAX: code written with these runs on both."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

# NumPy's and JAX's arrays (and JAX's tracers) have no type in common. Code for both is checked as if for NumPy; code
# that only JAX runs uses `Any`, and so does a variable that is numpy or jax.numpy: a module is not a type.
Array = NDArray[np.float64]
Number = float | Array  # one number, or an array without axes
Flags = NDArray[np.bool_]
Indices = NDArray[np.integer[Any]]
Bits = np.uint64 | NDArray[np.uint64]
Tree = Any  # an array, or a NamedTuple of trees: Python has no type for any NamedTuple
BEYOND = 1e50  # a model beyond this has diverged
SWEPT_UP_TO = 32  # unknowns: from there on LAPACK solves faster, with the calls that it takes (measured)


def namespace(x: NDArray[Any]) -> Any:
    """numpy or jax.numpy, whichever the array belongs to."""
    return np if type(x) is np.ndarray else x.__array_namespace__()  # NumPy's own answer is an import, at every call


def while_loop(xp: Any, condition: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
    """`while condition(state): state = body(state)`, by Python on NumPy and by lax under JAX."""
    if xp is np:
        while condition(state):
            state = body(state)
        return state
    import jax

    return jax.lax.while_loop(condition, body, state)


def either(xp: Any, flag: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """`yes() if flag else no()`; under JAX the other one is not computed either, but for lanes that go together."""
    if xp is np:
        return yes() if flag else no()
    import jax

    return jax.lax.cond(flag, yes, no)


def norm(x: Array) -> Array:
    """|x|, the Euclidean length of a vector."""
    return namespace(x).sqrt((x * x).sum())


def solver(A: Array) -> Callable[[Array], Array]:
    """v -> A^-1 v, for a symmetric positive definite A with ones on its diagonal.

    Under JAX a small A is inverted by sweeping its rows one after another; calling a library would take longer.

        A' = A - d s s^T,  s = row j of A less one in place j,  d = 1/A_jj

    leaves in row j the row of the inverse of what is swept so far, with the sign turned and 2 on the diagonal.
    """
    xp, p = namespace(A), A.shape[-1]
    if xp is np or p > SWEPT_UP_TO:
        return lambda v: xp.linalg.solve(A, v)
    import jax

    def row(A: Any, j: Any) -> tuple[Any, Any]:
        entries = A.at[j].get(mode="promise_in_bounds")
        pivot = entries.at[j].get(mode="promise_in_bounds")
        s = xp.where(xp.arange(p) == j, pivot - 1, entries)
        return s, s / pivot

    def sweep(j: Any, swept: Any) -> Any:
        A, s, scaled = swept
        A = A - s[:, None] * scaled
        return A, *row(A, xp.minimum(j + 1, p - 1))

    inverse = 2 * xp.eye(p) - jax.lax.fori_loop(0, p, sweep, (A, *row(A, 0)))[0]
    return lambda v: inverse @ v


def tree_map(function: Callable[..., Array], *trees: Tree) -> Tree:
    """Apply a function to the matching arrays of NamedTuples, nested ones too (no JAX needed)."""
    if not isinstance(trees[0], tuple):
        return function(*trees)
    kind = cast(Any, type(trees[0]))
    return kind(*(tree_map(function, *branches) for branches in zip(*trees, strict=True)))


def chosen(flag: Any, one: Tree, other: Tree) -> Tree:
    """One of two trees, leaf by leaf."""
    return tree_map(lambda a, b: namespace(a).where(flag, a, b), one, other)


def leaves(tree: Tree) -> list[Array]:
    """The arrays of a tree, in order."""
    if not isinstance(tree, tuple):
        return [tree]
    arrays: list[Array] = []
    for branch in tree:
        if isinstance(branch, tuple):
            arrays += leaves(branch)
        else:
            arrays.append(branch)
    return arrays


def named_leaves(tree: Tree, name: str) -> dict[str, Array]:
    """The arrays of a NamedTuple by their dotted names, for saving."""
    if not isinstance(tree, tuple):
        return {name: tree}
    named: dict[str, Array] = {}
    for key, branch in cast(Any, tree)._asdict().items() if tree else ():
        named |= named_leaves(branch, f"{name}.{key}")
    return named


def from_named(like: Tree, name: str, arrays: dict[str, Array]) -> Tree:
    """Rebuilds the NamedTuple that `named_leaves` took apart; `like` is one of the same kind."""
    if not isinstance(like, tuple):
        return arrays[name]
    if not like:
        return like
    kind = cast(Any, type(like))
    return kind(*(from_named(branch, f"{name}.{key}", arrays) for key, branch in cast(Any, like)._asdict().items()))


def as_tuple(name: str, arrays: dict[str, Array]) -> Tree:
    """A NamedTuple from the names of `named_leaves`, for when its class is not available."""
    if name in arrays:
        return arrays[name]
    keys = dict.fromkeys(key[len(name) + 1 :].partition(".")[0] for key in arrays if key.startswith(f"{name}."))
    kind: Any = namedtuple("Fields", keys)  # type: ignore[misc]
    return kind(*(as_tuple(f"{name}.{key}", arrays) for key in keys)) if keys else ()
