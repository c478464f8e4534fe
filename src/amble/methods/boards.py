"""Several tokens for any gift method: one account, divided into one ledger per token.

Each token has a ledger (total_m, weight_m). What is new in an agent's gift (the gift less its last one) goes into the
visiting token's ledger only, so the sum of all ledgers is the sum of all gifts. Every agent keeps a board with the
newest ledger it knows of each token, every token carries such a board, and when they meet each takes the other's newer
entries (a ledger's version counts its token's visits):

    board = newer of (agent's board, token's board), ledger by ledger
    z     = estimate of the board's sum
    ledger_m += gift - last gift;  version_m += 1

So tokens profit from each other as fast as their ledgers spread: fast if their walks cross (`cycles`, `stretches`), but
no faster than one token if they follow each other round one cycle. A message is M ledgers. Nobody waits for anybody, so
this is what live runs do; tokens of a simulation meet by default (methods/meetings.py).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from amble.arrays import Array, namespace
from amble.losses.objective import Objective
from amble.losses.penalty import Penalty
from amble.methods import gifts
from amble.methods.gifts import Slot, estimate, given, message_bytes, message_numbers, nothing, opening
from amble.methods.optional import weight_type
from amble.methods.protocol import GiftMethod


class Board(NamedTuple):
    total: Array  # (M, p); under a penalty (M, p + 1), with the sum of shares
    weight: Array  # (M,) or (M, p, p)
    version: Array  # (M,)


class Agent(NamedTuple):
    own: Any  # what the method remembers
    given: Slot  # the last gift, to whichever token
    board: Board

    @property
    def x(self) -> Array:
        return self.own.x


class NoSlot(NamedTuple):
    """Nothing is remembered about a single token."""


class Token(NamedTuple):
    board: Board
    m: Array  # which ledger is its own


@dataclass(frozen=True)
class BoardRules:
    """What the engines call (see methods/__init__), for a gift method with M > 1 tokens."""

    method: GiftMethod
    start: Array | None = None  # the initial model; None: zero
    penalty: Penalty | None = None  # for each share in the sum of losses

    def message_numbers(self, p: int) -> int:
        return int(self.method.tokens) * (message_numbers(self.method, p, self.penalty) + 1)

    def message_bytes(self, p: int) -> int:
        return int(self.method.tokens) * (message_bytes(self.method, p, self.penalty) + 8)

    def board(self, start: Array, agents: float, version: float) -> Board:
        xp, M = namespace(start), self.method.tokens
        total, weight = opening(self.method, start, agents, M, self.penalty)
        return Board(xp.stack([total] * M), xp.stack([weight] * M), xp.full(M, version))

    def agent(self, f: Objective, start: Array) -> Agent:
        # an agent does not know N: its first board is older than any token's, so the first token replaces it
        none = nothing(self.method, start, self.penalty)
        return Agent(self.method.agent(f, start), none, self.board(start, 0.0, -1.0))

    def slot(self, start: Array) -> NoSlot:  # noqa: ARG002
        return NoSlot()

    def token(self, start: Array, agents: int, m: int) -> Token:
        return Token(self.board(start, agents, 0.0), namespace(start).asarray(m) * 1.0)

    def visit(self, f: Objective, agent: Agent, slot: NoSlot, token: Token) -> tuple[Agent, NoSlot, Token]:
        board = newer(agent.board, token.board)

        def after(gift: Slot) -> Board:
            return add(board, token.m, gift.v - agent.given.v, gift.w - agent.given.w)

        z = self.read(board, agent.x)
        own, gift = given(self.method, f, agent.own, z, self.penalty, lambda gift: self.read(after(gift), z))
        board, gift = put(self.method, board, token.m, agent.given, gift, own.x)
        return Agent(own, gift, board), slot, token._replace(board=board)

    def estimate(self, token: Token) -> Array:
        return self.read(token.board)

    def read(self, board: Board, near: Array | None = None) -> Array:
        """The model that all ledgers of a board represent together."""
        total, weight = board.total.sum(axis=0), board.weight.sum(axis=0)
        return estimate(self.method, total, weight, self.start, self.penalty, near)


def newer(one: Board, other: Board) -> Board:
    """The newer entry of each ledger."""
    xp, fresh = namespace(one.total), one.version > other.version
    total = xp.where(_over(fresh, one.total), one.total, other.total)
    weight = xp.where(_over(fresh, one.weight), one.weight, other.weight)
    return Board(total, weight, xp.where(fresh, one.version, other.version))


def add(board: Board, m: Array, v: Array, w: Array) -> Board:
    """The board with a gift added to ledger m."""
    mine = _mine(board, m)
    total = board.total + _over(mine, board.total) * v
    return Board(total, board.weight + _over(mine, board.weight) * w, board.version + mine)


def put(method: GiftMethod, board: Board, m: Array, last: Slot, gift: Slot, x: Array) -> tuple[Board, Slot]:
    """As gifts.put, for ledger m."""
    if weight_type(method) == "float64":
        return add(board, m, gift.v - last.v, gift.w - last.w), gift
    xp, mine = namespace(board.total), _mine(board, m)
    of_total, of_weight = _over(mine, board.total), _over(mine, board.weight)
    ledger = gifts.Token((of_total * board.total).sum(axis=0), (of_weight * board.weight).sum(axis=0))
    ledger, gift = gifts.put(method, ledger, last, gift, x)
    total = xp.where(of_total > 0, ledger.total, board.total)
    return Board(total, xp.where(of_weight > 0, ledger.weight, board.weight), board.version + mine), gift


def _mine(board: Board, m: Array) -> Array:
    """1 for ledger m, 0 for the others."""
    xp = namespace(board.total)
    return (xp.arange(board.version.shape[0]) == m) * 1.0


def _over(flags: NDArray[Any], ledgers: Array) -> NDArray[Any]:
    """One flag per ledger, shaped to multiply or choose among them."""
    return flags.reshape(flags.shape + (1,) * (ledgers.ndim - 1))
