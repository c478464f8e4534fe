"""What the counts of a parcel can be. The protocol decides by them when to count anew, whom to bury and when to stop: a
parcel with counts that no agent's visits can have led to is refused, as one with numbers that are not finite is."""

from typing import Any

import numpy as np

VERSIONS_MAX = 2**53  # a ledger's versions are counted in float64, which counts by one up to here


def wrong(parcel: Any, hop: int) -> str:
    """Which count cannot be after so many hops, each of which adds one at most; "" where all can be."""
    bounds = {
        "counted": (parcel.counted, 0, hop),
        "members": (parcel.members, 0, max(hop, len(parcel.met))),
        "since": (parcel.since, -1, hop),
        "calm": (parcel.calm, 0, hop),
        "buried": (parcel.buried, 0, 1),
        "met": (parcel.met, 0, hop),
    }
    if hasattr(parcel.token, "board"):
        bounds["version"] = (parcel.token.board.version, 0, VERSIONS_MAX)
    for name, (values, least, most) in bounds.items():
        if not all(least <= value <= most and value == int(value) for value in np.ravel(values).tolist()):
            return f"its {name} must be whole and from {least} to {most}"
    return ""
