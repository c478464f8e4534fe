"""The protocol: what an agent does with each message. It has no I/O, no clock and no random generator.

Theory of operation
-------------------
**Custody.** Some agent always has custody of a token. Before it acknowledges the token it journals it, *with the
neighbour that gets it next*. The sender keeps a copy until the receiver says that it has passed the token on. A message
may be lost, doubled, late or overtaken, so a hand-over is repeated until it is answered. A token that an agent has seen
before (same epoch, same hop or an earlier one) is acknowledged again but not visited again. The receiver says that it
has passed a token on after `tell_s` (a small part of `patience_s`), or as soon as the token is back. It says nothing
if the token comes back from the sender itself, whose copy is newer by then.

**Epochs.** After the first attempt to send, the destination of a token changes only together with its epoch: a lost
acknowledgement must never make two tokens of one epoch. Epochs are ordered by (number, author), and the larger one
wins: an agent that has seen a newer epoch discards an older token.

**Loss.** If the receiver of a token is down for `patience_s` and has not passed it on, the sender, and only the sender,
reissues its copy in the next epoch. If nobody near an agent has seen a token for very long (`silence_s`), the agent
asks its neighbours. If none knows better, it reissues its last copy; or, if neither it nor a neighbour that answers
ever had the token, the token as it began.

**Doubt.** A neighbour that is up may still not work: its disk hangs, its link is dead one way, it keeps tokens or
refuses them. A token counts as lost if the neighbour does not answer for it within `stall_s`, or takes it and then
neither passes it on nor says that it works. Then the sender reissues it to another neighbour (doubts.py). If there is
no other way for the token, it waits.

**Recounts.** A new epoch begins with a recount (visits.py), which removes what dead agents gave from the model. An
agent also begins one if its journal knows less of its visits than the token does: otherwise its earlier gift would
count twice. A holder also begins one when a neighbour has been down for `patience_s`, is not yet `buried` in this
token, and the token has not met it for some laps (only the link to it may be down). Methods that cannot recount wait
for the dead agent instead, and say so.

**Joining and leaving.** There is `room` for agents that may join later. A newcomer is a neighbour like any other, and
new to every token. An agent that leaves takes its share out of each token that comes, tells its
neighbours to send it nothing more, and passes on what it holds. It ends when that is done; or when `within_s` is over,
and then it counts as dead.

**The end.** The token counts visits at which the model has not moved. After twice as many as its members, with each of
them among these, or after `hops_max`, its holder tells everybody, and everybody passes that on (end.py): each neighbour
is told until it has answered. If another stage follows, the ending carries a `result` (stages.py), which must be the
same everywhere: where two agents end the run at the same time, the ending of the larger order replaces the other, and
whoever knows only the smaller one is told.

Inputs are `start`, `heard`, `answered`, `peer`, `tick`, `leave`, `halt`. Each returns the effects, to be carried out in
their order; several inputs may come before the effects of any, if all that is to be persisted then comes first. Time is
an argument. The only state that survives a crash is what `Persist` was given.
"""

from typing import Any

import numpy as np

from amble.arrays import BEYOND, Array
from amble.live.core import divergence
from amble.live.core import message as messages
from amble.live.core.custody import Custodian
from amble.live.core.departure import NEVER, Departure
from amble.live.core.effects import Custody, Effect, Left, Report, Settings, Share, Sight, Visit, Wake
from amble.live.core.end import End
from amble.live.core.message import (
    Accepted,
    Answer,
    Cause,
    Ending,
    Epoch,
    Found,
    Leaving,
    Passed,
    Probe,
    Question,
    Refused,
    Seek,
    Stop,
    Token,
)
from amble.live.core.neighbours import Neighbours
from amble.live.core.packing import Packing, all_finite
from amble.live.core.parcels import Parcel, Visits, loss_at
from amble.live.core.silence import Silence
from amble.live.core.state import State
from amble.losses.objective import Objective


