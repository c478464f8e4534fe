"""Networks of agents, closed walks through them, and the walks of tokens."""

from amble.networks.kinds import DENSITY as DENSITY
from amble.networks.kinds import KINDS as KINDS
from amble.networks.kinds import as_network, complete, geometric, grid, random, ring
from amble.networks.kinds import named as named
from amble.networks.network import Network, from_edges, from_networkx

# the public ones; the others are for amble's own rooms
__all__ = ["Network", "as_network", "complete", "from_edges", "from_networkx", "geometric", "grid", "random", "ring"]
