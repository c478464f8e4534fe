"""Random numbers as a function of (seed, token, hop, stream).

No generator has a state, so nothing depends on the order of the draws. Any hop's draw can be recomputed on its own,
with NumPy or with JAX."""

from typing import Any

import numpy as np

from amble.arrays import Array, Bits
from amble.errors import AmbleError

GOLDEN, BITS = 0x9E3779B97F4A7C15, 2**64 - 1
LINK, WALK, TIE, ROWS = 0, 1, 2, 3  # streams: link time, choice of the next agent, ties among neighbours, a batch


def check_seed(seed: object) -> int:
    """The seed as an int. It must be a whole number that fits 64 bits."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise AmbleError(f"seed={seed!r} was given; it must be a whole number from 0 to 2**64 - 1.")
    return int(seed)


def mix(xp: Any, bits: Bits) -> Bits:
    """SplitMix64's finaliser: every bit of the input moves every bit of the output."""
    bits = (bits ^ (bits >> xp.uint64(30))) * xp.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> xp.uint64(27))) * xp.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> xp.uint64(31))


def whole(seed: int, *numbers: int) -> int:
    """A seed of 63 bits as a function of a seed and whole numbers, for generators that other libraries bring."""
    bits = np.uint64(seed)
    with np.errstate(over="ignore"):
        for number in numbers:
            bits = np.uint64(mix(np, bits + np.uint64(GOLDEN) * np.uint64(number + 1)))
    return int(bits >> np.uint64(1))


def draw(xp: Any, seed: Bits, token: Bits, hop: Bits, stream: int) -> Array:
    """Uniform on [0, 1): the draw of this stream at this token's hop. All arguments are uint64 arrays."""
    golden = xp.uint64(GOLDEN)
    with np.errstate(over="ignore"):  # NumPy warns when scalars wrap around, but here wrapping is intended
        bits = mix(xp, seed + golden)
        bits = mix(xp, bits + golden * (token + xp.uint64(1)))
        bits = mix(xp, bits + golden * (hop * xp.uint64(4) + xp.uint64(stream + 1)))
    return (bits >> xp.uint64(11)).astype(xp.float64) * 2.0**-53


def draw_one(seed: int, token: int, hop: int, stream: int) -> float:
    """The same for a single hop, bit for bit, with Python's whole numbers: NumPy takes ten times as long for one."""
    bits = _mix_one(seed + GOLDEN)
    bits = _mix_one(bits + GOLDEN * (token + 1))
    bits = _mix_one(bits + GOLDEN * (hop * 4 + stream + 1))
    return (bits >> 11) * 2.0**-53


def _mix_one(bits: int) -> int:
    bits &= BITS
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & BITS
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & BITS
    return bits ^ (bits >> 31)
