"""Mini-batches: which rows an agent's loss looks at during a visit."""

from typing import Any

import numpy as np

from amble.arrays import Bits, Indices, Number
from amble.errors import AmbleError, is_whole
from amble.randomness import ROWS, draw

PARTS = (
    24  # bits of a draw that choose a row: enough for any number of rows, and few enough to multiply without overflow
)
PRODUCT_MAX = 1 << (64 - PARTS)  # of a batch's size and an agent's rows


def drawn_rows(
    xp: Any, seed: int, agents: int, i: Number, visit: Number, step: Number, rows: Number, size: int
) -> Indices:
    """The rows of one batch, as a function of (seed, agent, visit, local step) alone:

        row_j = floor((j + u_j) rows / size),  u_j uniform on [0, 1),  j = 0 .. size - 1

    One row from each of `size` equal parts of the agent's rows. So every row is as likely as any other, the mean over a
    batch is right on average, and a batch as large as the agent's rows is all of them. It is computed in whole numbers,
    so that NumPy and JAX draw the same rows.
    """
    bits = xp.uint64
    j = xp.arange(size, dtype=bits)
    agent, visit, step, rows = (xp.asarray(number).astype(bits) for number in (i, visit, step, rows))
    with np.errstate(over="ignore"):  # NumPy warns when scalars wrap around
        token: Bits = step * bits(agents) + agent
        u = draw(xp, bits(seed), token, visit * bits(size) + j, ROWS)
    part = (u * 2.0**PARTS).astype(bits)
    chosen: Indices = (((j << bits(PARTS)) + part) * rows // bits(size << PARTS)).astype(xp.int64)
    return chosen


def check_batch_size(batch_size: object, rows_max: int) -> int | None:
    """The size of a batch; None: all rows of the agent."""
    if batch_size is None:
        return None
    if not is_whole(batch_size) or not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise AmbleError(
            f"batch_size={batch_size!r} was given; it must be a whole number, one or more, or None for all rows."
        )
    if int(batch_size) * rows_max >= PRODUCT_MAX:
        raise AmbleError(f"batch_size={batch_size} is too large for {rows_max:,} rows; give a smaller one, or None.")
    return int(batch_size)
