"""Who is linked to whom: pairs of names, or a network of a known kind."""

from collections.abc import Mapping, Sequence
from typing import Any

from amble import networks
from amble.errors import AmbleError, few, unknown
from amble.live import toml
from amble.networks.network import Disconnected, Network

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


def make_network(settings: Mapping[str, Any], names: Sequence[str]) -> Network:
    if ("links" in settings) == ("network" in settings):
        how = "both links and" if "links" in settings else "neither links nor"
        raise AmbleError(
            f'the run has {how} [network]; give links = [["{names[0]}", "{names[1]}"], ...] or a [network].'
        )
    if "links" in settings:
        return _linked(settings["links"], names)
    wanted = toml.check(settings["network"], "[network]", NETWORK, ("kind",))
    if wanted["kind"] not in networks.KINDS:
        raise unknown("network", wanted["kind"], networks.KINDS)
    for key in wanted.keys() - {"kind", *networks.KINDS[wanted["kind"]].takes}:
        raise AmbleError(f'[network] has {key} and kind = "{wanted["kind"]}", which takes none; leave it out.')
    return networks.named(wanted["kind"], len(names), wanted.get("density", networks.DENSITY), wanted.get("seed", 0))


def _linked(links: Sequence[Sequence[str]], names: Sequence[str]) -> Network:
    number = {name: i for i, name in enumerate(names)}
    for link in links:
        for name in link:
            if name not in number:
                raise AmbleError(f"links has {list(link)}: {unknown('agent', name, names)}")
        if link[0] == link[1]:
            raise AmbleError(f"links has {list(link)}, an agent with itself; leave it out.")
    edges = [(number[one], number[other]) for one, other in links]
    try:
        return networks.from_edges(len(names), edges, "links")
    except Disconnected as error:
        apart = [names[agent] for agent in error.apart]
        raise AmbleError(
            f"the links do not connect all agents: {names[0]} has no path to {few(apart, SHOWN_MAX)}; add links."
        ) from error
