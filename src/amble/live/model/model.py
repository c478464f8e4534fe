"""The model that agents agree on before they see each other: its shape, its scaling, and each agent's objective."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from amble import losses
from amble.arrays import Array, tree_map
from amble.data.files import TABLES, read_file
from amble.data.named import read_named
from amble.data.packed import inner_suffix
from amble.data.roles import ROLES
from amble.data.tables import TextColumn
from amble.data.targets import TASKS, Targets
from amble.errors import AmbleError, few, unknown
from amble.live import toml
from amble.losses.penalty import Penalty
from amble.problem.assemble import Scaling, check_rows, prepare, ridges, stack, targets_in_units
from amble.problem.extras import NO_EXTRAS, Extras, extras, refuse_offset
from amble.problem.penalising import penalty_settings, spread, without_pins
from amble.results import model as trained
from amble.results.sums import Sums

log = logging.getLogger("amble.live")

UNKNOWNS_MAX = 10_000_000  # a message of 80 MB

columns_kind = toml.Kind(
    lambda value: toml.whole(1, UNKNOWNS_MAX).fits(value) or toml.list_of(toml.text, "").fits(value),
    "the number of columns or a list of their names",
)
label_kind = toml.Kind(lambda value: isinstance(value, str) or toml.number.fits(value), "text or a number")
labels_kind = toml.list_of(label_kind, "a list of all labels, as text or as numbers")
target_kind = toml.Kind(lambda value: toml.text.fits(value) or toml.is_whole(value), "a column's name or number")
chosen_kind = toml.list_of(target_kind, "a list of columns, by name or number")
signs_kind = toml.Kind(
    lambda value: toml.boolean.fits(value) or chosen_kind.fits(value), "true, or a list of columns, by name or number"
)
table_kind = toml.Kind(
    lambda value: (
        isinstance(value, dict)
        and value.keys() <= {"target", "categories", *ROLES}
        and all(toml.text.fits(each) or toml.list_of(toml.text, "").fits(each) for each in value.values())
    ),
    f"a table of columns' names: target, {', '.join(ROLES)}, and a list, categories",
)
means_kind = toml.list_of(toml.number, "a list of numbers, one per column")
spreads_kind = toml.list_of(toml.positive, "a list of numbers above zero, one per column")


class InUnits(NamedTuple):
    """Rows as a loss takes them."""

    X: Array
    y: Targets
    offset: Array | None  # of the linear predictor, with a log link


@dataclass(frozen=True)
class Model:
    """What is trained. The scaling is fixed in advance, because no agent sees all rows."""

    task: Annotated[str, toml.text]  # regression or classification
    columns: Annotated[int | tuple[str, ...], columns_kind]  # how many, or their names
    labels: Annotated[tuple[Any, ...], labels_kind] = ()  # of classification: all that any agent may have
    ridge: Annotated[float, toml.zero_or_more] = 1e-4  # the weight of the squared model in the loss
    l1: Annotated[float, toml.zero_or_more] = 0.0  # the weight of its absolute values (lasso): for full Relay
    positive: Annotated[bool | tuple[str | int, ...], signs_kind] = ()  # columns whose coefficients may not be below 0
    unpenalised: Annotated[tuple[str | int, ...], chosen_kind] = ()  # columns without ridge and l1
    intercept: Annotated[bool, toml.boolean] = True  # whether the model has one
    target: Annotated[str | int | None, target_kind] = None  # of agents' files; without it, the last column
    header: Annotated[bool | None, toml.boolean] = None  # of agents' files: whether the first row has names
    X_mean: Annotated[tuple[float, ...] | None, means_kind] = None  # what is taken from each column; without it, 0
    X_std: Annotated[tuple[float, ...] | None, spreads_kind] = None  # what it is then divided by; without it, 1
    y_mean: Annotated[float, toml.number] = 0.0  # the same for the target of a regression
    y_std: Annotated[float, toml.positive] = 1.0
    loss: Annotated[str | None, toml.text] = None  # by its name; without it, the usual one of the task
    # rows per agent, in the mean over agents: an agent then counts by its rows. Without it, all agents count alike
    rows_mean: Annotated[float | None, toml.positive] = None
    # the columns with a role of the one table that `amble up` has dealt out: what predictions on such a table need
    table: Annotated[Mapping[str, Any] | None, table_kind] = None
    file: Annotated[str | None, toml.file_name] = None  # of a model of your own: a Python file (own.py)
    code: Annotated[str | None, toml.text] = None  # its digest, which amble writes
    unknowns: Annotated[int | None, toml.whole(1, UNKNOWNS_MAX)] = None  # of its model, which amble writes

    @property
    def width(self) -> int:
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    @property
    def dimension(self) -> int:
        """Unknowns: one per column and the intercept; with more than two classes, that many for each class."""
        if self.unknowns is not None:
            return self.unknowns
        return int(losses.LOSSES[self.loss_name].unknowns(self.width + self.intercept, len(self.labels)))

    @property
    def loss_name(self) -> str:
        return losses.choose(self.loss, len(self.labels))

    @cached_property
    def penalties(self) -> dict[str, Any]:
        """Those that are not the ridge, with columns by their numbers."""
        names = None if isinstance(self.columns, int) else self.columns
        return penalty_settings(self.l1, self.positive, self.unpenalised, self.width, names)

    @cached_property
    def penalty(self) -> Penalty | None:
        return spread(self.penalties, self.width, self.intercept, self.dimension)

    @property
    def scaling(self) -> Scaling:
        X_mean = np.zeros(self.width) if self.X_mean is None else np.array(self.X_mean)
        X_std = np.ones(self.width) if self.X_std is None else np.array(self.X_std)
        return Scaling(X_mean, X_std, self.y_mean, self.y_std)

    def objective(self, X: Array, y: Targets, whose: str, extra: Extras = NO_EXTRAS) -> Any:
        """One agent's own objective: its share times the mean loss of its rows and the ridge, in the model's units."""
        X, y = self.checked(X, y, whose)
        inner = self.in_units(X, y, extra)
        each = ridges(self.ridge, inner.X.shape[1], self.intercept, self.penalties.get("unpenalised", ()))
        weight = float(len(y)) if extra.weight is None else float(extra.weight.sum())
        share = np.array([1.0 if self.rows_mean is None else weight / self.rows_mean])
        parts, classes, extra = [np.arange(len(y))], len(self.labels), Extras(extra.weight, inner.offset)
        stacked = stack(inner.X, inner.y, parts, each, classes, share, self.loss_name, extra)
        return tree_map(lambda leaf: leaf[0], without_pins(stacked, self.penalty))

    def checked(self, X: Array, y: Targets, whose: str) -> tuple[Array, Targets]:
        """Rows that the model can be trained on."""
        X, y = check_rows(X, y, self.task, whose)
        if X.shape[1] != self.width:
            raise AmbleError(
                f"{whose} has {X.shape[1]} columns and the run's model {self.width}; give it the same columns as all."
            )
        if self.labels and (strange := [label for label in np.unique(y).tolist() if label not in self.labels]):
            raise AmbleError(
                f"{whose} has labels that the run does not know: {_few(strange)}; the run's are {_few(self.labels)}. "
                "Drop such rows, or name all labels in the run's [model] and make a new bundle."
            )
        return X, y

    def in_units(self, X: Array, y: Targets, extra: Extras = NO_EXTRAS) -> "InUnits":
        """Rows and targets in the model's own units."""
        link = losses.LOSSES[self.loss_name].link()
        offset = None
        if link == "log":
            offset = np.full(len(y), self.y_mean) + (0.0 if extra.offset is None else extra.offset)
        wanted = targets_in_units(y, self.scaling, self.labels or None, link)
        return InUnits(prepare(X, self.scaling, self.intercept), wanted, offset)

    def trained(self, w: Array, about: Mapping[str, Any] | None = None, sums: Sums | None = None) -> trained.Model:
        """The model with these numbers, to predict with."""
        table = {key: value for key, value in (self.table or {}).items() if key != "target"}
        return trained.Model(
            task=self.task,
            loss=self.loss_name,
            columns=self.columns,
            labels=self.labels,
            intercept=self.intercept,
            w=w,
            scaling=self.scaling,
            target=(self.table or {}).get("target", self.target),
            penalty={"ridge": self.ridge}
            | ({"l1": self.l1} if self.l1 else {})
            | ({"positive": True} if self.positive else {}),
            sums=sums,
            about={**(about or {}), **({"table": table} if table else {})},
        )

    def read(self, path: Path) -> tuple[Array, Targets, Extras]:
        """The rows and targets of an agent's file, with the weights and offsets that an .npz may have."""
        X, y, extra, ignored = self.read_all(path)
        if ignored:
            log.info("%s: columns that are not in the run's model are ignored: %s", path, few(ignored))
        return X, y, extra

    def read_all(self, path: Path) -> tuple[Array, Targets, Extras, tuple[str, ...]]:
        """The same, and the columns of the file that are not the model's: where the run names its columns, a table may
        have others."""
        if (table := inner_suffix(path) in TABLES) and not isinstance(self.columns, int):
            data, ignored = read_named(path, self.columns, task=self.task, target=self.target, header=self.header)
            return data.X, data.y, NO_EXTRAS, ignored
        names = None if isinstance(self.columns, int) else self.columns
        if names is None and not table:  # sparse text may leave out the last columns
            names = tuple(str(k + 1) for k in range(self.width))
        try:
            data = read_file(path, task=self.task, target=self.target, header=self.header, columns=names)
        except TextColumn as error:
            named = 'columns = ["rooms", "town=Ulm", ...]'
            advice = f"write numbers there, or name all columns in the run's [model], including each category ({named})"
            raise AmbleError(f"{error.problem}; {advice}.") from error
        extra = extras(len(data.y), str(path), data.sample_weight, data.offset, data.exposure)
        if extra.offset is not None:
            refuse_offset(self.loss_name, f"offset or exposure in {path}")
        return data.X, data.y, extra, ()


