"""Rows that choose among models: every agent holds some of its own out, once, or in k parts that take turns.

Models of the other rows are in the units of all rows: columns and targets are scaled as for the whole problem. So a
penalty means the same in every fold, and so does a loss.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from amble.arrays import Array, Indices, tree_map
from amble.data.partition import Parts
from amble.errors import AmbleError, is_whole
from amble.problem.assemble import Heldout, prepare, ridges, stack
from amble.problem.extras import Extras
from amble.problem.problem import Problem

BATCHES = 10  # of rows that are held out once, whose losses say how exact the mean is


def losses_of(problem: Problem, models: Array, batches: int) -> tuple[Array, Array]:
    """The mean loss of each model (by rows) on batches of the held-out rows (by columns), and the batches' weights.

    Rows are in batches of all agents, so that each agent need only add up its losses in each batch.
    """
    held = problem.heldout
    assert held is not None
    classes = 0 if problem.labels is None else len(problem.labels)
    parts = np.array_split(np.random.default_rng(0).permutation(len(held.y)), min(batches, len(held.y)))
    each = np.ones(len(held.y)) if held.weight is None else held.weight
    offset = None if np.ndim(held.offset) == 0 and held.offset == 0.0 else held.offset + np.zeros(len(held.y))
    f = stack(held.X, held.y, parts, np.zeros(held.X.shape[1]), classes, "agents", problem.loss, Extras(each, offset))
    ones = [tree_map(lambda a: a[k], f) for k in range(len(parts))]  # noqa: B023 - used within the loop's turn
    losses = np.array([[float(one.value(w)) for one in ones] for w in models])
    return losses, np.array([each[part].sum() for part in parts])


class Scores(NamedTuple):
    """Of each model: the mean loss of the held-out rows, its standard error, and the metric."""

    loss: Array
    error: Array
    metric: Array


def score(judges: Sequence[Problem], trials: Sequence[Array]) -> Scores:
    """Each judge, a problem whose test rows are the held-out ones, scores its own models. The error is that between
    folds; of one judge, between batches of its rows."""
    batches = BATCHES if len(judges) == 1 else 1
    each = [losses_of(judge, models, batches) for judge, models in zip(judges, trials, strict=True)]
    losses, weights = np.hstack([losses for losses, _ in each]), np.concatenate([weight for _, weight in each])
    shares = weights / weights.sum()
    means = losses @ shares
    spread = np.sqrt((losses - means[:, None]) ** 2 @ shares)
    metrics = [judge.metrics(models) for judge, models in zip(judges, trials, strict=True)]
    metric = np.average(metrics, axis=0, weights=[weight.sum() for _, weight in each])
    return Scores(means, spread / np.sqrt(max(len(weights) - 1, 1)), metric)


def shares_out(parts: Parts, share: float, seed: int) -> list[Indices]:
    """A share of every agent's rows; an agent keeps one at least."""
    rng = np.random.default_rng([seed, 3])
    return [np.concatenate([rng.permutation(part)[: min(round(share * len(part)), len(part) - 1)] for part in parts])]


def deal_folds(parts: Parts, folds: int, seed: int) -> list[Indices]:
    """Every agent's rows in as many parts as there are folds, their sizes as even as possible, and beginning with any
    fold; an agent with one row keeps it."""
    rng = np.random.default_rng([seed, 3])
    fold = [(rng.permutation(len(part)) + rng.integers(folds)) % folds for part in parts]
    several = [(part, mine) for part, mine in zip(parts, fold, strict=True) if len(part) > 1]
    return [np.concatenate([part[mine == k] for part, mine in several] or [[]]).astype(int) for k in range(folds)]


def check_folds(folds: object) -> None:
    if not is_whole(folds) or folds < 2:  # type: ignore[operator]
        raise AmbleError(
            f"folds={folds!r} was given; give a whole number, two or more, or None for one held-out share."
        )


def judges_of(problem: Problem, held: Sequence[Indices]) -> list[Problem]:
    """The problem without the rows that are held out, for each set of them."""
    judges = [without(problem, out) for out in held]
    if empty := [k for k, judge in enumerate(judges) if not len(judge.heldout.y)]:  # type: ignore[union-attr]
        which = f"fold {empty[0] + 1} of {len(held)}" if len(held) > 1 else "some"
        raise AmbleError(f"the agents have too few rows to hold {which} out; give fewer folds, or held_out=0.")
    return judges


def without(problem: Problem, out: Indices) -> Problem:
    """The same agents without some rows, which are test rows. Every label keeps some row."""
    assert problem.rows is not None
    assert problem.scaling is not None
    X, y, parts, extra = problem.rows
    settings = problem.settings
    if problem.labels is not None:
        out = out[np.isin(y[out], np.delete(y, out))]
    kept = [part[~np.isin(part, out)] for part in parts]
    intercept = bool(settings.get("intercept", True))
    rows = prepare(X, problem.scaling, intercept)
    ridge = ridges(settings.get("ridge", 0.0), rows.shape[1], intercept, settings.get("unpenalised", ()))
    classes = 0 if problem.labels is None else len(problem.labels)
    stacked = stack(rows, y, kept, ridge, classes, settings.get("weights", "rows"), problem.loss, extra)
    held, mine = extra.of(out), extra.of(np.setdiff1d(np.arange(len(y)), out))
    mean = float(np.average(np.delete(y, out), weights=mine.weight))
    heldout = Heldout(rows[out], y[out], mean, 0.0 if held.offset is None else held.offset, held.weight)
    return replace(problem, stacked=stacked, total=stacked.pooled(), heldout=heldout)
