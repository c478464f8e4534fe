"""Neighbours that are up and do not work: a full or hung disk, a link that is dead one way, an agent that keeps tokens.

Nobody says that such a neighbour is down, so it is known by what it does not do. A hand-over that it has not answered
for `stall_s`, or that it has taken and not passed on for three times as long, puts it in doubt. While it is, tokens go
round it, and after a time that doubles with each failure it is tried again. Answers that take long show that visits do:
then everybody gets more time. One late answer may as well be that of a disk that hung, so it counts for no more than the
limit that it missed, and is forgotten as others come sooner.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

KEEPS = 3  # times the stall, until one that has taken a token must have passed it on: its own neighbour may be in doubt
SLOWEST = 3  # times the longest answer of late, below which nobody is in doubt
FORGET = 0.99  # of that, with each answer
AGAIN_MAX = 16  # stalls, after which one in doubt is tried again at the latest


class Doubt(NamedTuple):
    why: str
    since_s: float
    until_s: float  # when it is tried again
    failures: int


@dataclass
class Doubts:
    stall_s: float
    of: dict[str, Doubt] = field(default_factory=dict)
    slowest_s: float = 0.0

    def limit_s(self, taken: bool) -> float:
        """How long a hand-over may take; or, once it is taken, until it is passed on."""
        return max(self.stall_s, SLOWEST * self.slowest_s) * (KEEPS if taken else 1)

    def answered(self, after_s: float) -> None:
        self.slowest_s = max(min(after_s, self.limit_s(taken=False)), FORGET * self.slowest_s)

    def add(self, now: float, name: str, why: str, taken: bool = False) -> None:
        """It has failed, once more; the longer a failure takes to find out, the later it is tried again."""
        before = self.of.get(name)
        failures = before.failures + 1 if before else 1
        for_s = min(self.limit_s(taken) * 2**failures, self.limit_s(False) * AGAIN_MAX)
        self.of[name] = Doubt(why, before.since_s if before else now, now + for_s, failures)

    def warned(self, now: float, name: str) -> None:
        """Another agent has counted it out, though it seems well from here."""
        if name not in self.of:
            self.add(now, name, "another agent has found that it does not work")

    def works(self, name: str) -> None:
        self.of.pop(name, None)

    def now(self, now: float) -> set[str]:
        """Those that tokens go round."""
        return {name for name, doubt in self.of.items() if now < doubt.until_s}
