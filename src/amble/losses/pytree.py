"""A pytree of JAX as one vector, and back. Only its arrays of floating-point numbers are trained."""

from collections.abc import Hashable
from typing import Any, NamedTuple, final

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, need, shown


class Piece(NamedTuple):
    """Where an array of the pytree lies in the vector."""

    leaf: int
    begin: int
    end: int
    shape: tuple[int, ...]
    dtype: Any
    numpy: bool  # whether it was given as a NumPy array


@final
class Layout:
    """How a vector becomes the params: arrays of floating-point numbers one after another, each in its own dtype.

    All other leaves stay as they were given: whole numbers, text, functions such as an equinox module's activation.
    """

    def __init__(self, params: Any) -> None:
        jax = need("jax", "sim")
        self.leaves, self.treedef = jax.tree.flatten(params)
        self.pieces: list[Piece] = []
        end = 0
        for k, leaf in enumerate(self.leaves):
            if is_trained(leaf):
                begin, end = end, end + int(np.prod(leaf.shape))
                self.pieces.append(Piece(k, begin, end, leaf.shape, leaf.dtype, isinstance(leaf, np.ndarray)))
                self.leaves[k] = None
        self.dimension = end
        if not self.dimension:
            raise AmbleError(
                f"params={shown(params)} was given, and it has no array of floating-point numbers to train; give a "
                "pytree of arrays, such as a dict."
            )
        with jax.enable_x64(True):
            self.dtype = jax.numpy.result_type(*(piece.dtype for piece in self.pieces))

    @property
    def key(self) -> Hashable:
        """Equal where a vector becomes the same params; leaves that are not trained are told apart by identity."""
        return self.treedef, tuple(self.pieces), tuple(id(leaf) for leaf in self.leaves if leaf is not None)

    def params(self, w: Any) -> Any:
        """The pytree of a vector, for a function that JAX traces."""
        import jax

        leaves = list(self.leaves)
        for piece in self.pieces:
            leaves[piece.leaf] = w[piece.begin : piece.end].reshape(piece.shape).astype(piece.dtype)
        return jax.tree.unflatten(self.treedef, leaves)

    def given(self, w: Array) -> Any:
        """The pytree of a vector, for a person: NumPy's arrays where such were given, else JAX's."""
        import jax

        leaves = list(self.leaves)
        with jax.enable_x64(True):  # else JAX would halve the digits of float64
            for piece in self.pieces:
                array = w[piece.begin : piece.end].reshape(piece.shape).astype(piece.dtype)
                leaves[piece.leaf] = array if piece.numpy else jax.numpy.asarray(array)
        return jax.tree.unflatten(self.treedef, leaves)

    def vector(self, params: Any) -> Array:
        """The vector of a pytree, which must have the structure and the shapes of the first one."""
        import jax

        leaves, treedef = jax.tree.flatten(params)
        if treedef != self.treedef:
            raise AmbleError(
                f"params of structure {treedef} were given; give the structure of the first: {self.treedef}."
            )
        for piece in self.pieces:
            if np.shape(leaves[piece.leaf]) != piece.shape:
                raise AmbleError(
                    f"params with an array of shape {np.shape(leaves[piece.leaf])} were given, where the first had "
                    f"{piece.shape}; give the same shapes."
                )
        return np.concatenate([np.asarray(leaves[piece.leaf]).astype(np.float64).reshape(-1) for piece in self.pieces])


def is_trained(leaf: Any) -> bool:
    """An array of floating-point numbers. A Python float is a setting, not an array."""
    import jax.numpy as jnp

    return hasattr(leaf, "dtype") and hasattr(leaf, "shape") and bool(jnp.issubdtype(leaf.dtype, jnp.floating))
