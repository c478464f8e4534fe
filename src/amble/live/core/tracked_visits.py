"""API-BCD's tracked rule (and gAPI-BCD's) with losses: each token is an account of its own, and can be recounted.

Under the tracked rule (methods/copies.py) token m holds the sum of what each agent last gave it, over N, and an agent's
slot remembers what that was. So the bookkeeping is that of gifts, without boards: every token has a whole account, and
when it is reissued each agent that is met puts its x into a new one, while z is read from the old account.

    s    = sum of copies, with c_im = z_m
    x'   = local(f, x, s)
    add  = x' - last, what the agent gave before, or x' where it gave nothing in this epoch
    c_im = z_m', which is z_m during a recount

The N of z_m = total / N is the number of agents in the account: all agents of the run at first, the remaining ones
after a recount, one more when an agent comes back, one less when one leaves. At first, each agent counts as having
given the initial model. N is nowhere else in the update (tau is a penalty for each agent), so after a recount a visit
is, number by number, that of a run with only the remaining agents, and the limit is the same.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from amble.arrays import Array, Flags
from amble.live.core.message import Epoch
from amble.live.core.parcels import LAPS_MAX, Common, Holder, Parcel
from amble.losses.objective import Objective
from amble.methods.copies import Agent, Slot
from amble.methods.gifts import Token
from amble.methods.protocol import CopyMethod


class TrackedToken(NamedTuple):
    """What a token carries: its account, and the recount that may take its place."""

    account: Token
    total: Array
    counted: Array  # agents in the recount


@dataclass(frozen=True)
class TrackedVisits(Common):
    """For API-BCD and gAPI-BCD with the token rule `tracked`: reissued exactly."""

    method: CopyMethod
    exact: ClassVar[bool] = True
    removes: ClassVar[bool] = True

    def share(self) -> Slot:
        slot: Slot = self.rules.slot(self.initial)
        return slot

    def parcel(self, m: int) -> Parcel:
        zero = np.zeros(())
        token = TrackedToken(self.rules.token(self.initial, self.agents, m), np.zeros(self.dimension), zero)
        return Parcel(token, zero, *self.counts())

    def visit(
        self, f: Objective, holder: Holder, share: Slot, parcel: Parcel, me: int, hop: int, fresh: bool
    ) -> tuple[Holder, Slot, Parcel]:
        z = self.estimate(parcel)
        s = holder.agent.s + (z - share.copy)
        x = self.method.local(f, holder.agent.x, s)
        last = self._given(share, parcel, me, fresh)
        awaited, parcel = self._awaited(parcel, me), _met(parcel, me, hop, buried=0.0)
        parcel = self._entered(parcel, x - last, int(fresh), awaited)
        z_new = self.estimate(parcel)
        calm = parcel.calm + 1 if self.still(holder, z) and not parcel.recounting else np.zeros(())
        holder = Holder(Agent(x, s + (z_new - z)), z, holder.visits + 1)
        return holder, Slot(copy=z_new, given=x), parcel._replace(calm=calm)

    def leave(
        self, holder: Holder, share: Slot, parcel: Parcel, me: int, hop: int, fresh: bool
    ) -> tuple[Holder, Slot, Parcel]:
        """The last visit: what this agent gave the token goes out again."""
        last = self._given(share, parcel, me, fresh)
        awaited, parcel = self._awaited(parcel, me), _met(parcel, me, hop, buried=1.0)
        parcel = self._entered(parcel, -last, int(fresh) - 1, awaited)
        return (
            holder._replace(visits=holder.visits + 1),
            share._replace(given=0 * share.given),
            parcel._replace(calm=np.zeros(())),
        )

    def _given(self, share: Slot, parcel: Parcel, me: int, fresh: bool) -> Array:
        """What the token, or its recount, has from this agent: the initial model if it counts but was not met yet."""
        if not fresh:
            return share.given
        counted = self._unmet(parcel, me) and parcel.token.account.weight > parcel.members and not parcel.recounting
        return self.initial if counted else np.zeros(self.dimension)

    def _unmet(self, parcel: Parcel, me: int) -> bool:
        return bool(me < self.agents and parcel.met[me] == 0)

    def _awaited(self, parcel: Parcel, me: int) -> float:
        """Agents that the mean counts, though they have not given yet: all at the start, none after a recount; and not
        this one, from now on."""
        return max(0.0, float(parcel.token.account.weight - parcel.members) - self._unmet(parcel, me))

    def _entered(self, parcel: Parcel, add: Array, more: int, awaited: float) -> Parcel:
        """What is given goes into the token, or into the recount, which takes its place when it is complete.

        `more`: agents that are in it by this.
        """
        account, total, counted = parcel.token
        if not parcel.recounting:
            members = parcel.members + more
            account = Token(account.total + add, members + awaited)
            return parcel._replace(token=parcel.token._replace(account=account), members=members)
        total, counted, since = total + add, counted + more, parcel.since + 1
        left = (parcel.met > 0) & (parcel.buried == 0)
        if counted >= left.sum() or since >= LAPS_MAX * (parcel.members + 1):
            token = TrackedToken(Token(total, counted), 0 * add, np.zeros(()))
            return parcel._replace(token=token, members=counted, since=np.full((), -1.0))
        return parcel._replace(token=TrackedToken(account, total, counted), since=since)

    def recount(self, parcel: Parcel, epoch: Epoch, buried: Array, holder: Holder | None = None) -> Parcel:  # noqa: ARG002
        """The parcel as its next epoch begins: a recount, of this token's account alone."""
        zero = np.zeros(())
        token = parcel.token._replace(total=np.zeros(self.dimension), counted=zero)
        return parcel._replace(token=token, since=zero, calm=zero, buried=np.maximum(parcel.buried, buried))

    def counted(self, parcel: Parcel) -> Flags:
        return (parcel.met > 0) & (parcel.buried == 0)

    def estimate(self, parcel: Parcel) -> Array:
        total, weight = parcel.token.account
        return np.asarray(total / np.where(weight == 0, 1.0, weight))  # it is empty once the last agent has left

    def result(self, parcel: Parcel) -> Array:
        return np.append(self.estimate(parcel), self.inside(parcel))


def _met(parcel: Parcel, me: int, hop: int, buried: float) -> Parcel:
    here = np.arange(len(parcel.met)) == me
    return parcel._replace(met=np.where(here, hop, parcel.met), buried=np.where(here, buried, parcel.buried))
