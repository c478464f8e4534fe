"""Rows written to their places in a large array on a GPU, by a kernel that copies them whole.

XLA writes each number of a row on its own, and looks up its place again, which takes several times as long as a copy.
"""

from functools import partial
from typing import Any

from amble.arrays import Tree
from amble.compiling.padded import padded

ROW_LEAST = 32  # numbers: shorter rows are written by XLA
TILE = 1 << 10  # numbers of one row that a program copies
ENTRIES_MAX = 1 << 31  # of the array: places are numbers of 32 bits


def put(tree: Tree, places: tuple[Any, ...], rows: Tree, interpreted: bool = False) -> Tree:
    """The arrays with rows at their places; a row whose first place is beyond the array is dropped. No two rows have
    the same place."""
    import jax

    return jax.tree.map(partial(_put, places=places, interpreted=interpreted), tree, rows)


def _put(array: Any, rows: Any, places: tuple[Any, ...], interpreted: bool) -> Any:
    """The axes of the places come first in both."""
    import jax.numpy as jnp

    own, shared = len(places), places[0].ndim
    width, count = 1, 1
    for side in array.shape[own:]:
        width *= side
    for side in array.shape[:own]:
        count *= side
    if width < ROW_LEAST or array.size >= ENTRIES_MAX:
        return array.at[places].set(rows, mode="drop")
    place = jnp.zeros_like(places[0])
    for at, side in zip(places, array.shape[:own], strict=True):
        place = place * side + at
    place = jnp.where(places[0] < array.shape[0], place, count).reshape(-1).astype(jnp.int32)
    assert rows.shape[:shared] == places[0].shape
    flat = _written(array.reshape(count, width), place, rows.reshape(-1, width), interpreted)
    return flat.reshape(array.shape)


def _written(array: Any, place: Any, rows: Any, interpreted: bool) -> Any:
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    count, width = array.shape
    shape = jax.eval_shape(lambda: array)
    tile = min(TILE, padded((width,))[0])

    def kernel(place: Any, rows: Any, _: Any, array: Any) -> None:
        row = pl.program_id(0)
        at = pl.program_id(1) * tile + jax.lax.broadcasted_iota(jnp.int32, (tile,), 0)
        to = triton.load(place.at[jnp.full((tile,), row, jnp.int32)])
        here = triton.load(
            rows.at[jnp.full((tile,), row, jnp.int32), at], mask=at < width, other=jnp.zeros((), rows.dtype)
        )
        triton.store(array.at[to, at], here, mask=(at < width) & (to < count))

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel,
        grid=(len(rows), -(-width // tile)),
        in_specs=[anywhere] * 3,
        out_specs=anywhere,
        out_shape=shape,
        input_output_aliases={2: 0},
        compiler_params=None if interpreted else triton.CompilerParams(num_warps=4),
        interpret=interpreted,
    )(place, rows, array)
