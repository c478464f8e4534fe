"""Network: who may talk to whom. Neighbour lists, never an N x N array."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array, Flags, Indices
from amble.errors import AmbleError, is_whole, shown


@final
@dataclass(frozen=True, eq=False)
class Network:
    """An undirected connected network, made by the functions of `amble.networks`.

    Agent i's neighbours are neighbours[starts[i]:starts[i+1]], in order.
    """

    agents: int
    starts: Indices
    neighbours: Indices
    name: str = "network"

    def __repr__(self) -> str:
        return f"Network({self.name}: {self.agents} agents, {len(self.edges)} links)"

    def neighbours_of(self, i: int) -> Indices:
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
    def degrees(self) -> Indices:
        return np.diff(self.starts)

    def metropolis(self) -> tuple[Array, Array]:
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
        across: Array = 1 / np.maximum(self.degrees[i] + 1, self.degrees[self.neighbours] + 1)
        return across, np.ones(self.agents) - np.bincount(i, across, minlength=self.agents)

    @property
    def edges(self) -> Indices:
        """Each link once, as rows (i, j) with i < j."""
        i = np.repeat(np.arange(self.agents), self.degrees)
        return np.column_stack([i, self.neighbours])[i < self.neighbours]


@runtime_checkable
class Graph(Protocol):
    """What is asked of a networkx graph; networkx itself need not be there."""

    @property
    def nodes(self) -> Iterable[Hashable]: ...
    def is_directed(self) -> bool: ...
    def is_multigraph(self) -> bool: ...
    def edges(self) -> Iterable[tuple[Hashable, Hashable]]: ...
    def __contains__(self, node: object, /) -> bool: ...
    def __len__(self) -> int: ...


class Disconnected(AmbleError):
    """Some agents cannot be reached from agent 0."""

    def __init__(self, agents: int, apart: list[int]) -> None:
        super().__init__(
            f"the network is not connected: from agent 0 only {agents - len(apart)} of {agents} agents can be reached; "
            "add links until all are."
        )
        self.apart = apart


def check_agents(agents: int) -> None:
    if not is_whole(agents) or agents < 1:
        raise AmbleError(
            f"agents={agents!r} was given; a network needs at least one agent, and a whole number of them."
        )


def from_edges(agents: int, edges: ArrayLike, name: str = "network") -> Network:
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
    pairs = edges
    try:
        edges = np.asarray(pairs, np.float64).reshape(-1, 2)
    except (TypeError, ValueError):
        edges = np.full((1, 2), np.nan)
    if not (edges == np.round(edges)).all():
        raise AmbleError(f"{shown(pairs)} was given as the links; give pairs of agents' numbers, such as [(0, 1)].")
    edges = edges.astype(np.int64)
    if len(edges) and not (edges.min() >= 0 and edges.max() < agents):
        stranger = edges.min() if edges.min() < 0 else edges.max()
        raise AmbleError(f"a link names agent {stranger}; agents are numbered 0 to {agents - 1}.")
    low, high = edges.min(axis=1), edges.max(axis=1)
    kept = np.unique((low * agents + high)[low < high])
    low, high = kept // agents, kept % agents
    both = np.sort(np.concatenate([kept, high * agents + low]))  # each link from either side, by agent
    starts = np.concatenate([[0], np.cumsum(np.bincount(both // agents, minlength=agents))])
    network = Network(agents, starts.astype(np.int32), (both % agents).astype(np.int32), name)
    apart = np.flatnonzero(~reached(network))
    if len(apart):
        raise Disconnected(agents, apart.tolist())
    return network


def layers(network: Network) -> list[Indices]:
    """The agents that are 0, 1, 2 .. links away from agent 0: breadth first, a whole layer at a time."""
    seen = np.zeros(network.agents, bool)
    found: list[Indices] = []
    edge: Indices = np.array([0])
    while len(edge):
        seen[edge] = True
        found.append(edge)
        layer = np.unique(np.concatenate([network.neighbours_of(i) for i in edge]))
        edge = layer[~seen[layer]]
    return found


def reached(network: Network) -> Flags:
    """Which agents a token that starts at agent 0 can reach: one boolean per agent."""
    part = parts(network.starts, network.neighbours)
    here: Flags = part == part[0]
    return here


def parts(starts: Indices, neighbours: Indices) -> Indices:
    """The connected part that each agent is in, by its lowest number.

    Every agent points to one with a number that is not higher. In each pass, what an agent points to learns of the
    lowest one that its neighbours know of, and pointers are shortened by half: about log2(N) passes.
    """
    lowest = np.arange(len(starts) - 1)
    linked = np.flatnonzero(np.diff(starts))
    while True:
        heard = np.minimum.reduceat(lowest[neighbours], starts[linked]) if len(linked) else linked
        after = lowest.copy()
        np.minimum.at(after, lowest[linked], heard)
        after[linked] = np.minimum(after[linked], heard)
        after = after[after]
        if (after == lowest).all():
            return lowest
        lowest = after


def from_networkx(graph: Graph) -> Network:
    """Any undirected networkx graph.

    Parameters
    ----------
    graph : nodes 0 to N - 1 are the agents of these numbers; nodes of other names become agents 0, 1, ... in the
        graph's own order. A link from a node to itself is dropped.

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
    if not isinstance(graph, Graph):
        raise AmbleError(f"{shown(graph)} was given as a networkx graph; give a networkx.Graph.")
    if graph.is_directed():
        raise AmbleError("the graph is directed, and links go both ways; give graph.to_undirected().")
    if graph.is_multigraph():
        raise AmbleError("the graph is a multigraph, and two agents have one link at most; give networkx.Graph(graph).")
    nodes: Iterable[Hashable] = range(len(graph)) if all(i in graph for i in range(len(graph))) else graph.nodes
    number = {node: i for i, node in enumerate(nodes)}
    edges = [(number[a], number[b]) for a, b in graph.edges()]
    return from_edges(len(number), np.array(edges, np.int64), "networkx")
