"""The protocol: what an agent does with what it hears. No I/O, no clock, no randomness of its own.

Theory of operation
-------------------
**Custody.** A token is always in somebody's hands. Who holds it has journaled it, *with the neighbour it is meant for*,
before it acknowledged it; who sent it keeps a copy until the receiver says that it has, in turn, handed it on. A
message may be lost, doubled, late or overtaken: a hand-over is asked again until it is answered, and what was seen
before (same epoch, same hop or an earlier one) is acknowledged again and not visited again. That it has handed a token
on the receiver says `tell_s` later (a small part of `patience_s`, in which that is not needed), or when the token is
back sooner; and not at all if it comes back from the very agent that was to be told, whose copy is a newer one by then.

**Epochs.** After the first attempt to send, the destination of a token changes only together with its epoch: a lost
acknowledgement must never make two tokens of one epoch. Epochs are ordered, (number, author); the larger one wins, and
an older token that meets an agent which has seen a newer one is absorbed there.

**Loss.** If the agent that a token was handed to is down for `patience_s` and has not handed it on, the one that sent
it, and it alone, reissues its copy in the next epoch. If a token has not been seen for very long by anybody near
(`silence_s`), an agent asks its neighbours and, if none knows better, reissues its last copy; or the token as it
began, where neither it nor a neighbour that answers ever had one.

**Doubt.** A neighbour that is up may still not work: its disk hangs, its link is dead one way, it keeps tokens or
refuses them. A token that it does not answer for within `stall_s`, or takes and neither passes on nor says that it
works, counts as lost: it is reissued round that neighbour (doubts.py), if there is another way, or else waited for.

**Recounts.** A new epoch begins with a recount (visits.py), so what the dead gave goes out of the model. An agent
whose journal knows less of its visits than the token does begins one, lest what it gave before counts twice. A holder
also begins one when a neighbour has been down for `patience_s`, the token has not met it for some laps (the link to it
may be down, and it be well) and it is not yet `buried` in this token. Methods that cannot recount wait for the
dead instead, and say so.

**Coming and going.** A place is kept for each agent that may come later (`room`). One that comes is a neighbour like
any other from then on, and new to every token. One that leaves takes its share out of each token that passes, tells
its neighbours to send it nothing more, hands on what it holds, and ends once that is done or `within_s` is over: then
it is dead, like any other.

**The end.** The token counts visits at which the model has not moved; after twice its members, or `hops_max`, its
holder tells everybody, and everybody passes that on once.

Inputs are `start`, `heard`, `answered`, `peer`, `tick`, `leave`, `halt`; each returns the effects, to be carried out
in their order. Time is an argument. The only state that outlives a crash is what `Persist` was given.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amble.arrays import BEYOND
from amble.live.core import divergence
from amble.live.core import message as messages
from amble.live.core.effects import Ask, Custody, Effect, Errand, Left, Reply, Report, Share, Sight, Visit, Wake
from amble.live.core.message import (
    Accepted,
    Answer,
    Cause,
    Ended,
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
from amble.live.core.packing import flat
from amble.live.core.standpoint import RETRY, SILENCE, Standpoint

PROBES_MAX = 10  # of one that has taken a token: who then says that it works, and still has it, keeps it
NEVER = Epoch(-1, 0)  # of a share that was taken out again


@dataclass
class Core(Standpoint):
    """One agent."""

    errands: dict[int, Errand] = field(default_factory=dict)
    asked_s: dict[int, float] = field(default_factory=dict)  # when each question that is not answered was asked
    seen_s: dict[int, float] = field(default_factory=dict)
    sought_s: dict[int, float] = field(default_factory=dict)  # when a token that is not seen was last asked for
    unknown: set[int] = field(default_factory=set)  # tokens that a neighbour who was asked has not seen either
    leave_by_s: float = math.inf
    parted: set[str] = field(default_factory=set)  # neighbours that know that this agent is
    part_s: float = 0.0  # when those who do not are asked again

    # --- what happens -----------------------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """The first step, with `rows` as the journal gave them: none, or all that was persisted before."""
        self.begun_s, self.down_s = now, dict.fromkeys(self.neighbours, now)
        for m in range(self.settings.tokens):
            self.seen_s[m] = now
            self.errands[m] = Errand(again_s=now, held_s=now)
            if "holder" not in self.rows and self.settings.agents[m % len(self.settings.agents)] == self.me:
                self._visit(now, Token(m, Epoch(0, self.place), 0, self.me, self.visits.parcel(m)), None)
        if "holder" not in self.rows:
            self._persist({"holder": self.visits.holder(self.objective)})
        if self.ending:
            self._flood()
        return self._said(now)

    def heard(self, now: float, question_number: int, question: Question) -> list[Effect]:
        if isinstance(question, Token):
            self._token(now, question_number, question)
        elif isinstance(question, Seek):
            sight = self.rows.get(f"sight/{question.token}")
            known: Answer = Found(question.token, *sight) if sight else Refused("not seen")
            if self.ending:  # which the one who asks has not heard
                known = Ended(self.ending)
            self.saying.append(Reply(question_number, known))
        elif isinstance(question, Probe):
            self._persist({"probed": question.sender})
            self.saying.append(Reply(question_number, Refused(stuck) if (stuck := self._stuck(now)) else Accepted()))
        elif isinstance(question, Leaving):
            self.parting.add(question.sender)
            coming = any(custody.to == question.sender and not self.errands[m].passed for m, custody in self._custody())
            answer = Refused("a token is on its way to you") if coming else Accepted()
            self.saying.append(Reply(question_number, answer))
        else:
            self.saying.append(Reply(question_number, Accepted()))
            if isinstance(question, Passed):
                custody = self.rows.get(f"custody/{question.token}")
                if custody and (custody.message.epoch, custody.message.hop) == (question.epoch, question.hop):
                    self.errands[question.token].passed = True
                    self.seen_s[question.token] = now
                    self.doubts.works(question.sender)
            elif isinstance(question, Stop):
                self._stop(*question.ending)
        return self._said(now)

    def answered(self, now: float, number: int, answer: Answer | None) -> list[Effect]:
        """An answer, or None where there was none in time: nobody knows whether the question was heard."""
        to, question = self.asked.pop(number, ("", None))
        asked_s = self.asked_s.pop(number, now)
        if isinstance(question, Token):
            if isinstance(answer, Accepted):
                self.doubts.answered(to, now - asked_s)
            self._handed(now, number, to, question, answer)
        elif isinstance(question, Probe):
            self._probed(now, to, answer)
        elif isinstance(question, Passed) and answer is None:
            custody, errand = self.rows.get(f"custody/{question.token}"), self.errands[question.token]
            if custody and (custody.giver, custody.given) == (to, (question.epoch, question.hop)):
                errand.tell_s = now + self.settings.retry_max_s  # lest it takes us for one that keeps tokens
        elif isinstance(question, Seek):
            self._sought(now, question, answer)
        elif isinstance(question, Leaving) and isinstance(answer, Accepted):
            self.parted.add(to)
        return self._said(now)

    def peer(self, now: float, name: str, up: bool) -> list[Effect]:
        if name in self.neighbours:
            if not up:
                self.down_s.setdefault(name, now)
            elif self.down_s.pop(name, None) is not None:
                self.up_s[name] = now
                self.doubts.works(name)
                self.watch = {key: hop for key, hop in self.watch.items() if key[1] != name}
                self.parting.discard(name)
                self.parted.discard(name)
                for errand in self.errands.values():
                    errand.again_s, errand.wait_s = now, 0.0
                if self.ending:
                    self._ask(name, Stop(self.ending, self.me))
        return self._said(now)

    def tick(self, now: float) -> list[Effect]:
        return self._said(now)

    def leave(self, now: float, within_s: float) -> list[Effect]:
        """Leave the run, with all that was given, in so much time; asked again after a restart."""
        self.leave_by_s = now + within_s
        self._persist({"leaving": "asked"})
        return self._said(now)

    def halt(self, now: float, cause: Cause, words: str) -> list[Effect]:
        """The run is to end, for a reason from outside: its time is up."""
        self._end(cause, words)
        return self._said(now)

    # --- visits -----------------------------------------------------------------------------------------------------

    @property
    def ending(self) -> Ending | None:
        return self.rows.get("stopped")

    @property
    def stopped(self) -> str:
        """Why the run has ended, in words; "" while it goes on."""
        return self.ending.words if self.ending else ""

    @property
    def likely_cause(self) -> str:
        """Of a divergence, as far as this agent's rows show it: never sent to anybody, as the rows are private."""
        if self.ending is None or self.ending.cause != "diverged":
            return ""
        return divergence.likely_cause(self.visits.method, self.objective, self.settings.columns, self.me).sentence

    @property
    def leaving(self) -> bool:
        return "leaving" in self.rows

    @property
    def left(self) -> Left | None:
        """How this agent has left, once it has."""
        return self.rows.get("left")

    @property
    def missing(self) -> tuple[str, ...]:
        """Whose data the model does not have, as far as is known here: they were never met, or are counted out."""
        newest = max((custody.message for _, custody in self._custody()), key=lambda message: message.hop, default=None)
        if newest is None:
            return ()
        counted = self.visits.counted(newest.payload)
        return tuple(name for name, place in self.settings.places.items() if not counted[place])

    def _token(self, now: float, question_number: int, message: Token) -> None:
        m = message.token
        sight = self.rows.get(f"sight/{m}")
        self.doubts.works(message.sender)
        if self.ending:
            self.saying.append(Reply(question_number, Ended(self.ending)))
        elif sight and message.epoch < sight.epoch:
            self.saying += [Reply(question_number, Accepted()), Report("absorbed", m, message.epoch, message.hop)]
        elif sight and message.epoch == sight.epoch and message.hop < sight.hop:
            self.saying.append(Reply(question_number, Accepted()))
        else:
            self._visit(now, message, question_number)

    def _visit(self, now: float, message: Token, question_number: int | None) -> None:
        m, epoch, parcel = message.token, message.epoch, message.payload
        gone, sight = self._gone(now, m, parcel), self.rows.get(f"sight/{m}")
        holder = self.rows.get("holder") or self.visits.holder(self.objective)
        forgot = parcel.met[self.place] > (sight.hop if sight else 0)  # it came back without its journal, or an old one
        if self.visits.exact and (forgot or gone.any()) and epoch.number < messages.EPOCHS_MAX:
            epoch = Epoch(epoch.number + 1, self.place)
            parcel = self.visits.recount(parcel, epoch, gone, holder)
            self.saying.append(self._new_epoch("recount", m, epoch, message.hop, gone))
        share = self.rows.get(f"share/{m}")
        fresh = share is None or share.epoch != epoch
        known = (holder, share.share if share else self.visits.share(), parcel, self.place, message.hop + 1, fresh)
        if self.leaving:
            self.saying.append(Report("leaves", m, epoch, message.hop + 1))  # said first, as a recount is
        if self.visits.spent(parcel):
            self._stop("lost", f"the account of token {m} has been recounted more often than can be counted")
            if question_number is not None and self.ending:
                self.saying.append(Reply(question_number, Ended(self.ending)))
            return
        if (made := self._made(known)) is None:
            if question_number is not None:
                self.saying.append(Reply(question_number, Refused("a visit of it gives numbers that are not finite")))
            self._stop("diverged", f"token {m} has diverged at hop {message.hop + 1} (noticed by {self.me})")
            return
        holder, given, parcel = made
        outgoing = Token(m, epoch, message.hop + 1, self.me, parcel)
        given_as = Sight(message.epoch, message.hop)
        self._warned(now, parcel)
        custody = Custody(outgoing, self._next(now, outgoing, message.sender), message.sender, given_as)
        rows = {
            "holder": holder,
            f"share/{m}": Share(NEVER if self.leaving else epoch, given),
            f"sight/{m}": Sight(epoch, message.hop + 1),
            f"custody/{m}": custody._replace(tried=bool(custody.to)),
        }
        number, before = int(holder.visits), self.rows.get(f"custody/{m}")
        self._persist(rows, Visit(m, epoch, message.hop + 1, message.sender, number, message.payload, parcel))
        if question_number is not None:
            self.saying.append(Reply(question_number, Accepted()))
        self.saying.append(Report("visit", m, epoch, message.hop + 1))
        if before and before.message.epoch == message.epoch:
            self.doubts.works(before.to)  # who has passed it on: it is back
        if before and before.giver != message.sender:
            self._tell(m, before)
        self.errands[m], self.seen_s[m] = Errand(again_s=now, held_s=now), now
        limit, still = (
            self.settings.hops_max / self.settings.tokens or messages.HOPS_MAX,
            2 * max(1.0, float(parcel.members)),
        )
        if message.hop + 1 >= limit:
            self._end("hops", f"token {m} has made its {limit:.0f} hops")
        elif self.settings.tolerance and parcel.calm >= still and self._everybody(now, parcel):
            self._stop("tolerance", f"the model has converged: unchanged for {int(parcel.calm)} visits of token {m}")

    def _made(self, known: Any) -> Any:
        """The visit's outcome; None where it is not finite, as a matrix is singular, or the model beyond all bounds."""
        with np.errstate(all="ignore"):
            try:
                made = self.visits.leave(*known) if self.leaving else self.visits.visit(self.objective, *known)
            except (ArithmeticError, np.linalg.LinAlgError):
                return None
            finite = all(np.isfinite(flat(tree)).all() for tree in made)
            return made if finite and np.abs(made[0].z).sum() < BEYOND else None

    # --- custody ----------------------------------------------------------------------------------------------------

    def _handed(self, now: float, number: int, to: str, message: Token, answer: Answer | None) -> None:
        errand = self.errands[message.token]
        if errand.asked != number:
            return  # of a token that has been here again since
        errand.asked = None
        custody: Custody = self.rows[f"custody/{message.token}"]
        if isinstance(answer, Accepted):
            errand.taken, errand.since_s = True, now
            self.seen_s[message.token] = now
            if custody.giver not in (self.me, ""):
                errand.tell_s = now + self.settings.tell_s
        elif isinstance(answer, Ended):
            self._stop(*answer.ending)
        else:
            if isinstance(answer, Refused):
                self._refused(errand, to, message, answer.reason)
            errand.wait_s = min(max(2 * errand.wait_s, self.settings.retry_s), self.settings.retry_max_s)
            errand.again_s = now + errand.wait_s * (0.5 + self._draw(message.token, number, RETRY))

    def _refused(self, errand: Errand, to: str, message: Token, reason: str) -> None:
        if errand.refusal != reason:  # said once, for it is asked again and again
            self.saying.append(Report("refused", message.token, message.epoch, message.hop, f"{to}: {reason}"))
        errand.refusal = reason
        if to in self.doubts.of:  # once more: there is nothing to wait for
            errand.since_s = -math.inf

    def _tell(self, m: int, custody: Custody) -> None:
        """Who gave it may forget it, if that is not said yet."""
        if self.errands[m].tell_s is not None:
            self.errands[m].tell_s = None
            self._ask(custody.giver, Passed(m, *custody.given, self.me))

    def _hand_over(self, now: float, m: int) -> None:
        """Send what is here; or, when whom it was sent to is gone, reissue it."""
        custody, errand = self.rows.get(f"custody/{m}"), self.errands[m]
        if custody and errand.tell_s is not None and now >= errand.tell_s:
            self._tell(m, custody)
        if custody is None or errand.passed:
            return
        if not custody.to:
            if to := self._next(now, custody.message, custody.giver):
                self._persist({f"custody/{m}": custody._replace(to=to, tried=True)})
                self._hand_over(now, m)
            return
        away_s = now - self.down_s.get(custody.to, now)
        if away_s >= self.settings.patience_s:
            if self.visits.exact:
                self._issue_again(now, m, custody)
            return
        if errand.since_s is not None and now - errand.since_s >= self.doubts.limit_s(custody.to, errand.taken):
            if not errand.taken or errand.probes >= PROBES_MAX:
                self._doubt(now, m, custody)
            elif errand.probe_s is None:
                errand.probe_s = now
                self._ask(custody.to, Probe(self.me))
            elif now - errand.probe_s >= self.doubts.limit_s(custody.to):
                self._doubt(now, m, custody)
            return
        if not errand.taken and errand.asked is None and custody.to not in self.down_s and now >= errand.again_s:
            errand.asked = self._ask(custody.to, custody.message)
            errand.since_s = now if errand.since_s is None else errand.since_s

    def _doubt(self, now: float, m: int, custody: Custody) -> None:
        """Who was handed the token does not do its part: the token goes round it, where there is another way."""
        errand = self.errands[m]
        why = "keeps tokens" if errand.taken else f"has not answered for {self.doubts.limit_s(custody.to):.0f} s"
        why = f"refuses tokens ({errand.refusal})" if errand.refusal else why
        if self.doubts.add(now, custody.to, why):
            self.saying.append(Report("doubt", m, custody.message.epoch, custody.message.hop, f"{custody.to} {why}"))
        if self.visits.exact and set(self._up()) - self.doubts.now(now):
            self._issue_again(now, m, custody)
        else:  # there is nobody else: it is waited for, and asked again
            self.errands[m] = Errand(again_s=now, held_s=errand.held_s)

    def _probed(self, now: float, to: str, answer: Answer | None) -> None:
        """A neighbour has said whether it works, or has not answered."""
        well = isinstance(answer, Accepted)
        self.doubts.said(to, well)
        for m, custody in self._custody():
            errand = self.errands[m]
            if custody.to == to and errand.taken and errand.probe_s is not None and not errand.passed:
                errand.probe_s = None
                if well:
                    errand.since_s, errand.probes = now, errand.probes + 1
                else:
                    self._doubt(now, m, custody)

    def _stuck(self, now: float) -> str:
        """Which token has been here for longer than it should, for nobody takes it; "" if none has."""
        for m, custody in self._custody():
            errand = self.errands[m]
            waits = not errand.taken and not errand.passed and now - errand.held_s
            if waits and waits > self.doubts.limit_s(custody.to, taken=True):
                return f"it has held token {m} for {waits:.0f} s"
        return ""

    def _issue_again(self, now: float, m: int, custody: Custody) -> None:
        sight: Sight = self.rows.get(f"sight/{m}", custody.given)
        epoch = Epoch(max(sight.epoch.number, custody.message.epoch.number) + 1, self.place)
        if epoch.number > messages.EPOCHS_MAX:
            self._stop("lost", f"token {m} is lost, and has been reissued {messages.EPOCHS_MAX:,} times before")
            return
        gone = self._gone(now, m, custody.message.payload, custody.to)
        parcel = self.visits.recount(custody.message.payload, epoch, gone)
        message = Token(m, epoch, custody.message.hop, self.me, parcel)
        to = self._next(now, message, "")
        fresh = Custody(message, to, custody.giver, custody.given, bool(to))
        # said first: a crash in between must not leave an epoch of which the record does not know how it began
        self.saying.append(self._new_epoch("reissue", m, epoch, message.hop, gone))
        self._persist({f"custody/{m}": fresh, f"sight/{m}": Sight(epoch, message.hop)})
        self.errands[m], self.seen_s[m] = Errand(again_s=now, held_s=self.errands[m].held_s), now
        self._hand_over(now, m)

    def _new_epoch(self, kind: str, m: int, epoch: Epoch, hop: int, gone: Any) -> Report:
        buried = tuple(self._names(gone))
        return Report(kind, m, epoch, hop, ", ".join(buried), buried)

    # --- the back-stop ----------------------------------------------------------------------------------------------

    def _silent(self, now: float, m: int) -> None:
        """Long unseen: ask around, and when that brings nothing, reissue the last copy."""
        if not self.visits.exact or now - self.seen_s[m] < self.settings.silence_s:
            return
        if now < self._silent_s(m):
            return
        if self.sought_s.get(m, -math.inf) <= self.seen_s[m]:
            self.sought_s[m] = now
            self.unknown.discard(m)
            for name in self.neighbours:
                if name not in self.down_s:
                    self._ask(name, Seek(m, self.me))
        elif now >= self.sought_s[m] + self.settings.patience_s:
            custody = self.rows.get(f"custody/{m}")
            if custody is None and (m not in self.unknown or self.place >= len(self.settings.agents)):
                self.seen_s[m] = now  # alone, or come later: it may well be about, so it is asked for again
            else:
                self._issue_again(now, m, custody or self._beginning(m))

    def _silent_s(self, m: int) -> float:
        """When a token that is not seen is asked for; not by all at once."""
        return self.seen_s[m] + self.settings.silence_s * (1 + self._draw(m, self.place, SILENCE))

    def _beginning(self, m: int) -> Custody:
        """A token as everybody knows it began: its first agent may have died before anybody else had it."""
        epoch = Epoch(0, m % len(self.settings.agents))
        return Custody(Token(m, epoch, 0, self.me, self.visits.parcel(m)), "", "", Sight(epoch, 0))

    def _sought(self, now: float, question: Seek, answer: Answer | None) -> None:
        mine = self.rows.get(f"sight/{question.token}")
        if isinstance(answer, Found) and (mine is None or (answer.epoch, answer.hop) > mine):
            self.seen_s[question.token] = now  # it is about
        elif isinstance(answer, Ended):
            self._stop(*answer.ending)
        elif isinstance(answer, Refused):
            self.unknown.add(question.token)

    # --- the end ----------------------------------------------------------------------------------------------------

    def _end(self, cause: Cause, words: str) -> None:
        """By a limit: a run that has not converged by then may be on its way beyond all bounds."""
        if self.ending is not None:  # asked at every turn from then on, and a loss takes long to compute
            return
        if "holder" in self.rows and divergence.has_diverged(self.objective, self.rows["holder"].z):
            cause, words = "diverged", f"{words}, and the model has diverged by then (noticed by {self.me})"
        self._stop(cause, words)

    def _stop(self, cause: Cause, words: str) -> None:
        if self.ending is None:
            self._persist({"stopped": Ending(cause, words or "no reason was given")})
            self.saying.append(Report("stopped", words=self.stopped))
            self._flood()

    def _flood(self) -> None:
        for name in self.neighbours:
            if self.ending and name not in self.down_s:
                self._ask(name, Stop(self.ending, self.me))

    def _custody(self) -> Iterator[tuple[int, Custody]]:
        """The tokens that were here, and have not been here again since."""
        for m in range(self.settings.tokens):
            if custody := self.rows.get(f"custody/{m}"):
                yield m, custody

    def _leave(self, now: float) -> None:
        """Whether it is done: all shares are out, nothing more is coming, and what was here is in other hands."""
        tokens = range(self.settings.tokens)
        inside = [m for m in tokens if (share := self.rows.get(f"share/{m}")) and share.epoch != NEVER]
        held = [m for m, _ in self._custody() if not self.errands[m].done]
        sending = set(self.neighbours) - self.down_s.keys() - self.parted
        if not inside and sending and now >= self.part_s:
            self.part_s = now + self.settings.retry_s
            for name in sorted(sending):
                self._ask(name, Leaving(self.me))
        if not inside and (now >= self.leave_by_s or not (held or sending)):
            left = Left(True, "all that it gave is out of the model")
        elif now >= self.leave_by_s:
            tokens_left = ", ".join(map(str, inside))
            left = Left(False, f"its time was over: tokens {tokens_left} are recounted without it, as without the dead")
        else:
            return
        self._persist({"left": left})
        self.saying.append(Report("left", words=left.words))

    def _said(self, now: float) -> list[Effect]:
        """What follows from the state as it is now, and then all that was said."""
        if self.ending is None:
            for m in range(self.settings.tokens):
                self._hand_over(now, m)
                self._silent(now, m)
            for name in self.doubts.asks(now):
                if name not in self.down_s:
                    self._ask(name, Probe(self.me))
            if self.leaving and not self.left:
                self._leave(now)
            self.saying.append(Wake(self._wake_s(now)))
        said, self.saying = self.saying, []
        self.asked_s |= {effect.number: now for effect in said if isinstance(effect, Ask)}
        return said

    def _wake_s(self, now: float) -> float:
        """When something may have to be done without anybody saying so."""
        times = [now + self.settings.silence_s]
        times += [since_s + self.settings.patience_s for since_s in self.down_s.values()]
        times += [self.leave_by_s, self.part_s, *self.doubts.times()]
        for m, errand in self.errands.items():
            if f"custody/{m}" in self.rows and not errand.taken and errand.asked is None:
                times.append(errand.again_s)
            if errand.since_s is not None and not errand.passed and (custody := self.rows.get(f"custody/{m}")):
                times.append(errand.since_s + self.doubts.limit_s(custody.to, errand.taken))
                times.append((errand.probe_s or now) + self.doubts.limit_s(custody.to))
            if errand.tell_s is not None:
                times.append(errand.tell_s)
            times.append(self.seen_s[m] + self.settings.silence_s)
            if now >= times[-1]:
                times += [self._silent_s(m), self.sought_s.get(m, now) + self.settings.patience_s]
        return min((time_s for time_s in times if time_s > now), default=now + self.settings.silence_s)
