"""What one agent needs to know about a run: the file agent.toml in its folder."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

from amble import methods
from amble.arrays import Array
from amble.data.files import TABLES, read_table
from amble.data.packed import inner_suffix
from amble.data.tables import Table
from amble.data.targets import Targets
from amble.errors import AmbleError
from amble.files import read_toml, write_whole
from amble.live import toml
from amble.live.core import visits
from amble.live.core.accounts import PLACES_MAX
from amble.live.core.effects import Settings
from amble.live.core.parcels import Visits
from amble.live.formats.shape import run_digest
from amble.live.model import model as models
from amble.live.model import own
from amble.live.model import start as starts
from amble.live.model.model import Model
from amble.live.model.own import Code
from amble.live.model.start import Start
from amble.live.settings import surveyed as surveys
from amble.live.settings.parts import (
    LiveTiming,
    Retention,
    Stop,
    make_method,
    make_retention,
    make_stop,
    make_timing,
    method_settings,
)
from amble.live.settings.surveyed import Surveyed, Tables
from amble.methods.protocol import TokenMethod
from amble.problem.extras import NO_EXTRAS, Extras
from amble.results import model as trained
from amble.results.model_file import provenance
from amble.results.own_model import OwnModel
from amble.results.sums import Sums
from amble.survey import agreed as agreements
from amble.survey.agreed import Agreement

FILE = "agent.toml"
AGREEMENT = "agreement.json"  # what the survey has come to
# settings that came later: where they are not used, they change no run's digest
LATER = ("loss", "rows_mean", "l1", "positive", "unpenalised", "file", "code", "unknowns")
LATER_OF_METHODS = (("Relay", "message", "float64"),)  # method, setting, and the value that is its absence
FORMAT = 1
GIVE = "give the folder of an agent, as amble init, amble join or amble up made it"
SHOWN_MAX = 10  # agents' folders in a sentence
STALL_PAUSES = 3  # wait for an answer at least this many of our own pauses, because others may pause too
TELL_PART = 0.05  # of the patience: until the sender of a token is told that it was passed on
MADE = "# Made by amble for one agent. To change what all agents must agree on, edit the run file.\n"

next_kind = toml.Kind(
    lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    'a list of neighbours, one per token, or "" for any',
)
Settled = Annotated[dict[str, Any], toml.table]


class Peer(NamedTuple):
    """Where an agent is reached."""

    name: Annotated[str, toml.name]
    host: Annotated[str, toml.host]
    port: Annotated[int, toml.port]


PEER = toml.kinds_of(Peer)


@dataclass(frozen=True)
class AgentFile:
    """agent.toml as it is written; AgentConfig has the names' meanings."""

    format: Annotated[int, toml.whole(FORMAT, FORMAT)]
    run: Annotated[str, toml.name]
    name: Annotated[str, toml.name]
    host: Annotated[str, toml.host]
    port: Annotated[int, toml.port]
    agents: Annotated[tuple[str, ...], toml.list_of(toml.name, "a list of all agents' names")]
    room: Annotated[int, toml.whole(0, PLACES_MAX)]
    seed: Annotated[int, toml.seed]
    next: Annotated[tuple[str, ...], next_kind]
    method: Settled
    model: Settled
    stop: Settled
    timing: Settled
    neighbours: Annotated[tuple[dict[str, Any], ...], toml.list_of(toml.table, "a list of tables")]
    data: Annotated[str | None, toml.file_name] = None
    test: Annotated[str | None, toml.file_name] = None
    guests: Settled = field(default_factory=dict)
    record: Settled = field(default_factory=dict)
    start: Annotated[str | None, toml.text] = None
    survey: Annotated[dict[str, Any] | None, toml.table] = None


def agents_in(folder: Path) -> list[Path]:
    """The folders of agents in this folder."""
    return sorted(path.parent for path in folder.glob(f"*/{FILE}"))


