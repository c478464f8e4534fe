"""Errands: each agent has a messenger that goes to a random neighbour and comes home, again and again.

An agent computes while its messenger is away. The messenger leaves again when it is back and the agent has finished.
At the neighbour it does not wait: what it does there takes no time, whatever that agent is computing.
"""

from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, Bits, Indices
from amble.networks.network import Network
from amble.networks.walks import Step, take


class Errands(NamedTuple):
    """Messenger i's home is agent i."""

    starts: Indices
    neighbours: Indices
    home: Indices  # (N,), 0 to N - 1

    def begin(self, xp: Any) -> tuple[Indices, Indices]:
        return xp.asarray(self.home), xp.zeros(0)

    def step(self, xp: Any, memory: Indices, token: Indices, agent: Indices, u: Array, key: Bits) -> Step:  # noqa: ARG002
        """From home to each neighbour with the same probability, and from there home."""
        first, end = take(self.starts, token), take(self.starts, token + 1)
        chosen = take(self.neighbours, first + xp.floor(u * (end - first)).astype(xp.int32))
        return xp.where((agent == token) & (end > first), chosen, token), memory


def errands(network: Network) -> Errands:
    """The errands of a network."""
    neighbours = network.neighbours if len(network.neighbours) else [0]  # of a single agent; never used
    return Errands(*(np.asarray(each, np.int32) for each in (network.starts, neighbours, range(network.agents))))
