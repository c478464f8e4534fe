"""An experiment as plain settings: from a TOML file, from the command line, or both."""

import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from amble import methods, networks
from amble.data.datasets import Dataset
from amble.data.files import read_file
from amble.data.loading import NAMES, load
from amble.data.roles import ROLES
from amble.errors import AmbleError, unknown
from amble.files import read_toml
from amble.methods import own
from amble.networks import walks
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.problem.rows import task_of
from amble.problem.split import split
from amble.results.kept import check_folder
from amble.schedule import timing as timings
from amble.simulation import penalised
from amble.simulation.comparison import Comparison, compare
from amble.simulation.goal import goal_of
from amble.simulation.planning import limits
from amble.simulation.running import initial_model
from amble.tracking.record import OnRecord

LIMITS = ("hops", "time_s", "comm_units", "tolerance")
# the paper's four, at the settings of its first figure (it gives gAPI-BCD none), and the tracked token rule
PAPER_METHODS: list[dict[str, Any]] = [
    {"name": "I-BCD", "tau": 1.0},
    {"name": "API-BCD", "tau": 0.1, "tokens": 5},
    {"name": "API-BCD", "tau": 0.1, "tokens": 5, "token_rule": "tracked"},
    {"name": "gAPI-BCD", "tau": 0.1, "tokens": 5},
    {"name": "WPG", "alpha": 0.5},
]


