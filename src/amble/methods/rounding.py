"""Short messages: numbers rounded to those that a smaller type can hold, by arithmetic alone.

    Q(y) = unit round(y / unit)

where
    unit     is a power of two: of each number, so that 24 (float32) or 11 (float16) binary digits are left; or
             (int8) of each 64 numbers in a row, so that the largest is from 64 to 127 units
A number that is too large for the type becomes infinite, so that the run is seen to diverge. Rounding twice is rounding
once: the short form of rounded numbers, which a live message has (live/core/short.py), loses nothing.
"""

from typing import Any, NamedTuple

from amble.arrays import Array, namespace

BLOCK = 64  # numbers that share a unit in int8
LEVELS = 127.0
UNIT_MIN, POWER_MAX = -100, 100  # of int8, as powers of two


class Float(NamedTuple):
    """A smaller floating-point type."""

    digits: int  # binary ones
    least: int  # the power of two of its smallest number
    largest: float


FLOATS = {"float32": Float(24, -149, 3.4028234663852886e38), "float16": Float(11, -24, 65504.0)}
NUMBER_BYTES = {"float64": 8, "float32": 4, "float16": 2, "int8": 1}
TYPES = tuple(NUMBER_BYTES)
# how far a number may be from the one that is sent, as a share of the largest beside it
LOSSES = {"float64": 0.0, "float32": 2.0**-23, "float16": 2.0**-10, "int8": 2.0**-6}


def lost(method: object) -> float:
    """What the messages of a method lose, as a share of their largest number."""
    return LOSSES[getattr(method, "message", "float64")]


def message_bytes(kind: str, p: int) -> int:
    """Of p numbers; in int8 each block has one more byte, for its unit."""
    return NUMBER_BYTES[kind] * p + (-(-p // BLOCK) if kind == "int8" else 0)


def rounded(y: Array, kind: str) -> Array:
    """Q(y): the nearest numbers of that type, as float64."""
    if kind == "float64":
        return y
    xp = namespace(y)
    if kind in FLOATS:
        digits, least, largest = FLOATS[kind]
        unit = xp.maximum(_power(xp, y) * 2.0**-digits, 2.0**least)
        q = xp.round(y / unit) * unit
        beyond = ~(abs(q) <= largest)
    else:
        padded = xp.concatenate([y, xp.zeros(-y.shape[-1] % BLOCK)]).reshape(-1, BLOCK)
        unit = units(padded)[:, None]
        q = (xp.round(padded / unit) * unit).reshape(-1)[: y.shape[-1]]
        beyond = ~(abs(y) <= 2.0**POWER_MAX)
    q = xp.where(q == 0, 0.0, q)  # -0 and 0 are one number in int8, and two in a digest
    lost = xp.where(xp.isnan(y), xp.nan, xp.copysign(xp.inf, y))
    return xp.where(beyond, lost, q)


def units(blocks: Array) -> Array:
    """The unit of each block, in int8."""
    xp = namespace(blocks)
    most = abs(blocks).max(axis=-1)
    unit = xp.maximum(_power(xp, most) * 2.0**-7, 2.0**UNIT_MIN)
    return xp.where(xp.round(most / unit) > LEVELS, 2 * unit, unit)


def _power(xp: Any, y: Array) -> Array:
    """The power of two above |y|, exactly: y = m 2^e with 1/2 <= |m| < 1."""
    m, _ = xp.frexp(y)
    known = (m != 0) & xp.isfinite(y)
    return xp.where(known, y / xp.where(known, m, 1.0), 1.0)
