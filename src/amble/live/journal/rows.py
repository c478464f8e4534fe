"""The rows of an agent's state as bytes, for the journal: the names and types are those of protocol.Core.rows.

    holder      what the agent keeps for itself (parcels.Holder)
    share/m     what it gave token m, and in which epoch (protocol.Share)
    sight/m     the newest that it knows of token m (protocol.Sight)
    custody/m   token m as it left, and whom it is meant for (protocol.Custody)
    stopped     why the run has ended (message.Ending)
    leaving     that the agent was asked to leave
    probed      who last asked whether it works: written to test the disk
    left        how it has left (effects.Left)

A row is a frame (packing.py): its prefix is a version and its name, so that no row is ever taken for another; the row
without its tree is the header, and the tree is the numbers.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from amble.arrays import Tree
from amble.digests import sha256
from amble.errors import AmbleError
from amble.live.codec import msgspec
from amble.live.core.effects import Custody, Left, Share, Sight
from amble.live.core.message import Ending, Epoch
from amble.live.core.packing import DIGEST_DIGITS, Packing, Refusal, frame, unframe
from amble.live.core.parcels import Visits
from amble.live.formats.shape import Shape
from amble.losses.objective import Objective

VERSION = b"\x01"

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[str, Any] = {
    "holder": msgspec.msgpack.Decoder(None),
    "share": msgspec.msgpack.Decoder(Epoch),
    "sight": msgspec.msgpack.Decoder(Sight),
    "custody": msgspec.msgpack.Decoder(Custody),
    "stopped": msgspec.msgpack.Decoder(Ending),
    "leaving": msgspec.msgpack.Decoder(str),
    "probed": msgspec.msgpack.Decoder(str),
    "left": msgspec.msgpack.Decoder(Left | str),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """How the rows of one run are written."""

    trees: dict[str, Packing]  # of the kinds of rows that have one
    _known: dict[str, tuple[str, bytes, Packing | None]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, shape: Shape, visits: Visits, objective: Objective) -> "Rows":
        holder, share = Packing(visits.holder(objective)), Packing(visits.share())
        return cls({"holder": holder, "share": share, "custody": shape.parcel})

    @property
    def digest(self) -> str:
        """Of the layout: rows of another one would be misread."""
        layout = {kind: packing.layout for kind, packing in self.trees.items()}
        return sha256(json.dumps(layout).encode()).hexdigest()[:DIGEST_DIGITS]

    def pack(self, name: str, row: Any) -> bytes:
        kind, prefix, packing = self._known.get(name) or self._learn(name)
        header, tree = _apart(kind, row)
        numbers = packing.pack(tree) if packing else tree or b""
        return frame(prefix, _encoder.encode(header), numbers)

    def _learn(self, name: str) -> tuple[str, bytes, Packing | None]:
        """What follows from the name of a row, which is found once: there are few names, and they come at every hop."""
        kind = name.partition("/")[0]
        if kind not in _decoders:
            raise AmbleError(f"a journal has rows of the kinds {', '.join(_decoders)}, and this is {name!r}.")
        self._known[name] = kind, VERSION + name.encode(), self.trees.get(kind)
        return self._known[name]

    def unpack(self, name: str, data: bytes) -> Any:
        """The row, bit for bit; a Refusal where the bytes are not those of one."""
        kind = name.partition("/")[0]
        prefix = VERSION + name.encode()
        if kind not in _decoders or not data.startswith(prefix):
            raise Refusal(f"this is no row {name!r}, or not one in this version")
        header_bytes, numbers = unframe(data, len(prefix))
        try:
            header = _decoders[kind].decode(header_bytes)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Refusal(f"the header of {name} is wrong: {error}") from error
        # not only finite ones: what an agent had when it stopped is what it gets back
        tree = self.trees[kind].unpack(numbers, finite=False) if kind in self.trees else bytes(numbers)
        return _together(kind, header, tree)


def _apart(kind: str, row: Any) -> tuple[Any, Tree]:
    """A row as what goes into the header, and its tree."""
    if kind == "holder":
        return None, row
    if kind == "share":
        return row.epoch, row.share
    if kind == "custody":
        message = row.message
        return ((*message[:-1], None), *row[1:]), message.payload
    if kind == "stopped":
        return row._replace(result=b""), row.result
    return row, None


def _together(kind: str, header: Any, tree: Tree) -> Any:
    if kind == "holder":
        return tree
    if kind == "share":
        return Share(header, tree)
    if kind == "custody":
        return header._replace(message=header.message._replace(payload=tree))
    if kind == "stopped":
        return header._replace(result=tree)
    return _left_before_4(header) if isinstance(header, str) and kind == "left" else header


def _left_before_4(sentence: str) -> Left:
    """From a journal of format 3, which had the sentence only."""
    return Left(sentence == "all that it gave is out of the model", sentence)
