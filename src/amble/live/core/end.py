"""The end of a run, or of one of its stages: when it is due, which result it has, and who has been told."""

from dataclasses import dataclass, field

import numpy as np

from amble.arrays import Flags
from amble.live.core import divergence
from amble.live.core import message as messages
from amble.live.core.effects import Settings
from amble.live.core.message import Answer, Cause, Ended, Ending, Stop, Token
from amble.live.core.neighbours import UNMET_LAPS
from amble.live.core.parcels import LAPS_MAX, Parcel, Visits
from amble.live.core.state import State
from amble.losses.objective import Objective
from amble.methods.survey import Survey

MORE_LAPS = 2 * LAPS_MAX  # of a token that has made its hops and is being recounted
RECOUNTING = 2.0  # in place of 1, for whose data a model has that was read before a recount had ended

Key = tuple[str, tuple[int, ...]]  # a neighbour, and the order of an ending


@dataclass
class End:
    state: State
    settings: Settings
    visits: Visits
    objective: Objective
    begun_s: float = 0.0
    halted_s: float | None = None  # since when the run should have ended, and waits for a recount
    told: set[Key] = field(default_factory=set)  # who knows of which ending
    again_s: dict[Key, float] = field(default_factory=dict)  # when who was told and has not answered is told again

    @property
    def surveys(self) -> bool:
        return isinstance(self.visits.method, Survey)

    # --- when it is due ---------------------------------------------------------------------------------------------

    def look(self, now: float, m: int, hop: int, parcel: Parcel) -> None:
        """After a visit of token m: whether the run ends by it."""
        hops_max = self.settings.hops_max / self.settings.tokens or messages.HOPS_MAX
        still = 2 * max(1.0, float(parcel.members))
        if hop >= hops_max:
            late = hop >= min(hops_max + MORE_LAPS * (self.settings.size + 1), messages.HOPS_MAX)
            if late or not (self.settings.result and parcel.recounting):
                self.at_a_limit("hops", f"token {m} has made its {hops_max:.0f} hops", m)
        elif (
            self.settings.tolerance
            and parcel.calm >= still
            and self._everybody(now, parcel)
            and self._settled(parcel, hop)
        ):
            what = "the survey is complete" if self.surveys else "the model has converged"
            self._stop("tolerance", f"{what}: unchanged for {int(parcel.calm)} visits of token {m}", m)

    def _everybody(self, now: float, parcel: Parcel) -> bool:
        """Whether all agents were met, and all are in the model but for those that are known to be gone since.

        The run waits for agents that were never met, but not without a limit: they may have died before. In a stage
        that follows another, all that are expected have been up. So one that its neighbours have counted out is
        dead or has failed, and gets `stall_s` to come back.
        """
        missing = self.missing(parcel)
        if self.settings.follows and now - self.begun_s >= self.settings.stall_s:
            missing &= parcel.buried == 0
        if parcel.recounting or (self.visits.exact and missing.any() and self._waits(now, parcel)):
            return False
        known = (self.settings.awaited | (parcel.met > 0)) & (parcel.buried == 0)
        return self.surveys or bool(parcel.members >= np.count_nonzero(known))

    def absent(self, now: float, hop: int, parcel: Parcel) -> Flags | None:
        """Agents of the run's beginning that are counted out though nobody knows them to be down: who was not in the
        stage before, when a token begins; and who was never met, once the run no longer waits for it. None: nobody.
        """
        if hop > 0 and now - self.begun_s < self.settings.wait_s:
            return None
        gone = np.zeros(self.settings.size, bool)
        if hop == 0:
            gone[: len(self.settings.agents)] = ~self.settings.awaited[: len(self.settings.agents)]
        if not self._waits(now, parcel):
            gone |= self.settings.awaited & (parcel.met == 0)
        return gone & (parcel.buried == 0) if gone.any() else gone

    def _waits(self, now: float, parcel: Parcel) -> bool:
        """Whether the run still waits for who was never met: for a time, and until the token has looked for it."""
        young = now - self.begun_s < self.settings.wait_s
        return young or bool(parcel.met.max() < UNMET_LAPS * len(self.settings.agents))

    def missing(self, parcel: Parcel) -> Flags:
        """Who is expected, and has not given or left in a survey, or was never met in a training."""
        return self.settings.awaited & (~self.visits.counted(parcel) if self.surveys else parcel.met == 0)

    def _settled(self, parcel: Parcel, hop: int) -> bool:
        """Whether the model has not moved at anybody: while an agent is down for a moment, the token comes to the
        others alone, and it may find the model calm with the older gift of that one. A survey's gifts do not change.
        """
        recent = parcel.met > hop - parcel.calm
        return self.surveys or not self.visits.exact or bool(recent[self.visits.inside(parcel)].all())

    def halt(self, now: float, cause: Cause, sentence: str) -> None:
        """For a reason from outside. At its time limit, a run waits for a recount: a model that is older than whose
        data is in it would have rows of the dead, and lack those of newcomers. This is called again and again then."""
        newest = max((custody.message for _, custody in self.state.custodies()), key=self._order, default=None)
        if cause == "seconds" and self.settings.result and newest is not None and newest.payload.recounting:
            self.halted_s = now if self.halted_s is None else self.halted_s
            if now - self.halted_s < self.settings.silence_s:
                return
        self.at_a_limit(cause, sentence)

    # --- with which result ------------------------------------------------------------------------------------------

    def at_a_limit(self, cause: Cause, sentence: str, m: int | None = None) -> None:
        """A run that has not converged by then may be diverging."""
        state = self.state
        if state.ending is not None:  # this is called at every step from then on, and a loss takes long to compute
            return
        trains = not self.surveys and "holder" in state.rows
        if trains and divergence.has_diverged(self.objective, state.rows["holder"].z, self.visits.initial):
            sentence = f"{sentence}, and the model has diverged by then (noticed by {state.me})"
            state.stop(Ending("diverged", sentence))
            return
        self._stop(cause, sentence, m)

    def _stop(self, cause: Cause, sentence: str, m: int | None = None) -> None:
        """With the result, where one is needed: that of token m, because of which it ends, or of the newest here."""
        ending, state = Ending(cause, sentence), self.state
        if self.settings.result:
            tokens = [custody.message for k, custody in state.custodies() if m in (None, k)]
            if newest := max(tokens, key=self._order, default=None):
                numbers = self.visits.result(newest.payload)
                if newest.payload.recounting:
                    numbers[-self.settings.size :] *= RECOUNTING
                order = (int(cause == "asked"), *self._order(newest))  # a person's word counts more than any result
                ending = ending._replace(order=order, result=numbers.astype("<f8").tobytes())
        state.stop(ending)

    def _order(self, message: Token) -> tuple[int, ...]:
        """Of two results the one with more agents in it counts, then the newer one."""
        inside = int(self.visits.inside(message.payload).sum())
        index = self.settings.indices[self.state.me]
        return inside, message.epoch.number, message.hop, message.token, index

    # --- who has been told ------------------------------------------------------------------------------------------

    def heard(self, stop: Stop) -> None:
        """A neighbour says that the run has ended."""
        ending = stop.ending
        self.told.add((stop.sender, ending.order))
        if self.settings.result and not ending.result and ending.cause not in ("diverged", "lost"):
            self.at_a_limit(ending.cause, ending.words)  # it had none to end with, and this agent may have one
        else:
            self.state.stop(ending)

    def asked(self, sender: str) -> Ended:
        """The answer to one that does not know of the end. A result may be longer than an answer, so it is told."""
        ending = self.state.ending or Ending("lost", "")
        if self.settings.result:
            self.told.discard((sender, ending.order))
        return Ended(ending._replace(result=b""))

    def answered(self, now: float, to: str, stop: Stop, answer: Answer | None) -> None:
        if answer is None:
            self.again_s[to, stop.ending.order] = now + self.settings.retry_max_s
        else:
            self.told.add((to, stop.ending.order))
            self.again_s.pop((to, stop.ending.order), None)

    def forget(self, name: str) -> None:
        """A neighbour is back, maybe without what it was told."""
        self.told = {key for key in self.told if key[0] != name}
        self.again_s = {key: time_s for key, time_s in self.again_s.items() if key[0] != name}

    def tell(self, now: float) -> None:
        """Every neighbour that is up, until it has answered."""
        if (ending := self.state.ending) is None:
            return
        for name in self.state.neighbours.up:
            key = name, ending.order
            if key not in self.told and now >= self.again_s.get(key, now):
                self.again_s[key] = now + self.settings.stall_s
                self.state.ask(name, Stop(ending, self.state.me))

    def knows(self, name: str) -> bool:
        """Whether a neighbour knows of the end as it is known here."""
        return self.state.ending is not None and (name, self.state.ending.order) in self.told

    def times(self) -> list[float]:
        """When something is due."""
        if (ending := self.state.ending) is None:
            return []
        up = self.state.neighbours.up
        return [self.again_s.get((name, ending.order), 0.0) for name in up if not self.knows(name)]
