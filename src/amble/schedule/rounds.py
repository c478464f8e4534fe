"""The clock of round methods: a round ends when its slowest agent and its links are done."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from amble.arrays import Array
from amble.methods import NUMBER_BYTES
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
    layers: Sequence[int] = (),
) -> Rounds:
    """The ends of so many rounds: gossip over that many links, or else with a server and so many messages each way.

    `layers` are the sizes of the layers of the tree over which agents agree on a number, without its root's.
    """
    link = timing.link(message_bytes)
    if links is not None:
        agreeing = agreement(timing.link(NUMBER_BYTES), seed, rounds, layers)
        return Rounds(np.cumsum(gossip(link, compute_s, seed, rounds, links) + agreeing))
    return Rounds(np.cumsum(server(link, compute_s, seed, rounds, messages)))


def gossip(link: Array, compute_s: Array, seed: int, rounds: int, links: int) -> Array:
    """All compute, then two messages cross every link. The largest of n uniform draws is u^(1/n), so one draw does."""
    if links == 0:
        return np.full(rounds, np.max(compute_s))
    u = draw(np, np.uint64(seed), np.uint64(0), np.arange(rounds, dtype=np.uint64), LINK)
    return np.max(compute_s) + link_seconds(np, link, u ** (1 / (2 * links)))


def agreement(link: Array, seed: int, rounds: int, layers: Sequence[int]) -> Array:
    """Layer by layer one number goes up the tree, and down again: each layer waits for its slowest message."""
    spans = np.zeros(rounds)
    k = np.arange(rounds, dtype=np.uint64)
    for step, size in enumerate((*reversed(layers), *layers)):
        u = draw(np, np.uint64(seed), np.uint64(1 + step), k, LINK)  # gossip draws with 0
        spans += link_seconds(np, link, u ** (1 / size))
    return spans


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
