"""The stages of a run at one agent: an opening survey, the training and a closing survey; or the training alone.

Each stage is a run of the protocol: it has its own core and journal, and its messages have a fingerprint of their own.
All stages use the same links. A stage ends with a result that all agents have alike (message.Ending), and from that
each agent makes the next stage. A stage that has ended still answers, so an agent that comes late is told its result.

    opening   each agent's description of its table -> what all agree on: columns, levels, labels, scaling
    training  -> the model, and whose data it has
    closing   each agent's sums at that model -> how good it is, and its standard errors
"""

import hashlib
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from amble.arrays import Array, Flags
from amble.data.tables import Table
from amble.errors import AmbleError
from amble.files import write_whole
from amble.live.agent import described as described_sites
from amble.live.agent.ended import judged, model_from
from amble.live.agent.private import PRIVATE
from amble.live.core.effects import Settings
from amble.live.core.message import Accepted, Ending
from amble.live.core.parcels import Visits
from amble.live.core.protocol import Core
from amble.live.core.visits import visits_for
from amble.live.formats import wire
from amble.live.formats.shape import Shape, run_digest
from amble.live.journal import file as journal_file
from amble.live.journal.journal import Journal
from amble.live.settings.agent_config import AGREEMENT, AgentConfig
from amble.methods.survey import Part, Survey
from amble.problem.extras import Extras
from amble.results.model import Model
from amble.results.sums import KNOWN, Sums, sums_of
from amble.survey import regions
from amble.survey.agreed import Rows
from amble.survey.agreement import agree
from amble.survey.cells import REFUSE
from amble.survey.document import from_bytes, to_bytes

OPENING, TRAINING, CLOSING = "opening", "training", "closing"
JOURNALS = {OPENING: "opening.db", TRAINING: "journal.db", CLOSING: "closing.db"}
SETTLED = 1e-12  # relative: what a recount may change in a sum, by rounding
BYTES_MAX = 2**26  # of a message of a run whose model is not known when the links are made

log = logging.getLogger("amble.live")


class Plan(NamedTuple):
    """A stage before it begins."""

    name: str
    digest: str
    visits: Visits
    settings: Settings
    objective: Any


@dataclass(eq=False)
class Stage:
    """A stage under way, or ended."""

    name: str
    shape: Shape
    visits: Visits
    journal: Journal
    core: Core
    accepted: bytes  # most answers are this one
    order: tuple[int, ...] | None = None  # of the ending that the next stage was made from; None: it goes on


