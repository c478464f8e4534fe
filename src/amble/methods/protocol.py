"""What a method is, by its step: one Protocol each, and one function that tells them apart.

    gift     an agent gives the token something       GiftMethod   gifts.py, boards.py keep the accounts
    local    an agent follows the sum of its copies   CopyMethod   copies.py keeps the copies
    visit    the method keeps its own books           VisitMethod
    pair     agents average in pairs, at their pace   PairMethod   pairs.py keeps the messengers
    round    all agents at once                       RoundMethod

The first three walk with tokens. An agent, a slot and a token are the method's own NamedTuples of arrays. Only its own
functions read them, except for an agent's x, so they are `Any` here.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from amble.arrays import Array, Indices, Number
from amble.losses.objective import ModelLoss, Objective
from amble.losses.penalty import Penalty
from amble.methods.absent import Absent

if TYPE_CHECKING:
    from typing_extensions import TypeIs  # Python has it from 3.13 on

STEPS = ("round", "pair", "gift", "local", "visit")


class Dealt(Protocol):
    """What methods use of a problem."""

    @property
    def agents(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def own(self) -> Sequence[object] | None: ...
    @property
    def penalty(self) -> Penalty | None: ...
    @property
    def loss(self) -> str | None: ...
    @property
    def trains(self) -> ModelLoss | None: ...  # the losses of a model of a user's own


class Links(Protocol):
    """What methods use of a network."""

    @property
    def agents(self) -> int: ...
    @property
    def edges(self) -> Indices: ...


class Labelled(Protocol):
    """What all methods say about themselves."""

    @property
    def label(self) -> str: ...
    @property
    def work(self) -> Mapping[str, int]: ...  # the objective's calls in a visit or round


class Walking(Labelled, Protocol):
    @property
    def tokens(self) -> int: ...


class GiftMethod(Walking, Protocol):
    @property
    def weigh(self) -> str: ...
    def agent(self, f: Objective, start: Array, /) -> Any: ...
    def gift(self, f: Objective, agent: Any, z: Array, /) -> tuple[Any, Array, Array]: ...


class CopyMethod(Walking, Protocol):
    @property
    def token_rule(self) -> str: ...
    def local(self, f: Objective, x: Array, s: Array, /) -> Array: ...


class PairMethod(Labelled, Protocol):
    def agent(self, f: Objective, start: Array, /) -> Any: ...
    def pair(self, f: Objective, agent: Any, /) -> Any: ...


class TokenRules(Protocol):
    """What the engines call when a token visits."""

    def agent(self, f: Objective, start: Array, /) -> Any: ...
    def slot(self, start: Array, /) -> Any: ...
    def token(self, start: Array, agents: int, m: int, /) -> Any: ...
    def visit(self, f: Objective, agent: Any, slot: Any, token: Any, /) -> tuple[Any, Any, Any]: ...
    def estimate(self, token: Any, /) -> Array: ...
    def message_numbers(self, p: int, /) -> int: ...


class MeetingTokenRules(TokenRules, Protocol):
    """What they call besides, where tokens meet."""

    def deliver(self, agent: Any, token: Any, /) -> tuple[Any, Any]: ...
    def take(self, agent: Any, /) -> Any: ...


class RoundRules(Protocol):
    """What the engines call in a round."""

    def agent(self, f: Objective, start: Array, /) -> Any: ...
    def say(self, agent: Any, /) -> Array: ...
    def round(self, f: Objective, agent: Any, heard: Array, degree: Number, /) -> Any: ...


class VisitMethod(Walking, TokenRules, Protocol): ...


class RoundMethod(Labelled, RoundRules, Protocol):
    @property
    def hears(self) -> str: ...


class AgreeingMethod(RoundMethod, Protocol):
    """A round method whose agents end each round by agreeing on the least of the numbers that they offer."""

    def offer(self, agent: Any, /) -> Number: ...
    def agreed(self, f: Objective, agent: Any, least: Number, /) -> Any: ...


TokenMethod = GiftMethod | CopyMethod | VisitMethod
Method = TokenMethod | PairMethod | RoundMethod
Rules = TokenRules | RoundRules


def step_of(method: object) -> str | None:
    """The step that makes a method, or its class, what it is; None: it has none.

    Users' methods are their own classes, so the only test is whether the step exists.
    """
    if isinstance(method, Absent):
        return method.step
    return next((step for step in STEPS if callable(getattr(method, step, None))), None)


def is_round(method: object) -> "TypeIs[RoundMethod]":
    """Whether all agents take part at once, and no token walks."""
    return step_of(method) == "round"


def is_pair(method: object) -> "TypeIs[PairMethod]":
    """Whether agents average in pairs, each at its own pace, by messengers."""
    return step_of(method) == "pair"


def walks(method: object) -> "TypeIs[TokenMethod]":
    """Whether tokens walk."""
    return not is_round(method) and not is_pair(method)


def agrees(method: object) -> "TypeIs[AgreeingMethod]":
    """Whether the agents of a round method agree on a number at the end of each round."""
    return is_round(method) and callable(getattr(method, "offer", None))


def is_gift(method: object) -> "TypeIs[GiftMethod]":
    """Whether agents give, so that several tokens share one account."""
    return step_of(method) == "gift"


def is_copy(method: object) -> "TypeIs[CopyMethod]":
    """Whether every agent keeps a copy of each token."""
    return step_of(method) == "local"
