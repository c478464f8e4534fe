"""The account of a gift method in live runs: one for all tokens, divided into M ledgers, in successive generations.

Only its own token writes a ledger; agents and tokens read their copies of it (methods/boards.py). What an agent
gives is a difference: its gift less its last one. A sum of ledgers is therefore meaningful only if it has all
differences of each agent up to some visit. Boards guarantee that while nothing is lost, because they never know of a
later difference without the earlier ones. It breaks if a ledger is lost, or if an agent is taken out of one: parts of
gifts would stay in the other ledgers, the weight could become indefinite, and the model could diverge.

So nothing is ever taken out of a ledger, and no ledger is replaced. Whenever something was lost, the whole account
starts again as the next *generation*: all its ledgers are empty, each agent gives its whole gift at its next visit, by
whichever token, and until all `awaited` agents have done so every visit uses `z`, the model at the generation's
beginning. The newest generation wins wherever two meet. What the dead had given is in an older one, and gone.

A generation begins when a token is reissued, when somebody is counted out, and when two boards cannot both be right
(`merged`): a ledger of two issues of its token, or an agent that the board knows to have given more than it remembers.
"""

import operator
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, Flags
from amble.live.core.message import Epoch
from amble.methods.boards import Board
from amble.methods.gifts import Token

# a ledger's version: which issue of its token wrote it, and how many gifts; all are whole numbers below 2**53
EPOCH_VERSIONS, ISSUE_VERSIONS = 2.0**36, 2.0**26
PLACES_MAX = int(EPOCH_VERSIONS / ISSUE_VERSIONS)
GENERATIONS_MAX = 2.0**40
LEFT = 2.0**40  # in `gifts`, more than any agent gives: the agent has left and removed all its gifts


class Account(NamedTuple):
    """The account as a token carries it, and as each agent last saw it."""

    generation: Array  # (2,): a number, and who began it; the larger one wins
    z: Array  # (p,): the model until all awaited agents have given
    awaited: Array  # (places,): 1 for agents that must give before the ledgers are read
    buried: Array  # (places,): 1 for agents that were counted out when it began
    board: Board  # M ledgers
    gifts: Array  # (M, places): how many gifts of each agent are in a ledger; LEFT: it has left

    @property
    def most(self) -> Array:
        """The most gifts of each agent in any ledger, one number per place."""
        most: Array = self.gifts[0] if len(self.gifts) == 1 else np.maximum.reduce(self.gifts)
        return most

    @property
    def left(self) -> Flags:
        return self.most >= LEFT

    @property
    def inside(self) -> Flags:
        """Which agents' gifts are in it, one flag per place."""
        return inside(self.most)

    @property
    def missing(self) -> Flags:
        """Which agents are still awaited."""
        return (self.awaited > 0) & (self.most <= 0)

    @property
    def out(self) -> Flags:
        """Which agents are counted out: buried and not back since, or left."""
        return out(self.buried, self.most)

    @property
    def order(self) -> tuple[float, float]:
        number, author = self.generation.tolist()
        return number, author


def inside(most: Array) -> Flags:
    """See Account.inside; for who has `most` already."""
    return (most > 0) & (most < LEFT)


def out(buried: Array, most: Array) -> Flags:
    return ((buried > 0) & (most <= 0)) | (most >= LEFT)


class Meeting(NamedTuple):
    """An agent's account and a token's, combined."""

    account: Account
    again: bool  # whether they contradict each other, so that a new generation has to begin


def issue_version(epoch: Epoch) -> float:
    return epoch.number * EPOCH_VERSIONS + epoch.author * ISSUE_VERSIONS


def issue(version: Any) -> Any:
    """The version that the ledger of this issue began with."""
    return version // ISSUE_VERSIONS * ISSUE_VERSIONS


def meet(mine: Account, token: Account, m: int, me: int) -> Meeting:
    """What an agent and token m know of the account together, before the agent gives anything."""
    ours, theirs = mine.order, token.order
    if ours > theirs:
        begun = issue(token.board.version[m])
        used = mine.board.version[m] != issue(mine.board.version[m])  # another issue of this token has been there
        return Meeting(_entered(mine, m, begun), bool(used))
    if ours < theirs:
        return Meeting(token, bool((token.gifts[:, me] > 0).any()))  # gifts that this agent does not know
    account, lost = merged(mine, token)
    # its own ledger is the token's alone: nobody knows a newer one, nor of other gifts of this agent in it
    known, said = mine.gifts[:, me].tolist(), token.gifts[:, me].tolist()
    doubled = mine.board.version[m] > token.board.version[m] or known[m] != said[m]
    forgot = any(map(operator.gt, said, known))
    return Meeting(account, bool(lost or doubled or forgot))


def merged(one: Account, other: Account) -> Meeting:
    """Two of one generation: the newer of each ledger; `again` where the older one was written by another issue."""
    first, second = one.board.version.tolist(), other.board.version.tolist()  # few numbers: faster without arrays
    again = any(
        issue(a) != issue(b) and min(a, b) != issue(min(a, b)) for a, b in zip(first, second, strict=True) if a != b
    )
    if not any(map(operator.gt, first, second)):
        return Meeting(other, again)
    newer = one.board.version > other.board.version
    over = newer.reshape(-1, *[1] * (one.board.weight.ndim - 1))
    board = Board(
        np.where(newer[:, None], one.board.total, other.board.total),
        np.where(over, one.board.weight, other.board.weight),
        np.where(newer, one.board.version, other.board.version),
    )
    gifts = np.where(newer[:, None], one.gifts, other.gifts)
    return Meeting(other._replace(board=board, gifts=gifts), again)


def begin(account: Account, author: int, m: int, begun: float, z: Array, gone: Array) -> Account:
    """The next generation, begun by token m at agent `author`, without the agents that are gone; `begun` is the token's
    issue."""
    left = account.left & (
        np.arange(len(gone)) != author
    )  # an agent that is here has not left: it lost its journal while leaving
    out = (account.out | (gone > 0)) & ~account.left
    stay = (account.inside | account.missing) & ~out
    tokens = len(account.board.version)
    return _entered(
        Account(
            np.array([account.generation[0] + 1, author * tokens + m]),
            z,
            stay.astype(np.float64),
            (out | left).astype(np.float64),
            Board(0 * account.board.total, 0 * account.board.weight, 0 * account.board.version),
            np.where(left, LEFT, 0.0) * np.ones((tokens, 1)),
        ),
        m,
        begun,
    )


def give(account: Account, m: int, me: int, ledger: Token) -> Account:
    """With ledger m as it is after a gift of this agent."""
    total, weight, version, gifts = map(np.ndarray.copy, (*account.board, account.gifts))
    total[m], weight[m] = ledger
    version[m] += 1
    gifts[m, me] += 1
    generation, z, awaited, buried, _, _ = account
    return Account(generation, z, awaited, buried, Board(total, weight, version), gifts)


def leave(account: Account, m: int, me: int) -> Account:
    gifts = account.gifts.copy()
    gifts[m, me] = LEFT
    return account._replace(gifts=gifts)


def full(account: Account, m: int) -> bool:
    """Whether ledger m has no version left in this generation."""
    version = float(account.board.version[m])
    return version + 2 >= issue(version) + ISSUE_VERSIONS


def _entered(account: Account, m: int, begun: float) -> Account:
    """Puts token m into this generation, with an empty ledger."""
    version = account.board.version.copy()
    version[m] = begun
    return account._replace(board=account.board._replace(version=version))
