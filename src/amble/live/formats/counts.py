"""Checks the counts of a parcel, by which the protocol decides when to recount, whom to bury and when to stop.

A parcel is refused if no visits can have led to its counts, as it is if its numbers are not finite. All counts are
compared at once, by their places among the parcel's numbers: this is done at every hop."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from amble.arrays import Array, Indices
from amble.live.core.accounts import GENERATIONS_MAX, LEFT
from amble.live.core.packing import Packing
from amble.live.core.tracked_visits import TrackedToken
from amble.live.core.visits import GiftToken

VERSIONS_MAX = 2**53 - 1  # a ledger's versions are counted in float64, which counts by one up to here


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of parcels of one layout, and what each may be."""

    names: tuple[str, ...]  # one per count, as are the others
    places: Indices  # among the parcel's numbers
    least: Array
    most: Array
    by_hop: Array  # 1 where it may be the number of hops, too: each hop adds at most one

    @classmethod
    def of(cls, packing: Packing) -> "Counts":
        parcel = packing.filled(np.arange(packing.numbers))
        everybody = len(parcel.met)
        bounds: dict[str, tuple[Any, float, float, bool]] = {  # places, the least, the most, and whether hops count
            "members": (parcel.members, 0, everybody, True),
            "since": (parcel.since, -1, -1, True),
            "calm": (parcel.calm, 0, 0, True),
            "buried": (parcel.buried, 0, 1, False),
            "met": (parcel.met, 0, 0, True),
        }
        if isinstance(parcel.token, GiftToken):
            account = parcel.token.account
            bounds |= {
                "version": (account.board.version, 0, VERSIONS_MAX, False),
                "generation": (account.generation, 0, GENERATIONS_MAX, False),
                "awaited": (account.awaited, 0, 1, False),
                "counted out": (account.buried, 0, 1, False),
                "gifts": (account.gifts, 0, LEFT, False),
            }
        elif isinstance(parcel.token, TrackedToken):
            bounds["counted"] = (parcel.token.counted, 0, 0, True)
        lines = [
            (name, place, *limits) for name, (places, *limits) in bounds.items() for place in np.ravel(places).tolist()
        ]
        names, places, *limits = zip(*lines, strict=True)
        return cls(names, np.array(places), *(np.array(column, np.float64) for column in limits))

    def wrong(self, numbers: Array, hop: int) -> str:
        """Which count is impossible after so many hops; "" if all are possible."""
        values, most = numbers.take(self.places), np.maximum(self.most, self.by_hop * hop)
        bad = values != np.minimum(np.maximum(np.rint(values), self.least), most)
        if b"\1" not in bad.tobytes():
            return ""
        k = int(bad.argmax())
        return f"its {self.names[k]} must be whole and from {self.least[k]:.0f} to {most[k]:.0f}"