def no_agent(folder: Path) -> AmbleError:
    """What is wrong with a folder that is not an agent's, and which may be meant."""
    if folder.is_file():
        return AmbleError(f"{folder} is a file; give the folder of an agent, {folder.parent}, for example.")
    if not folder.exists():
        beside = {path.name: path for path in agents_in(folder.parent)}
        near = difflib.get_close_matches(folder.name, list(beside), n=1)
        meant = [beside[name] for name in near] or list(beside.values())
        advice = f"did you mean {listed(meant)}" + "?" if meant else f"{GIVE}."
        return AmbleError(f"there is no folder {folder}; {advice}")
    if several := agents_in(folder):
        return AmbleError(f"{folder} holds the folders of several agents; give one of them: {listed(several)}.")
    return AmbleError(f"{folder} has no {FILE}; {GIVE}.")


def listed(folders: Sequence[Path]) -> str:
    names = [str(folder) for folder in folders]
    if len(names) > SHOWN_MAX:
        return f"{', '.join(names[:SHOWN_MAX])} or one of {len(names) - SHOWN_MAX} others"
    return " or ".join(([", ".join(names[:-1])] if len(names) > 1 else []) + names[-1:])


@dataclass(frozen=True)
class AgentConfig:
    """One agent's part of a run's settings."""

    run: str
    name: str
    host: str
    port: int
    agents: tuple[str, ...]  # those of the run's beginning, each at its place
    neighbours: tuple[Peer, ...]
    method: TokenMethod
    model: Model
    stop: Stop
    timing: LiveTiming
    seed: int
    next: tuple[Mapping[str, str], ...]  # one per token: from this agent to its next; empty for any neighbour
    data: str | None = None
    test: str | None = None  # a file of rows that are not trained on; None: a share of its rows, as the survey asks
    room: int = 0  # places for agents that come later
    guests: Mapping[str, int] = field(default_factory=dict)  # of these: itself or its neighbours, and their places
    record: Retention = field(default_factory=Retention)  # not in the digest
    start: Start | None = None  # the initial model; None: zeros
    surveyed: Surveyed | None = None  # what the survey asks for; None: the run's file has all of the model
    agreement: Agreement | None = None  # what it has come to
    code: Code | None = None  # the file of a model of the user's own, in the agent's folder

    @property
    def index(self) -> int:
        return self.protocol_settings().indices[self.name]

    @property
    def dimension(self) -> int:
        """The model's unknowns."""
        return self.model.dimension

    @property
    def digest(self) -> str:
        """The digest of all that agents must agree on: an agent refuses tokens with another digest."""
        model = {key: value for key, value in asdict(self.model).items() if key not in ("target", "header", "table")}
        model = {key: value for key, value in model.items() if key not in LATER or value}
        method = {
            key: value
            for key, value in method_settings(self.method).items()
            if (self.method.label, key, value) not in LATER_OF_METHODS
        }
        stop = asdict(self.stop)
        agents = {"agents": self.agents, "room": self.room}
        shared = {"run": self.run, **agents, "method": method, "model": model, "stop": stop}
        shared |= {"start": self.start.digest} if self.start else {}
        if self.surveyed is not None:
            shared["survey"] = asdict(self.surveyed)
        if self.agreement is not None:
            shared["agreement"] = self.agreement.to_json()
        return run_digest(shared)

    def protocol_settings(self) -> Settings:
        return Settings(
            agents=self.agents,
            tokens=self.method.tokens,
            seed=self.seed,
            next=self.next,
            patience_s=self.timing.patience_s,
            stall_s=max(self.timing.stall_s, STALL_PAUSES * self.timing.pause_s),
            retry_s=self.timing.retry_s,
            retry_max_s=max(Settings.retry_max_s, self.timing.retry_s),
            tell_s=TELL_PART * self.timing.patience_s,
            silence_s=self.timing.silence_s,
            hops_max=self.stop.hops or 0,
            tolerance=self.stop.tolerance or 0.0,
            room=self.room,
            guests=self.guests,
            columns=self.model.columns,
        )

    def visits(self) -> Visits:
        """As all agents of the run make them."""
        if self.start is not None and self.start.numbers is None:
            raise AmbleError(f"the run has an initial model, and {starts.FILE} is not beside {FILE} of {self.name}; "
                             "bring it back from another agent's folder.")  # fmt: skip
        start = None if self.start is None else self.start.numbers
        return visits.visits_for(
            self.method, self.dimension, len(self.agents), self.stop.tolerance or 0.0, self.room, start,
            self.model.penalty,
        )  # fmt: skip

    def agreed(self, agreement: Agreement) -> "AgentConfig":
        """With the model that the survey has come to."""
        model = surveys.model_of(agreement, self.surveyed.header if self.surveyed else None)
        dealt = SimpleNamespace(
            dimension=model.dimension, own=None, loss=model.loss, agents=len(self.agents), penalty=model.penalty
        )
        return replace(self, model=model, method=methods.check(self.method, dealt), agreement=agreement)

    @property
    def open(self) -> bool:
        """Whether a survey must come first."""
        return self.surveyed is not None and self.agreement is None

    def objective(self, X: Array, y: Targets, extra: Extras = NO_EXTRAS) -> Any:
        """The agent's own objective, from its rows and targets as they are in its files."""
        if self.code is not None:
            return own.objective(self.code, self.model, X, y, f"the data of {self.name}", extra)
        return self.model.objective(X, y, f"the data of {self.name}", extra)

    def objective_in(self, folder: Path) -> Any:
        """The same, from the file in its folder."""
        if self.agreement is None:
            return self.objective(*self.read_data(folder))
        return self.objective_of(self.tables(folder, self.data_path(folder)).train)

    def objective_of(self, table: Table) -> Any:
        """The same, from a table, as the survey has agreed to treat it."""
        if self.agreement is None:
            raise AmbleError(f"the agents of {self.run} have not agreed on their model yet; wait for their survey.")
        rows = self.agreement.rows(table, self.name)
        return self.objective(rows.X, rows.y, Extras(rows.sample_weight, rows.offset))

    def trained(self, w: Array, sums: Sums | None = None, **known: Any) -> trained.Model | OwnModel:
        """The run's model with these numbers, and where it comes from."""
        method = method_settings(self.method)
        about = provenance(run=self.run, settings=self.digest, agents=list(self.agents), method=method, **known)
        if self.code is not None:
            return OwnModel(w, self.code.name, self.code.digest, self.model.columns, self.model.labels, about)
        return self.model.trained(w, about, sums)

    def read_data(self, folder: Path) -> tuple[Array, Targets, Extras]:
        """The agent's rows, targets, weights and offsets, from the file in its folder that the run names."""
        return self.model.read(self.data_path(folder))

    def data_path(self, folder: Path) -> Path:
        if self.data is None:
            raise AmbleError(f"the run names no data file for {self.name}; add data = to its [[agents]], or give one.")
        return folder / self.data

    def tables(self, folder: Path, path: Path) -> Tables:
        """For the survey: the rows of an agent's file that are trained on, and those held out, or of its test file."""
        table = self._table(path)
        if self.test is not None:
            test = self._table(folder / self.test)
            if self.surveyed and self.surveyed.columns is None:  # those that are named are looked for in the survey
                surveys.check_same(table, test)
            return Tables(table, test)
        return surveys.with_held_out(table, self.surveyed.test if self.surveyed else 0.0, self.seed, self.index)

    def _table(self, path: Path) -> Table:
        if inner_suffix(path) not in TABLES:
            raise AmbleError(f"{path} is no table; a survey needs columns with names: give a .csv, .tsv or .parquet.")
        return read_table(path, self.surveyed.header if self.surveyed else None, ())

    def write(self, folder: Path) -> None:
        own = {"format": FORMAT, "run": self.run, "name": self.name, "host": self.host, "port": self.port}
        agents = {"data": self.data, "test": self.test, "agents": self.agents, "room": self.room}
        if self.start is not None:
            starts.write(self.start, folder)
            agents["start"] = self.start.digest
        if self.code is not None:
            write_whole({folder / self.code.name: self.code.read()})
        walk = {"seed": self.seed, "next": [table.get(self.name, "") for table in self.next]}
        tables = {
            "method": method_settings(self.method),
            **self._model_tables(),
            "stop": asdict(self.stop),
            "timing": asdict(self.timing),
            "record": asdict(self.record),
            "neighbours": [peer._asdict() for peer in self.neighbours],
        }
        settings = own | agents | walk | ({"guests": self.guests} if self.guests else {}) | tables
        (folder / FILE).write_text(MADE + toml.written(settings), encoding="utf-8")

    def _model_tables(self) -> dict[str, Any]:
        if self.surveyed is not None:
            return self.surveyed.tables()
        return {"model": {key: value for key, value in asdict(self.model).items() if value != ()}}

    @classmethod
    def read(cls, folder: Path, guests: bool = True, agreed: bool = True) -> "AgentConfig":
        """From the agent's folder, everything checked again: somebody may have edited it. With those neighbours that
        it has let in since, unless guests=False; and with what the survey has come to, unless agreed=False.
        """
        if not (folder / FILE).is_file():
            raise no_agent(folder)
        file = toml.fill(AgentFile, read_toml(folder / FILE, "agent's settings"), FILE)
        surveyed = None if file.survey is None else surveys.surveyed_of(file.model, file.survey)
        model = surveys.OPEN if surveyed else models.make_model(file.model)
        config = cls(
            **{key: value for key, value in vars(file).items() if key not in ("format", "survey")}
            | {
                "neighbours": tuple(toml.fill(Peer, each, "[[neighbours]]") for each in file.neighbours),
                "method": make_method(file.method, len(file.agents)),
                "model": model,
                "stop": make_stop(file.stop),
                "timing": make_timing(file.timing),
                "next": tuple({file.name: to} if to else {} for to in file.next),
                "record": make_retention(file.record),
                "start": None if file.start is None else starts.read(file.start, model, folder),
                "surveyed": surveyed,
                "code": Code(model.code, folder / model.file) if model.file and model.code else None,
            }
        )
        if surveyed and agreed and (folder / AGREEMENT).is_file():
            text = (folder / AGREEMENT).read_text(encoding="utf-8")
            config = config.agreed(agreements.from_json(text, str(folder / AGREEMENT)))
        config._check()
        return config._with_guests(folder) if guests and (folder / "guests").is_dir() else config

    def _with_guests(self, folder: Path) -> "AgentConfig":
        from amble.live.trust import invitation  # only where there are some: it needs the cryptography package

        config = self
        for guest in invitation.kept(folder):
            own_next = [{self.name: guest.name} if before == self.name else way
                        for before, way in zip(guest.after, config.next, strict=True)]  # fmt: skip
            config = replace(
                config,
                neighbours=(*config.neighbours, Peer(guest.name, guest.host, guest.port)),
                guests={**config.guests, guest.name: guest.index},
                next=tuple(own_next),
            )
        config._check()
        return config

    def _check(self) -> None:
        again = "make it again with amble init"
        if len(set(self.agents)) < len(self.agents):
            raise AmbleError(f"{FILE} names an agent twice in agents; {again}.")
        for name, index in self.guests.items():
            if not (toml.is_whole(index) and 0 <= index - len(self.agents) < self.room) or name in self.agents:
                raise AmbleError(f"{FILE} has {name!r} at place {index!r} among its guests; {again}.")
        for name in (self.name, *(peer.name for peer in self.neighbours)):
            if name not in self.agents and name not in self.guests:
                raise AmbleError(f"{FILE} has {name!r}, which is not among its agents; {again}.")
        near = [peer.name for peer in self.neighbours]
        if self.name in near or len(set(near)) < len(near):
            raise AmbleError(f"{FILE} names a neighbour twice, or the agent as its own neighbour; {again}.")
        if len(self.next) != self.method.tokens:
            raise AmbleError(f"{FILE} has {len(self.next)} entries in next for {self.method.tokens} tokens; {again}.")
        for table in self.next:
            for to in table.values():
                if to not in near:
                    raise AmbleError(f"{FILE} sends a token next to {to!r}, which is not a neighbour; {again}.")
