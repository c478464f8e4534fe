"""The stages of a run at one agent: an opening survey, the training and a closing survey; or the training alone.

How stages follow each other is in core/stages.py. Here each has a journal of its own. All use the same links.

    opening   each agent's description of its table -> what all agree on: columns, levels, labels, scaling
    training  -> the model, and whose data it has
    closing   each agent's sums at that model -> how good it is, and its standard errors
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from amble.arrays import Array, Flags
from amble.data.tables import Table
from amble.digests import sha256
from amble.errors import AmbleError
from amble.files import write_whole
from amble.live.agent import described as described_sites
from amble.live.agent.ended import judged, model_from
from amble.live.agent.private import PRIVATE
from amble.live.core import packing
from amble.live.core.effects import Visit
from amble.live.core.message import Accepted, Ending
from amble.live.core.neighbours import UNMET_LAPS
from amble.live.core.protocol import Core
from amble.live.core.stages import CLOSING, OPENING, TRAINING, Course, Plan, Result, Unfit, survey
from amble.live.formats import wire
from amble.live.formats.shape import Shape, run_digest
from amble.live.journal import file as journal_file
from amble.live.journal.journal import Journal
from amble.live.settings.agent_config import AGREEMENT, AgentConfig
from amble.losses.objective import knows
from amble.problem.extras import Extras
from amble.results.model import Model
from amble.results.own_model import OwnModel
from amble.results.sums import KNOWN, Sums, sums_of
from amble.survey import regions
from amble.survey.agreed import Rows
from amble.survey.agreement import agree
from amble.survey.cells import REFUSE
from amble.survey.document import from_bytes, to_bytes

JOURNALS = {OPENING: "opening.db", TRAINING: "journal.db", CLOSING: "closing.db"}
WAIT_S = 1.0  # of a visit in a survey that waits for somebody
BYTES_MAX = 2**26  # of a message of a run whose model is not known when the links are made

log = logging.getLogger("amble.live")


@dataclass(eq=False)
class Stage:
    """A stage under way, or ended (core/stages.py), with its journal."""

    plan: Plan
    shape: Shape
    journal: Journal
    core: Core
    accepted: bytes  # most answers are this one
    order: tuple[int, ...] | None = None
    wake_s: float = math.inf

    @property
    def name(self) -> str:
        return self.plan.name

    def pause_s(self, visit: Visit, least_s: float) -> float:
        """How long a visit takes at least; in a survey that only waits for agents that have not come, a good while. But
        the token looks for the dead within `stall_s`."""
        if self.name == TRAINING or visit.after.calm <= 2 * visit.after.members:
            return least_s
        lap_s = self.plan.settings.stall_s / (UNMET_LAPS * (1 + float(visit.after.members)))
        return max(least_s, min(WAIT_S, lap_s))


def shape_of(plan: Plan, config: AgentConfig) -> Shape:
    return Shape(
        plan.digest,
        config.agents,
        plan.settings.tokens,
        plan.visits.parcel(0),
        config.room,
        plan.settings.result,
        plan.visits.short,
    )


def open_stage(plan: Plan, config: AgentConfig, folder: Path) -> Stage:
    """From its journal, or a new one."""
    shape = shape_of(plan, config)
    path = folder / JOURNALS[plan.name]
    if plan.name != OPENING and config.surveyed is not None and journal_file.run_of(path) not in (None, plan.digest):
        remove(path)  # of an earlier result of the stage before
    journal = Journal.open(path, shape, plan.visits, plan.objective, config.name, config.record.visits_max)
    near = tuple(peer.name for peer in config.neighbours)
    core = Core(config.name, near, plan.settings, plan.visits, plan.objective, rows=journal.load())
    if journal.has_other_data(digest_of(plan.objective)):
        log.warning("the data of %s are not those of its earlier visits; it goes on with these, and a replay of the "
                    "earlier visits will differ", config.name)  # fmt: skip
    return Stage(plan, shape, journal, core, wire.encode(shape, Accepted()))


def stage_of(stages: Sequence[Stage], data: bytes) -> Stage:
    """That of a message, or the last one."""
    return next((stage for stage in stages if data.startswith(stage.shape.prefix)), stages[-1])


def void_stage(stage: Stage) -> None:
    """Another result of the stage before has taken the place of the one that this was made from."""
    stage.journal.close()
    remove(stage.journal.path)


def remove(journal: Path) -> None:
    """The file itself last: a log without it would be refused at the next start."""
    for path in sorted(journal.parent.glob(f"{journal.name}*"), reverse=True):
        path.unlink()


def digest_of(objective: Any) -> str:
    """Of the rows of an agent, as its loss has them; that of a model of the user's own knows its digest."""
    return str(objective.digest) if knows(objective, "digest") else packing.digest(objective)


