"""Visits that survive losses: gifts belong to an epoch, and a token that is issued again is counted anew.

A live token is its method's token (methods/boards.py for gift methods, with one ledger or more; methods/copies.py, of
which the tracked rule has tracked_visits.py) in a parcel. When nothing is ever lost, a visit is the simulator's, number
by number. When an agent dies, or the token with it, its gifts are still inside the account, and nobody can take them
out alone. So the token goes on in a new epoch with a recount: estimates are read from the account as it was, while each
agent that is met puts all that it ever gave this ledger, and what it gives now, into a new one; once everybody who is
left has done so the new one takes the old one's place. Nothing jumps, and what the dead gave is gone. An agent whose
share is of an older epoch puts it in whole whenever it is met, during the recount or after it. One that leaves takes
its share out of each token that passes, so nobody has to count anew.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from amble import methods
from amble.arrays import Array, norm
from amble.live.message import Epoch
from amble.methods import boards
from amble.methods.gifts import Slot, nothing

EPOCH_VERSIONS, AUTHOR_VERSIONS = 2.0**36, 2.0**26  # a ledger's versions: those of a later epoch are all larger
PLACES_MAX = int(EPOCH_VERSIONS / AUTHOR_VERSIONS)
LAPS_MAX = 3  # visits of a recount, in members: those who are not met by then are taken in later


class Parcel(NamedTuple):
    """What travels. Every leaf is a float64 array."""

    token: Any  # the method's own
    total: Array  # the recount's account of this token's ledger
    weight: Array
    counted: Array  # agents in it
    members: Array  # agents in the ledger that estimates are read from
    since: Array  # visits since the recount began; -1: there is none
    calm: Array  # visits in a row at which the model had moved by less than the tolerance
    buried: Array  # one a place of the run: 1 for agents that are taken out
    met: Array  # one a place: the hop of the agent's last visit

    @property
    def recounting(self) -> bool:
        return bool(self.since >= 0)


class Holder(NamedTuple):
    """What an agent keeps for itself."""

    agent: Any  # the method's
    z: Array  # the estimate at the last visit
    visits: Array


class Share(NamedTuple):
    """What an agent keeps for each token: all that it gave its ledger, in whichever epoch."""

    total: Array
    weight: Array


@dataclass(frozen=True)
class Visits:
    """What all kinds have."""

    method: Any
    dimension: int
    agents: int  # at the beginning
    tolerance: float = 0.0
    room: int = 0  # for agents that come later

    @property
    def rules(self) -> Any:
        return methods.rules(self.method)

    def holder(self, f: Any) -> Holder:
        start = np.zeros(self.dimension)
        return Holder(self.rules.agent(f, start), start, np.zeros(()))


@dataclass(frozen=True)
class GiftVisits(Visits):
    """For every gift method (I-BCD, WPG, WADMM, Relay): re-issued exactly."""

    exact = True

    @property
    def rules(self) -> boards.BoardRules:
        return boards.BoardRules(self.method)

    def share(self) -> Share:
        return Share(*nothing(self.method, np.zeros(self.dimension)))

    def parcel(self, m: int) -> Parcel:
        token = self.rules.token(np.zeros(self.dimension), self.agents, m)
        token = token._replace(m=np.asarray(token.m, np.float64))
        zero = np.zeros(())
        return Parcel(token, *self.share(), zero, zero, zero - 1, zero, *np.zeros((2, self.agents + self.room)))

    def visit(
        self, f: Any, holder: Holder, share: Share, parcel: Parcel, me: int, hop: int, fresh: bool
    ) -> tuple[Holder, Share, Parcel]:
        """`fresh`: this agent's share is of an older epoch than the token, or it has none."""
        agent, m = holder.agent, int(parcel.token.m)
        board = self._merged(agent.board, parcel.token)
        z = self.rules.read(board)
        own, v, w = self.method.gift(f, agent.own, z)
        more = Slot(v - agent.given.v, w - agent.given.w)
        share = Share(share.total + more.v, share.weight + more.w)
        add = share if fresh else Share(*more)
        awaited = self._awaited(parcel, m, me)
        parcel = parcel._replace(met=_set(parcel.met, me, hop), buried=_set(parcel.buried, me, 0.0))
        parcel = self._entered(parcel, board, m, add, int(fresh), awaited)
        agent = boards.Agent(own, Slot(v, w), parcel.token.board)
        still = holder.visits > 0 and norm(z - holder.z) <= self.tolerance * norm(z)
        calm = parcel.calm + 1 if still and not parcel.recounting else np.zeros(())
        return Holder(agent, z, holder.visits + 1), share, parcel._replace(calm=calm)

    def leave(
        self, holder: Holder, share: Share, parcel: Parcel, me: int, hop: int, fresh: bool
    ) -> tuple[Holder, Share, Parcel]:
        """The last visit: all that this agent ever gave the token's ledger goes out again."""
        agent, m = holder.agent, int(parcel.token.m)
        board = self._merged(agent.board, parcel.token)
        none = self.share()
        less = none if fresh else Share(-share.total, -share.weight)
        awaited = self._awaited(parcel, m, me)
        parcel = parcel._replace(met=_set(parcel.met, me, hop), buried=_set(parcel.buried, me, 1.0), calm=np.zeros(()))
        parcel = self._entered(parcel, board, m, less, int(fresh) - 1, awaited)
        given = Slot(agent.given.v - share.total, agent.given.w - share.weight)
        agent = boards.Agent(agent.own, given, parcel.token.board)
        return holder._replace(agent=agent, visits=holder.visits + 1), none, parcel

    def _merged(self, known: boards.Board, token: boards.Token) -> boards.Board:
        """The newer ledgers; but its own is the token's to keep, whatever another issue of it left with the agent."""
        version = _set(known.version, int(token.m), -1.0)
        if not (version > token.board.version).any():
            return token.board
        return boards.newer(known._replace(version=version), token.board)

    def _awaited(self, parcel: Parcel, m: int, me: int) -> float:
        """Agents that a mean over all counts, though they have not given yet: all at the start, none after a recount;
        and not this one, from now on."""
        if self.method.weigh != "agents":
            return 0.0
        all_in = np.rint(parcel.token.board.weight[m] * self.method.tokens)
        this_one = me < self.agents and not parcel.met[me]
        return max(0.0, float(all_in - parcel.members) - this_one)

    def _entered(self, parcel: Parcel, board: Any, m: int, add: Share, more: int, awaited: float) -> Parcel:
        """A gift goes into the ledger, or into the recount, which takes the ledger's place when it is complete.

        `more`: agents that are in it by this.
        """
        if not parcel.recounting:
            board = boards.add(board, m, add.total, add.weight)
            members = parcel.members + more
            if self.method.weigh == "agents":
                weight = _set(board.weight, m, (members + awaited) / self.method.tokens)
                board = board._replace(weight=weight)
            return parcel._replace(token=parcel.token._replace(board=board), members=members)
        counted = parcel.counted + more
        parcel = parcel._replace(
            token=parcel.token._replace(board=board),
            total=parcel.total + add.total,
            weight=parcel.weight + add.weight,
            counted=counted,
            since=parcel.since + 1,
        )
        left = (parcel.met > 0) & (parcel.buried == 0)
        if counted >= left.sum() or parcel.since >= LAPS_MAX * (parcel.members + 1):
            weight = counted / self.method.tokens if self.method.weigh == "agents" else parcel.weight
            board = boards.put(board, m, parcel.total, weight)
            zero = self.share()
            parcel = parcel._replace(
                token=parcel.token._replace(board=board), total=zero.total, weight=zero.weight,
                counted=np.zeros(()), members=counted, since=np.zeros(()) - 1,
            )  # fmt: skip
        return parcel

    def recount(self, parcel: Parcel, epoch: Epoch, buried: Array) -> Parcel:
        """The parcel as its next epoch begins: a recount, and versions above all of the epochs before."""
        zero, m = self.share(), int(parcel.token.m)
        version = parcel.token.board.version.copy()
        version[m] = epoch.number * EPOCH_VERSIONS + epoch.author * AUTHOR_VERSIONS
        board = parcel.token.board._replace(version=version)
        return parcel._replace(
            token=parcel.token._replace(board=board), total=zero.total, weight=zero.weight,
            counted=np.zeros(()), since=np.zeros(()), calm=np.zeros(()), buried=np.maximum(parcel.buried, buried),
        )  # fmt: skip

    def estimate(self, parcel: Parcel) -> Array:
        return self.rules.read(parcel.token.board)


