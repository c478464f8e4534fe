"""What travels, what an agent keeps, and what all kinds of visits have in common."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from amble import methods
from amble.arrays import Array, Flags, norm

LAPS_MAX = 3  # visits of a recount, in agents awaited: those who are not met by then are taken in later


class Parcel(NamedTuple):
    """What travels. Every leaf is a float64 array."""

    token: Any  # the method's own
    members: Array  # agents in the account that estimates are read from
    since: Array  # visits since the recount began; -1: there is none
    calm: Array  # visits in a row at which the model had moved by less than the tolerance
    buried: Array  # one per place of the run: 1 for agents that are counted out
    met: Array  # one per place: the hop of the agent's last visit

    @property
    def recounting(self) -> bool:
        return bool(self.since >= 0)


class Holder(NamedTuple):
    """What an agent keeps for itself."""

    agent: Any  # the method's
    z: Array  # the estimate at the last visit
    visits: Array


class NoShare(NamedTuple):
    """Nothing is remembered of a single token."""


@dataclass(frozen=True)
class Visits:
    """What all kinds have."""

    method: Any
    dimension: int
    agents: int  # at the beginning
    tolerance: float = 0.0
    room: int = 0  # for agents that come later
    start: Any = field(default=None, compare=False)  # the initial model; None: zeros

    @property
    def rules(self) -> Any:
        return methods.rules(self.method, self.start)

    @property
    def initial(self) -> Array:
        return np.zeros(self.dimension) if self.start is None else self.start

    def holder(self, f: Any) -> Holder:
        return Holder(self.rules.agent(f, self.initial), self.initial, np.zeros(()))

    def counts(self) -> tuple[Array, Array, Array, Array]:
        """Of a parcel that nobody has visited: since, calm, buried, met."""
        return np.full((), -1.0), np.zeros(()), *np.zeros((2, self.agents + self.room))

    def spent(self, parcel: Parcel) -> bool:  # noqa: ARG002
        """Whether nobody could count this parcel on."""
        return False

    def counted(self, parcel: Parcel) -> Flags:
        """By places: whose data the model has, or who has left."""
        return np.arange(len(parcel.met)) < self.agents

    def still(self, holder: Holder, z: Array) -> bool:
        """Whether the model has moved by no more than the tolerance since this agent last saw it."""
        return bool(holder.visits > 0 and norm(z - holder.z) <= self.tolerance * norm(z))
