"""Who may talk to whom, and where tokens go: networks, closed walks through them, walks."""

from amble.networks.kinds import DENSITY, KINDS, complete, geometric, grid, make, named, random, ring
from amble.networks.network import Network, from_edges, from_networkx

__all__ = [
    "DENSITY",
    "KINDS",
    "Network",
    "complete",
    "from_edges",
    "from_networkx",
    "geometric",
    "grid",
    "make",
    "named",
    "random",
    "ring",
]