@dataclass(frozen=True)
class Experiment:
    """Every setting of `amble compare`; the fields are the keys of the TOML file."""

    data: str = "diabetes"  # a known name, or the path of a file
    task: str | None = None  # this and the next three are for files: see amble.read_file
    target: str | None = None
    header: bool | None = None
    one_hot: bool = False
    by: str | None = None  # a file's column: one agent per value of it
    event: str | None = None  # this and the next three are a file's columns, too: see amble.read_file
    offset: str | None = None
    exposure: str | None = None
    weight: str | None = None
    agents: int = 20
    how: str = "even"
    alpha: float | None = None  # of how = "dirichlet"
    sizes: list[Any] | None = None  # of how = "by-sizes": rows per agent or, as numbers with a point, shares
    test: float = 0.2
    loss: str | None = None  # one of losses.LOSSES; without it, the task's
    ridge: float = 1e-4
    l1: float = 0.0  # the lasso's penalty, for full Relay alone
    positive: Any = False  # columns whose coefficients may not be below zero: true for all, or a list
    unpenalised: list[Any] = field(default_factory=list)  # columns without ridge and l1
    intercept: bool = True  # whether the model has one
    scale: bool = True  # whether columns, and the target of a regression, get mean 0 and deviation 1
    weights: str = "rows"
    network: str = "random"
    density: float = 0.7
    walk: str = "auto"
    timing: Any = "paper"  # paper, link, walkman, unit, or a table: model, its settings, slowdown = {3 = 10}
    hops: int | None = None
    time_s: float | None = None
    comm_units: int | None = None
    tolerance: float | None = None
    metric: float | None = None  # stop at the first record whose metric on the test rows is as good
    every: int | None = None
    penalised: bool = False  # F of the paper's eq. 3 and 10 as a column of the history
    seed: int = 0
    start: list[float] | None = None  # the initial model, one number per unknown: see amble.simulate
    tune: bool = False  # a step or penalty that a method is given stays as it is
    out: str = "amble-out"
    methods: list[dict[str, Any]] = field(default_factory=lambda: PAPER_METHODS)  # [[methods]]: a name and settings

    def with_settings(self, settings: dict[str, Any]) -> "Experiment":
        """Some settings replaced, each checked for its name and kind."""
        kinds = get_type_hints(Experiment)
        for key, value in settings.items():
            if key not in kinds:
                raise unknown("setting", key, kinds)
            kind = plain_type(kinds[key])
            if kind in EXPECTED and not _is_a(value, kind):
                raise AmbleError(f"{key} = {value!r} was given; it must be {EXPECTED[kind]}.")
        if {"by", "agents"} <= set(settings):
            raise AmbleError("by and agents were given; each value of the column is an agent, so leave agents out.")
        return replace(self, **settings)

    def build(self) -> tuple[list[Any], Problem, Network]:
        """The methods, the problem and the network; everything is checked before any work starts."""
        if self.network not in networks.KINDS:
            raise unknown("network", self.network, networks.KINDS)
        if self.walk not in ("auto", *walks.NAMES):
            raise unknown("walk", self.walk, ("auto", *walks.NAMES))
        timing = timings.timing_from(self.timing)
        if self.by is None:
            timing.factors(self.agents)
        chosen = [method for method, _ in self.make_methods()]
        if not chosen:
            raise AmbleError("no methods were given; name at least one.")
        if self.penalised:
            penalised.check(*chosen)
        problem = self.deal(self.read_data(), self.seed)
        timing.factors(problem.agents)
        for method in chosen:
            methods.check_penalty(method, problem)
            limits(method, problem, self.hops, None, self.time_s, self.comm_units, self.tolerance)
        goal_of(self.metric, problem)
        if self.start is not None:
            initial_model(self.start, problem)
        return chosen, problem, networks.named(self.network, problem.agents, self.density, self.seed)

    def deal(self, data: Dataset, seed: int) -> Problem:
        """The problem: the data divided among the agents."""
        penalties = ("ridge", "l1", "positive", "unpenalised")
        keys = ("how", "alpha", "sizes", "test", "loss", *penalties, "intercept", "scale", "weights")
        agents = self.agents if self.by is None else None
        return split(data, agents, seed=seed, **{key: getattr(self, key) for key in keys})

    def make_methods(self) -> list[tuple[Any, bool]]:
        """The methods, each with whether its step or penalty is to be tuned: one that the user gives stays as it is."""
        by_user = self.methods is not PAPER_METHODS
        chosen: list[tuple[Any, bool]] = []
        for table in self.methods:
            if not isinstance(table, dict):
                raise AmbleError(
                    f"methods holds {table!r}; write each method as a table: [[methods]] with name = {table!r}."
                )
            if "name" not in table:
                raise AmbleError(f'a method without a name was given ({table}); add name = "API-BCD", for example.')
            if table["name"] == "all":
                if len(table) > 1:
                    raise AmbleError(
                        f"settings were given with all ({table}); each method has its own: name it with them."
                    )
                chosen += [(methods.from_settings(label, {}), self.tune) for label in methods.METHODS]
                continue
            name = own.from_file(table["name"]) if own.names_file(str(table["name"])) else table["name"]
            method = methods.from_settings(name, {key: value for key, value in table.items() if key != "name"})
            chosen.append((method, self.tune and not (by_user and methods.tunable(method) in table)))
        return chosen

    def read_data(self) -> Dataset:
        """The data set of that name, or else in the file of that path."""
        keys = ("task", "target", "header", "by", *ROLES)
        of_files: dict[str, Any] = {key: getattr(self, key) for key in keys}
        if self.data in NAMES:
            extra = [key for key, value in {**of_files, "one_hot": self.one_hot or None}.items() if value is not None]
            if extra:
                raise AmbleError(
                    f"{extra[0]} was given with data = {self.data!r}; it is for files of your own, so leave it out."
                )
            return load(self.data)
        if Path(self.data).is_dir():
            raise AmbleError(
                f"{self.data} is a folder, which only amble up and amble survey take, with a table per site; give one "
                "file here, in which by (--by) names the column that says whose row is whose."
            )
        if not Path(self.data).is_file():
            error = unknown("data set", self.data, NAMES)
            raise AmbleError(f"{str(error).rstrip('.')}; nor is there a file {self.data}.")
        of_files["task"] = task_of(self.task, self.loss)  # counts are no labels where the loss is of counts
        return read_file(self.data, categorical="one-hot" if self.one_hot else "refuse", **of_files)

    def target_note(self, target: str | None) -> str | None:
        """Names the target column of a file, if the user did not choose it."""
        if self.target is not None or self.data in NAMES or target is None:
            return None
        return f"the target is {target}, the last column of {self.data}; --target names another."

    def run(
        self,
        progress: bool = True,
        keep: Path | None = None,
        again: bool = False,
        on_record: OnRecord | None = None,
    ) -> Comparison:
        """Everything is checked and built, then the methods run, each kept in a folder as soon as it is done. A folder
        that holds a comparison already is refused or, with `again`, has it replaced."""
        chosen, problem, network = self.build()
        if keep is not None:
            check_folder(keep, again, "give another with --out, or --again to replace it")
            make_folder(keep)
        names = (*LIMITS, "metric", "walk", "timing", "seed", "start", "every", "penalised")
        options = {name: getattr(self, name) for name in names}
        options["tune"] = [tuned for _, tuned in self.make_methods()]
        return compare(
            chosen, problem, network, keep=keep, again=again, progress=progress, on_record=on_record, **options
        )


