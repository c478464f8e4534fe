"""What all agents know about a run in advance: its settings, its agents and the shape of its messages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from amble.arrays import Tree
from amble.digests import sha256
from amble.errors import AmbleError
from amble.live.core.packing import CHECKSUM, LENGTH, NUMBER, Packing
from amble.live.core.short import Short, ShortPacking
from amble.live.formats.counts import Counts

MAGIC, VERSION = b"amble", 1
FINGERPRINT_BYTES = 16
PREFIX_SIZE = len(MAGIC) + 1 + FINGERPRINT_BYTES
NAME_MAX, TEXT_MAX = 64, 500  # characters
HEADER_MAX = 4 * (TEXT_MAX + 2 * NAME_MAX) + 64  # bytes: a character takes at most four


def run_digest(settings: Mapping[str, Any]) -> str:
    """A digest of a run's settings in 32 hex digits."""
    try:
        text = json.dumps(dict(settings), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AmbleError(f"the run's settings must be plain text, numbers and lists of them, and {error}.") from error
    return sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class Shape:
    """What both ends of a link know of the run."""

    digest: str  # of its settings: run_digest
    agents: tuple[str, ...]
    tokens: int
    template: Tree  # a parcel: visits.visits_for(...).parcel(0)
    room: int = 0  # for agents that come later
    result: int = 0  # numbers of the result that an ending has, where another stage follows
    short: Mapping[str, Short] = field(default_factory=dict)  # leaves of a parcel that are sent in fewer bytes

    def __post_init__(self) -> None:
        if len(self.digest) < 16 or set(self.digest) - set("0123456789abcdef"):
            raise AmbleError(f"a run's digest has 16 hex digits or more, and this is {self.digest!r}; see run_digest.")
        for name in self.agents:
            if not 0 < len(name) <= NAME_MAX or not name.isprintable():
                raise AmbleError(f"an agent's name has 1 to {NAME_MAX} printable characters, and this is {name!r}.")
        if len(self.names) != len(self.agents) or not self.agents:
            raise AmbleError(f"a run has one agent or more, each with its own name, and these are {self.agents}.")
        if self.tokens < 1:
            raise AmbleError(f"a run has one token or more, and this one has {self.tokens}.")

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.agents)

    @property
    def agents_max(self) -> int:
        """With those that come later."""
        return len(self.agents) + self.room

    @cached_property
    def parcel(self) -> Packing:
        return Packing(self.template)

    @cached_property
    def message(self) -> ShortPacking:
        """A parcel as it is sent."""
        return ShortPacking(self.parcel, self.short)

    @cached_property
    def counts(self) -> Counts:
        return Counts.of(self.parcel)

    @cached_property
    def bytes_max(self) -> int:
        """No message of this run is longer: what is need not even be fetched from the network's buffers."""
        numbers = max(self.message.most, NUMBER.itemsize * self.result)
        return PREFIX_SIZE + LENGTH.size + HEADER_MAX + numbers + CHECKSUM.size

    @cached_property
    def fingerprint(self) -> bytes:
        """Of all of the above, so that ends with another layout of the same settings do not misread each other."""
        whole = json.dumps([self.digest, self.agents, self.tokens, self.parcel.layout, *self.short.items()])
        return sha256(whole.encode()).digest()[:FINGERPRINT_BYTES]

    @cached_property
    def prefix(self) -> bytes:
        return MAGIC + bytes([VERSION]) + self.fingerprint
