"""Neighbours that are up but do not work: a full or hung disk, a link that is dead one way, an agent that keeps tokens.

Nobody reports such a neighbour as down, so it is noticed only by what it does not do. If it has not answered a
hand-over for `stall_s`, it is in doubt. If it has taken a token and not passed it on for three times as long, it is
asked first. While a neighbour is in doubt, tokens avoid it. It is asked repeatedly, with a small question that it can
answer only if its disk works and it can pass its tokens on. It gets no token before it has answered, nor before a time
is over that doubles with each failure. An agent that others have counted out is in doubt too, even if it seems well.

A neighbour whose answers take long has long visits, so it gets more time. But one late answer may come from a disk that
hung, so it counts for no more than twice the limit that it missed.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

KEEPS = 3  # times `stall_s` for a neighbour to pass a token on: its own neighbour may be slow
SLOWEST = 3  # times the longest recent answer: nobody is in doubt before that
FORGET = 0.99  # of that, with each answer
DOUBLINGS_MAX = 6


class Doubt(NamedTuple):
    why: str
    since_s: float
    until_s: float  # it gets no token before this
    failures: int
    ask_s: float  # when it is asked next whether it works
    works: bool = False  # as it has answered


@dataclass
class Doubts:
    stall_s: float
    of: dict[str, Doubt] = field(default_factory=dict)
    slowest_s: dict[str, float] = field(default_factory=dict)

    def limit_s(self, name: str, taken: bool = False) -> float:
        """How long a hand-over may take; or, once the token is taken, when the neighbour is asked about it."""
        return max(self.stall_s, SLOWEST * self.slowest_s.get(name, 0.0)) * (KEEPS if taken else 1)

    def answered(self, name: str, after_s: float) -> None:
        """A hand-over to it was answered."""
        longest_s = max(min(after_s, 2 * self.limit_s(name)), FORGET * self.slowest_s.get(name, 0.0))
        self.slowest_s[name] = longest_s

    def add(self, now: float, name: str, why: str) -> bool:
        """It has failed once more; returns whether this is news."""
        before = self.of.get(name)
        failures = before.failures + 1 if before else 1
        until_s = now + self.stall_s * 2 ** min(failures, DOUBLINGS_MAX)
        self.of[name] = Doubt(why, before.since_s if before else now, until_s, failures, now + self.stall_s)
        return before is None or before.why != why

    def warned(self, now: float, name: str) -> None:
        """Another agent has counted it out."""
        if name not in self.of:
            self.of[name] = Doubt("does not work, as another agent has noticed", now, now, 0, now)

    def works(self, name: str) -> None:
        """It has passed a token on, or come back."""
        self.of.pop(name, None)

    def said(self, name: str, works: bool) -> None:
        """It has answered whether it works; after a mere warning, that is enough."""
        if doubt := self.of.get(name):
            self.of[name] = doubt._replace(works=works)

    def asks(self, now: float) -> list[str]:
        """Whom to ask now whether they work."""
        due = [name for name, doubt in self.of.items() if now >= doubt.ask_s and not doubt.works]
        for name in due:
            self.of[name] = self.of[name]._replace(ask_s=now + self.stall_s)
        return due

    def now(self, now: float) -> set[str]:
        """The neighbours that tokens avoid."""
        return {name for name, doubt in self.of.items() if not doubt.works or now < doubt.until_s}

    def times(self) -> list[float]:
        """When something is due."""
        return [time_s for doubt in self.of.values() for time_s in (doubt.ask_s, doubt.until_s)]