EXPECTED = {int: "a whole number", float: "a number", str: "text", bool: "true or false", list: "a list"}


def plain_type(hint: Any) -> Any:
    """int for int | None, and list for list[Any]."""
    hint = get_args(hint)[0] if isinstance(hint, UnionType) else hint
    return get_origin(hint) or hint


def _is_a(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


def make_folder(folder: Path) -> None:
    """Makes the folder before the work, so that no result is lost for lack of one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError
    except OSError as error:
        raise AmbleError(f"nothing can be written to the folder {folder}; give another with --out.") from error


def read(path: Path) -> dict[str, Any]:
    """The settings of a TOML file; classes of your own that it names are in files beside it."""
    settings = read_toml(path, "experiment file")
    listed = settings.get("methods")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and own.names_file(str(each.get("name", ""))):
            each["name"] = str(path.parent / each["name"])
    return settings


def parse(text: str) -> dict[str, Any]:
    """NAME:key=value,key=value as a mapping with a `name`; values are read as TOML, or else as text.

    The name may be a class in a file of your own: mine.py:Heavy:key=value.
    """
    path = own.PATH.fullmatch(text)
    name, _, rest = text.partition(":") if path is None else (f"{path['file']}:{path['name']}", "", path["rest"] or "")
    settings: dict[str, Any] = {"name": name.strip()}
    for pair in filter(None, re.split(r",(?![^{]*})", rest)):  # not at commas within braces
        key, equals, value = pair.partition("=")
        if not equals:
            raise AmbleError(f"{text!r} was given; write settings as NAME:key=value,key=value.")
        try:
            settings[key.strip()] = tomllib.loads(f"v = {value.strip()}")["v"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = value.strip()
    return settings


def parse_sizes(text: str) -> list[int | float]:
    """30,20,10 or 0.5,0.3,0.2 as numbers: rows per agent, or shares."""
    try:
        return [float(each) if "." in each else int(each) for each in text.split(",")]
    except ValueError as error:
        raise AmbleError(f"--sizes {text} was given; write numbers, such as 30,20,10 or 0.5,0.3,0.2.") from error


def parse_columns(text: str) -> list[int | str]:
    """age,3 as a column's name and another's number."""
    return [int(each) if each.isdecimal() else each for each in map(str.strip, text.split(","))]


def parse_slow(text: str) -> dict[int, float]:
    """3=10,5=10 as the factors of agents 3 and 5."""
    try:
        pairs = [each.split("=") for each in text.split(",")]
        factors = [(int(agent), float(factor)) for agent, factor in pairs]
    except ValueError as error:
        raise AmbleError(f"--slow {text} was given; write AGENT=FACTOR, such as 3=10,5=10.") from error
    if len(dict(factors)) < len(factors):
        raise AmbleError(f"--slow {text} was given, which names an agent twice; give each agent one factor.")
    return dict(factors)