def make_model(table: Any) -> Model:
    """From the [model] table, checked."""
    if isinstance(table, dict) and "one_hot" in table:
        raise AmbleError(
            '[model] has one_hot; write columns as names instead, "colour=red" for each category, so that all agents '
            "make the same columns."
        )
    model = toml.fill(Model, table, "[model]")
    if model.file is not None and (model.code is None or model.unknowns is None):
        raise AmbleError(f"[model] has file = {model.file!r} without its code and unknowns, which amble init writes.")
    if model.file is None and (strange := [key for key in ("code", "unknowns") if getattr(model, key) is not None]):
        raise AmbleError(
            f"[model] has {strange[0]} without file, the model of your own that it is about; leave it out."
        )
    if model.task not in TASKS:
        raise unknown("task", model.task, TASKS)
    _check_labels(model)
    if not isinstance(model.columns, int) and len(set(model.columns)) < len(model.columns):
        twice = next(name for k, name in enumerate(model.columns) if name in model.columns[:k])
        raise AmbleError(f"[model] names the column {twice!r} twice; name each once.")
    if not isinstance(model.columns, int) and model.target in model.columns:
        raise AmbleError(f"[model] has its target {model.target!r} among its columns; leave it out there.")
    for key, values in (("X_mean", model.X_mean), ("X_std", model.X_std)):
        if values is not None and len(values) != model.width:
            raise AmbleError(f"[model] {key} has {len(values)} numbers for {model.width} columns; give one per column.")
    _ = model.penalties  # columns that are not there are refused here
    if model.dimension > UNKNOWNS_MAX:
        raise AmbleError(f"[model] has {model.dimension:,} unknowns; messages can have at most {UNKNOWNS_MAX:,}.")
    return model


def _check_labels(model: Model) -> None:
    if model.task == "regression":
        if model.labels:
            raise AmbleError('[model] has labels and task = "regression"; leave them out, or give "classification".')
        return
    if not model.labels:
        raise AmbleError("[model] has no labels; name all that any agent may have, labels = [0, 1], for example.")
    if len({isinstance(label, str) for label in model.labels}) > 1:
        raise AmbleError(f"[model] labels = {_few(model.labels)} mixes text and numbers; give one or the other.")
    if len(set(model.labels)) < len(model.labels) or len(model.labels) < 2:
        raise AmbleError(f"[model] labels = {_few(model.labels)} was given; name at least two, each once.")
    if (model.y_mean, model.y_std) != (0.0, 1.0):
        raise AmbleError(
            '[model] has y_mean or y_std and task = "classification"; labels are not scaled: leave them out.'
        )


def _few(values: Iterable[object]) -> str:
    return few(list(map(repr, values)))
