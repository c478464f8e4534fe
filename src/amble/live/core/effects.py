"""What the protocol remembers, and what it asks of its driver. All types are frozen, except errands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Flags
from amble.live.core.message import Answer, Epoch, Question, Token


class Sight(NamedTuple):
    """The newest that an agent knows about a token: it left here after this hop."""

    epoch: Epoch
    hop: int


class Custody(NamedTuple):
    """A token that was visited here, and whom it is meant for ("" while nobody can take it)."""

    message: Token
    to: str
    giver: str  # the sender, which is told when the token is passed on
    given: Sight  # ... and what that was
    tried: bool = False  # from then on the destination is fixed


class Share(NamedTuple):
    """What this agent gave a token, and in which epoch it last did."""

    epoch: Epoch
    share: Any


class Visit(NamedTuple):
    """One line of the record."""

    token: int
    epoch: Epoch
    hop: int
    giver: str
    number: int  # the agent's own count of visits
    before: Any  # parcels, of which the driver stores digests
    after: Any


class Persist(NamedTuple):
    """One transaction: rows by name, and a line of the record."""

    rows: Mapping[str, Any]
    visit: Visit | None = None


class Reply(NamedTuple):
    question: int
    answer: Answer


class Ask(NamedTuple):
    number: int  # given back with the answer
    to: str
    question: Question


class Wake(NamedTuple):
    at_s: float


class Left(NamedTuple):
    """How an agent has left."""

    all_out: bool  # whether nothing that it gave is in the model any more
    words: str


class Report(NamedTuple):
    """An event that a person, a checker or a replay may need."""

    kind: str
    token: int = -1
    epoch: Epoch | None = None
    hop: int = 0
    words: str = ""  # for people: no code depends on it
    buried: tuple[str, ...] = ()  # of a recount or reissue: the agents that are counted out when it begins

    @classmethod
    def of_epoch(cls, kind: str, m: int, epoch: Epoch, hop: int, buried: tuple[str, ...]) -> "Report":
        """A new epoch begins."""
        return cls(kind, m, epoch, hop, ", ".join(buried), buried)


Effect = Persist | Reply | Ask | Wake | Report


@dataclass(frozen=True)
class Settings:
    agents: tuple[str, ...]  # the agents of the run's beginning, in an order that everybody knows
    tokens: int = 1
    seed: int = 0
    next: tuple[Mapping[str, str], ...] = ()  # one per token: where it goes from each agent, if that neighbour is up
    patience_s: float = 2.0
    stall_s: float = 10.0  # for an answer of a neighbour that is up
    retry_s: float = 0.1
    retry_max_s: float = 2.0
    tell_s: float = 0.0  # from a hand-over until the previous sender is told
    silence_s: float = 120.0
    hops_max: int = 0  # of all tokens together, about: each may make its share; 0 is no limit
    tolerance: float = 0.0  # stop when the model has converged; 0 is never
    room: int = 0  # for agents that come later
    guests: Mapping[str, int] = field(default_factory=dict)  # of these: the ones known here, and their indices
    columns: int | tuple[str, ...] = 0  # of the data, by their names or how many: for people
    result: int = 0  # numbers of the result that the run ends with, as another stage follows; 0: it needs none
    expected: Flags | None = None  # whom it waits for, by index; None: for the agents of the run's beginning
    gather_s: float | None = None  # how long; None: for silence_s
    settled: bool = False  # whether an earlier stage has ended with a model that has this agent's data

    @cached_property
    def indices(self) -> Mapping[str, int]:
        """The index of each known agent, in all arrays with one number per agent."""
        return {name: index for index, name in enumerate(self.agents)} | dict(self.guests)

    def names_at(self, flags: Flags) -> tuple[str, ...]:
        """The agents whose flag is set, one flag per index."""
        return tuple(name for name, index in self.indices.items() if flags[index])

    def first(self, m: int) -> int:
        """The index of the agent that token m begins at."""
        there = np.flatnonzero(self.awaited)
        return int(there[m % len(there)])

    @cached_property
    def awaited(self) -> Flags:
        """Whom the run waits for, by index."""
        return np.arange(self.size) < len(self.agents) if self.expected is None else self.expected

    @property
    def follows(self) -> bool:
        """Whether this is a stage after another one, in which all that are expected have been up."""
        return self.expected is not None and self.gather_s is None

    @property
    def wait_s(self) -> float:
        return self.silence_s if self.gather_s is None else self.gather_s

    @property
    def size(self) -> int:
        """The length of arrays with one number per agent."""
        return len(self.agents) + self.room


@dataclass
class Errand:
    """The progress of handing over a token in custody. It is not journaled: after a crash everything is asked again."""

    asked: int | None = None  # the question under way
    since_s: float | None = None  # when it was first asked, or then taken
    held_s: float = 0.0  # when the token came
    probe_s: float | None = None  # when the receiver was asked whether it works
    probes: int = 0  # that were answered well since it was taken
    taken: bool = False
    passed: bool = False
    tell_s: float | None = None  # when the previous sender is told that it was passed on; None: nobody has to be told
    refusal: str = ""  # the last that was answered
    again_s: float = 0.0
    wait_s: float = 0.0

    @property
    def done(self) -> bool:
        """This agent is no longer responsible for the token."""
        return self.passed and self.tell_s is None
