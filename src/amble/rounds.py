"""The clock of round methods: a round ends when its slowest agent, with its links, has ended."""

from typing import Any, NamedTuple

import numpy as np

from amble.chance import LINK, draw
from amble.timing import Timing, link_seconds

DRAWS_AT_A_TIME = 1 << 20


class Rounds(NamedTuple):
    """When each round ends."""

    time_s: Any

    @property
    def hops(self) -> int:
        return len(self.time_s)

    def first(self, rounds: int) -> "Rounds":
        return Rounds(self.time_s[:rounds])


def make(timing: Timing, *, compute_s: Any, message_bytes: float, seed: int, rounds: int) -> Rounds:
    """Each round: every agent hears (one message), computes, says (one message); all wait for the slowest."""
    N = len(compute_s)
    link = timing.link(message_bytes)
    agent = np.arange(N, dtype=np.uint64)
    spans = []
    step = max(1, DRAWS_AT_A_TIME // N)
    for begin in range(0, rounds, step):
        k = np.arange(begin, min(begin + step, rounds), dtype=np.uint64)[:, None] * np.uint64(2)
        hear, say = (
            link_seconds(np, link, draw(np, np.uint64(seed), agent, k + np.uint64(way), LINK)) for way in (0, 1)
        )
        spans.append((hear + compute_s + say).max(axis=1))
    return Rounds(np.cumsum(np.concatenate(spans)) if spans else np.zeros(0))
