"""Token bookkeeping, written once: a token is an account of gifts, and every agent remembers what it gave.

A gift method says only what an agent gives at estimate z:  gift(f, agent, z) -> (agent, v, w).
The token holds (total, weight); the agent's slot for this token holds its last gift (v, w) to it:

    z = total / weight
    total += v - slot.v;  weight += w - slot.w;  slot = (v, w)

With the paper's normalisation the weight is N from the start and gifts weigh nothing: z = total / N. So
z' = z + (v - slot.v) / N, which is eq. 8 when the gift is x'. A self-normalising token starts empty.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from amble.arrays import Array, namespace


class Token(NamedTuple):
    total: Array
    weight: Array


class Slot(NamedTuple):
    v: Array
    w: Array


def fixed_token(start: Array, agents: int) -> Token:
    """A token at z = 0 with the paper's normalisation, z = total / N."""
    return Token(start, namespace(start).asarray(float(agents)))


def estimate(token: Token) -> Array:
    return token.total / token.weight


def exchange(token: Token, slot: Slot, v: Array, w: Array) -> tuple[Slot, Token]:
    """Take back the last gift, give the new one."""
    return Slot(v, w), Token(token.total + (v - slot.v), token.weight + (w - slot.w))


@dataclass(frozen=True)
class GiftRules:
    """What the engines ask of a method (see methods/__init__), for a method that is a gift."""

    method: Any

    @property
    def tokens(self) -> int:
        return int(self.method.tokens)

    @property
    def work(self) -> dict[str, int]:
        return dict(self.method.work)

    def message_numbers(self, p: int) -> int:
        return p  # N is part of the settings and need not travel

    def agent(self, f: Any, start: Array) -> Any:
        return self.method.agent(f, start)

    def slot(self, start: Array) -> Slot:
        return Slot(start, namespace(start).asarray(0.0))

    def token(self, start: Array, agents: int) -> Token:
        return fixed_token(start, agents)

    def visit(self, f: Any, agent: Any, slot: Slot, token: Token) -> tuple[Any, Slot, Token]:
        agent, v, w = self.method.gift(f, agent, estimate(token))
        return (agent, *exchange(token, slot, v, w))

    def estimate(self, token: Token) -> Array:
        return estimate(token)
