"""The stages of a run at one agent, one after the other: those that have ended, and the one under way.

Each stage is a run of the protocol, with a core of its own, and its messages have a digest of their own. A stage ends
with a result that all agents have alike (message.Ending), and from that each agent makes the next stage. If another
result of a larger order takes its place, what followed from it is void, and begins again; unless the numbers are the
same. A stage that has ended still answers, so that whoever comes late is told its result.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from amble.arrays import Array, Flags
from amble.errors import AmbleError
from amble.live.core.effects import Effect, Settings
from amble.live.core.end import RECOUNTING
from amble.live.core.message import Answer, Cause, Ending, Question
from amble.live.core.parcels import Visits
from amble.live.core.protocol import Core
from amble.live.core.visits import visits_for
from amble.methods.survey import Part, Survey

OPENING, TRAINING, CLOSING = "opening", "training", "closing"  # the stages of a run with surveys
SETTLED = 1e-12  # relative: what a recount may change in a sum, by rounding
SEEK_S = 1.0  # between two questions to a neighbour that is in another stage


class Plan(NamedTuple):
    """A stage before it begins."""

    name: str
    digest: str
    visits: Visits
    settings: Settings
    objective: Any


class Result(NamedTuple):
    """What a stage ended with: its numbers, and whose data they have."""

    numbers: Array
    inside: Flags  # by the agents' indices
    recounting: bool  # it was ended in a recount: a model may still have the rows of the dead, and lack newcomers'

    @classmethod
    def of(cls, ending: Ending, places: int) -> "Result":
        whole = np.frombuffer(ending.result, "<f8").astype(np.float64)
        inside = whole[-places:]
        return cls(whole[:-places], inside > 0, bool((inside == RECOUNTING).any()))


def survey(
    name: str, digest: str, numbers: Array, settings: Settings, expected: Flags, gather_s: float | None = None
) -> Plan:
    """A stage that adds up numbers: by one token, until those who are expected are in."""
    settings = replace(
        settings, tokens=1, next=settings.next[:1], hops_max=0, tolerance=SETTLED,
        result=len(numbers) + settings.size, expected=expected, gather_s=gather_s,
    )  # fmt: skip
    visits = visits_for(Survey(), len(numbers), len(settings.agents), SETTLED, settings.room)
    return Plan(name, digest, visits, settings, Part(numbers))


class Unfit(AmbleError):
    """This agent alone cannot take part in the next stage; the others go on without it."""


class Course(Protocol):
    """What the stages of a run are."""

    def first(self) -> Plan: ...
    def after(self, name: str, ending: Ending) -> Plan | None:
        """The stage that follows; None: this was the last one, or the run was ended in it. An error where the agents
        cannot agree on it; Unfit where that is this agent's own."""

    def awaits(self, name: str) -> bool:
        """Whether a stage follows this one."""


class Entered(Protocol):
    """A stage under way, or ended."""

    plan: Plan
    core: Core
    order: tuple[int, ...] | None  # of the ending that the next stage was made from; None: it goes on


Stage = TypeVar("Stage", bound=Entered)
Steps = list[tuple[Stage, list[Effect]]]  # the effects of each stage, in their order


class Stages(Generic[Stage]):
    """`enter` begins a stage, or continues it from its journal; `void` removes one. Inputs are those of Core. Each
    returns the effects of every stage that it is about, to be carried out in their order; and then comes `follow`."""

    def __init__(self, course: Course, enter: Callable[[Plan], Stage], void: Callable[[Stage], None]) -> None:
        self.course, self.enter, self.void = course, enter, void
        self.refused = ""  # why there is no next stage, though there should be
        self.unfit = False  # for this agent alone
        self.sought_s: dict[str, float] = {}
        self.all: tuple[Stage, ...] = (enter(course.first()),)
        self.advance()

    @property
    def last(self) -> Stage:
        return self.all[-1]

    def start(self, now: float) -> Steps[Stage]:
        return [(stage, stage.core.start(now)) for stage in self.all]

    def follow(self, now: float) -> Steps[Stage]:
        """What has ended leads to the next stage."""
        up = self.all[0].core.neighbours.up
        return [
            (stage, effects)
            for stage in self.advance()
            for effects in (stage.core.start(now), *(stage.core.peer(now, name, True) for name in up))
        ]

    def advance(self) -> list[Stage]:
        """Where a stage has ended with a result, the next one is entered; or entered again, if the result is another
        one by now. Those that were entered."""
        entered: list[Stage] = []
        k = 0
        while k < len(self.all) and (ending := self.all[k].core.ending) is not None:
            stage, following = self.all[k], self.all[k + 1 :]
            k += 1
            if ending.order == stage.order:
                continue
            stage.order, self.refused, self.unfit, plan = ending.order, "", False, None
            try:
                plan = self.course.after(stage.plan.name, ending)
            except AmbleError as error:  # the same at all agents, who still have to be told how the stage ended
                self.refused, self.unfit = str(error), isinstance(error, Unfit)
            if plan is not None and following and following[0].plan.digest == plan.digest:
                following[0].order = None  # two have ended the stage with the same numbers, so what follows goes on
                continue
            for later in following:
                self.void(later)
            self.all = self.all[:k]
            if plan is not None:
                self.all = (*self.all, self.enter(plan))
                entered.append(self.last)
        return entered

    def heard(self, now: float, stage: Stage, number: int, question: Question) -> Steps[Stage]:
        return [(stage, stage.core.heard(now, number, question))] if stage in self.all else []

    def strange(self, now: float, sender: str) -> Steps[Stage]:
        """A neighbour is in another stage: it is asked how this one has ended, and told how the earlier ones have, as
        it may know another result of them."""
        if now - self.sought_s.get(sender, -math.inf) < SEEK_S:
            return []
        self.sought_s[sender] = now
        return [(stage, stage.core.seek(now, sender)) for stage in self.all]

    def answered(self, now: float, stage: Stage, number: int, answer: Answer | None) -> Steps[Stage]:
        return [(stage, stage.core.answered(now, number, answer))] if stage in self.all else []

    def note(self, now: float, stage: Stage, number: int, answer: Answer | None) -> Steps[Stage]:
        """See Core.note: nothing is to be done yet."""
        if stage in self.all:
            stage.core.note(now, number, answer)
        return []

    def peer(self, now: float, name: str, up: bool) -> Steps[Stage]:
        return [(stage, stage.core.peer(now, name, up)) for stage in self.all]

    def tick(self, now: float) -> Steps[Stage]:
        return [(stage, stage.core.tick(now)) for stage in self.all]

    def leave(self, now: float, within_s: float) -> Steps[Stage]:
        return [(self.last, self.last.core.leave(now, within_s))]

    def halt(self, now: float, cause: Cause, sentence: str) -> Steps[Stage]:
        return [(self.last, self.last.core.halt(now, cause, sentence))]
