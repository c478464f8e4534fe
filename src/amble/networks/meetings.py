"""Walks of tokens that gather apart and meet: who goes where, and which agent is the meeting place.

Every agent is in one token's stretch. A lap of token m is its stretch, the shortest way from there to the meeting
place, and the shortest way back to the beginning of its stretch. The first lap begins on the stretch, so that what is
known when all have met took

    T = max_m (hops along stretch m + links from its end to the meeting place)

hop times. No rule can be below N/M - 1 (M tokens must visit N agents), nor below the network's radius (the last gift
must come from the agent that is farthest from wherever it is read). T is at most about their sum.
"""

from typing import NamedTuple

import numpy as np

from amble.arrays import Indices
from amble.networks.cycles import shortest
from amble.networks.network import Network

VISIT, PASS, DELIVER, TAKE = range(4)  # what a token does at an agent: see Lap
PLACES_MAX = 12  # meeting places that are tried
CUTS_MAX = 24  # beginnings of the first stretch that are tried for each


class Lap(NamedTuple):
    """One token's closed walk: agents, and what it does at each of them.

    VISIT     the agent computes and gives
    PASS      the agent only forwards the token
    DELIVER   at the meeting place: what was given since the last meeting goes into the account, and the token waits
    TAKE      all tokens are there: each takes the account with it
    """

    agent: list[int]
    role: list[int]


class Plan(NamedTuple):
    """Who visits whom, and where tokens meet."""

    place: int
    stretches: list[list[int]]  # each token's agents in order; none for tokens beyond the number of agents
    first_hops: int  # until all tokens have met for the first time, if every hop takes as long
    lap_hops: int  # from one meeting to the next
    links: int  # crossed by all tokens in a lap
    first_links: int  # and until the first meeting


def laps(network: Network, order: Indices, tokens: int) -> list[Lap]:
    """The closed walk of each token; `order` is a closed walk through all agents."""
    chosen = plan(network, order, tokens)
    return [lap(network, chosen.place, stretch) for stretch in chosen.stretches]


def lap(network: Network, place: int, stretch: list[int]) -> Lap:
    agent: list[int] = []
    role: list[int] = []
    for i in stretch:
        way = _way(network, agent[-1], i) if agent else []
        agent += [*way, i]
        role += [PASS] * len(way) + [VISIT]
    there = _way(network, agent[-1], place) if agent else []
    back = _way(network, place, stretch[0]) if stretch else []
    return Lap(
        agent=[*agent, *there, place, place, *back],
        role=[*role, *[PASS] * len(there), DELIVER, TAKE, *[PASS] * len(back)],
    )


def _way(network: Network, start: int, goal: int) -> list[int]:
    """The agents between two others on a shortest path."""
    return shortest(network, start, goal)[:-1] if start != goal else []


def plan(network: Network, order: Indices, tokens: int) -> Plan:
    """The meeting place and the stretches with the least time to the first meeting; of these, those with the least time
    of a lap, and then with the fewest messages."""
    order = np.asarray(order)
    _, first = np.unique(order, return_index=True)
    agents = order[np.sort(first)]  # each once, where the walk first comes to it
    best: Plan | None = None
    steps = _steps(network, agents)
    parts = min(tokens, len(agents))
    longest = -(-len(agents) // parts)
    cuts = np.unique(np.linspace(0, longest - 1, min(longest, CUTS_MAX)).astype(int))
    for place in places(network):
        far = distances(network, place)
        for cut in cuts.tolist():
            turned = np.roll(agents, -cut)
            stretches = np.array_split(turned, parts)
            ends = np.cumsum([len(stretch) for stretch in stretches]) - 1
            starts = np.concatenate([[0], ends[:-1] + 1])
            along = np.cumsum(np.roll(steps, -cut))  # and the first step, from the last agent, in all of them
            first_hops = along[ends] - along[starts] + far[turned[ends]]
            lap_hops = first_hops + far[turned[starts]]
            cost = int(first_hops.max()), int(lap_hops.max()), int(lap_hops.sum())
            if best is None or cost < (best.first_hops, best.lap_hops, best.links):
                best = Plan(place, [stretch.tolist() for stretch in stretches], *cost, int(first_hops.sum()))
    assert best is not None
    return best._replace(stretches=best.stretches + [[] for _ in range(tokens - parts)])


def _steps(network: Network, agents: Indices) -> Indices:
    """The links crossed to each of these agents from the one before; to the first, from the last."""
    pairs = zip(np.roll(agents, 1).tolist(), agents.tolist(), strict=True)
    steps = [1 if _linked(network, i, j) else len(shortest(network, i, j)) if i != j else 0 for i, j in pairs]
    return np.array(steps, dtype=int)


def _linked(network: Network, i: int, j: int) -> bool:
    near = network.neighbours_of(i)
    at = int(np.searchsorted(near, j))
    return at < len(near) and int(near[at]) == j


def places(network: Network) -> list[int]:
    """Agents where tokens could meet: the middle of a longest way through the network, and those with most links."""
    most = np.argsort(-network.degrees, kind="stable")[: PLACES_MAX - 1].tolist()
    one = int(np.argmax(distances(network, 0)))
    from_one = distances(network, one)
    other = int(np.argmax(from_one))
    from_other = distances(network, other)
    longest = int(from_one[other])
    between = np.flatnonzero(from_one + from_other == longest)
    middle = between[np.argmin(np.abs(from_one[between] - from_other[between]))]
    return list(dict.fromkeys([int(middle), *most]))


def distances(network: Network, start: int) -> Indices:
    """The number of links from an agent to each."""
    far = np.full(network.agents, -1)
    front, steps = np.array([start]), 0
    while len(front):
        far[front] = steps
        near = np.concatenate([network.neighbours_of(i) for i in front.tolist()]) if network.agents > 1 else front
        front, steps = np.unique(near[far[near] < 0]), steps + 1
    return far
