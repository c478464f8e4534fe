"""The agreement of all sites, a site's own rows under it, and its text form for model files."""

import json
import math
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from amble.arrays import Array, Flags
from amble.data.tables import Table
from amble.data.targets import TASKS, Targets
from amble.errors import AmbleError, few
from amble.losses import LOSSES
from amble.problem.assemble import Scaling
from amble.survey.cells import EMPTY, MEAN, POLICIES, REFUSE, TEXT, Cells, Roles, find, find_features
from amble.survey.disagreements import check_range, refuse_gaps
from amble.survey.summary import Level


@dataclass(frozen=True)
class Feature:
    """A column of the tables: numbers, or text with these levels; `fill` stands in for a missing cell."""

    name: str
    levels: tuple[str, ...] | None
    fill: float | str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the model that may be made of it; one level has none where the model has an intercept."""
        return (self.name,) if self.levels is None else tuple(f"{self.name}={level}" for level in self.levels)


class Rows(NamedTuple):
    """A site's rows in raw units, in the columns of the model."""

    X: Array
    y: Targets  # amounts, times (negative where the row is censored) or labels
    sample_weight: Array | None
    offset: Array | None  # with the logarithm of the exposure


@dataclass(frozen=True)
class Site:
    name: str
    rows: int  # those that are used
    weight: float  # the sum of their weights


