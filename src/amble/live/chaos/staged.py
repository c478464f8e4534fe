"""A run of three stages at one simulated agent: it has the inputs and effects of one core, for the world to carry out.

opening   each agent's number, at its own place -> who takes part
training  -> the model, and whose data it has
closing   each agent's gradient at that model, and 1 at its own place -> their sums
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array
from amble.live.core.effects import Ask, Effect, Persist, Reply, Report, Settings, Wake
from amble.live.core.message import Answer, Ending, Question, Refused, Token
from amble.live.core.parcels import Visits
from amble.live.core.protocol import Core
from amble.live.core.stages import CLOSING, OPENING, TRAINING, Plan, Result, Stages, Steps, Unfit, survey

NAMES = (OPENING, TRAINING, CLOSING)
DOCUMENT = 1000.0  # and the agent's index
GATHER_S = 5.0  # for agents that have not started


class Of(NamedTuple):
    """A question, and the stage that it is about."""

    stage: str
    question: Question


def is_token(question: Any) -> bool:
    return isinstance(question.question if isinstance(question, Of) else question, Token)


@dataclass(eq=False)
class Stage:
    """See core/stages.py."""

    plan: Plan
    core: Core
    order: tuple[int, ...] | None = None
    wake_s: float = np.inf


def document(index: int, places: int) -> Array:
    return np.where(np.arange(places) == index, DOCUMENT + index, 0.0)


def sums(objective: Any, w: Array, index: int, places: int) -> Array:
    """What an agent adds to the closing survey."""
    gradient = objective.grad(w) if hasattr(objective, "grad") else np.array([objective])
    return np.concatenate([np.arange(places) == index, gradient])


def fits(settings: Settings, index: int) -> bool:
    """Whether an agent's data fit an agreement that was made without it; those of every third newcomer do not."""
    return index < len(settings.agents) or (settings.seed + index) % 3 > 0


@dataclass
class Course:
    """How the stages of a simulated run follow each other."""

    settings: Settings
    visits: Visits  # of the training
    objective: Any
    index: int

    def first(self) -> Plan:
        founders = np.arange(self.settings.size) < len(self.settings.agents)
        numbers = document(self.index, self.settings.size)
        return survey(OPENING, OPENING, numbers, self.settings, founders, GATHER_S)

    def awaits(self, name: str) -> bool:
        return name != CLOSING

    def after(self, name: str, ending: Ending) -> Plan | None:
        if not ending.result or name == CLOSING:
            return None
        (numbers, inside, _), places = Result.of(ending, self.settings.size), self.settings.size
        digest = hashlib.sha256(ending.result).hexdigest()[:8]
        if name == OPENING:
            if not inside[self.index] and not fits(self.settings, self.index):
                raise Unfit("it has a level that no site had in the survey")
            settings = replace(self.settings, result=self.visits.dimension + places, expected=inside)
            return Plan(TRAINING, f"{TRAINING} {digest}", self.visits, settings, self.objective)
        part = sums(self.objective, numbers, self.index, places)
        part = part if inside[self.index] else 0 * part  # one that came too late to be in the model adds nothing
        return survey(CLOSING, f"{CLOSING} {digest}", part, self.settings, inside)


@dataclass
class StagedCore:
    """All stages of one agent."""

    me: str
    near: tuple[str, ...]
    settings: Settings
    visits: Visits
    objective: Any
    rows: dict[str, Any]
    make_core: Callable[..., Core] = Core
    asked: dict[int, tuple[Stage, int]] = field(default_factory=dict)
    number: int = 0  # of the last question
    leave_s: float | None = None  # how long it may take, once it was asked to
    void: dict[str, None] = field(default_factory=dict)  # rows to remove

    def __post_init__(self) -> None:
        course = Course(self.settings, self.visits, self.objective, self.settings.indices[self.me])
        self.stages: Stages[Stage] = Stages(course, self._enter, self._void)

    def _enter(self, plan: Plan) -> Stage:
        rows = {key: row for whole, row in self.rows.items() if (key := _key(plan, whole)) and row is not None}
        return Stage(plan, self.make_core(self.me, self.near, plan.settings, plan.visits, plan.objective, rows=rows))

    def _void(self, stage: Stage) -> None:
        void = dict.fromkeys(whole for whole in self.rows if _key(stage.plan, whole))
        self.rows |= void
        self.void |= void

    # --- inputs -----------------------------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        return [Report("entered", words=self.stages.last.plan.name), *self._all(now, self.stages.start(now))]

    def heard(self, now: float, number: int, message: Of) -> list[Effect]:
        for stage in self.stages.all:
            if stage.plan.digest == message.stage:
                return self._all(now, self.stages.heard(now, stage, number, message.question))
        if not self.stages.course.awaits(self.stages.last.plan.name):
            return [Reply(number, Refused("it is of another run"))]
        none: Any = None  # the question is dropped, which its sender notices
        return [Reply(number, none), *self._all(now, self.stages.strange(now, message.question.sender))]

    def answered(self, now: float, number: int, answer: Answer | None) -> list[Effect]:
        if number not in self.asked:
            return []  # it was asked by an earlier copy of this agent
        stage, inner = self.asked.pop(number)
        return self._all(now, self.stages.answered(now, stage, inner, answer))

    def peer(self, now: float, name: str, up: bool) -> list[Effect]:
        return self._all(now, self.stages.peer(now, name, up))

    def tick(self, now: float) -> list[Effect]:
        return self._all(now, self.stages.tick(now))

    def leave(self, now: float, within_s: float) -> list[Effect]:
        self.leave_s = within_s
        return self._all(now, self.stages.leave(now, within_s))

    # --- effects ----------------------------------------------------------------------------------------------------

    def _all(self, now: float, steps: Steps[Stage]) -> list[Effect]:
        """Of these steps, and of all that follows; one alarm clock for all stages."""
        effects: list[Effect] = []
        while steps:
            for stage, said in steps:
                effects += [self._outward(stage, effect) for effect in said if not isinstance(effect, Wake)]
                stage.wake_s = min((effect.at_s for effect in said if isinstance(effect, Wake)), default=np.inf)
            steps = self.stages.follow(now)
            if steps:
                effects.append(Report("entered", words=self.stages.last.plan.name))
                if self.leave_s is not None:
                    steps += self.stages.leave(now, self.leave_s)
        if self.stages.unfit:
            effects.append(Report("unfit", words=self.stages.refused))
        if self.void:
            effects.append(Persist(self.void))
            self.void = {}
        return [*effects, Wake(min(stage.wake_s for stage in self.stages.all))]

    def _outward(self, stage: Stage, effect: Effect) -> Effect:
        if isinstance(effect, Persist):
            rows = {f"{stage.plan.digest}:{key}": row for key, row in effect.rows.items()}
            self.rows |= rows
            return effect._replace(rows=rows | {key: row for key, row in effect.rows.items() if key == "left"})
        if isinstance(effect, Ask):
            self.number += 1
            self.asked[self.number] = (stage, effect.number)
            question: Any = Of(stage.plan.digest, effect.question)
            return Ask(self.number, effect.to, question)
        return effect


def _key(plan: Plan, whole: str) -> str:
    """The name of a row within its stage; "" if it is of another one."""
    digest, _, key = whole.rpartition(":")
    return key if digest == plan.digest else ""
