"""Token bookkeeping for gift methods: a token is an account of gifts, and every agent remembers its last gift.

A gift method says only what an agent gives at estimate z:  gift(f, agent, z) -> (agent, v, w).
A token holds (total, weight); the agent's slot for it holds its last gift (v, w) to it:

    z = total / weight
    total += v - slot.v;  weight += w - slot.w;  slot = (v, w)

A method may give again, at the model that its gift has led to, before the token goes on. The last gift counts or, where
even that one leads away, the one that misses least.

How gifts weigh is the method's `weigh`:

    agents   the paper's normalisation: the weight is N from the beginning and gifts weigh nothing, z = total / N, so
             that z' = z + (v - slot.v) / N, which is eq. 8 when the gift is x'. Each agent counts as having given the
             initial model, so that x_i = z = start
    scalar   each gift brings its weight, and the token begins empty: no agent needs to know N
    full     the weight is a symmetric matrix, and z solves  weight z = total; under a penalty of the problem's, z
             minimises the token's quadratic and the penalty (losses/penalty.py). As strong as the agents inside are
             many: each gives its share in the sum too, as one more entry of v. In short messages the weight's numbers
             are rounded, weight' = Q(weight), and the agent that was there gives what is missing at its model x:
                 w += weight' - weight;  v += (weight' - weight) x
             Its slope w x - v stays, so the model to which the tokens converge is as exact as without rounding. On
             the diagonal Q rounds up, by what its row was rounded too, so weight' >= weight: it is no less definite

An empty token represents the initial model, and so does a full one in all directions that no gift has determined yet.

Several tokens share one account of M ledgers: see methods/boards.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from amble.arrays import Array, Flags, chosen, namespace, solver, while_loop
from amble.losses.objective import Objective, number_of
from amble.losses.penalty import SINGULAR, Penalty
from amble.methods.optional import gifts_in_visit, weight_type
from amble.methods.protocol import GiftMethod
from amble.methods.rounding import LOSSES, NUMBER_BYTES, rounded


class Token(NamedTuple):
    total: Array
    weight: Array


class Slot(NamedTuple):
    v: Array
    w: Array


def nothing(method: GiftMethod, start: Array, penalty: Penalty | None = None) -> Slot:
    """What counts as given before the first gift: nothing, or the initial model where the weight is N."""
    xp, p = namespace(start), start.shape[-1]
    if method.weigh == "agents":
        return Slot(start, xp.asarray(0.0))
    v = xp.zeros(p if penalty is None else p + 1)
    return Slot(v, xp.zeros((p, p)) if method.weigh == "full" else xp.asarray(0.0))


class Given(NamedTuple):
    """A gift, and what its agent then remembers and sees."""

    agent: Any
    gift: Slot
    look: Any  # at the model with the gift in it: whether the gift `misses` the agent's loss there, and `by` how much


class Giving(NamedTuple):
    """Of an agent that may give several times in a visit."""

    last: Given
    best: Given
    left: Array  # how often it still may give


def given(
    method: GiftMethod,
    f: Objective,
    agent: Any,
    z: Array,
    penalty: Penalty | None = None,
    read: Callable[[Slot], Array] | None = None,
) -> tuple[Any, Slot]:
    """What the agent remembers after its gift at z, and the gift.

    `read` is the model with a gift in it. A method that gives again looks at that model; without `read` it gives once.
    """
    xp, repeated = namespace(z), cast(Any, method)

    def slot(v: Array, w: Array) -> Slot:
        return Slot(v if penalty is None else xp.append(v, number_of(f, "share", None)), w)

    agent, v, w = method.gift(f, agent, z)
    first, most = slot(v, w), gifts_in_visit(method, f).most
    if read is None or most == 1:
        return agent, first

    def looked(agent: Any, gift: Slot) -> Given:
        return Given(agent, gift, repeated.look(f, agent, gift.v[: len(z)], gift.w, read(gift)))

    def misses(now: Giving) -> Flags:
        return (now.left > 0) & now.last.look.misses

    def again(now: Giving) -> Giving:
        agent, gift, look = now.last
        agent, v, w = repeated.again(agent, gift.v[: len(z)], gift.w, look)
        last = looked(agent, slot(v, w))
        return Giving(last, chosen(last.look.by < now.best.look.by, last, now.best), now.left - 1)

    begun = looked(agent, first)
    ended: Giving = while_loop(xp, misses, again, Giving(begun, begun, xp.asarray(most - 1)))
    away = ended.last.look.misses & ~(ended.last.look.by <= 1)  # also where it is no number
    counts = chosen(away, ended.best, ended.last)
    return counts.agent, counts.gift


def opening(
    method: GiftMethod, start: Array, agents: float, tokens: int, penalty: Penalty | None = None
) -> Token:  # fmt: skip
    """What one of `tokens` accounts holds before the first gift."""
    v, w = nothing(method, start, penalty)
    if method.weigh != "agents":
        return Token(v, w)
    gifts = namespace(start).asarray(agents / tokens)
    return Token(gifts * v, gifts)


def replaced(account: Token, last: Slot, gift: Slot) -> Token:
    """The account with a gift in place of the agent's last one."""
    return Token(account.total + (gift.v - last.v), account.weight + (gift.w - last.w))


