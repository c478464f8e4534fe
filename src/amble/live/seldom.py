"""Limits a log line to once a minute, so that a stranger cannot fill the disk with refused requests."""

import math
import threading
from collections.abc import Hashable

EVERY_S = 60.0
KEYS_MAX = 1000  # all further ones count as one


class Seldom:
    """Whether to log something now. Any thread may ask."""

    def __init__(self, every_s: float = EVERY_S, keys_max: int = KEYS_MAX) -> None:
        self.every_s, self.keys_max = every_s, keys_max
        self.said: dict[Hashable, tuple[float, int]] = {}  # when each was last said, and how often left out since
        self.alone = threading.Lock()

    def __call__(self, key: Hashable, now: float) -> int | None:
        """How often it was left out since it was last said; None where it is to be left out now, too."""
        with self.alone:
            if key not in self.said and len(self.said) >= self.keys_max:
                key = None
            said_s, left_out = self.said.get(key, (-math.inf, 0))
            due = now - said_s >= self.every_s
            self.said[key] = (now, 0) if due else (said_s, left_out + 1)
            return left_out if due else None


def more(left_out: int) -> str:
    return f" (and {left_out:,} more like it, not logged)" if left_out else ""