class LiveCourse(Course, Protocol):
    """What an agent needs of the stages of a run, besides what follows what."""

    @property
    def bytes_max(self) -> int:
        """No message is longer."""

    @property
    def final(self) -> Array | None:
        """The model that all agents ended the training with, once that is known and another stage followed."""

    def model(self, w: Array | None) -> Model | OwnModel | None:
        """What the run has come to; `w` is this agent's own estimate."""


@dataclass(frozen=True, eq=False)
class Training:
    """The course of a run whose model is complete: it has one stage."""

    config: AgentConfig
    objective: Any
    digest: str | None = None  # of the file with its rows

    @property
    def bytes_max(self) -> int:
        return shape_of(self.first(), self.config).bytes_max

    def first(self) -> Plan:
        config = self.config
        return Plan(TRAINING, config.digest, config.visits(), config.protocol_settings(), self.objective)

    def after(self, name: str, ending: Ending) -> Plan | None:  # noqa: ARG002
        return None

    def awaits(self, name: str) -> bool:  # noqa: ARG002
        return False

    @property
    def final(self) -> Array | None:
        return None

    def model(self, w: Array | None) -> Model | OwnModel | None:
        return None if w is None else model_from(self.config, w, self.digest)


@dataclass(eq=False)
class Surveyed:
    """The course of a run whose agents first agree on their model."""

    config: AgentConfig
    folder: Path
    table: Table
    held_out: Table | None = None  # rows that are not trained on
    digest: str | None = None  # of the file with its rows
    w: Array | None = None  # the model that all agents ended the training with
    sums: Array | None = None
    inside: Flags | None = None  # whose data is in it, by their indices
    recounting: bool = False  # see core/stages.py
    rows: Rows | None = field(default=None, init=False)
    open_config: AgentConfig = field(init=False)  # as it was before any agreement

    bytes_max: int = BYTES_MAX

    def __post_init__(self) -> None:
        self.open_config = self.config

    @property
    def places(self) -> int:
        return len(self.config.agents) + self.config.room

    def first(self) -> Plan:
        config, asked = self.config, self.config.surveyed
        if asked is None:
            raise AmbleError(f"the run of {config.name} has no survey; add a table [survey] to its file.")
        documents = [asked.wanted.describe(table) for table in (self.table, self.held_out) if table is not None]
        if asked.missing == REFUSE and asked.train:  # a missing cell of held-out rows must be refused now, by all
            documents.sort(key=lambda document: not any(summary.missing for summary in document.all))
        numbers = regions.vector(to_bytes(documents[0]), config.index, self.places, asked.bytes_max)
        founders = np.arange(self.places) < len(config.agents)
        digest = run_digest({"stage": OPENING, "run": config.digest})
        plan = survey(OPENING, digest, numbers, config.protocol_settings(), founders, asked.wait_s)
        self._check_size(plan, "the survey", "lower [survey] bytes_max")
        return plan

    def awaits(self, name: str) -> bool:
        return name != CLOSING

    @property
    def final(self) -> Array | None:
        return self.w

    def after(self, name: str, ending: Ending) -> Plan | None:
        if name != CLOSING:  # what an earlier result of this stage has led to is void
            self.w, self.inside, self.recounting = None, None, False
        self.sums = None
        if not ending.result or (name == OPENING and ending.cause != "tolerance") or ending.cause == "asked":
            if name == TRAINING and ending.result:
                self.w = Result.of(ending, self.places).numbers
            return None
        result = Result.of(ending, self.places)
        if name == OPENING:
            return self._training(result)
        if name == TRAINING:
            return self._closing(result, sha256(ending.result).hexdigest())
        self.sums = result.numbers
        return None

    def _training(self, result: Result) -> Plan | None:
        config, asked = self.open_config, self.config.surveyed
        assert asked is not None
        names = dict(enumerate(config.agents))
        parts = regions.documents(result.numbers, self.places, asked.bytes_max)
        # the same name everywhere: only its neighbours know a guest's
        described = {names.get(index, f"guest{index}"): part for index, part in parts.items()}
        described_sites.write(self.folder, described)
        documents = {name: from_bytes(part, name) for name, part in described.items()}
        if not asked.train:
            return None
        agreement = agree(documents, asked.wanted)
        self.config = config = config.agreed(agreement)
        write_whole({self.folder / AGREEMENT: agreement.to_json().encode()})
        visits = config.visits()
        settings = replace(
            config.protocol_settings(), result=visits.dimension + self.places, expected=result.inside
        )  # fmt: skip
        try:
            self.rows = agreement.rows(self.table, config.name)
            extras = Extras(self.rows.sample_weight, self.rows.offset)
            objective = config.objective(self.rows.X, self.rows.y, extras)
        except AmbleError as error:
            raise Unfit(str(error)) from error
        plan = Plan(TRAINING, config.digest, visits, settings, objective)
        self._check_size(plan, "this model", 'name fewer columns in [model], or give Relay form = "scalar"')
        return plan

    def _check_size(self, plan: Plan, what: str, advice: str) -> None:
        size = shape_of(plan, self.config).bytes_max
        if size > BYTES_MAX:
            raise AmbleError(
                f"a message of {what} has {size:,} bytes, and at most {BYTES_MAX:,} may be sent; {advice}."
            )

    def _closing(self, result: Result, digest: str) -> Plan | None:
        config, (w, inside, self.recounting) = self.config, result
        self.w, self.inside = w, inside
        model, classes = config.model, len(config.model.labels)
        if model.loss_name not in KNOWN or not inside.any():
            return None
        sums = Sums.zeros(model.loss_name, model.width + model.intercept, classes)
        if inside[config.index]:  # one that came too late to be in the model adds nothing
            sums = self._sums(w)
        numbers = np.concatenate([sums.vector(), judged(sums, config.index, self.places, self.digest)])
        digest = run_digest({"stage": CLOSING, "run": config.digest, "model": digest})
        settings = replace(config.protocol_settings(), settled=bool(inside[config.index]))
        return survey(CLOSING, digest, numbers, settings, inside)

    def _sums(self, w: Array) -> Sums:
        """Of this agent's rows, at the model."""
        model, agreement = self.config.model, self.config.agreement
        assert agreement is not None
        train = self.rows or agreement.rows(self.table, self.config.name)
        inner = model.in_units(train.X, train.y, Extras(train.sample_weight, train.offset))
        test = None
        if self.held_out is not None:
            try:
                held = agreement.rows(self.held_out, self.config.name)
                out = model.in_units(held.X, held.y, Extras(held.sample_weight, held.offset))
                test = (out.X, out.y, held.sample_weight, out.offset)
            except AmbleError as error:  # a level or a label that only they have; the model itself is well
                log.log(PRIVATE, "the model is not tested on the held-out rows of %s: %s", self.config.name, error)
        return sums_of(
            model.loss_name, w, inner.X, inner.y, train.sample_weight, inner.offset,
            classes=len(model.labels), test=test,
        )  # fmt: skip

    def model(self, w: Array | None) -> Model | OwnModel | None:
        final = self.w if self.w is not None else w
        return (
            None
            if final is None or self.config.open
            else model_from(self.config, final, self.digest, self.sums, self.inside, self.recounting)
        )
