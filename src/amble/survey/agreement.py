"""From all sites' documents to one agreement: columns, levels, labels, scaling and shares.

The scaling is that of the rows of all sites in one table, treated as the policy about missing cells says:

    mean    a missing number becomes the mean of the column, a missing text its most frequent level (of several, the
            first in the alphabet)
    drop    a row with a missing cell is left out

Under both, a row without its target, event, offset, exposure or weight is left out.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from amble.data.encoding import CATEGORIES_MAX
from amble.data.targets import CLASSES_MAX, TASKS
from amble.errors import AmbleError, unknown
from amble.survey.agreed import COX, Agreement, Feature, Rows, Site, from_json
from amble.survey.cells import EMPTY, MEAN, NUMBER, POLICIES, REFUSE, ROLES, TEXT
from amble.survey.disagreements import (
    check_columns,
    check_gaps,
    check_kinds,
    check_levels,
    check_range,
    check_roles,
    check_weights,
)
from amble.survey.document import Document, Level, Summary
from amble.survey.pooling import pool

__all__ = ["Agreement", "Feature", "Rows", "Site", "Wanted", "agree", "from_json"]

CLASSIFIERS = ("logistic", "softmax")
LOG_LINK = ("poisson", "gamma")


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


class Encoding(NamedTuple):
    """The columns of the model, and how they are made."""

    features: list[Feature]
    columns: list[str]
    means: list[float]
    stds: list[float]


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
    check_weights(sites)
    targets = {site: document.target for site, document in sites.items()}
    check_kinds(targets)
    target, first = pool(list(targets.values())), next(iter(sites.values()))
    task = task_of(target, settings)
    if task == "regression":
        for site, summary in targets.items():
            check_range(settings.loss, summary.min, site, target.name)
    else:
        check_levels(targets, "a target of labels")
    if (settings.loss == COX) != (first.event is not None):
        raise AmbleError('loss = "cox" and an event column need each other; give both, or neither.')
    encoding = encode(sites, settings)
    shift = settings.scale and has_baseline(settings)
    y_mean, y_std = target_scaling(target, sites, settings) if task == "regression" and settings.scale else (0.0, 1.0)
    roles = {role: getattr(first, role) for role in ROLES}
    return Agreement(
        task=task,
        loss=settings.loss,
        labels=labels_of(target) if task == "classification" else (),
        features=tuple(encoding.features),
        columns=tuple(encoding.columns),
        X_mean=tuple(encoding.means) if shift else (0.0,) * len(encoding.columns),
        X_std=tuple(encoding.stds) if settings.scale else (1.0,) * len(encoding.columns),
        y_mean=y_mean if shift else 0.0,
        y_std=y_std,
        target=target.name,
        **{role: None if summary is None else summary.name for role, summary in roles.items()},
        missing=settings.missing,
        intercept=settings.intercept and settings.loss != COX,
        ridge=settings.ridge,
        sites=tuple(
            Site(site, document.used, float(document.used) if document.weight is None else document.weight.total)
            for site, document in sites.items()
        ),
    )


def has_baseline(settings: Wanted) -> bool:
    """Whether a constant can be taken from every column: the intercept takes it up, or Cox's baseline hazard."""
    return settings.intercept or settings.loss == COX


def task_of(target: Summary, settings: Wanted) -> str:
    """The task that is said, or that the loss has, or that the target looks like (see data.targets)."""
    if settings.task not in (None, *TASKS):
        raise unknown("task", settings.task, TASKS)
    meant = None if settings.loss is None else TASKS[settings.loss in CLASSIFIERS]
    if settings.task and meant and settings.task != meant:
        raise AmbleError(f'task = "{settings.task}" and loss = "{settings.loss}" do not go together; leave one out.')
    labels = target.kind == TEXT or (target.whole and 0 < target.distinct <= CLASSES_MAX and target.levels is not None)
    task = settings.task or meant or TASKS[labels]
    if task == "regression" and target.kind == TEXT:
        raise AmbleError(
            f'the target {target.name!r} is text, and regression needs numbers; give task = "classification".'
        )
    return task


def labels_of(target: Summary) -> tuple[Level, ...]:
    """All labels, sorted: text, whole numbers or, where one is not whole, numbers."""
    labels = [level for level, _ in target.levels or ()]
    if len(labels) < 2:
        raise AmbleError(f"all labels are {labels[0]!r} at all sites; classification needs at least two classes.")
    return tuple(labels if target.kind == TEXT or target.whole else map(float, labels))


def encode(sites: Mapping[str, Document], settings: Wanted) -> Encoding:
    """Numbers as they are; text as one column per level, without the first where there is an intercept."""
    encoding, rows = Encoding([], [], [], []), sum(document.used for document in sites.values())
    described = {site: {each.name: each for each in document.columns} for site, document in sites.items()}
    names = settings.columns or next(iter(described.values()))
    for name in names:
        theirs = {site: described[site][name] for site in sites}
        check_kinds(theirs)
        summary = pool(list(theirs.values()))
        if summary.kind == EMPTY:
            raise AmbleError(f"no site has a value in {name!r}; leave it out of the columns.")
        if summary.kind == NUMBER:
            encoding.features.append(Feature(name, None, summary.mean if settings.missing == MEAN else None))
            encoding.columns.append(name)
            encoding.means.append(summary.mean)
            encoding.stds.append(deviation(summary, rows))
            continue
        check_levels(theirs, "a column of categories")
        counts = {str(level): count for level, count in summary.levels or ()}
        if len(counts) > CATEGORIES_MAX:
            raise AmbleError(
                f"{name!r} has {len(counts)} levels over all sites, more than {CATEGORIES_MAX}; group them."
            )
        fill = max(counts, key=lambda level: counts[level]) if settings.missing == MEAN else None
        encoding.features.append(Feature(name, tuple(counts), fill))
        if fill is not None:
            counts[fill] += rows - summary.count
        for level in list(counts)[has_baseline(settings) :]:
            count = counts[level]
            encoding.columns.append(f"{name}={level}")
            encoding.means.append(count / rows)
            encoding.stds.append(math.sqrt(count * (rows - count)) / rows or 1.0)
    if not encoding.columns:
        raise AmbleError("every column has one level only at all sites; a model needs a column that varies.")
    twice = [name for name, times in Counter(encoding.columns).items() if times > 1]
    if twice:
        raise AmbleError(f"two columns are named {twice[0]!r} when encoded; rename one of them at all sites.")
    return encoding


def deviation(summary: Summary, rows: int) -> float:
    """The standard deviation where missing cells are filled with the mean, which adds nothing to M2. As `fit_scaling`
    does, a constant column is only shifted."""
    std = math.sqrt(summary.M2 / rows)
    return std if std > 1e-12 * (1 + max(abs(summary.min), abs(summary.max))) else 1.0


def target_scaling(target: Summary, sites: Mapping[str, Document], settings: Wanted) -> tuple[float, float]:
    """y_mean and y_std. With a log link the mean is the logarithm of the base rate, at which training begins."""
    if settings.loss == COX:
        return 0.0, 1.0
    if settings.loss not in LOG_LINK:
        return target.mean, deviation(target, target.count)
    exposures = [document.exposure for document in sites.values() if document.exposure is not None]
    if not target.mean > 0:
        raise AmbleError(f"the target {target.name!r} is zero in all rows; there is nothing to learn from it.")
    return math.log(target.mean / (pool(exposures).mean if exposures else 1.0)), 1.0