class Core:
    """One agent: its messages and its visits. Its parts do the rest."""

    def __init__(
        self,
        me: str,
        neighbours: tuple[str, ...],
        settings: Settings,
        visits: Visits,
        objective: Objective,  # a loss; in the fault simulator a number
        rows: dict[str, Any] | None = None,  # as the journal gave them: none, or all that was persisted before
    ) -> None:
        self.me, self.settings, self.visits, self.objective = me, settings, visits, objective
        self.neighbours = Neighbours(me, neighbours, settings)
        self.state = State(me, self.neighbours, {} if rows is None else rows)
        self.custodian = Custodian(self.state, settings, visits)
        self.silence = Silence(self.custodian)
        self.departure = Departure(self.custodian)
        self.end = End(self.state, settings, visits, objective)
        self.packings = tuple(map(Packing, (visits.holder(objective), visits.share(), visits.parcel(0))))

    # --- what happens -----------------------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """The first step."""
        self.end.begun_s = now
        self.neighbours.start(now)
        for m in range(self.settings.tokens):
            self.custodian.start(now, m)
            if "holder" not in self.rows and self.settings.first(m) == self.index:
                self._visit(now, Token(m, Epoch(0, self.index), 0, self.me, self.visits.parcel(m)), None)
        if "holder" not in self.rows:
            self.state.persist({"holder": self.visits.holder(self.objective)})
        return self._said(now)

    def heard(self, now: float, question_number: int, question: Question) -> list[Effect]:
        answer: Answer = Accepted()
        match question:
            case Token():
                self._token(now, question_number, question)
                return self._said(now)
            case Seek(token):
                sight = self.state.sight(token)
                answer = Found(token, *sight) if sight else Refused("not seen")
                if self.ending:  # which the one who asks has not heard
                    answer = self.end.asked(question.sender)
            case Probe(sender):
                self.state.persist({"probed": sender})
                if stuck := self.custodian.stuck(now):
                    answer = Refused(stuck)
            case Leaving(sender):
                self.neighbours.parting.add(sender)
                if self.custodian.coming(sender):
                    answer = Refused("a token is on its way to you")
            case Stop():
                self.end.heard(question)
        self.state.reply(question_number, answer)
        if isinstance(question, Passed):
            self.custodian.passed(now, question)
        return self._said(now)

    def answered(self, now: float, number: int, answer: Answer | None) -> list[Effect]:
        """An answer, or None if there was none in time: then it is not known whether the question was heard."""
        self.note(now, number, answer)
        return self._said(now)

    def note(self, now: float, number: int, answer: Answer | None) -> None:
        """The same, where another input follows at once: its effects have what follows from both."""
        to, question = self.state.asked.pop(number, ("", None))
        asked_s = self.state.asked_s.pop(number, now)
        if isinstance(question, Token):
            if isinstance(answer, Accepted):
                self.neighbours.doubts.answered(to, now - asked_s)
            self.custodian.answered(now, number, to, question, answer)
        elif isinstance(question, Probe):
            self.custodian.probed(now, to, answer)
        elif isinstance(question, Passed) and answer is None:
            self.custodian.tell_again(now, to, question)
        elif isinstance(question, Seek):
            self.silence.answered(now, question, answer)
        elif isinstance(question, Leaving) and isinstance(answer, Accepted):
            self.departure.parted.add(to)
        elif isinstance(question, Stop):
            self.end.answered(now, to, question, answer)

    def peer(self, now: float, name: str, up: bool) -> list[Effect]:
        """A neighbour came or went."""
        if name in self.neighbours.names:
            if not up:
                self.neighbours.went(now, name)
            elif self.neighbours.came(now, name):
                self.departure.parted.discard(name)
                self.custodian.try_again(now)
                self.end.forget(name)
        return self._said(now)

    def seek(self, now: float, name: str) -> list[Effect]:
        """A neighbour may know of another end: it is asked, or told the one that is known here."""
        self.end.told = {key for key in self.end.told if key[0] != name}
        if name in self.neighbours.names and not self.ending:
            self.state.ask(name, Seek(0, self.me))
        return self._said(now)

    def tick(self, now: float) -> list[Effect]:
        return self._said(now)

    def leave(self, now: float, within_s: float) -> list[Effect]:
        """Leave the run and remove all gifts, within this time; asked again after a restart."""
        self.departure.leave_by_s = now + within_s
        self.state.persist({"leaving": "asked"})
        return self._said(now)

    def halt(self, now: float, cause: Cause, sentence: str) -> list[Effect]:
        """End the run for a reason from outside, such as its time limit."""
        self.end.halt(now, cause, sentence)
        return self._said(now)

    # --- how it is --------------------------------------------------------------------------------------------------

    @property
    def index(self) -> int:
        return self.settings.indices[self.me]

    @property
    def rows(self) -> dict[str, Any]:
        """What survives a crash."""
        return self.state.rows

    @property
    def ending(self) -> Ending | None:
        return self.state.ending

    @property
    def stopped(self) -> str:
        """Why the run has ended, in words; "" while it goes on."""
        return self.ending.words if self.ending else ""

    @property
    def likely_cause(self) -> str:
        """The likely cause of a divergence, as this agent's rows show it: never sent to anybody, because rows are
        private."""
        if self.ending is None or self.ending.cause != "diverged":
            return ""
        return divergence.likely_cause(self.visits.method, self.objective, self.settings.columns, self.me).sentence

    @property
    def leaving(self) -> bool:
        return self.state.leaving

    @property
    def left(self) -> Left | None:
        """How this agent has left, once it has."""
        return self.state.left

    @property
    def missing(self) -> tuple[str, ...]:
        """The agents whose data the model does not have, as far as is known here: never met, or counted out."""
        messages_here = (custody.message for _, custody in self.state.custodies())
        newest = max(messages_here, key=lambda message: message.hop, default=None)
        result = self.ending.result if self.ending else b""
        if newest is None and not result:
            return ()
        counted = np.zeros(self.settings.size, bool) if newest is None else self.visits.counted(newest.payload)
        if result:  # which may be newer than what was seen here; but who has left is not missing
            left = counted & ~self.visits.inside(newest.payload) if newest else counted
            counted = left | (np.frombuffer(result, "<f8")[-self.settings.size :] > 0)
        return self.settings.names_at(~counted)

    # --- visits -----------------------------------------------------------------------------------------------------

    def _token(self, now: float, question_number: int, message: Token) -> None:
        m = message.token
        sight = self.state.sight(m)
        self.neighbours.doubts.works(message.sender)
        if self.ending:
            self.state.reply(question_number, self.end.asked(message.sender))
        elif sight and message.epoch < sight.epoch:
            self.state.reply(question_number, Accepted())
            self.state.report(Report("absorbed", m, message.epoch, message.hop))
        elif sight and message.epoch == sight.epoch and message.hop < sight.hop:
            self.state.reply(question_number, Accepted())
        else:
            self._visit(now, message, question_number)

    def _visit(self, now: float, message: Token, question_number: int | None) -> None:
        state, m, epoch, parcel = self.state, message.token, message.epoch, message.payload
        sight, holder = state.sight(m), self.rows.get("holder") or self.visits.holder(self.objective)
        gone = self._gone(now, message)
        # it came back without its journal, or with an old one
        forgot = float(parcel.met[self.index]) > (sight.hop if sight else 0)
        if self.visits.exact and (forgot or np.count_nonzero(gone)) and epoch.number < messages.EPOCHS_MAX:
            epoch = Epoch(epoch.number + 1, self.index)
            parcel = self.visits.recount(parcel, epoch, gone, holder)
            state.report(Report.of_epoch("recount", m, epoch, message.hop, self.settings.names_at(gone > 0)))
        share = state.share(m)
        fresh = share is None or share.epoch != epoch
        known = (holder, share.share if share else self.visits.share(), parcel, self.index, message.hop + 1, fresh)
        if self.leaving:
            state.report(Report("leaves", m, epoch, message.hop + 1))  # said first, as a recount is
        if self.visits.spent(parcel):
            words = f"the account of token {m} has been recounted more often than can be counted"
            state.stop(Ending("lost", words))
            if question_number is not None and self.ending:
                state.reply(question_number, self.end.asked(message.sender))
            return
        if (outcome := self._outcome(m, known)) is None:
            if question_number is not None:
                state.reply(question_number, Refused("a visit of it gives numbers that are not finite"))
            words = f"token {m} has diverged at hop {message.hop + 1} (noticed by {self.me})"
            state.stop(Ending("diverged", words))
            return
        holder, own_share, parcel = outcome
        outgoing = Token(m, epoch, message.hop + 1, self.me, parcel)
        self.neighbours.heed(now, parcel)
        to = self.neighbours.next(now, outgoing, message.sender)
        rows = {
            "holder": holder,
            f"sight/{m}": Sight(epoch, message.hop + 1),
            f"custody/{m}": Custody(outgoing, to, message.sender, Sight(message.epoch, message.hop), bool(to)),
        }
        if fresh or own_share or self.leaving:  # else it is as it was
            rows[f"share/{m}"] = Share(NEVER if self.leaving else epoch, own_share)
        number, before = int(holder.visits), state.custody(m)
        state.persist(rows, Visit(m, epoch, message.hop + 1, message.sender, number, message.payload, parcel))
        if question_number is not None:
            state.reply(question_number, Accepted())
        state.report(Report("visit", m, epoch, message.hop + 1))
        if before and before.message.epoch == message.epoch:
            self.neighbours.doubts.works(before.to)  # that neighbour has passed it on: the token is back
        if before and before.giver != message.sender:
            self.custodian.tell(m, before)
        self.custodian.start(now, m)
        self.end.look(now, m, message.hop + 1, parcel)

    def _gone(self, now: float, message: Token) -> Array:
        """1 for each agent that this visit counts out; never this one."""
        gone = self.neighbours.gone(now, message.token, message.payload)
        absent = self.end.absent(now, message.hop, message.payload)
        if absent is not None:
            gone[absent] = 1.0
        gone[self.index] = 0.0
        return gone

    def _outcome(self, m: int, known: Any) -> tuple[Any, Any, Parcel] | None:
        """The result of the visit; None if it is not finite, because a matrix is singular, or if the model is too
        large."""
        with np.errstate(all="ignore"):
            try:
                if self.leaving:
                    outcome = self.visits.leave(*known)
                else:
                    f = loss_at(self.objective, m, known[4], self.settings.tokens)
                    outcome = self.visits.visit(f, *known)
            except (ArithmeticError, np.linalg.LinAlgError):
                return None
            finite = all(map(all_finite, map(Packing.numbers_of, self.packings, outcome)))
            return outcome if finite and np.add.reduce(np.abs(outcome[0].z)) < BEYOND else None

    # --- and after each input ---------------------------------------------------------------------------------------

    def _said(self, now: float) -> list[Effect]:
        """What follows from the present state, and then all effects."""
        if self.ending is None:
            for m in range(self.settings.tokens):
                self.custodian.look(now, m)
                self.silence.look(now, m)
            if self.neighbours.doubts.of:
                for name in self.neighbours.doubts.asks(now):
                    if name not in self.neighbours.down_s:
                        self.state.ask(name, Probe(self.me))
            if self.leaving and not self.left:
                self.departure.look(now)
            self.state.saying.append(Wake(self._wake_s(now)))
        self.end.tell(now)
        if times := self.end.times():
            self.state.saying.append(Wake(min(times)))
        return self.state.said(now)

    def _wake_s(self, now: float) -> float:
        """When the agent must act without an input."""
        later_s = now + self.settings.silence_s
        times = [later_s, self.departure.leave_by_s, self.departure.part_s]
        times += self.custodian.times(now)
        times += self.silence.times(now)
        if self.neighbours.doubts.of:
            times += self.neighbours.doubts.times()
        if self.neighbours.down_s:
            times += [since_s + self.settings.patience_s for since_s in self.neighbours.down_s.values()]
        return min([time_s for time_s in times if time_s > now], default=later_s)