@dataclass(frozen=True)
class Agreement:
    """What `agree` makes."""

    task: str
    loss: str
    labels: tuple[Level, ...]  # of classification
    features: tuple[Feature, ...]
    columns: tuple[str, ...]  # as the model has them: "age", "town=Ulm"
    X_mean: tuple[float, ...]
    X_std: tuple[float, ...]
    y_mean: float
    y_std: float
    target: str
    event: str | None
    offset: str | None
    exposure: str | None
    weight: str | None
    missing: str
    intercept: bool
    ridge: float
    sites: tuple[Site, ...]
    l1: float = 0.0
    positive: tuple[str, ...] = ()  # columns of the model whose coefficients may not be below zero
    unpenalised: tuple[str, ...] = ()  # columns of the model without ridge and l1
    filled: int = 0  # missing cells that take the mean

    @property
    def scaling(self) -> Scaling:
        return Scaling(np.array(self.X_mean), np.array(self.X_std), self.y_mean, self.y_std)

    @property
    def shares(self) -> dict[str, float]:
        """Each site's part in the sum, N S_i / S: its rows, or their weights, against the mean over sites."""
        total = math.fsum(site.weight for site in self.sites)
        return {site.name: len(self.sites) * site.weight / total for site in self.sites}

    def rows(self, table: Table, whose: str) -> Rows:
        """One site's rows as all sites agreed to treat them; the table may be one that no document described."""
        roles = {"event": self.event, "offset": self.offset, "exposure": self.exposure, "weight": self.weight}
        found = find(table, self.target, roles, [feature.name for feature in self.features])
        if self.missing == REFUSE:
            for cells in (*found.features, found.target, *found.roles.values()):
                if cells.missing.any():
                    refuse_gaps(whose, cells.name, int(cells.missing.sum()))
        used = found.used(self.missing)
        if not used.any():
            raise AmbleError(f"{whose} has no row that is complete and has a weight; leave {whose} out.")
        X = self._encoded(found.features, table, used)

        offset = found.roles["offset"].values[used] if self.offset is not None else None
        if self.exposure is not None:
            logarithm = np.log(found.roles["exposure"].values[used])
            offset = logarithm if offset is None else offset + logarithm
        weight = found.roles["weight"].values[used] if self.weight is not None else None
        return Rows(X, self._targets(found, used, whose), weight, offset)

    def encode(self, table: Table, whose: str) -> Array:
        """The columns of the model alone, for predictions: every row keeps its place, so a missing cell is filled or,
        without missing = "mean", refused."""
        texts = [feature.name for feature in self.features if feature.levels is not None]
        features = find_features(table, [feature.name for feature in self.features], texts)
        for cells in features:
            if cells.missing.any() and self.missing != MEAN:
                refuse_gaps(whose, cells.name, int(cells.missing.sum()), advice="fill them, or leave such rows out")
        return self._encoded(features, table, np.ones(len(features[0].missing), bool))

    def _encoded(self, features: tuple[Cells, ...], table: Table, used: Flags) -> Array:
        blocks = [self._block(*pair, table, used) for pair in zip(self.features, features, strict=True)]
        return np.column_stack(blocks)

    def _block(self, feature: Feature, cells: Cells, table: Table, used: Flags) -> Array:
        """A feature's columns: itself, or one column of 0 and 1 per level."""
        text = feature.levels is not None
        if cells.kind != EMPTY and (cells.kind == TEXT) != text:
            here, there = ("numbers", "text") if text else ("text", "numbers")
            raise AmbleError(
                f"{table.where}, column {cells.name!r} holds {here}, and the sites agreed on {there}; fix it."
            )
        if feature.levels is None:
            values = cells.values[used]
            if feature.fill is not None:
                values = np.where(cells.missing[used], feature.fill, values)
            return values[:, None]

        texts = cells.values if feature.fill is None else np.where(cells.missing, str(feature.fill), cells.values)
        strange = np.flatnonzero(used & ~np.isin(texts, feature.levels))
        if len(strange):
            column = next(column for column in table.columns if column.name == cells.name)
            raise AmbleError(
                f"{table.location(int(strange[0]), column)} holds {str(texts[strange[0]])[:40]!r}, a level that no "
                "site had in the survey; drop such rows, or run the survey again with them."
            )
        columns = zip(feature.levels, feature.columns, strict=True)
        kept = [level for level, column in columns if column in self.columns]
        block: Array = (texts[used][:, None] == np.array(kept, dtype=str)).astype(np.float64)
        return block

    def _targets(self, found: Roles, used: Flags, whose: str) -> Targets:
        y = found.target.values[used]
        text = found.target.kind == TEXT
        if self.task == "regression":
            if text:
                raise AmbleError(
                    f"the target {self.target!r} of {whose} is text, and the sites agreed on numbers; fix it."
                )
            check_range(self.loss, float(y.min()), whose, self.target)
            return y if self.event is None else np.where(found.roles["event"].values[used] == 1, y, -y)
        if not text and all(isinstance(label, int) for label in self.labels) and (y == np.round(y)).all():
            y = y.astype(np.int64)
        strange = [label for label in np.unique(y).tolist() if label not in self.labels]
        if strange:
            here, known = (few([repr(label) for label in labels]) for labels in (strange, self.labels))
            raise AmbleError(
                f"{whose} has labels that no site had in the survey: {here}; they had {known}. Drop such rows, or run "
                "the survey again with them."
            )
        return y

    def to_json(self) -> str:
        """As text, the same for equal agreements."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def from_json(text: str, whose: str) -> Agreement:
    """The agreement that `to_json` wrote, checked."""
    try:
        fields = json.loads(text)
        for key in ("labels", "columns", "X_mean", "X_std", "positive", "unpenalised"):
            fields[key] = tuple(fields.get(key, ()))
        features = ((each["name"], each["levels"], each["fill"]) for each in fields["features"])
        fields["features"] = tuple(
            Feature(name, None if levels is None else tuple(levels), fill) for name, levels, fill in features
        )
        fields["sites"] = tuple(Site(**site) for site in fields["sites"])
        agreement = Agreement(**fields)
        if problem := _wrong(agreement):
            raise ValueError(problem)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise AmbleError(f"{whose} holds no valid agreement of sites ({error}); write it again.") from error
    return agreement


def _wrong(agreement: Agreement) -> str:
    """What cannot be in an agreement; "" where all can."""
    names = (agreement.target, *(feature.name for feature in agreement.features), *agreement.columns)
    optional = (agreement.event, agreement.offset, agreement.exposure, agreement.weight)
    texts = [*names, *(level for feature in agreement.features for level in feature.levels or ())]
    texts += [*(name for name in optional if name is not None), *(site.name for site in agreement.sites)]
    if not all(isinstance(text, str) and text for text in texts):
        return "its names must be text"
    fills = [feature.fill for feature in agreement.features if feature.fill is not None and feature.levels is None]
    scaling = (*agreement.X_mean, *agreement.X_std, agreement.y_mean, agreement.y_std)
    sites = [number for site in agreement.sites for number in (site.rows, site.weight)]
    numbers: list[object] = [*scaling, agreement.ridge, agreement.l1, agreement.filled, *fills, *sites]
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        return "its numbers must be finite"
    if not (all(std > 0 for std in agreement.X_std) and agreement.y_std > 0):
        return "its deviations must be above zero"
    if not len(agreement.X_mean) == len(agreement.X_std) == len(agreement.columns) > 0:
        return "it must have one mean and one deviation per column"
    if any(
        feature.fill is not None and feature.fill not in feature.levels
        for feature in agreement.features
        if feature.levels is not None
    ):
        return "a missing text must become one of its levels"
    if (agreement.task, agreement.missing) not in {(task, policy) for task in TASKS for policy in POLICIES}:
        return "its task or its policy about missing cells is unknown"
    if not all(type(label) in (str, int, float) for label in agreement.labels):
        return "its labels must be text or numbers"
    if agreement.loss not in LOSSES:
        return f"its loss {agreement.loss!r} is unknown"
    if not {*agreement.positive, *agreement.unpenalised} <= set(agreement.columns) or agreement.l1 < 0:
        return "its penalties must be on columns that it has"
    if type(agreement.intercept) is not bool:
        return "its intercept must be true or false"
    return ""
