"""Network: who may talk to whom. Neighbour lists, never an N x N array."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from amble.chance import check_seed
from amble.errors import AmbleError, is_number, is_whole, need, shown, unknown

__all__ = ["Network", "complete", "from_edges", "from_networkx", "geometric", "grid", "make", "random", "ring"]

NAMES = ("random", "ring", "complete", "grid", "geometric")
DENSITY = 0.7  # of a random network, where none is given


@dataclass(frozen=True, eq=False)
class Network:
    """An undirected connected network, made by the functions of `amble.networks`.

    Agent i's neighbours are neighbours[starts[i]:starts[i+1]], in order.
    """

    agents: int
    starts: Any
    neighbours: Any
    name: str = "network"

    def __repr__(self) -> str:
        return f"Network({self.name}: {self.agents} agents, {len(self.edges)} links)"

    def neighbours_of(self, i: int) -> Any:
        """Who agent i may talk to.

        Parameters
        ----------
        i : the agent's number

        Returns
        -------
        array of agents' numbers, in order

        Example
        -------
        >>> import amble
        >>> amble.networks.ring(5).neighbours_of(0)
        array([1, 4], dtype=int32)
        """
        return self.neighbours[self.starts[i] : self.starts[i + 1]]

    @property
    def degrees(self) -> Any:
        return np.diff(self.starts)

    def metropolis(self) -> tuple[Any, Any]:
        """Mixing weights of gossip: W_ij = 1/max(d_i+1, d_j+1), d_i the number of agent i's neighbours.

        Returns
        -------
        pair of arrays : W_ij for each entry of `neighbours`, and W_ii, which makes each row's sum 1

        Example
        -------
        >>> import amble
        >>> across, own = amble.networks.ring(3).metropolis()
        >>> own.round(2)
        array([0.33, 0.33, 0.33])
        """
        i = np.repeat(np.arange(self.agents), self.degrees)
        across = 1 / np.maximum(self.degrees[i] + 1, self.degrees[self.neighbours] + 1)
        return across, 1 - np.bincount(i, across, minlength=self.agents)

    @property
    def edges(self) -> Any:
        """Each link once, as rows (i, j) with i < j."""
        i = np.repeat(np.arange(self.agents), self.degrees)
        return np.column_stack([i, self.neighbours])[i < self.neighbours]


def check_agents(agents: Any) -> None:
    if not is_whole(agents) or agents < 1:
        raise AmbleError(
            f"agents={agents!r} was given; a network needs at least one agent, and a whole number of them."
        )


def from_edges(agents: int, edges: Any, name: str = "network") -> Network:
    """A network from its links; every agent must be reachable.

    Parameters
    ----------
    agents : how many; they are numbered from 0
    edges : pairs (i, j) of agents' numbers; repeated links, and links from an agent to itself, are dropped
    name : for tables and pages

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.from_edges(3, [(0, 1), (1, 2)], name="path")
    Network(path: 3 agents, 2 links)
    """
    check_agents(agents)
    given = edges
    try:
        edges = np.asarray(given, np.float64).reshape(-1, 2)
    except (TypeError, ValueError):
        edges = np.full((1, 2), np.nan)
    if not (edges == np.round(edges)).all():
        raise AmbleError(f"{shown(given)} was given as the links; give pairs of agents' numbers, such as [(0, 1)].")
    edges = edges.astype(np.int64)
    if len(edges) and not (edges.min() >= 0 and edges.max() < agents):
        stranger = edges.min() if edges.min() < 0 else edges.max()
        raise AmbleError(f"a link names agent {stranger}; agents are numbered 0 to {agents - 1}.")
    low, high = edges.min(axis=1), edges.max(axis=1)
    kept = np.unique((low * agents + high)[low < high])
    low, high = kept // agents, kept % agents
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((target, source))
    starts = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=agents))])
    network = Network(agents, starts.astype(np.int32), target[order].astype(np.int32), name)
    reached = count_reached(network)
    if reached < agents:
        raise AmbleError(
            f"the network is not connected: from agent 0 only {reached} of {agents} agents can be reached; "
            "add links until all are."
        )
    return network


def count_reached(network: Network) -> int:
    """How many agents a token starting at agent 0 could reach."""
    seen = np.zeros(network.agents, bool)
    seen[0] = True
    edge = np.array([0])
    while len(edge):  # breadth first, a whole layer at a time
        spans = [network.neighbours_of(i) for i in edge]
        layer = np.unique(np.concatenate(spans)) if spans else np.array([], int)
        edge = layer[~seen[layer]]
        seen[edge] = True
    return int(seen.sum())


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
        raise AmbleError(f"density={density} was given; it must lie between 0 and 1.")
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
    """A rectangle of agents, numbered row by row; each talks to those beside, above and below.

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


