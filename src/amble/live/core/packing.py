"""Trees of numbers as bytes, and frames around them: what wire.py sends and journal.py stores.

A tree (a NamedTuple of float64 arrays, nested ones too) is packed as the plain little-endian numbers of its leaves, in
their order. Names and shapes are not sent: both ends have a template with them. A frame is

    prefix | length of the header (2 bytes) | header (msgpack) | numbers | CRC-32 of all before it (4 bytes)

The checksum only protects against faulty memory and software; mTLS protects against people.
"""

import operator
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array, Tree, leaves, named_leaves
from amble.digests import sha256
from amble.errors import AmbleError

LENGTH = struct.Struct("<H")
CHECKSUM = struct.Struct("<I")
NUMBER = np.dtype("<f8")
NOTHING = np.empty(0, NUMBER)
DIGEST_DIGITS = 16
RECENT = 6  # trees whose numbers are kept

Place = tuple[int, int, tuple[int, ...]]  # of a leaf among the numbers: from where to where, and its shape


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
    def _places(self) -> list[Place]:
        places, start = [], 0
        for _, shape in self.layout:
            stop = start + int(np.prod(shape, dtype=np.int64))
            places.append((start, stop, shape))
            start = stop
        return places

    def numbers_of(self, tree: Tree) -> Array:
        """As flat(tree), in less time, of a new tree that is of this kind for certain."""
        return _flattened(tree, self._leaves(tree))

    @cached_property
    def _leaves(self) -> Callable[[Tree], Sequence[Array]]:
        """The function that takes the leaves out: one call of C, whatever is nested in what."""
        names = [name.removeprefix(".") for name, _ in self.layout]
        if len(names) > 1:
            return operator.attrgetter(*names)
        return leaves

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
        if finite and not all_finite(numbers):
            raise Refusal("it holds a number that is not finite")
        tree = self.filled(numbers)
        _remember(tree, numbers)
        return tree

    def filled(self, numbers: NDArray[Any]) -> Tree:
        """The tree whose leaves are views of these numbers."""
        return self._branch(numbers)

    @cached_property
    def _branch(self) -> Callable[[NDArray[Any]], Tree]:
        return _branch(self.template, iter(self._places))


def _branch(like: Tree, places: Iterator[Place]) -> Callable[[NDArray[Any]], Tree]:
    """The function that fills a tree of this kind: what follows from the template is found once, not at every hop."""
    if not isinstance(like, tuple):
        start, stop, shape = next(places)
        if len(shape) < 2:
            return operator.itemgetter(slice(start, stop) if shape else (start, ...))
        return lambda numbers: numbers[start:stop].reshape(shape)
    kind, fill = cast(Any, type(like)), [_branch(branch, places) for branch in like]
    return lambda numbers: kind(*[part(numbers) for part in fill])


_recent: tuple[tuple[Tree, Array], ...] = ()  # trees, and their numbers, the newest first


def flat(tree: Tree) -> Array:
    """The numbers of a tree, one leaf after the other; not to be written to.

    Those of the last few trees are cached, because the same parcel is read, digested, journaled and sent.
    """
    for kept, numbers in _recent:
        if kept is tree:
            return numbers
    return _flattened(tree, leaves(tree))


def _flattened(tree: Tree, arrays: Sequence[Array]) -> Array:
    if not arrays:
        return NOTHING
    numbers = np.concatenate(arrays, axis=None, dtype=NUMBER, casting="unsafe")
    _remember(tree, numbers)
    return numbers


def _remember(tree: Tree, numbers: Array) -> None:
    global _recent
    _recent = ((tree, numbers), *_recent[: RECENT - 1])  # a new tuple: other threads may look at the old one


def all_finite(numbers: Array) -> bool:
    """As np.isfinite(numbers).all(), in half the time for the few numbers of most tokens."""
    return b"\0" not in np.isfinite(numbers).tobytes()


def digest(tree: Tree) -> str:
    """A tree in 16 hex digits, for the record: equal only if all bits are equal."""
    return sha256(flat(tree).data).hexdigest()[:DIGEST_DIGITS]


def frame(prefix: bytes, header: bytes, numbers: Array | bytes = b"") -> bytes:
    body = numbers if isinstance(numbers, bytes) else numbers.data
    head = prefix + LENGTH.pack(len(header)) + header
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
