"""Who is linked to whom: pairs of names, or a network of a known kind."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from amble import network as networks
from amble.errors import AmbleError, unknown
from amble.live.settings import toml
from amble.network import Network

NETWORKS = ("random", "ring", "complete")
SHOWN_MAX = 5

pair = toml.Kind(
    lambda value: isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value), ""
)
LINKS = toml.list_of(pair, 'a list of pairs of agents, such as [["north", "south"]]')
NETWORK = {
    "kind": toml.text,
    "density": toml.Kind(lambda value: toml.zero_or_more.fits(value) and value <= 1, "a number from 0 to 1"),
    "seed": toml.seed,
}


def make(given: Mapping[str, Any], names: Sequence[str]) -> Network:
    if ("links" in given) == ("network" in given):
        how = "both links and" if "links" in given else "neither links nor"
        raise AmbleError(
            f'the run has {how} [network]; give links = [["{names[0]}", "{names[1]}"], ...] or a [network].'
        )
    if "links" in given:
        return _linked(given["links"], names)
    wanted = toml.check(given["network"], "[network]", NETWORK, ("kind",))
    if wanted["kind"] not in NETWORKS:
        raise unknown("network for live runs", wanted["kind"], NETWORKS)
    if wanted["kind"] == "random":
        return networks.random(len(names), wanted.get("density", 0.7), wanted.get("seed", 0))
    for key in ("density", "seed"):
        if key in wanted:
            raise AmbleError(f'[network] has {key} and kind = "{wanted["kind"]}"; it is for "random", so leave it out.')
    return networks.ring(len(names)) if wanted["kind"] == "ring" else networks.complete(len(names))


def _linked(links: Sequence[Sequence[str]], names: Sequence[str]) -> Network:
    number = {name: i for i, name in enumerate(names)}
    for link in links:
        for name in link:
            if name not in number:
                raise AmbleError(f"links has {list(link)}: {no_agent(name, names)}")
        if link[0] == link[1]:
            raise AmbleError(f"links has {list(link)}, an agent with itself; leave it out.")
    edges = [(number[one], number[other]) for one, other in links]
    near: dict[int, list[int]] = {i: [] for i in range(len(names))}
    for i, j in edges:
        near[i].append(j)
        near[j].append(i)
    reached, fresh = {0}, [0]
    while fresh:
        more = [j for j in near[fresh.pop()] if j not in reached]
        reached.update(more)
        fresh += more
    apart = [name for name in names if number[name] not in reached]
    if apart:
        shown = ", ".join(apart[:SHOWN_MAX]) + (", ..." if len(apart) > SHOWN_MAX else "")
        raise AmbleError(f"the links do not join all agents: from {names[0]} there is no way to {shown}; add links.")
    return networks.from_edges(len(names), edges, "links")


def no_agent(name: str, names: Sequence[str]) -> AmbleError:
    """The error for an agent that is not there; of very many agents, it lists those that look alike."""
    few = names if len(names) <= 30 else difflib.get_close_matches(name, names, SHOWN_MAX, 0.3) or names[:SHOWN_MAX]
    return unknown("agent", name, few)
