"""A data set as a problem: some rows held out, the others dealt out to agents."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from amble.data.datasets import Dataset
from amble.data.partition import by_group
from amble.errors import expect
from amble.problem.assemble import check_rows
from amble.problem.extras import refuse_event
from amble.problem.penalising import penalty_settings
from amble.problem.problem import Problem
from amble.problem.rows import hold_out, in_order


def split(
    data: Dataset,
    agents: int | None = None,
    how: str = "even",
    seed: int = 0,
    test: float = 0.2,
    *,
    groups: ArrayLike | None = None,
    ridge: float = 1e-4,
    l1: float = 0.0,
    positive: bool | Sequence[int | str] = False,
    unpenalised: Sequence[int | str] = (),
    intercept: bool = True,
    scale: bool | str = True,
    weights: str = "rows",
    loss: str | None = None,
    alpha: float | None = None,
    sizes: ArrayLike | None = None,
) -> Problem:
    """A data set dealt out to agents.

    Parameters
    ----------
    data : from amble.load or amble.read_file, or an amble.Dataset of your own, with its weights and offsets
    test : the share of rows held out first, where the data set has no published test part; every group keeps a row
    groups : a label per row of the data, as of `from_arrays`; by default those that `read_file(by=...)` has read
    agents, how, seed, ridge, l1, positive, unpenalised, intercept, scale, weights, loss, alpha, sizes : as of
        `Problem.from_arrays`

    Returns
    -------
    Problem

    Example
    -------
    >>> import amble
    >>> amble.split(amble.load("digits"), agents=10, how="dirichlet", alpha=0.1)
    Problem(digits: classification, 10 agents, 650 unknowns)
    """
    advice = "give an amble.Dataset, such as amble.load('diabetes') or amble.read_file('rows.csv')"
    expect(data, Dataset, "the data", advice)
    if "event" in data.table:
        refuse_event(loss, data.table["event"])
    X, y = check_rows(in_order(data.X, data.columns, data.name), data.y, data.task, data.name)
    groups = data.groups if groups is None else groups
    if groups is not None:
        by_group(groups, len(y))  # one label per row, before any is held out
        groups = np.asarray(groups)
    penalties = penalty_settings(l1, positive, unpenalised, X.shape[1], data.columns)  # which has their names
    rows = hold_out(replace(data, X=X, y=y, groups=groups), test, seed)
    problem = Problem.from_arrays(
        rows.X,
        rows.y,
        task=data.task,
        agents=agents,
        X_test=rows.X_test,
        y_test=rows.y_test,
        how=how,
        groups=rows.groups,
        seed=seed,
        ridge=ridge,
        **penalties,
        intercept=intercept,
        scale=scale,
        weights=weights,
        loss=loss,
        name=data.name,
        alpha=alpha,
        sizes=sizes,
        sample_weight=rows.sample_weight,
        offset=rows.offset,
        exposure=rows.exposure,
        sample_weight_test=rows.sample_weight_test,
        offset_test=rows.offset_test,
    )
    settings = {**problem.settings, "test": test}
    return replace(problem, settings=settings, columns=data.columns, target=data.target, table=data.table)
