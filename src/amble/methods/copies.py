"""API-BCD's bookkeeping: every agent keeps a copy of each of the M tokens (algorithm 2, eq. 12b and 12c).

A method with copies says only how agent i's model follows from the sum s of its copies:  local(f, x, s) -> x'.
Around it, when token m visits agent i:

    c_im = z_m                                   algorithm 2, step 3
    x_i' = local(f_i, x_i, s),  s = sum_m c_im   eq. 12a
    z_m' = z_m + increment / N                   eq. 12b
    c_im = z_m';  other copies stay              eq. 12c (which prints z for them)

where the increment follows the token rule:

    published   x_i' - x_i: the paper's. Each increment reaches one token only, so the sum of all tokens is
                mean_i x_i, and for M > 1 the tokens' mean does not tend to the solution
    scaled      M (x_i' - x_i): the mean of the tokens is mean_i x_i
    tracked     x_i' - what agent i last gave token m: every token is the mean of what it was given
"""

from dataclasses import dataclass
from typing import NamedTuple

from amble.arrays import Array, namespace
from amble.losses.objective import Objective
from amble.methods.gifts import Token
from amble.methods.protocol import CopyMethod

TOKEN_RULES = ("published", "scaled", "tracked")


class Agent(NamedTuple):
    x: Array
    s: Array  # the sum of this agent's copies, kept up to date


class Slot(NamedTuple):
    copy: Array  # this agent's copy of the token
    given: Array  # the x that this agent last gave the token


@dataclass(frozen=True)
class CopyRules:
    """What the engines call (see methods/__init__), for a method with copies."""

    method: CopyMethod

    def message_numbers(self, p: int) -> int:
        return p  # N is part of the settings and need not be sent

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start, s=self.method.tokens * start)

    def slot(self, start: Array) -> Slot:
        return Slot(copy=start, given=start)

    def token(self, start: Array, agents: int, m: int) -> Token:  # noqa: ARG002 - all tokens start alike
        return Token(agents * start, namespace(start).asarray(float(agents)))

    def visit(self, f: Objective, agent: Agent, slot: Slot, token: Token) -> tuple[Agent, Slot, Token]:
        z = self.estimate(token)
        s = agent.s + (z - slot.copy)
        x = self.method.local(f, agent.x, s)
        if self.method.token_rule == "published":
            increment = x - agent.x
        elif self.method.token_rule == "scaled":
            increment = self.method.tokens * (x - agent.x)
        else:
            increment = x - slot.given
        token = token._replace(total=token.total + increment)
        z_new = self.estimate(token)
        return Agent(x, s + (z_new - z)), Slot(copy=z_new, given=x), token

    def estimate(self, token: Token) -> Array:
        return token.total / token.weight
