"""The clock of round methods: a round ends when its slowest agent and its links are done."""

from typing import NamedTuple

import numpy as np

from amble.arrays import Array
from amble.randomness import LINK, draw
from amble.schedule.timing import Timing, link_seconds

DRAWS_AT_A_TIME = 1 << 20


class Rounds(NamedTuple):
    """When each round ends."""

    time_s: Array

    @property
    def hops(self) -> int:
        return len(self.time_s)

    def first(self, rounds: int) -> "Rounds":
        return Rounds(self.time_s[:rounds])


def plan_rounds(
    timing: Timing,
    *,
    compute_s: Array,
    message_bytes: float,
    seed: int,
    rounds: int,
    links: int | None = None,
    messages: int = 1,
) -> Rounds:
    """The ends of so many rounds: gossip over that many links, or else with a server and so many messages each way."""
    link = timing.link(message_bytes)
    if links is not None:
        return Rounds(np.cumsum(gossip(link, compute_s, seed, rounds, links)))
    return Rounds(np.cumsum(server(link, compute_s, seed, rounds, messages)))


def gossip(link: Array, compute_s: Array, seed: int, rounds: int, links: int) -> Array:
    """All compute, then two messages cross every link. The largest of n uniform draws is u^(1/n), so one draw does."""
    if links == 0:
        return np.full(rounds, np.max(compute_s))
    u = draw(np, np.uint64(seed), np.uint64(0), np.arange(rounds, dtype=np.uint64), LINK)
    return np.max(compute_s) + link_seconds(np, link, u ** (1 / (2 * links)))


def server(link: Array, compute_s: Array, seed: int, rounds: int, messages: int) -> Array:
    """Every agent hears, computes and answers; the server waits for the slowest agent.

    Each way there are M messages at once, one for each token: an agent computes when it has heard the last of them.
    """
    N = len(compute_s)
    agent = np.arange(N, dtype=np.uint64)
    spans = [np.zeros(0)]
    step = max(1, DRAWS_AT_A_TIME // N)
    for begin in range(0, rounds, step):
        k = np.arange(begin, min(begin + step, rounds), dtype=np.uint64)[:, None] * np.uint64(2)
        draws = (draw(np, np.uint64(seed), agent, k + np.uint64(way), LINK) for way in (0, 1))
        hear, say = (link_seconds(np, link, u ** (1 / messages)) for u in draws)  # the slowest of M, as in gossip
        spans.append((hear + compute_s + say).max(axis=1))
    return np.concatenate(spans)
