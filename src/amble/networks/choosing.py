"""How many tokens should walk: by the network and the word that says what to favour, before any of them sets out.

Of tokens that meet, time counts in hops that take equally long, cost in messages. A run that is done when all tokens
have met once takes

    time = hops to the first meeting,   messages = links crossed until then

and one that takes laps takes, per lap, the hops and links from one meeting to the next (networks/meetings.py). With one
token both are the length of its closed walk. The choice is one of three:

    auto           the least time * messages: a token more must save a larger share of time than it adds in messages
    time           the least time, with at most twice the messages of one token
    communication  the least messages; of what is within a tenth of that, the least time. Losses for which laps repeat
                   get one token, because tokens that do not know each other's news need more laps

Tokens that carry boards (methods/boards.py), as in live runs, send M ledgers with every message, so that M tokens send
about M times the bytes of one in as many hops, and gain less time. They are two for time, and one otherwise.

Generated networks and losses decided it (docs/methods.md); none of the paper's sets.
"""

from typing import NamedTuple

import numpy as np

from amble.networks import meetings
from amble.networks.cycles import closed_walk
from amble.networks.network import Network

MESSAGES_MAX = 2.0  # of "time": times the messages of one token in as many laps
NEARLY = 1.1  # of "communication": messages that count as no more
STRETCHES = 24  # lengths of a stretch that are tried


class Cost(NamedTuple):
    """What a number of tokens takes until all have met, or in a lap."""

    tokens: int
    hops: int
    messages: int


def tokens_apart(word: str, agents: int) -> int:
    """How many tokens should walk that never meet, but carry boards."""
    return 2 if word == "time" and agents > 2 else 1


def tokens_for(word: str, network: Network, seed: int, once: bool) -> int:
    """How many tokens that meet should walk here; `once` says that a run is done after the first meeting."""
    if word == "communication" and not once:
        return 1
    tried = costs(network, seed, once)
    one = tried[0]
    if word == "auto":
        best = min(tried, key=lambda cost: (cost.hops * cost.messages, cost.tokens))
    else:
        most = MESSAGES_MAX * one.messages if word == "time" else NEARLY * min(cost.messages for cost in tried)
        best = min((cost for cost in tried if cost.messages <= most), key=lambda cost: (cost.hops, cost.tokens))
    return best.tokens


def costs(network: Network, seed: int, once: bool) -> list[Cost]:
    """Of one token, and of the fewest with stretches of each of some lengths."""
    N = network.agents
    order = closed_walk(network, np.random.default_rng([seed, 2]))  # as walks.walk_for makes it
    alone = max(0, len(order) - once)
    tried = [Cost(1, alone, alone)]
    lengths = np.unique(np.geomspace(1, N, STRETCHES).round().astype(int))
    for tokens in sorted({-(-N // length) for length in lengths.tolist()} - {1}):
        plan = meetings.plan(network, order, tokens)
        took = (plan.first_hops, plan.first_links) if once else (plan.lap_hops, plan.links)
        tried.append(Cost(tokens, *took))
    return tried
