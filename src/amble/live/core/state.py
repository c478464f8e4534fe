"""What an agent remembers, and what it says: its rows, its questions, and the effects of the input under way."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from amble.live.core.effects import Ask, Custody, Effect, Left, Persist, Reply, Report, Share, Sight, Visit
from amble.live.core.message import Answer, Ending, Question
from amble.live.core.neighbours import Neighbours


@dataclass
class State:
    me: str
    neighbours: Neighbours
    rows: dict[str, Any]  # what Persist was given, as the journal has it
    asked: dict[int, tuple[str, Question]] = field(default_factory=dict)  # and not yet answered
    asked_s: dict[int, float] = field(default_factory=dict)  # when each of them was
    number: int = 0  # of the last question
    saying: list[Effect] = field(default_factory=list)

    # --- what it remembers ------------------------------------------------------------------------------------------

    @property
    def ending(self) -> Ending | None:
        return self.rows.get("stopped")

    @property
    def leaving(self) -> bool:
        return "leaving" in self.rows

    @property
    def left(self) -> Left | None:
        """How this agent has left, once it has."""
        return self.rows.get("left")

    def sight(self, m: int) -> Sight | None:
        return self.rows.get(f"sight/{m}")

    def share(self, m: int) -> Share | None:
        return self.rows.get(f"share/{m}")

    def custody(self, m: int) -> Custody | None:
        return self.rows.get(f"custody/{m}")

    def custodies(self) -> Iterator[tuple[int, Custody]]:
        """The tokens that were here, and have not been here again since."""
        for m in range(self.neighbours.settings.tokens):
            if custody := self.custody(m):
                yield m, custody

    # --- what it says -----------------------------------------------------------------------------------------------

    def persist(self, rows: dict[str, Any], visit: Visit | None = None) -> None:
        self.rows.update(rows)
        self.saying.append(Persist(rows, visit))

    def ask(self, to: str, question: Question) -> int:
        self.number += 1
        self.asked[self.number] = (to, question)
        self.saying.append(Ask(self.number, to, question))
        return self.number

    def reply(self, question_number: int, answer: Answer) -> None:
        self.saying.append(Reply(question_number, answer))

    def report(self, report: Report) -> None:
        self.saying.append(report)

    def stop(self, ending: Ending) -> None:
        """The run ends, if it has not ended before, or not with a result of this order."""
        if self.ending is None or ending.order > self.ending.order:
            ending = ending._replace(words=ending.words or "no reason was given")
            self.persist({"stopped": ending})
            self.report(Report("stopped", words=ending.words))

    def said(self, now: float) -> list[Effect]:
        """All that was said since this was last asked."""
        said, self.saying = self.saying, []
        for effect in said:
            if isinstance(effect, Ask):
                self.asked_s[effect.number] = now
        return said
