"""Short messages: the numbers of some leaves of a parcel in fewer bytes, without loss.

A leaf is short in one of two ways, or in both. Its numbers are of a smaller type, where the method has rounded them
(methods/rounding.py). Or its matrices are symmetric, so their upper halves say everything. What is journaled, digested
and computed with is float64. A parcel that does not fit, such as that of an agent that has just taken its gifts out
again, is sent as it is: the length of a message says which of the two it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array, Tree
from amble.live.core.packing import NUMBER, Packing, Refusal, all_finite
from amble.methods.rounding import BLOCK, message_bytes, units

INT8 = np.dtype("i1")
FLOATS: dict[str, np.dtype[Any]] = {"float64": NUMBER, "float32": np.dtype("<f4"), "float16": np.dtype("<f2")}


class Short(NamedTuple):
    """How a message has a leaf."""

    kind: str  # the type of its numbers
    symmetric: bool = False  # it has the upper halves of its matrices


class Part(NamedTuple):
    """A leaf in a message."""

    kind: str
    whole: int  # how many numbers it has
    chosen: int  # how many of them are sent
    size: int  # in bytes
    upper: NDArray[np.int64] | None  # where those are among all; None: all are sent
    mirrored: NDArray[np.int64] | None  # where each of all is among those

    def pack(self, numbers: Array) -> bytes:
        mine = numbers if self.upper is None else numbers[self.upper]
        if self.kind in FLOATS:
            with np.errstate(over="ignore"):  # it does not fit then
                return mine.astype(FLOATS[self.kind]).tobytes()
        blocks = np.concatenate([mine, np.zeros(-self.chosen % BLOCK)]).reshape(-1, BLOCK)
        unit = units(blocks)
        powers = (np.frexp(unit)[1] - 1).astype(np.int8)
        with np.errstate(invalid="ignore"):
            return (
                powers.tobytes() + np.rint(blocks / unit[:, None]).astype(np.int8).reshape(-1)[: self.chosen].tobytes()
            )

    def unpack(self, data: memoryview) -> Array:
        if self.kind in FLOATS:
            mine: Array = np.frombuffer(data, FLOATS[self.kind]).astype(np.float64)
        else:
            whole: NDArray[Any] = np.frombuffer(data, INT8)
            powers, levels = np.split(whole, [-(-self.chosen // BLOCK)])
            mine = levels * np.ldexp(1.0, np.repeat(powers.astype(np.int64), BLOCK)[: self.chosen])
        return mine if self.mirrored is None else mine[self.mirrored]


def part(shape: tuple[int, ...], short: Short) -> Part:
    whole = int(np.prod(shape, dtype=np.int64))
    if not short.symmetric:
        return Part(short.kind, whole, whole, message_bytes(short.kind, whole), None, None)
    p = shape[-1]
    rows, columns = np.triu_indices(p)
    place = np.empty((p, p), np.int64)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    matrices = np.arange(whole // (p * p))[:, None]
    upper = (matrices * p * p + rows * p + columns).ravel()
    mirrored = (matrices * len(rows) + place.ravel()).ravel()
    return Part(short.kind, whole, len(upper), message_bytes(short.kind, len(upper)), upper, mirrored)


@dataclass(frozen=True, eq=False)
class ShortPacking:
    """A parcel as the bytes of a message."""

    whole: Packing
    short: Mapping[str, Short]  # the leaves that are short, by their dotted names

    @cached_property
    def _parts(self) -> list[Part]:
        """The leaves, in order."""
        float64 = Short("float64")
        return [part(shape, self.short.get(name.removeprefix("."), float64)) for name, shape in self.whole.layout]

    @cached_property
    def size(self) -> int:
        """In bytes, of a parcel that fits."""
        return sum(each.size for each in self._parts)

    @property
    def most(self) -> int:
        """In bytes, of any parcel."""
        return max(self.size, self.whole.size)

    def pack(self, tree: Tree) -> Array | bytes:
        numbers = self.whole.pack(tree)
        if not self.short:
            return numbers
        packed, begin = [], 0
        for leaf in self._parts:
            whole = numbers[begin : begin + leaf.whole]
            data = leaf.pack(whole)
            if not np.array_equal(leaf.unpack(memoryview(data)).view(np.int64), whole.view(np.int64)):  # -0 is not 0
                return numbers
            packed.append(data)
            begin += leaf.whole
        return b"".join(packed)

    def unpack(self, data: memoryview, finite: bool) -> Tree:
        if not self.short or len(data) == self.whole.size:
            return self.whole.unpack(data, finite)
        if len(data) != self.size:
            raise Refusal(
                f"it holds {len(data)} bytes of numbers, and {self.size} or {self.whole.size} are expected here"
            )
        unpacked, begin = [], 0
        for leaf in self._parts:
            unpacked.append(leaf.unpack(data[begin : begin + leaf.size]))
            begin += leaf.size
        numbers = np.concatenate(unpacked)
        if finite and not all_finite(numbers):
            raise Refusal("it holds a number that is not finite")
        return self.whole.filled(numbers)
