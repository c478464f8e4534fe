"""Several tokens that gather apart and meet, for any gift method: one account, kept at the meeting place.

A token carries a copy of the account as it was at the last meeting, with what agents have given it since. So a message
is one account, however many tokens there are. At the meeting place (networks/meetings.py) it delivers the difference,
waits until all have done so, and takes the account with it:

    visit     z = estimate of the token;  token += gift - last gift
    deliver   account += token - taken;  taken = token
    take      token = taken = account

`taken` is remembered at the meeting place and never sent. What was given is in exactly one place, the account or one
token, so after each meeting every token is the sum of all agents' last gifts.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from amble.arrays import Array
from amble.losses.objective import Objective
from amble.losses.penalty import Penalty
from amble.methods import gifts
from amble.methods.boards import NoSlot
from amble.methods.gifts import (
    Slot,
    estimate,
    fitted,
    given,
    message_bytes,
    message_numbers,
    nothing,
    opening,
    put,
    replaced,
)
from amble.methods.protocol import GiftMethod


class Agent(NamedTuple):
    own: Any  # what the method remembers
    given: Slot  # the last gift, to whichever token
    account: gifts.Token  # of the meeting place; other agents have an empty one

    @property
    def x(self) -> Array:
        return self.own.x


class Token(NamedTuple):
    total: Array
    weight: Array
    taken: gifts.Token  # the account as it was when the token left the meeting place, which remembers it


@dataclass(frozen=True)
class MeetingRules:
    """What the engines call (see methods/__init__), for a gift method whose tokens meet."""

    method: GiftMethod
    start: Array | None = None  # the initial model; None: zero
    penalty: Penalty | None = None  # for each share in the sum of losses

    def message_numbers(self, p: int) -> int:
        return message_numbers(self.method, p, self.penalty)

    def message_bytes(self, p: int) -> int:
        return message_bytes(self.method, p, self.penalty)

    def agent(self, f: Objective, start: Array) -> Agent:
        none = nothing(self.method, start, self.penalty)
        return Agent(self.method.agent(f, start), none, gifts.Token(0 * none.v, 0 * none.w))

    def slot(self, start: Array) -> NoSlot:  # noqa: ARG002
        return NoSlot()

    def token(self, start: Array, agents: int, m: int) -> Token:  # noqa: ARG002 - all begin alike
        # where the weight is N from the beginning, each token brings its share to the first meeting
        whole = opening(self.method, start, agents, 1, self.penalty)
        share = opening(self.method, start, agents, self.method.tokens, self.penalty)
        return Token(*whole, gifts.Token(whole.total - share.total, whole.weight - share.weight))

    def visit(self, f: Objective, agent: Agent, slot: NoSlot, token: Token) -> tuple[Agent, NoSlot, Token]:
        held = gifts.Token(token.total, token.weight)

        def read(gift: Slot) -> Array:
            return estimate(self.method, *replaced(held, agent.given, gift), self.start, self.penalty, z)

        z = self.estimate(token, agent.x)
        own, gift = given(self.method, f, agent.own, z, self.penalty, read)
        (total, weight), gift = put(self.method, held, agent.given, gift, own.x)
        return agent._replace(own=own, given=gift), slot, token._replace(total=total, weight=weight)

    def deliver(self, agent: Agent, token: Token) -> tuple[Agent, Token]:
        """The meeting place gets what the token has been given since it left."""
        total = agent.account.total + (token.total - token.taken.total)
        weight = agent.account.weight + (token.weight - token.taken.weight)
        account, gift = fitted(self.method, gifts.Token(total, weight), agent.given, agent.x)
        return (
            agent._replace(given=gift, account=account),
            token._replace(taken=gifts.Token(token.total, token.weight)),
        )

    def take(self, agent: Agent) -> Token:
        """A token as it leaves the meeting place."""
        return Token(*agent.account, taken=agent.account)

    def estimate(self, token: Token, near: Array | None = None) -> Array:
        return estimate(self.method, token.total, token.weight, self.start, self.penalty, near)

    def whole(self, tokens: Token, account: gifts.Token) -> Array:
        """The model of all that was given, wherever it is; the arguments are stacked by token and by agent."""
        total = account.total.sum(axis=0) + (tokens.total - tokens.taken.total).sum(axis=0)
        weight = account.weight.sum(axis=0) + (tokens.weight - tokens.taken.weight).sum(axis=0)
        return estimate(self.method, total, weight, self.start, self.penalty)