def put(method: GiftMethod, account: Token, last: Slot, gift: Slot, x: Array) -> tuple[Token, Slot]:
    """As `replaced`, and the gift as it counts; x is the agent's model."""
    return fitted(method, replaced(account, last, gift), gift, x)


def fitted(method: GiftMethod, account: Token, gift: Slot, x: Array) -> tuple[Token, Slot]:
    """The account as a message holds it, and a gift inside that makes up for the difference."""
    kind = weight_type(method)
    if kind == "float64":
        return account, gift
    xp, weight = namespace(x), account.weight
    nearest, diagonal = rounded(weight, kind), xp.eye(len(x))
    up = xp.diagonal(weight) + (abs(nearest - weight) * (1 - diagonal)).sum(axis=1)
    up = rounded((1 + 2 * LOSSES[kind]) * up, kind)
    short = xp.where(diagonal > 0, up[:, None], nearest)
    off = short - weight
    v = off @ x
    v = xp.append(v, xp.zeros(gift.v.shape[0] - len(x)))  # under a penalty the last entry is the share
    return Token(account.total + v, short), Slot(gift.v + v, gift.w + off)


def estimate(
    method: GiftMethod,
    total: Array,
    weight: Array,
    start: Array | None = None,
    penalty: Penalty | None = None,
    near: Array | None = None,
) -> Array:
    """z: the model that an account represents; `start` (by default zero) while it is empty.

    `near` is where the search for the minimiser under a penalty begins, by default `start`.
    """
    xp = namespace(total)
    if penalty is not None:
        shares, total = total[-1], total[:-1]
        start = xp.zeros_like(total) if start is None else start
        return penalty.times(shares).minimiser(total, weight, start, near)
    if xp is np and not weight.shape and weight != 0 and method.weigh != "full":  # as below, by one operation
        return total / weight
    start = xp.zeros_like(total) if start is None else start
    if method.weigh != "full":
        return xp.where(weight == 0, start, total / xp.where(weight == 0, 1.0, weight))
    # in the scaling of the weight's own diagonal, so that the units of the columns do not matter
    diagonal = xp.diagonal(weight)
    known = diagonal > 0
    scale = 1 / xp.sqrt(xp.where(known, diagonal, 1.0))
    left, scaled = scale * (total - weight @ start), scale[:, None] * weight * scale  # left to find: z - start
    # an account of few rows has a singular weight; one step of refinement removes the added part again
    lifted = scaled + xp.diag(xp.where(known, SINGULAR, 1.0))
    solve = solver(lifted)
    u = solve(left)
    return start + scale * (u + solve(left - scaled @ u))


def message_numbers(method: GiftMethod, p: int, penalty: Penalty | None = None) -> int:
    """What a message must hold: the total, and the weight unless it is N, which is part of the settings."""
    return p + {"agents": 0, "scalar": 1, "full": p * (p + 1) // 2}[method.weigh] + (penalty is not None)


def message_bytes(method: GiftMethod, p: int, penalty: Penalty | None = None) -> int:
    """Of so many numbers, those of the weight in their type."""
    numbers, saved = message_numbers(method, p, penalty), 8 - NUMBER_BYTES[weight_type(method)]
    return 8 * numbers - saved * (p * (p + 1) // 2)


@dataclass(frozen=True)
class GiftRules:
    """What the engines call (see methods/__init__), for a gift method with one token."""

    method: GiftMethod
    start: Array | None = None  # the initial model; None: zero
    penalty: Penalty | None = None  # for each share in the sum of losses

    def message_numbers(self, p: int) -> int:
        return message_numbers(self.method, p, self.penalty)

    def message_bytes(self, p: int) -> int:
        return message_bytes(self.method, p, self.penalty)

    def agent(self, f: Objective, start: Array) -> Any:
        return self.method.agent(f, start)

    def slot(self, start: Array) -> Slot:
        return nothing(self.method, start, self.penalty)

    def token(self, start: Array, agents: int, m: int) -> Token:  # noqa: ARG002 - there is but one
        return opening(self.method, start, agents, 1, self.penalty)

    def visit(self, f: Objective, agent: Any, slot: Slot, token: Token) -> tuple[Any, Slot, Token]:
        def read(gift: Slot) -> Array:
            return self.estimate(replaced(token, slot, gift), z)

        z = self.estimate(token, agent.x)
        agent, gift = given(self.method, f, agent, z, self.penalty, read)
        token, gift = put(self.method, token, slot, gift, agent.x)
        return agent, gift, token

    def estimate(self, token: Token, near: Array | None = None) -> Array:
        return estimate(self.method, token.total, token.weight, self.start, self.penalty, near)
