"""Custody: hands a visited token over until another agent has it, or reissues it if that fails."""

import math
from dataclasses import dataclass, field

from amble.live.core import message as messages
from amble.live.core.chance import RETRY, draw
from amble.live.core.effects import Custody, Errand, Report, Settings, Sight
from amble.live.core.message import Accepted, Answer, Ended, Ending, Epoch, Passed, Probe, Refused, Token
from amble.live.core.parcels import Visits
from amble.live.core.state import State

PROBES_MAX = 10  # after a neighbour has taken a token: if it says that it works but still has the token, it keeps it


@dataclass
class Custodian:
    state: State
    settings: Settings
    visits: Visits
    errands: dict[int, Errand] = field(default_factory=dict)
    seen_s: dict[int, float] = field(default_factory=dict)  # when each token was last known to exist

    def start(self, now: float, m: int) -> None:
        """Prepares token m: it may be here, or may not have come yet."""
        self.errands[m], self.seen_s[m] = Errand(again_s=now, held_s=now), now

    def try_again(self, now: float) -> None:
        """A neighbour is back: retry at once."""
        for errand in self.errands.values():
            errand.again_s, errand.wait_s = now, 0.0

    def look(self, now: float, m: int) -> None:
        """Send the tokens that are here; reissue a token whose receiver is gone."""
        state, neighbours = self.state, self.state.neighbours
        custody, errand = state.custody(m), self.errands[m]
        if custody is None:
            return
        if errand.tell_s is not None and now >= errand.tell_s:
            self.tell(m, custody)
        if errand.passed:
            return
        if not custody.to:
            if to := neighbours.next(now, custody.message, custody.giver):
                state.persist({f"custody/{m}": custody._replace(to=to, tried=True)})
                self.look(now, m)
            return
        away_s = now - neighbours.down_s.get(custody.to, now)
        if away_s >= self.settings.patience_s:
            if self.visits.exact:
                self.reissue(now, m, custody)
            return
        limit_s = neighbours.doubts.limit_s
        if errand.since_s is not None and now - errand.since_s >= limit_s(custody.to, errand.taken):
            if not errand.taken or errand.probes >= PROBES_MAX:
                self.doubt(now, m, custody)
            elif errand.probe_s is None:
                errand.probe_s = now
                state.ask(custody.to, Probe(state.me))
            elif now - errand.probe_s >= limit_s(custody.to):
                self.doubt(now, m, custody)
            return
        if not errand.taken and errand.asked is None and custody.to not in neighbours.down_s and now >= errand.again_s:
            errand.asked = state.ask(custody.to, custody.message)
            errand.since_s = now if errand.since_s is None else errand.since_s

    def answered(self, now: float, number: int, to: str, message: Token, answer: Answer | None) -> None:
        """A hand-over was answered, or it is not known whether it was heard."""
        state, errand = self.state, self.errands[message.token]
        custody = state.custody(message.token)
        if errand.asked != number or custody is None:
            return  # about a token that has come back since
        errand.asked = None
        if isinstance(answer, Accepted):
            errand.taken, errand.since_s = True, now
            self.seen_s[message.token] = now
            if custody.giver not in (state.me, ""):
                errand.tell_s = now + self.settings.tell_s
        elif isinstance(answer, Ended) and not self.settings.result:  # else the ending comes by itself, with its result
            state.stop(answer.ending)
        else:
            if isinstance(answer, Refused):
                self._refused(errand, to, message, answer.reason)
            errand.wait_s = min(max(2 * errand.wait_s, self.settings.retry_s), self.settings.retry_max_s)
            errand.again_s = now + errand.wait_s * (0.5 + draw(self.settings, state.me, message.token, number, RETRY))

    def _refused(self, errand: Errand, to: str, message: Token, reason: str) -> None:
        if errand.refusal != reason:  # reported once, because it is asked again and again
            self.state.report(Report("refused", message.token, message.epoch, message.hop, f"{to}: {reason}"))
        errand.refusal = reason
        if to in self.state.neighbours.doubts.of:  # send again: there is nothing to wait for
            errand.since_s = -math.inf

    def tell(self, m: int, custody: Custody) -> None:
        """Tell the previous sender that it may forget the token, if it has not been told yet."""
        if self.errands[m].tell_s is not None:
            self.errands[m].tell_s = None
            self.state.ask(custody.giver, Passed(m, *custody.given, self.state.me))

    def tell_again(self, now: float, to: str, passed: Passed) -> None:
        """That message was not answered. Send it again, so that we do not seem to keep tokens."""
        custody = self.state.custody(passed.token)
        if custody and (custody.giver, custody.given) == (to, (passed.epoch, passed.hop)):
            self.errands[passed.token].tell_s = now + self.settings.retry_max_s

    def passed(self, now: float, passed: Passed) -> None:
        """The receiver has passed the token on."""
        custody = self.state.custody(passed.token)
        if custody and (custody.message.epoch, custody.message.hop) == (passed.epoch, passed.hop):
            self.errands[passed.token].passed = True
            self.seen_s[passed.token] = now
            self.state.neighbours.doubts.works(passed.sender)

    def doubt(self, now: float, m: int, custody: Custody) -> None:
        """The receiver does not pass the token on: the token avoids it, if there is another way."""
        errand, neighbours = self.errands[m], self.state.neighbours
        why = "keeps tokens" if errand.taken else f"has not answered for {neighbours.doubts.limit_s(custody.to):.0f} s"
        why = f"refuses tokens ({errand.refusal})" if errand.refusal else why
        if neighbours.doubts.add(now, custody.to, why):
            self.state.report(Report("doubt", m, custody.message.epoch, custody.message.hop, f"{custody.to} {why}"))
        if self.visits.exact and set(neighbours.staying) - neighbours.doubts.now(now):
            self.reissue(now, m, custody)
        else:  # there is no other neighbour: wait for it, and ask again
            self.errands[m] = Errand(again_s=now, held_s=errand.held_s)

    def probed(self, now: float, to: str, answer: Answer | None) -> None:
        """A neighbour has said whether it works, or has not answered."""
        well = isinstance(answer, Accepted)
        self.state.neighbours.doubts.said(to, well)
        for m, custody in self.state.custodies():
            errand = self.errands[m]
            if custody.to == to and errand.taken and errand.probe_s is not None and not errand.passed:
                errand.probe_s = None
                if well:
                    errand.since_s, errand.probes = now, errand.probes + 1
                else:
                    self.doubt(now, m, custody)

    def stuck(self, now: float) -> str:
        """Which token has been here for too long because nobody takes it, as a sentence; "" if none has."""
        for m, custody in self.state.custodies():
            errand = self.errands[m]
            waits = not errand.taken and not errand.passed and now - errand.held_s
            if waits and waits > self.state.neighbours.doubts.limit_s(custody.to, taken=True):
                return f"it has had token {m} for {waits:.0f} s"
        return ""

    def coming(self, to: str) -> bool:
        """Whether a token is on its way to this neighbour."""
        return any(custody.to == to and not self.errands[m].passed for m, custody in self.state.custodies())

    def reissue(self, now: float, m: int, custody: Custody) -> None:
        """Reissue the token in the next epoch, with a recount."""
        state, neighbours = self.state, self.state.neighbours
        sight = state.sight(m) or custody.given
        author = self.settings.indices[state.me]
        epoch = Epoch(max(sight.epoch.number, custody.message.epoch.number) + 1, author)
        if epoch.number > messages.EPOCHS_MAX:
            words = f"token {m} is lost, and it has already been reissued {messages.EPOCHS_MAX:,} times"
            state.stop(Ending("lost", words))
            return
        gone = neighbours.gone(now, m, custody.message.payload, custody.to)
        parcel = self.visits.recount(custody.message.payload, epoch, gone)
        message = Token(m, epoch, custody.message.hop, state.me, parcel)
        to = neighbours.next(now, message, "")
        fresh = Custody(message, to, custody.giver, custody.given, bool(to))
        # reported first: after a crash, the record must know how every epoch began
        state.report(Report.of_epoch("reissue", m, epoch, message.hop, self.settings.names_at(gone > 0)))
        state.persist({f"custody/{m}": fresh, f"sight/{m}": Sight(epoch, message.hop)})
        self.errands[m], self.seen_s[m] = Errand(again_s=now, held_s=self.errands[m].held_s), now
        self.look(now, m)

    def times(self, now: float) -> list[float]:
        """When something is due."""
        times, limit_s = [], self.state.neighbours.doubts.limit_s
        for m, errand in self.errands.items():
            if errand.tell_s is not None:
                times.append(errand.tell_s)
            if (custody := self.state.custody(m)) is None:
                continue
            if not errand.taken and errand.asked is None:
                times.append(errand.again_s)
            if errand.since_s is not None and not errand.passed:
                times.append(errand.since_s + limit_s(custody.to, errand.taken))
                times.append((errand.probe_s or now) + limit_s(custody.to))
        return times
