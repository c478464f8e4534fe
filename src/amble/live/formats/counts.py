"""Checks the counts of a parcel, by which the protocol decides when to recount, whom to bury and when to stop.

A parcel is refused if no visits can have led to its counts, as it is if its numbers are not finite."""

from typing import Any

import numpy as np

from amble.live.core.accounts import GENERATIONS_MAX, LEFT
from amble.live.core.tracked_visits import TrackedToken
from amble.live.core.visits import GiftToken

VERSIONS_MAX = 2**53 - 1  # a ledger's versions are counted in float64, which counts by one up to here


def wrong(parcel: Any, hop: int) -> str:
    """Which count is impossible after so many hops, each of which adds at most one; "" if all are possible."""
    bounds: dict[str, tuple[Any, float, float]] = {
        "members": (parcel.members, 0, max(hop, len(parcel.met))),
        "since": (parcel.since, -1, hop),
        "calm": (parcel.calm, 0, hop),
        "buried": (parcel.buried, 0, 1),
        "met": (parcel.met, 0, hop),
    }
    if isinstance(parcel.token, GiftToken):
        account = parcel.token.account
        bounds |= {
            "version": (account.board.version, 0, VERSIONS_MAX),
            "generation": (account.generation, 0, GENERATIONS_MAX),
            "awaited": (account.awaited, 0, 1),
            "counted out": (account.buried, 0, 1),
            "gifts": (account.gifts, 0, LEFT),
        }
    elif isinstance(parcel.token, TrackedToken):
        bounds["counted"] = (parcel.token.counted, 0, hop)
    for name, (values, least, most) in bounds.items():
        if not all(least <= value <= most and value == int(value) for value in np.ravel(values).tolist()):
            return f"its {name} must be whole and from {least:.0f} to {most:.0f}"
    return ""
