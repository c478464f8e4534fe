"""What a message carries, what an agent keeps, and what a kind of visits must do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from amble import methods
from amble.arrays import Array, Flags, norm
from amble.live.core.message import Epoch
from amble.live.core.short import Short
from amble.losses.objective import Objective, drawn
from amble.losses.penalty import Penalty
from amble.methods.optional import short
from amble.methods.protocol import TokenMethod

LAPS_MAX = 3  # visits of a recount, in numbers of awaited agents: agents that are not met by then give later


class Parcel(NamedTuple):
    """What a message carries. Every leaf is a float64 array."""

    token: Any  # the method's own
    members: Array  # agents in the account that estimates are read from
    since: Array  # visits since the recount began; -1: there is none
    calm: Array  # visits in a row at which the model had moved by less than the tolerance
    buried: Array  # one per agent: 1 for agents that are counted out
    met: Array  # one per agent: the hop of its last visit

    @property
    def recounting(self) -> bool:
        return float(self.since) >= 0


class Holder(NamedTuple):
    """What an agent keeps for itself."""

    agent: Any  # the method's
    z: Array  # the estimate at the last visit
    visits: Array


def loss_at(f: Objective, token: int, hop: int, tokens: int) -> Objective:
    """The agent's loss at a visit: one with mini-batches draws rows for it. With one token, those of the simulator."""
    at_visit: Objective = drawn(f, (hop - 1) * tokens + token)
    return at_visit


class NoShare(NamedTuple):
    """Nothing is remembered of a single token."""


class Visits(Protocol):
    """How a live agent visits: one kind for gift methods, one for tracked ones, one for whole models, one for the rest.

    `f` is the agent's loss, `me` its index in the run, and `fresh` says that its share is of an older epoch than the
    token, or that it has none.
    """

    exact: ClassVar[bool]  # whether a lost token can be reissued, so that a run continues without dead agents
    removes: ClassVar[bool]  # whether an agent can take out what it gave, and leave

    @property
    def method(self) -> Any: ...

    @property
    def dimension(self) -> int: ...

    @property
    def agents(self) -> int:
        """At the beginning."""

    @property
    def start(self) -> Array | None:
        """The initial model, where one was given."""

    @property
    def initial(self) -> Array:
        """The model that a run begins with."""

    def holder(self, f: Objective) -> Holder:
        """What an agent keeps before its first visit."""

    def share(self) -> Any:
        """What an agent remembers of a token that it has not met."""

    def parcel(self, m: int) -> Parcel:
        """Token m as it begins."""

    def visit(
        self, f: Objective, holder: Holder, share: Any, parcel: Parcel, me: int, hop: int, fresh: bool
    ) -> tuple[Holder, Any, Parcel]: ...

    def leave(
        self, holder: Holder, share: Any, parcel: Parcel, me: int, hop: int, fresh: bool
    ) -> tuple[Holder, Any, Parcel]:
        """The last visit, which removes the agent's gifts; for exact visits only."""

    def recount(self, parcel: Parcel, epoch: Epoch, buried: Array, holder: Holder | None = None) -> Parcel:
        """The parcel when its next epoch begins, without the buried agents; for exact visits only."""

    @property
    def short(self) -> Mapping[str, Short]:
        """The leaves of a parcel that a message has in fewer bytes (short.py)."""

    def spent(self, parcel: Parcel) -> bool:
        """Whether the counters of this parcel are exhausted."""

    def counted(self, parcel: Parcel) -> Flags:
        """One flag per agent: the model has its data, or it has left."""

    def inside(self, parcel: Parcel) -> Flags:
        """One per agent: whose data the model has."""

    def estimate(self, parcel: Parcel) -> Array:
        """The model that the parcel represents."""

    def result(self, parcel: Parcel) -> Array:
        """What a stage ends with: the model or, of a survey, the sums; then who is inside, one number per agent."""


@dataclass(frozen=True)
class Common:
    """The common part of all kinds of visits."""

    method: TokenMethod
    dimension: int
    agents: int  # at the beginning
    tolerance: float = 0.0
    room: int = 0  # for agents that come later
    start: Array | None = field(default=None, compare=False)  # the initial model; None: zeros
    penalty: Penalty | None = field(default=None, compare=False)  # of gift methods, for each share in the sum

    @property
    def rules(self) -> Any:
        return methods.rules(self.method, self.start)

    @property
    def initial(self) -> Array:
        return np.zeros(self.dimension) if self.start is None else self.start

    def holder(self, f: Objective) -> Holder:
        return Holder(self.rules.agent(drawn(f, -1), self.initial), self.initial, np.zeros(()))

    def counts(self) -> tuple[Array, Array, Array, Array]:
        """Of a parcel that nobody has visited: since, calm, buried, met."""
        return np.full((), -1.0), np.zeros(()), *np.zeros((2, self.agents + self.room))

    @property
    def short(self) -> Mapping[str, Short]:
        return {f"token.{name}": Short(kind) for name, kind in short(self.method).items()}

    def spent(self, parcel: Parcel) -> bool:  # noqa: ARG002
        return False

    def counted(self, parcel: Parcel) -> Flags:
        return np.arange(len(parcel.met)) < self.agents

    def inside(self, parcel: Parcel) -> Flags:
        return self.counted(parcel)

    def still(self, holder: Holder, z: Array) -> bool:
        """Whether the model has moved by no more than the tolerance since this agent last saw it."""
        return float(holder.visits) > 0 and bool(norm(z - holder.z) <= self.tolerance * norm(z))
