"""From all sites' documents to one agreement: columns, levels, labels, scaling and shares.

The scaling is that of the rows of all sites in one table, treated as the policy about missing cells says:

    mean    a missing number becomes the mean of the column, a missing text its most frequent level (of several, the
            first in the alphabet); both by the rows' weights, where there are some
    drop    a row with a missing cell is left out

Under both, a row without its target, event, offset, exposure or weight is left out.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from amble.data.encoding import CATEGORIES_MAX
from amble.data.roles import ROLES
from amble.data.tables import Table
from amble.data.targets import CLASSES_MAX, TASKS
from amble.errors import AmbleError, unknown
from amble.losses import LOSSES, choose, named
from amble.survey.agreed import Agreement, Feature, Rows, Site, from_json
from amble.survey.cells import EMPTY, MEAN, NUMBER, POLICIES, REFUSE, TEXT
from amble.survey.disagreements import (
    HAZARD,
    IDENTITY,
    LOG,
    check_columns,
    check_gaps,
    check_kinds,
    check_levels,
    check_loss,
    check_range,
    check_roles,
)
from amble.survey.document import describe
from amble.survey.pooling import pool
from amble.survey.summary import Document, Level, Summary

__all__ = ["Agreement", "Feature", "Rows", "Site", "Wanted", "agree", "from_json"]


@dataclass(frozen=True)
class Wanted:
    """What a run's settings say beforehand; what is None follows from the documents."""

    task: str | None = None
    loss: str | None = None
    target: str | int | None = None
    event: str | int | None = None
    offset: str | int | None = None
    exposure: str | int | None = None
    weight: str | int | None = None
    columns: tuple[str, ...] | None = None
    missing: str = REFUSE
    intercept: bool = True
    scale: bool = True
    ridge: float = 1e-4
    l1: float = 0.0
    positive: bool | tuple[str, ...] = ()  # columns of the tables or of the model; True: all
    unpenalised: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()  # "ward=medical": the level that the others are compared with; else the first

    @property
    def meant(self) -> str | None:
        """The task that is said, or that the loss has."""
        if self.task not in (None, *TASKS):
            raise unknown("task", self.task, TASKS)
        meant = None if self.loss is None else TASKS[not LOSSES[named(self.loss)].fits(0)]
        if self.task and meant and self.task != meant:
            raise AmbleError(f'task = "{self.task}" and loss = "{self.loss}" do not go together; leave one out.')
        return self.task or meant

    def describe(self, table: Table) -> Document:
        """The description of one site's table that an agreement with these settings needs."""
        return describe(
            table,
            self.target,
            self.event,
            self.offset,
            self.exposure,
            self.weight,
            columns=self.columns,
            task=self.meant,
            missing=self.missing,
        )


class Encoding(NamedTuple):
    """The columns of the model, and how they are made."""

    features: list[Feature]
    columns: list[str]
    means: list[float]
    stds: list[float]

    def named(self, chosen: bool | tuple[str, ...], what: str) -> tuple[str, ...]:
        """Columns of the model; a column of categories in the tables stands for all that are made of it."""
        if isinstance(chosen, bool):
            return tuple(self.columns) if chosen else ()
        made = {column: {column} for column in self.columns}
        for feature in self.features:
            made[feature.name] = {column for column in self.columns if column in feature.columns}
        for name in chosen:
            if name not in made:
                raise unknown(f"column in {what}", name, made)
        wanted = set().union(*(made[name] for name in chosen))
        return tuple(column for column in self.columns if column in wanted)


def agree(documents: Mapping[str, Document], settings: Wanted) -> Agreement:
    """What follows from the documents of all sites, by their names. The order in which they come has no effect."""
    sites = {name: documents[name] for name in sorted(documents)}
    if not sites:
        raise AmbleError("no site has described its table; an agreement needs at least one.")
    if settings.missing not in POLICIES:
        raise unknown("way to treat missing cells", settings.missing, POLICIES)
    check_roles(sites)
    check_columns(sites, settings.columns)
    check_gaps(sites, settings.missing)
    targets = {site: document.target for site, document in sites.items()}
    check_kinds(targets)
    target, first = pool(list(targets.values())), next(iter(sites.values()))
    task = task_of(target, settings)
    if task == "classification":
        check_levels(targets, "a target of labels")
    labels = labels_of(target) if task == "classification" else ()
    loss = choose(settings.loss, len(labels))
    if not labels:
        for site, summary in targets.items():
            check_range(loss, summary.min, site, target.name)
    events = [document.event for document in sites.values() if document.event is not None]
    check_loss(loss, target, first, any(summary.max > 0 for summary in events))
    link = LOSSES[loss].link()
    baseline = settings.intercept or link == HAZARD  # a baseline hazard, as an intercept, takes up what is subtracted
    encoding = encode(sites, settings, baseline)
    gaps = Counter[str]()
    for document in sites.values():
        gaps.update({summary.name: summary.missing for summary in document.columns})
    shift = settings.scale and baseline
    exposed = math.fsum(document.exposed for document in sites.values())
    y_mean, y_std = target_scaling(target, exposed, link) if settings.scale else (0.0, 1.0)
    roles = {role: getattr(first, role) for role in ROLES}
    return Agreement(
        task=task,
        loss=loss,
        labels=labels,
        features=tuple(encoding.features),
        columns=tuple(encoding.columns),
        X_mean=tuple(encoding.means) if shift else (0.0,) * len(encoding.columns),
        X_std=tuple(encoding.stds) if settings.scale else (1.0,) * len(encoding.columns),
        y_mean=y_mean if shift else 0.0,
        y_std=y_std,
        target=target.name,
        **{role: None if summary is None else summary.name for role, summary in roles.items()},
        missing=settings.missing,
        intercept=settings.intercept and link != HAZARD,
        ridge=settings.ridge,
        l1=settings.l1,
        positive=encoding.named(settings.positive, "positive"),
        unpenalised=encoding.named(settings.unpenalised, "unpenalised"),
        filled=sum(gaps[feature.name] for feature in encoding.features) if settings.missing == MEAN else 0,
        sites=tuple(Site(site, document.used, document.total) for site, document in sites.items()),
    )


