"""Short messages: the numbers of some leaves of a parcel in fewer bytes, without loss.

A method that rounds what travels (methods/rounding.py) says which leaves of its token, in `short`. A message has these
leaves in the small type, and all others as float64. What is journaled, digested and computed with is float64.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from amble.arrays import Array, Tree
from amble.errors import AmbleError
from amble.live.core.packing import NUMBER, Packing, Refusal, all_finite
from amble.methods.rounding import BLOCK, message_bytes, units

INT8 = np.dtype("i1")
FLOATS: dict[str, np.dtype[Any]] = {"float64": NUMBER, "float32": np.dtype("<f4"), "float16": np.dtype("<f2")}


@dataclass(frozen=True, eq=False)
class ShortPacking:
    """A parcel as the bytes of a message."""

    whole: Packing
    kinds: Mapping[str, str]  # of the leaves that are short, by their dotted names

    @cached_property
    def _parts(self) -> list[tuple[str, int, int]]:
        """The leaves in order: their types, and how many numbers and bytes each has."""
        parts = []
        for name, shape in self.whole.layout:
            count, kind = int(np.prod(shape, dtype=np.int64)), self.kinds.get(name.removeprefix("."), "float64")
            parts.append((kind, count, message_bytes(kind, count)))
        return parts

    @cached_property
    def size(self) -> int:
        """In bytes."""
        return sum(size for _, _, size in self._parts)

    def pack(self, tree: Tree) -> Array | bytes:
        numbers = self.whole.pack(tree)
        if not self.kinds:
            return numbers
        made, begin = [], 0
        for kind, count, _ in self._parts:
            mine = numbers[begin : begin + count]
            data = _as_bytes(kind, mine)
            if not np.array_equal(_numbers(kind, count, memoryview(data)), mine):
                raise AmbleError(f"a token has numbers that {kind} cannot hold; a method rounds what it calls short.")
            made.append(data)
            begin += count
        return b"".join(made)

    def unpack(self, data: memoryview, finite: bool) -> Tree:
        if not self.kinds:
            return self.whole.unpack(data, finite)
        if len(data) != self.size:
            raise Refusal(f"it holds {len(data)} bytes of numbers, and {self.size} are expected here")
        found, begin = [], 0
        for kind, count, size in self._parts:
            found.append(_numbers(kind, count, data[begin : begin + size]))
            begin += size
        numbers = np.concatenate(found)
        if finite and not all_finite(numbers):
            raise Refusal("it holds a number that is not finite")
        return self.whole.filled(numbers)


def _as_bytes(kind: str, numbers: Array) -> bytes:
    if kind in FLOATS:
        with np.errstate(over="ignore"):  # pack finds it
            return numbers.astype(FLOATS[kind]).tobytes()
    blocks = np.concatenate([numbers, np.zeros(-len(numbers) % BLOCK)]).reshape(-1, BLOCK)
    unit = units(blocks)
    powers = (np.frexp(unit)[1] - 1).astype(np.int8)
    with np.errstate(invalid="ignore"):
        return powers.tobytes() + np.rint(blocks / unit[:, None]).astype(np.int8).reshape(-1)[: len(numbers)].tobytes()


def _numbers(kind: str, count: int, data: memoryview) -> Array:
    if kind in FLOATS:
        return np.frombuffer(data, FLOATS[kind]).astype(np.float64)
    whole: Array = np.frombuffer(data, INT8)
    powers, levels = np.split(whole, [-(-count // BLOCK)])
    return levels * np.ldexp(1.0, np.repeat(powers.astype(np.int64), BLOCK)[:count])
