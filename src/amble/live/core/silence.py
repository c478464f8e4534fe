"""The last resort: asks for a token that nobody near has seen for very long, and then reissues it."""

import math
from dataclasses import dataclass, field

from amble.live.core.chance import SILENCE, draw
from amble.live.core.custody import Custodian
from amble.live.core.effects import Custody, Sight
from amble.live.core.message import Answer, Ended, Epoch, Found, Refused, Seek, Token


@dataclass
class Silence:
    custodian: Custodian
    sought_s: dict[int, float] = field(default_factory=dict)  # when a token that is not seen was last asked for
    unknown: set[int] = field(default_factory=set)  # tokens that a neighbour has not seen either, as it answered
    due_s: dict[int, float] = field(default_factory=dict)  # of each token, as it was last looked for
    later: dict[int, float] = field(default_factory=dict)  # in silence_s, of each token; drawn once: it never changes

    def look(self, now: float, m: int) -> None:
        """If a token was not seen for long: ask the neighbours, and if none has seen it, reissue the last copy."""
        custodian, state, settings = self.custodian, self.custodian.state, self.custodian.settings
        seen_s, due_s = custodian.seen_s[m], self._due_s(m)
        self.due_s[m] = due_s
        if not custodian.visits.exact or now < due_s:
            return
        if self.sought_s.get(m, -math.inf) <= seen_s:
            self.sought_s[m] = now
            self.unknown.discard(m)
            for name in state.neighbours.up:
                state.ask(name, Seek(m, state.me))
        elif now >= self.sought_s[m] + settings.patience_s:
            custody, newcomer = state.custody(m), settings.indices[state.me] >= len(settings.agents)
            if custody is None and (m not in self.unknown or newcomer):
                custodian.seen_s[m] = now  # alone, or a newcomer: the token may well exist, so ask again
            else:
                custodian.reissue(now, m, custody or self._beginning(m))

    def _due_s(self, m: int) -> float:
        """When a token that is not seen is asked for; not by all at once.

        In a stage that follows another, the agent that it begins at was up just before. So where that one is a
        neighbour, and is down, the token may well have gone with it.
        """
        settings, state = self.custodian.settings, self.custodian.state
        if (later := self.later.get(m)) is None:
            later = self.later[m] = 1 + draw(settings, state.me, m, settings.indices[state.me], SILENCE)
        due_s = self.custodian.seen_s[m] + settings.silence_s * later
        if settings.expected is None or not settings.follows or state.sight(m) is not None:
            return due_s
        first = next((name for name in state.neighbours.down_s if settings.indices[name] == settings.first(m)), None)
        if first is None:
            return due_s
        since_s = max(self.custodian.seen_s[m], state.neighbours.down_s[first])
        return min(due_s, since_s + settings.patience_s * later)

    def _beginning(self, m: int) -> Custody:
        """A token in its initial state: its first agent may have died before any other had the token."""
        custodian = self.custodian
        epoch = Epoch(0, custodian.settings.first(m))
        return Custody(Token(m, epoch, 0, custodian.state.me, custodian.visits.parcel(m)), "", "", Sight(epoch, 0))

    def answered(self, now: float, question: Seek, answer: Answer | None) -> None:
        mine = self.custodian.state.sight(question.token)
        if isinstance(answer, Found) and (mine is None or (answer.epoch, answer.hop) > mine):
            self.custodian.seen_s[question.token] = now  # it is about
        elif isinstance(answer, Ended):
            if not self.custodian.settings.result:  # else the ending comes by itself, with its result
                self.custodian.state.stop(answer.ending)
        elif isinstance(answer, Refused):
            self.unknown.add(question.token)

    def times(self, now: float) -> list[float]:
        """When something is due."""
        patience_s = self.custodian.settings.patience_s
        return [*self.due_s.values(), *[self.sought_s.get(m, now) + patience_s for m in self.custodian.seen_s]]