@dataclass(frozen=True)
class RawVisits(Visits):
    """For methods that remember no share of the token (published and scaled API-BCD and gAPI-BCD, PW-ADMM): what is
    lost cannot be counted anew, so a run waits for a dead agent to come back."""

    exact = False

    def share(self) -> Any:
        return self.rules.slot(np.zeros(self.dimension))

    def parcel(self, m: int) -> Parcel:
        token = self.rules.token(np.zeros(self.dimension), self.agents, m)
        zero, places = np.zeros(()), np.zeros((2, self.agents + self.room))
        return Parcel(token, zero, zero, zero, zero + self.agents, zero - 1, zero, *places)

    def visit(
        self,
        f: Any,
        holder: Holder,
        share: Any,
        parcel: Parcel,
        me: int,  # noqa: ARG002
        hop: int,  # noqa: ARG002
        fresh: bool,  # noqa: ARG002
    ) -> tuple[Holder, Any, Parcel]:
        z = self.rules.estimate(parcel.token)
        agent, share, token = self.rules.visit(f, holder.agent, share, parcel.token)
        still = holder.visits > 0 and norm(z - holder.z) <= self.tolerance * norm(z)
        calm = parcel.calm + 1 if still else np.zeros(())
        return Holder(agent, z, holder.visits + 1), share, parcel._replace(token=token, calm=calm)

    def estimate(self, parcel: Parcel) -> Array:
        return np.asarray(self.rules.estimate(parcel.token))


def _set(values: Array, place: int, value: float) -> Array:
    changed = values.copy()
    changed[place] = value
    return changed


def kind(method: Any) -> Any:
    """Which visits a live agent makes; those that are `exact` go on without the dead."""
    from amble.live.tracked_visits import TrackedVisits  # which builds upon this module

    if hasattr(method, "gift"):
        return GiftVisits
    return TrackedVisits if getattr(method, "token_rule", "") == "tracked" else RawVisits


def make(method: Any, dimension: int, agents: int, tolerance: float = 0.0, room: int = 0) -> Any:
    """The visits of a method, for live agents."""
    return kind(method)(method, dimension, agents, tolerance, room)