def shape_of(plan: Plan, config: AgentConfig) -> Shape:
    return Shape(
        plan.digest, config.agents, plan.settings.tokens, plan.visits.parcel(0), config.room, plan.settings.result
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
    return Stage(plan.name, shape, plan.visits, journal, core, wire.encode(shape, Accepted()))


def remove(journal: Path) -> None:
    """The file itself last: a log without it would be refused at the next start."""
    for path in sorted(journal.parent.glob(f"{journal.name}*"), reverse=True):
        path.unlink()


class Course(Protocol):
    """What the stages of a run are."""

    @property
    def bytes_max(self) -> int:
        """No message is longer."""

    def first(self) -> Plan: ...
    def after(self, name: str, ending: Ending) -> Plan | None:
        """The stage that follows; None: this was the last one, or the run was ended in it."""

    def awaits(self, name: str) -> bool:
        """Whether a stage follows this one."""

    @property
    def final(self) -> Array | None:
        """The model that all agents ended the training with, once that is known and another stage followed."""

    def model(self, w: Array | None) -> Model | None:
        """What the run has come to; `w` is this agent's own estimate."""


@dataclass(frozen=True, eq=False)
class Training:
    """The course of a run whose model is complete: it has one stage."""

    config: AgentConfig
    objective: Any

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

    def model(self, w: Array | None) -> Model | None:
        return None if w is None else model_from(self.config, w)


@dataclass(eq=False)
class Surveyed:
    """The course of a run whose agents first agree on their model."""

    config: AgentConfig
    folder: Path
    table: Table
    held_out: Table | None = None  # rows that are not trained on
    w: Array | None = None  # the model that all agents ended the training with
    sums: Array | None = None
    inside: Flags | None = None  # whose data is in it, by their indices
    rows: Rows | None = field(default=None, init=False)
    open_config: AgentConfig = field(init=False)  # as it was before any agreement

    bytes_max: int = BYTES_MAX

    def __post_init__(self) -> None:
        self.open_config = self.config

    @property
    def places(self) -> int:
        return len(self.config.agents) + self.config.room

    def _survey(self, name: str, digest: str, numbers: Array, expected: Flags, wait_s: float | None) -> Plan:
        """A stage that adds up numbers: by one token, until those who are expected are in."""
        config = self.config
        settings = replace(
            config.protocol_settings(), tokens=1, next=config.next[:1], hops_max=0, tolerance=SETTLED,
            result=len(numbers) + self.places, expected=expected, gather_s=wait_s,
        )  # fmt: skip
        visits = visits_for(Survey(), len(numbers), len(config.agents), SETTLED, config.room)
        return Plan(name, digest, visits, settings, Part(numbers))

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
        plan = self._survey(OPENING, digest, numbers, founders, asked.wait_s)
        self._check_size(plan, "the survey", "lower [survey] bytes_max")
        return plan

    def awaits(self, name: str) -> bool:
        return name != CLOSING

    @property
    def final(self) -> Array | None:
        return self.w

    def after(self, name: str, ending: Ending) -> Plan | None:
        if name != CLOSING:  # what an earlier result of this stage has led to is void
            self.w = self.inside = None
        self.sums = None
        if not ending.result or (name == OPENING and ending.cause != "tolerance") or ending.cause == "asked":
            if name == TRAINING and ending.result:
                self.w = np.frombuffer(ending.result, "<f8")[: -self.places].copy()
            return None
        numbers = np.frombuffer(ending.result, "<f8").astype(np.float64)
        total, inside = numbers[: -self.places], numbers[-self.places :] > 0
        if name == OPENING:
            return self._training(total)
        if name == TRAINING:
            return self._closing(total, inside, hashlib.sha256(ending.result).hexdigest())
        self.sums = total
        return None

    def _training(self, total: Array) -> Plan | None:
        config, asked = self.open_config, self.config.surveyed
        assert asked is not None
        names = dict(enumerate(config.agents))
        parts = regions.documents(total, self.places, asked.bytes_max)
        # the same name everywhere: only its neighbours know a guest's
        described = {names.get(index, f"guest{index}"): part for index, part in parts.items()}
        described_sites.write(self.folder, described)
        documents = {name: from_bytes(part, name) for name, part in described.items()}
        if not asked.train:
            return None
        agreement = agree(documents, asked.wanted)
        self.config = config = config.agreed(agreement)
        write_whole({self.folder / AGREEMENT: agreement.to_json().encode()})
        self.rows = agreement.rows(self.table, config.name)
        visits = config.visits()
        plan = Plan(
            TRAINING, config.digest, visits,
            replace(config.protocol_settings(), result=visits.dimension + self.places),
            config.objective(self.rows.X, self.rows.y, Extras(self.rows.sample_weight, self.rows.offset)),
        )  # fmt: skip
        self._check_size(plan, "this model", 'name fewer columns in [model], or give Relay form = "scalar"')
        return plan

    def _check_size(self, plan: Plan, what: str, advice: str) -> None:
        size = shape_of(plan, self.config).bytes_max
        if size > BYTES_MAX:
            raise AmbleError(
                f"a message of {what} has {size:,} bytes, and at most {BYTES_MAX:,} may be sent; {advice}."
            )

    def _closing(self, w: Array, inside: Flags, result: str) -> Plan | None:
        config = self.config
        self.w, self.inside = w.copy(), inside
        model, classes = config.model, len(config.model.labels)
        if model.loss_name not in KNOWN or not inside.any():
            return None
        sums = Sums.zeros(model.loss_name, model.width + model.intercept, classes)
        if inside[config.index]:  # one that came too late to be in the model adds nothing
            sums = self._sums(w)
        numbers = np.concatenate([sums.vector(), judged(sums, config.index, self.places)])
        digest = run_digest({"stage": CLOSING, "run": config.digest, "model": result})
        return self._survey(CLOSING, digest, numbers, inside, None)

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

    def model(self, w: Array | None) -> Model | None:
        final = self.w if self.w is not None else w
        return None if final is None or self.config.open else model_from(self.config, final, self.sums, self.inside)
