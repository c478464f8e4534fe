"""The kinds of network that have a name. A new kind is a function and a line in KINDS."""

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np

from amble.errors import AmbleError, is_number, need, shown, unknown
from amble.networks.network import Graph, Network, check_agents, from_edges, from_networkx
from amble.randomness import check_seed

DENSITY = 0.7  # of a random network, where none is given


def random(agents: int, density: float = DENSITY, seed: int = 0) -> Network:
    """The paper's network: a random tree, which connects all agents, then more links at random.

    Parameters
    ----------
    agents : how many
    density : the share of all N(N-1)/2 possible links that it has
    seed : of the drawing

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.random(20, density=0.7)
    Network(random(0.7): 20 agents, 133 links)
    """
    check_agents(agents)
    if not (is_number(density) and 0 <= density <= 1):
        raise AmbleError(f"density={density} was given; it must be between 0 and 1.")
    pairs = agents * (agents - 1) // 2
    wanted = round(pairs * density)
    if wanted < agents - 1:
        raise AmbleError(
            f"density={density} gives {agents} agents {wanted} links, and connecting them takes at least {agents - 1}; "
            f"use a density of at least {ceil(2e6 / agents) / 1e6:g}."
        )
    rng = np.random.default_rng([check_seed(seed), agents])
    order = rng.permutation(agents)
    parent = order[(rng.random(agents - 1) * np.arange(1, agents)).astype(np.int64)] if agents > 1 else order[:0]
    tree = np.column_stack([order[1:], parent])
    chosen = np.unique(tree.min(axis=1) * agents + tree.max(axis=1))
    if wanted > pairs // 2:  # dense: choosing from a list of all pairs is quicker than drawing until new
        i, j = np.triu_indices(agents, 1)
        free = np.setdiff1d(i * agents + j, chosen, assume_unique=True)
        chosen = np.concatenate([chosen, rng.choice(free, wanted - len(chosen), replace=False)])
    while len(chosen) < wanted:
        i, j = rng.integers(0, agents, (2, wanted - len(chosen)))
        fresh = np.unique((np.minimum(i, j) * agents + np.maximum(i, j))[i != j])
        fresh = np.setdiff1d(fresh, chosen, assume_unique=True)
        chosen = np.concatenate([chosen, rng.permutation(fresh)[: wanted - len(chosen)]])
    return from_edges(agents, np.column_stack([chosen // agents, chosen % agents]), f"random({density:g})")


def ring(agents: int) -> Network:
    """Agent i talks to i - 1 and i + 1.

    Parameters
    ----------
    agents : how many

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.ring(20)
    Network(ring: 20 agents, 20 links)
    """
    check_agents(agents)
    i = np.arange(agents)
    return from_edges(agents, np.column_stack([i, (i + 1) % agents]), "ring")


def complete(agents: int) -> Network:
    """Everyone talks to everyone.

    Parameters
    ----------
    agents : how many

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.complete(20)
    Network(complete: 20 agents, 190 links)
    """
    check_agents(agents)
    return from_edges(agents, np.column_stack(np.triu_indices(agents, 1)), "complete")


def grid(rows: int, columns: int) -> Network:
    """A rectangle of agents, numbered row by row; each talks to those left, right, above and below.

    Parameters
    ----------
    rows, columns : the sides of the rectangle

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.grid(4, 5)
    Network(grid(4x5): 20 agents, 31 links)
    """
    for side in (rows, columns):
        check_agents(side)
    number = np.arange(rows * columns).reshape(rows, columns)
    beside = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    below = np.column_stack([number[:-1].ravel(), number[1:].ravel()])
    return from_edges(rows * columns, np.concatenate([beside, below]), f"grid({rows}x{columns})")


def geometric(agents: int, radius: float | None = None, seed: int = 0) -> Network:
    """Agents at random places in the unit square, linked where they are near each other.

    Parameters
    ----------
    agents : how many
    radius : the largest distance of two linked agents; without it, one that connects all
    seed : of the places

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.geometric(20, radius=0.5)
    Network(geometric(0.5): 20 agents, 97 links)
    """
    check_agents(agents)
    cKDTree = need("scipy.spatial", "sim").cKDTree
    places = np.random.default_rng([check_seed(seed), agents]).random((agents, 2))
    tree = cKDTree(places)
    if radius is not None:
        if not (is_number(radius) and radius > 0):
            raise AmbleError(f"radius={radius!r} was given; it must be a number above zero.")
        return from_edges(agents, tree.query_pairs(radius, output_type="ndarray"), f"geometric({radius:g})")
    radius = float(np.sqrt(2 * np.log(max(agents, 2)) / (np.pi * agents)))
    while True:
        try:
            return from_edges(agents, tree.query_pairs(radius, output_type="ndarray"), f"geometric({radius:.3g})")
        except AmbleError:
            radius *= 1.1


def squarest_grid(agents: int) -> Network:
    """The grid that is as square as the number of agents allows."""
    rows = max(r for r in range(1, int(agents**0.5) + 1) if agents % r == 0)
    return grid(rows, agents // rows)


def as_network(
    network: str | Network | Graph | None, agents: int, *, density: float = DENSITY, seed: int = 0
) -> Network:
    """A Network from a name, a networkx graph, or None for the random network.

    Parameters
    ----------
    network : a Network, a networkx.Graph, None, or a name of `amble.networks.KINDS`, such as ring or grid (as square as
        the number of agents allows)
    agents : how many agents there must be
    density, seed : for the kinds that take them, such as random

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.as_network("grid", 12)
    Network(grid(3x4): 12 agents, 17 links)
    """
    network = "random" if network is None else network
    if isinstance(network, str):
        return named(network, agents, density, seed)
    if isinstance(network, Network):
        chosen = network
    else:
        if not isinstance(network, Graph):
            raise AmbleError(
                f"{shown(network)} was given as the network; give a name ({', '.join(KINDS)}), a networkx.Graph or a "
                "Network, such as amble.networks.ring(20)."
            )
        chosen = from_networkx(network)
    if chosen.agents != agents:
        raise AmbleError(f"the network has {chosen.agents} agents and the problem {agents}; make them the same.")
    return chosen


class Kind(NamedTuple):
    """A kind of network that has a name."""

    build: Callable[..., Network]  # from the number of agents, and the settings that it takes
    takes: tuple[str, ...] = ()  # of density and seed


KINDS = {
    "random": Kind(random, ("density", "seed")),
    "ring": Kind(ring),
    "complete": Kind(complete),
    "grid": Kind(squarest_grid),
    "geometric": Kind(geometric, ("seed",)),
}


def named(name: str, agents: int, density: float = DENSITY, seed: int = 0) -> Network:
    """The network of that name."""
    if name not in KINDS:
        raise unknown("network", name, KINDS)
    kind, settings = KINDS[name], {"density": density, "seed": seed}
    return kind.build(agents, **{key: settings[key] for key in kind.takes})