def make(network: Any, agents: int, *, density: float = DENSITY, seed: int = 0) -> Network:
    """A Network from what may stand for one: its name, a networkx graph, or nothing for the random one.

    Parameters
    ----------
    network : a Network, a networkx.Graph, None, or a name: random, ring, complete, grid (as square as the number of
        agents allows), geometric
    agents : how many agents there must be
    density, seed : of a random network; the seed is that of a geometric one too

    Returns
    -------
    Network

    Example
    -------
    >>> import amble
    >>> amble.networks.make("grid", 12)
    Network(grid(3x4): 12 agents, 17 links)
    """
    network = "random" if network is None else network
    if isinstance(network, str):
        return named(network, agents, density, seed)
    if isinstance(network, Network):
        chosen = network
    else:
        if not hasattr(network, "is_directed"):
            raise AmbleError(
                f"{shown(network)} was given as the network; give a name ({', '.join(NAMES)}), a networkx.Graph or a "
                "Network, such as amble.networks.ring(20)."
            )
        chosen = from_networkx(network)
    if chosen.agents != agents:
        raise AmbleError(f"the network has {chosen.agents} agents and the problem {agents}; make them the same.")
    return chosen


def named(name: str, agents: int, density: float = DENSITY, seed: int = 0) -> Network:
    """The network of that name."""
    if name not in NAMES:
        raise unknown("network", name, NAMES)
    if name == "random":
        return random(agents, density, seed)
    if name == "geometric":
        return geometric(agents, seed=seed)
    if name == "grid":
        rows = max(r for r in range(1, int(agents**0.5) + 1) if agents % r == 0)
        return grid(rows, agents // rows)
    return ring(agents) if name == "ring" else complete(agents)


def from_networkx(graph: Any) -> Network:
    """Any undirected networkx graph.

    Parameters
    ----------
    graph : nodes 0 to N - 1 are the agents of these numbers; nodes of other names become agents 0, 1, ... in the
        graph's own order. A link from a node to itself means nothing and is left out.

    Returns
    -------
    Network

    Example
    -------
    >>> import networkx
    >>> import amble
    >>> amble.networks.from_networkx(networkx.petersen_graph())
    Network(networkx: 10 agents, 15 links)
    """
    if not (hasattr(graph, "nodes") and hasattr(graph, "is_directed")):
        raise AmbleError(f"{shown(graph)} was given as a networkx graph; give a networkx.Graph.")
    if graph.is_directed():
        raise AmbleError("the graph is directed, and links go both ways; give graph.to_undirected().")
    if graph.is_multigraph():
        raise AmbleError("the graph is a multigraph, and two agents have one link at most; give networkx.Graph(graph).")
    nodes = range(len(graph)) if all(i in graph for i in range(len(graph))) else graph.nodes
    number = {node: i for i, node in enumerate(nodes)}
    edges: Iterable[Any] = [(number[a], number[b]) for a, b in graph.edges()]
    return from_edges(len(number), np.array(list(edges), np.int64), "networkx")
