"""Trees of numbers as bytes, and frames around them: what wire.py sends and journal.py stores.

A tree (a NamedTuple of float64 arrays, nested ones too) is packed as the plain little-endian numbers of its leaves, in
their order. Names and shapes are not sent: both ends have a template with them. A frame is

    prefix | length of the header (2 bytes) | header (msgpack) | numbers | CRC-32 of all before it (4 bytes)

The checksum only protects against faulty memory and software; mTLS protects against people.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array, Tree, leaves, named_leaves
from amble.errors import AmbleError

LENGTH = struct.Struct("<H")
CHECKSUM = struct.Struct("<I")
NUMBER = np.dtype("<f8")
DIGEST_DIGITS = 16
RECENT = 6  # trees whose numbers are kept


class Refusal(AmbleError):
    """Bytes that are refused, and why: one short sentence, which is sent to the sender and logged there."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Packing:
    """How trees of one kind are laid out, which follows from a template."""

    template: Tree

    @cached_property
    def layout(self) -> list[tuple[str, tuple[int, ...]]]:
        """The leaves' names and shapes, in order."""
        return [(name, np.shape(leaf)) for name, leaf in named_leaves(self.template, "").items()]

    @cached_property
    def numbers(self) -> int:
        """How many there are in a tree."""
        return sum(stop - start for start, stop, _ in self._places)

    @cached_property
    def size(self) -> int:
        """In bytes."""
        return self.numbers * NUMBER.itemsize

    @cached_property
    def _places(self) -> list[tuple[int, int, tuple[int, ...]]]:
        places, start = [], 0
        for _, shape in self.layout:
            stop = start + int(np.prod(shape, dtype=np.int64))
            places.append((start, stop, shape))
            start = stop
        return places

    def pack(self, tree: Tree) -> Array:
        """Its numbers, one leaf after the other. A tree of another kind is an error here, before it is sent."""
        numbers = flat(tree)
        if numbers.nbytes != self.size:
            shapes = [np.shape(leaf) for leaf in leaves(tree)]
            wanted = ", ".join(f"{name.removeprefix('.')} {shape}" for name, shape in self.layout)
            raise AmbleError(f"a tree has shapes {shapes}, and those of this run are {wanted}.")
        return numbers

    def unpack(self, data: memoryview, finite: bool) -> Tree:
        """The tree, as a copy that may be changed."""
        if len(data) != self.size:
            raise Refusal(f"it holds {len(data)} bytes of numbers, and {self.size} are expected here")
        numbers = np.frombuffer(data, NUMBER).astype(np.float64)  # a copy, also where the types are the same
        if finite and not np.isfinite(numbers).all():
            raise Refusal("it holds a number that is not finite")
        tree = self.filled(numbers)
        _remember(tree, numbers)
        return tree

    def filled(self, numbers: NDArray[Any]) -> Tree:
        """The tree whose leaves are views of these numbers."""
        return _filled(self.template, iter([numbers[a:b].reshape(shape) for a, b, shape in self._places]))


def _filled(like: Tree, arrays: Iterator[Array]) -> Tree:
    if not isinstance(like, tuple):
        return next(arrays)
    kind = cast(Any, type(like))
    return kind(*[_filled(branch, arrays) if isinstance(branch, tuple) else next(arrays) for branch in like])


_recent: tuple[tuple[Tree, Array], ...] = ()  # trees, and their numbers


def flat(tree: Tree) -> Array:
    """The numbers of a tree, one leaf after the other; not to be written to.

    Those of the last few trees are cached, because the same parcel is read, digested, journaled and sent.
    """
    for kept, numbers in _recent:
        if kept is tree:
            return numbers
    arrays = leaves(tree)
    numbers = np.concatenate(arrays, axis=None, dtype=NUMBER, casting="unsafe") if arrays else np.empty(0, NUMBER)
    _remember(tree, numbers)
    return numbers


def _remember(tree: Tree, numbers: Array) -> None:
    global _recent
    _recent = (*_recent[1 - RECENT :], (tree, numbers))  # a new tuple: other threads may look at the old one


def digest(tree: Tree) -> str:
    """A tree in 16 hex digits, for the record: equal only if all bits are equal."""
    return hashlib.sha256(flat(tree).data).hexdigest()[:DIGEST_DIGITS]


def frame(prefix: bytes, header: bytes, numbers: Array | bytes = b"") -> bytes:
    body = numbers if isinstance(numbers, bytes) else numbers.data
    head = b"".join((prefix, LENGTH.pack(len(header)), header))
    return b"".join((head, body, CHECKSUM.pack(zlib.crc32(body, zlib.crc32(head)))))


def unframe(data: bytes, prefix_size: int) -> tuple[memoryview, memoryview]:
    """The header and the numbers, as views: nothing is allocated."""
    start, stop = prefix_size + LENGTH.size, len(data) - CHECKSUM.size
    if stop < start:
        raise Refusal(f"it has {len(data)} bytes, which is too short")
    view = memoryview(data)
    if CHECKSUM.unpack_from(data, stop)[0] != zlib.crc32(view[:stop]):
        raise Refusal("its checksum is wrong")
    middle = start + LENGTH.unpack_from(data, prefix_size)[0]
    if middle > stop:
        raise Refusal("its header is longer than the whole message")
    return view[start:middle], view[middle:stop]
