"""The settings of a run whose model the agents agree on by a survey: nothing about the data has to be typed in."""

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, NamedTuple

import numpy as np

from amble.arrays import Indices
from amble.data.tables import Column, Table
from amble.errors import AmbleError, unknown
from amble.live import toml
from amble.live.model.model import Model, target_kind
from amble.randomness import check_seed
from amble.survey.agreement import Agreement, Wanted
from amble.survey.cells import POLICIES, REFUSE

OPEN = Model(task="regression", columns=0)  # stands in for the model until the survey gives its columns
DESCRIPTION_MAX = 2**20  # bytes of one agent's
FIXED = ("X_mean", "X_std", "y_mean", "y_std", "labels", "start")  # of [model], where there is no survey

names_kind = toml.list_of(toml.text, "a list of columns' names")
levels_kind = toml.list_of(
    toml.Kind(lambda value: toml.text.fits(value) and "=" in value, ""), 'a list of levels, such as ["ward=medical"]'
)
signs_kind = toml.Kind(
    lambda value: toml.boolean.fits(value) or names_kind.fits(value), "true, or a list of columns' names"
)
share_kind = toml.Kind(lambda value: toml.number.fits(value) and 0 <= value < 1, "a share of rows, from 0 to below 1")


@dataclass(frozen=True)
class Surveyed:
    """What is asked for: the tables [model] and [survey] of such a run."""

    task: Annotated[str | None, toml.text] = None  # regression or classification; without it, by the targets
    loss: Annotated[str | None, toml.text] = None  # by its name; without it, the usual one of the task
    target: Annotated[str | int | None, target_kind] = None  # without it, the last column
    columns: Annotated[tuple[str, ...] | None, names_kind] = None  # of the model; without it, all that have no role
    event: Annotated[str | None, toml.text] = None  # for cox: the column of 1 (seen) and 0 (censored)
    offset: Annotated[str | None, toml.text] = None  # for poisson and gamma: a column that is added
    exposure: Annotated[str | None, toml.text] = None  # for poisson and gamma: the column of years and so on
    weight: Annotated[str | None, toml.text] = None  # the column that says how much each row counts
    header: Annotated[bool | None, toml.boolean] = None  # whether the first row of tables has names
    ridge: Annotated[float, toml.zero_or_more] = 0.0  # the weight of the squared model in the loss
    l1: Annotated[float, toml.zero_or_more] = 0.0  # the weight of its absolute values (lasso): for full Relay
    positive: Annotated[bool | tuple[str, ...], signs_kind] = ()  # columns whose coefficients may not be below 0
    unpenalised: Annotated[tuple[str, ...], names_kind] = ()  # columns without ridge and l1
    reference: Annotated[tuple[str, ...], levels_kind] = ()  # what others are compared with; without it, the first
    intercept: Annotated[bool, toml.boolean] = True  # whether the model has one
    missing: Annotated[str, toml.text] = REFUSE  # what becomes of missing cells: refuse, mean or drop
    test: Annotated[float, share_kind] = 0.0  # of each agent's rows: held out, to say how good the model is
    bytes_max: Annotated[int, toml.whole(256, DESCRIPTION_MAX)] = 4096  # of one agent's description of its table
    wait_s: Annotated[float, toml.positive] = 600.0  # for agents that have not started
    train: Annotated[bool, toml.boolean] = True  # false: the survey is all there is

    @property
    def wanted(self) -> Wanted:
        return Wanted(**{key: value for key, value in asdict(self).items() if key in WANTED})

    @property
    def penalised(self) -> bool:
        """By more than a ridge."""
        return bool(self.l1 or self.positive)

    def tables(self) -> dict[str, dict[str, Any]]:
        """As [model] and [survey] have them."""
        said = {key: value for key, value in asdict(self).items() if value not in (None, ())}
        return {
            "model": {key: value for key, value in said.items() if key not in SURVEY},
            "survey": {key: value for key, value in said.items() if key in SURVEY},
        }


WANTED = {field.name for field in fields(Wanted)}
SURVEY = ("missing", "test", "bytes_max", "wait_s", "train")


def surveyed_of(model: Any, survey: Any) -> Surveyed:
    """From the tables [model] and [survey], checked."""
    if isinstance(model, dict) and (typed := [key for key in FIXED if key in model]):
        raise AmbleError(
            f"[model] has {typed[0]}, and the run has a table [survey], by which agents agree on it; leave one out."
        )
    kinds = toml.kinds_of(Surveyed)
    toml.check(survey, "[survey]", {key: kinds[key] for key in SURVEY})
    toml.check(model, "[model]", {key: kind for key, kind in kinds.items() if key not in SURVEY})
    made = toml.fill(Surveyed, {**model, **survey}, "[model] and [survey]")
    if made.missing not in POLICIES:
        raise unknown("way to treat missing cells", made.missing, POLICIES)
    _ = made.wanted.meant  # a task and a loss that do not go together are refused here, not after the survey
    return made


class Tables(NamedTuple):
    """An agent's rows: those that are trained on, and those held out, if any."""

    train: Table
    test: Table | None = None


def check_same(table: Table, test: Table) -> None:
    """A test table must have the columns of the table that is trained on."""
    here = {column.name for column in test.columns}
    for column in table.columns:
        if column.name not in here:
            raise AmbleError(f"{test.where} has no column {column.name!r}, which {table.where} has; add it.")


def with_held_out(table: Table, share: float, seed: int, index: int) -> Tables:
    """Which rows are held out depends on the run's seed and the agent's index alone."""
    count = len(table.columns[0].cells)
    out = min(round(share * count), count - 1)  # one is left to train on
    if not out:
        return Tables(table)
    order = np.random.default_rng([check_seed(seed), index, 3]).permutation(count)
    return Tables(_some(table, np.sort(order[out:])), _some(table, np.sort(order[:out])))


def _some(table: Table, chosen: Indices) -> Table:
    columns = [
        Column(
            column.name,
            None if column.texts is None else [column.texts[k] for k in chosen],
            None if column.numbers is None else column.numbers[chosen],
        )
        for column in table.columns
    ]
    return table._replace(columns=columns, lines=None if table.lines is None else [table.lines[k] for k in chosen])


def model_of(agreement: Agreement, header: bool | None) -> Model:
    """The model that the agents have agreed on."""
    return Model(
        task=agreement.task,
        columns=agreement.columns,
        labels=agreement.labels,
        ridge=agreement.ridge,
        l1=agreement.l1,
        positive=agreement.positive,
        unpenalised=agreement.unpenalised,
        intercept=agreement.intercept,
        target=agreement.target,
        header=header,
        X_mean=agreement.X_mean,
        X_std=agreement.X_std,
        y_mean=agreement.y_mean,
        y_std=agreement.y_std,
        loss=agreement.loss,
        rows_mean=sum(site.weight for site in agreement.sites) / len(agreement.sites),
    )
