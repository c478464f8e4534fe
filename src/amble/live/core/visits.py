"""Visits that survive losses: what an agent gives belongs to a generation of the account, which can be recounted.

A live token is its method's token in a parcel. Gift methods (methods/gifts.py) have one account for all tokens
(accounts.py), tracked ones an account per token (tracked_visits.py); a token that is a model has none
(model_visits.py). When nothing is ever lost, a visit is the simulator's, number by number. When an agent dies, or a
token with it, its gifts are still inside, and nobody can take them out alone. So the account starts again with a
*recount*: the model stays what it was, while each agent that is met gives its whole gift to the new account. Once all
remaining agents have done so, the new account is read. The model does not jump, and what the dead gave is gone. An
agent that comes back gives its whole gift whenever it is met, during the recount or after it. One that leaves takes its
gift out again, so nobody has to recount.

A token begins with the initial model, `start`. Where the weight is N, it counts as the gift of each agent of the
beginning until that agent gives its own; after a recount nothing of it is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from amble.arrays import Array, Flags
from amble.errors import AmbleError
from amble.live.core import accounts
from amble.live.core.accounts import Account
from amble.live.core.message import Epoch
from amble.live.core.model_visits import ModelVisits
from amble.live.core.packing import all_finite
from amble.live.core.parcels import LAPS_MAX, Common, Holder, NoShare, Parcel, Visits
from amble.live.core.short import Short
from amble.live.core.tracked_visits import TrackedVisits
from amble.losses.objective import Objective, drawn
from amble.losses.penalty import Penalty
from amble.methods import boards
from amble.methods.boards import Board
from amble.methods.gifts import Slot, Token, given, nothing, put, replaced
from amble.methods.optional import continues, weight_type
from amble.methods.protocol import GiftMethod, TokenMethod, is_copy, is_gift
from amble.methods.rounding import rounded
from amble.methods.survey import Survey

# bytes that the upper halves of matrices save: below that, taking them out costs more time than it saves
HALF_FROM = 1024
DEFINITE = 1e-9  # of the mean diagonal: a weight with a more negative eigenvalue cannot be a sum of gifts


class GiftToken(NamedTuple):
    """What a token of a gift method carries."""

    account: Account
    m: Array  # which ledger is its own


class Giver(NamedTuple):
    """What an agent of a gift method remembers."""

    own: Any  # of the method
    given: Slot  # its last gift, in the generation of its account
    account: Account

    @property
    def x(self) -> Array:
        return self.own.x


@dataclass(frozen=True)
class GiftVisits(Common):
    """For every gift method (I-BCD, WPG, WADMM, Relay): reissued exactly."""

    method: GiftMethod
    exact: ClassVar[bool] = True
    removes: ClassVar[bool] = True

    @cached_property
    def rules(self) -> boards.BoardRules:
        return boards.BoardRules(self.method, self.start, self.penalty)

    def holder(self, f: Objective) -> Holder:
        own = self.method.agent(drawn(f, -1), self.initial)
        # and an account that is older than any token's, and gives way to it
        return Holder(Giver(own, self._nothing(), self._account(-1.0)), self.initial, np.zeros(()))

    def share(self) -> NoShare:
        return NoShare()

    @property
    def short(self) -> Mapping[str, Short]:
        p, kind = self.dimension, weight_type(self.method)
        saved = 8 * self.method.tokens * (p * (p - 1) // 2)
        if self.method.weigh != "full" or (kind == "float64" and saved < HALF_FROM):
            return {}
        return {"token.account.board.weight": Short(kind, symmetric=True)}

    def counted(self, parcel: Parcel) -> Flags:
        return self.inside(parcel) | parcel.token.account.left

    def inside(self, parcel: Parcel) -> Flags:
        account = parcel.token.account  # awaited agents are in the model until the recount has ended, given or not
        return account.inside | account.missing if parcel.recounting else account.inside

    def spent(self, parcel: Parcel) -> bool:
        return bool(parcel.token.account.generation[0] >= accounts.GENERATIONS_MAX)

    def parcel(self, m: int) -> Parcel:
        return Parcel(GiftToken(self._account(0.0), np.array(float(m))), np.zeros(()), *self.counts())

    def _account(self, generation: float) -> Account:
        nobody, board = np.zeros(self.agents + self.room), self.rules.board(self.initial, self.agents, 0.0)
        gifts = np.zeros((self.method.tokens, len(nobody)))
        return Account(np.array([generation, 0.0]), self.initial, nobody, nobody, board, gifts)

    def visit(
        self,
        f: Objective,
        holder: Holder,
        share: NoShare,
        parcel: Parcel,
        me: int,
        hop: int,
        fresh: bool,  # noqa: ARG002 - a generation says it, not an epoch
    ) -> tuple[Holder, NoShare, Parcel]:
        m, parcel = int(parcel.token.m), self._met(holder, parcel, me)
        account = parcel.token.account
        gift = self._given(holder, account, me)
        recounting = parcel.recounting
        z, own, quiet = account.z, holder.agent.own, recounting and account.gifts[:, me].any()
        if not recounting:
            z = self._read(account, holder.agent.x)
            if not self._sound(account, z):
                parcel, gift, quiet = self._started_again(holder, parcel, me), self._nothing(), False
                account = parcel.token.account
                z = account.z
        if not quiet:  # a recount takes one gift of each agent, all at the same model
            before, last = account, gift
            ledger = Token(account.board.total[m], account.board.weight[m])

            def read(gift: Slot) -> Array:
                return self._read(accounts.give(before, m, me, replaced(ledger, last, gift)), z)

            own, gift = given(self.method, f, own, z, self.penalty, None if parcel.recounting else read)
            ledger, gift = put(self.method, ledger, last, gift, own.x)
            account = accounts.give(account, m, me, ledger)
        parcel = self._left_with(parcel, account, me, hop, self.still(holder, z))
        giver = Giver(own, gift, parcel.token.account)
        return Holder(giver, z, holder.visits + 1), share, parcel

    def leave(
        self, holder: Holder, share: NoShare, parcel: Parcel, me: int, hop: int, fresh: bool
    ) -> tuple[Holder, NoShare, Parcel]:  # fmt: skip
        """The last visit: all that this agent ever gave goes out again."""
        del fresh
        m, parcel = int(parcel.token.m), self._met(holder, parcel, me)
        account = parcel.token.account
        v, w = self._given(holder, account, me)
        ledger = Token(account.board.total[m] - v, account.board.weight[m] - w)
        account = accounts.leave(accounts.give(account, m, me, ledger), m, me)
        parcel = self._left_with(parcel, account, me, hop)
        giver = Giver(holder.agent.own, self._nothing(), parcel.token.account)
        return holder._replace(agent=giver, visits=holder.visits + 1), share, parcel

    def _met(self, holder: Holder, parcel: Parcel, me: int) -> Parcel:
        """The parcel with all that the agent knows of the account; in a new generation where they contradict."""
        before, m = parcel.token.account, int(parcel.token.m)
        account, again = accounts.meet(holder.agent.account, before, m, me)
        if again or accounts.full(account, m):
            return self._started_again(holder, parcel, me)
        since = parcel.since if account is before or account.order == before.order else np.zeros(())
        if account is not before:  # as it came, it has the weight that the last agent left it with
            parcel = parcel._replace(token=GiftToken(self._weighed(account), parcel.token.m))
        return parcel._replace(since=self._since(account, since))

    def _started_again(self, holder: Holder, parcel: Parcel, me: int) -> Parcel:
        m, version = int(parcel.token.m), parcel.token.account.board.version
        return self._begun(holder, parcel, me, accounts.issue(version[m]), np.zeros(self.agents + self.room))

    def recount(self, parcel: Parcel, epoch: Epoch, buried: Array, holder: Holder | None = None) -> Parcel:
        """The parcel as its next epoch begins: with a new generation of the account."""
        return self._begun(holder, parcel, epoch.author, accounts.issue_version(epoch), buried)

    def _begun(self, holder: Holder | None, parcel: Parcel, author: int, begun: float, gone: Array) -> Parcel:
        account, z = parcel.token.account, self.estimate(parcel)
        if holder is not None and holder.agent.account.order > account.order:
            account = holder.agent.account  # an older generation's ledgers say nothing about this one
            z = account.z if account.missing.any() else self._read(account)
        elif holder is not None and holder.agent.account.order == account.order:
            account = accounts.merged(holder.agent.account, account).account
        if not np.isfinite(z).all() or not self._sound(account, z):
            z = holder.z if holder is not None else account.z
        account = self._weighed(accounts.begin(account, author, int(parcel.token.m), begun, z, gone))
        parcel = parcel._replace(token=parcel.token._replace(account=account), calm=np.zeros(()))
        return parcel._replace(
            since=self._since(account, np.zeros(())),
            buried=account.out.astype(np.float64),
            members=account.inside.sum() * 1.0,
        )

    def _left_with(self, parcel: Parcel, account: Account, me: int, hop: int, still: bool = False) -> Parcel:
        """The parcel as the agent passes it on; `still`: the model has not moved."""
        most = account.most
        inside = accounts.inside(most)
        account = self._weighed(account, most, inside)
        since = self._since(account, parcel.since + 1 if parcel.recounting else parcel.since)
        members = np.array(float(np.count_nonzero(inside)))
        calm = parcel.calm + 1 if still and since < 0 else np.zeros(())
        met = parcel.met.copy()
        met[me] = hop
        out = accounts.out(account.buried, most).astype(np.float64)
        return Parcel(GiftToken(account, parcel.token.m), members, since, calm, out, met)

    def _weighed(self, account: Account, most: Array | None = None, inside: Flags | None = None) -> Account:
        """With the paper's N as its weight, where that is the method's: ledgers of several boards each bring their own.

        In the first generation, agents that have not given yet count too.
        """
        if self.method.weigh != "agents":
            return account
        most, M = account.most if most is None else most, self.method.tokens
        inside = accounts.inside(most) if inside is None else inside
        counted = np.count_nonzero(inside)
        if account.generation[0] == 0:
            first = self.agents
            counted = np.count_nonzero(most[:first] < accounts.LEFT) + np.count_nonzero(inside[first:])
        total, before, version = account.board
        weight = counted / M
        if before.tolist() == [weight] * M:
            return account
        return account._replace(board=Board(total, np.full(M, weight), version))

    def _since(self, account: Account, since: Array) -> Array:
        """-1 once every awaited agent has given, or has not been met for long."""
        if since < 0:
            return since
        over = since >= LAPS_MAX * (account.awaited.sum() + 1) or not account.missing.any()
        return np.array(-1.0) if over else since

    def _given(self, holder: Holder, account: Account, me: int) -> Slot:
        """What this agent has inside: nothing, in a generation that it has not met before, but for the initial model
        that the first one begins with."""
        if holder.agent.account.order == account.order:
            gift: Slot = holder.agent.given
            return gift
        first = account.generation[0] == 0 and me < self.agents
        return nothing(self.method, self.initial, self.penalty) if first else self._nothing()

    def _nothing(self) -> Slot:
        return nothing(self.method, np.zeros(self.dimension), self.penalty)

    def _sound(self, account: Account, z: Array) -> bool:
        """Whether this can be a sum of gifts: a weight that is positive, and a model."""
        if not all_finite(z):
            return False
        if self.method.weigh != "full":
            return 0 <= sum(account.board.weight.tolist()) < np.inf
        with np.errstate(over="ignore", invalid="ignore"):  # of what a neighbour may send, finite as each number is
            weight = np.add.reduce(account.board.weight)
            scale = np.trace(weight) / self.dimension
            uneven = abs(weight - weight.T).max()
        short = rounded(account.board.weight, weight_type(self.method))
        if not np.isfinite(scale) or not uneven <= DEFINITE * scale or not np.isfinite(short).all():
            return False
        if not weight.any():  # nobody has given yet
            return True
        try:
            np.linalg.cholesky(weight + DEFINITE * scale * np.eye(self.dimension))
        except np.linalg.LinAlgError:
            return False
        return True

    def estimate(self, parcel: Parcel) -> Array:
        account = parcel.token.account
        return account.z if parcel.recounting else self._read(account)

    def result(self, parcel: Parcel) -> Array:
        account = parcel.token.account
        numbers = account.board.total.sum(axis=0) if isinstance(self.method, Survey) else self.estimate(parcel)
        return np.append(numbers, self.inside(parcel))

    def _read(self, account: Account, near: Array | None = None) -> Array:
        try:
            return self.rules.read(account.board, near)
        except np.linalg.LinAlgError:  # no sum of gifts gives this, so `sound` refuses it
            return np.full(self.dimension, np.nan)


@dataclass(frozen=True)
class RawVisits(Common):
    """For methods that remember no share of the token (published and scaled API-BCD and gAPI-BCD, PW-ADMM): what is
    lost cannot be recounted, so a run waits for a dead agent to come back."""

    exact: ClassVar[bool] = False
    removes: ClassVar[bool] = False

    def share(self) -> Any:
        return self.rules.slot(self.initial)

    def parcel(self, m: int) -> Parcel:
        token = self.rules.token(self.initial, self.agents, m)
        return Parcel(token, np.zeros(()) + self.agents, *self.counts())

    def visit(
        self,
        f: Objective,
        holder: Holder,
        share: Any,
        parcel: Parcel,
        me: int,  # noqa: ARG002
        hop: int,  # noqa: ARG002
        fresh: bool,  # noqa: ARG002
    ) -> tuple[Holder, Any, Parcel]:
        z = self.rules.estimate(parcel.token)
        agent, share, token = self.rules.visit(f, holder.agent, share, parcel.token)
        calm = parcel.calm + 1 if self.still(holder, z) else np.zeros(())
        return Holder(agent, z, holder.visits + 1), share, parcel._replace(token=token, calm=calm)

    def leave(self, *_: Any, **__: Any) -> NoReturn:
        raise AmbleError(f"{self.method.label} cannot remove an agent's gifts; stop the agent without leaving.")

    def recount(self, *_: Any, **__: Any) -> NoReturn:
        raise AmbleError(f"{self.method.label} cannot recount; wait until the dead agent is back.")

    def estimate(self, parcel: Parcel) -> Array:
        return np.asarray(self.rules.estimate(parcel.token))

    def result(self, parcel: Parcel) -> Array:
        return np.append(self.estimate(parcel), self.inside(parcel))


def kind_for(method: TokenMethod) -> type[GiftVisits] | type[TrackedVisits] | type[ModelVisits] | type[RawVisits]:
    """Which visits a live agent makes; those that are `exact` can continue without dead agents."""
    if is_gift(method):
        return GiftVisits
    if continues(method):
        return ModelVisits
    return TrackedVisits if is_copy(method) and method.token_rule == "tracked" else RawVisits


def visits_for(
    method: TokenMethod,
    dimension: int,
    agents: int,
    tolerance: float = 0.0,
    room: int = 0,
    start: Array | None = None,
    penalty: Penalty | None = None,
) -> Visits:
    """The visits of a method, for live agents; `start` is the initial model, by default zeros."""
    kind: Any = kind_for(method)  # the one for this kind of method, which its return type cannot say
    visits: Visits = kind(method, dimension, agents, tolerance, room, start, penalty)
    return visits