def task_of(target: Summary, settings: Wanted) -> str:
    """The task that the settings mean, or that the target looks like (see data.targets)."""
    labels = target.kind == TEXT or (target.levels is not None and target.whole and target.distinct <= CLASSES_MAX)
    task = settings.meant or TASKS[labels]
    if task == "regression" and target.kind == TEXT:
        raise AmbleError(f'target {target.name!r} is text, and regression needs numbers; give task = "classification".')
    return task


def labels_of(target: Summary) -> tuple[Level, ...]:
    """All labels, sorted: text, whole numbers or, where one is not whole, numbers."""
    labels = [tally.level for tally in target.levels or ()]
    if len(labels) < 2:
        raise AmbleError(f"all labels are {labels[0]!r} at all sites; classification needs at least two classes.")
    return tuple(labels if target.kind == TEXT or target.whole else map(float, labels))


def encode(sites: Mapping[str, Document], settings: Wanted, baseline: bool) -> Encoding:
    """Numbers as they are; text as one column per level, without the reference where there is a baseline."""
    encoding, total = Encoding([], [], [], []), math.fsum(document.total for document in sites.values())
    described = {site: {each.name: each for each in document.columns} for site, document in sites.items()}
    names = settings.columns or next(iter(described.values()))
    for name in names:
        theirs = {site: described[site][name] for site in sites}
        check_kinds(theirs)
        summary = pool(list(theirs.values()))
        if summary.kind == EMPTY:
            raise AmbleError(f"no site has a value in {name!r}; leave it out of the columns.")
        if summary.kind == NUMBER:
            if baseline and summary.min == summary.max and not (settings.ridge or settings.l1):
                raise AmbleError(
                    f"{name!r} is {summary.min:g} in all rows of all sites, so they do not determine its coefficient; "
                    "leave it out of the columns."
                )
            encoding.features.append(Feature(name, None, summary.mean if settings.missing == MEAN else None))
            encoding.columns.append(name)
            encoding.means.append(summary.mean)
            encoding.stds.append(deviation(summary, total))
            continue
        check_levels(theirs, "a column of categories")
        weights = {str(tally.level): tally.weight for tally in summary.levels or ()}
        if len(weights) > CATEGORIES_MAX:
            raise AmbleError(f"{name!r} has {len(weights)} levels in all, more than {CATEGORIES_MAX}; group them.")
        fill = max(weights, key=lambda level: weights[level]) if settings.missing == MEAN else None
        encoding.features.append(Feature(name, tuple(weights), fill))
        if fill is not None:
            weights[fill] += total - summary.weight
        named = {f"{name}={level}": level for level in weights}
        reference = next((column for column in named if column in settings.reference), next(iter(named)))
        for column, level in named.items():
            if baseline and column == reference:
                continue
            mean = min(weights[level] / total, 1.0)
            encoding.columns.append(column)
            encoding.means.append(mean)
            encoding.stds.append(spread(math.sqrt(mean * (1 - mean)), 1.0))
    check_reference(settings.reference, encoding.features, baseline)
    if not encoding.columns:
        raise AmbleError("every column has one level only at all sites; a model needs a column that varies.")
    twice = [name for name, times in Counter(encoding.columns).items() if times > 1]
    if twice:
        raise AmbleError(f"two columns are named {twice[0]!r} when encoded; rename one of them at all sites.")
    return encoding


def check_reference(reference: tuple[str, ...], features: Sequence[Feature], baseline: bool) -> None:
    levels = {column: feature.name for feature in features if feature.levels for column in feature.columns}
    for column in reference:
        if column not in levels:
            raise unknown("level in reference", column, levels)
    if reference and not baseline:
        raise AmbleError("reference was given, and a model without an intercept has a column for every level.")
    twice = [name for name, times in Counter(levels[column] for column in set(reference)).items() if times > 1]
    if twice:
        raise AmbleError(f"reference names two levels of {twice[0]!r}; name one.")


def deviation(summary: Summary, total: float) -> float:
    """The standard deviation; missing cells, filled with the mean, add to the weight and nothing to M2."""
    return spread(math.sqrt(summary.M2 / total), max(abs(summary.min), abs(summary.max)))


def spread(std: float, largest: float) -> float:
    """As in `fit_scaling`, a constant column is only shifted."""
    return std if std > 1e-12 * (1 + largest) else 1.0


def target_scaling(target: Summary, exposed: float, link: str) -> tuple[float, float]:
    """y_mean and y_std. With a log link the mean is the logarithm of the base rate, at which training begins."""
    if link == IDENTITY:
        return target.mean, deviation(target, target.weight)
    if link != LOG:
        return 0.0, 1.0
    # to so many digits, because the logarithms of two machines may differ in the last one, and all must agree
    return float(f"{math.log(target.weight * target.mean / exposed):.12g}"), 1.0
