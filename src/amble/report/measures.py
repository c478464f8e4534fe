"""The numbers behind curves and tables. Pure: lines in, numbers out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from amble.report.sections import TIME, Line
from amble.results.reaching import column_of, reach, records_within
from amble.results.run import Run

POINTS = 160  # of a band's grid of costs


def first_message(runs: Sequence[Run], cost: str) -> float | None:
    """The cost at which the first message of any run has crossed a link; None if none ever has.

    Before it there are only the first visits of the tokens, each where the token starts.
    """
    sent = [run.history[cost][run.history["comm_units"] > 0] for run in runs]
    return min((float(each[0]) for each in sent if len(each)), default=None)


def band(line: Line, cost: str, column: str) -> tuple[Any, Any, Any, Any]:
    """Costs, and at each of them the lowest, the median and the highest value over the seeds.

    The grid is logarithmic, from the first cost above zero to the budget, or to where the first of the runs ends, so
    that every point is over the same seeds. A run's value at a cost is that of its last record at or before it.
    """
    paid = [run.history[cost] for run in line.runs]
    last = min(line.budgets.get(cost, np.inf), *(float(each[-1]) for each in paid))
    first = min((float(each[each > 0][0]) for each in paid if (each > 0).any()), default=0.0)
    if not 0 < first <= last:
        return (np.zeros(0),) * 4
    x = np.geomspace(first, last, POINTS if last > first else 1)
    name = column + line.column_suffix
    values = np.array(
        [
            column_of(run, name)[np.searchsorted(each, x, side="right") - 1]
            for run, each in zip(line.runs, paid, strict=True)
        ]
    )
    with np.errstate(all="ignore"):  # a diverged run is infinite or nan, and so is its band
        return x, values.min(axis=0), np.median(values, axis=0), values.max(axis=0)


def costs_to_reach(line: Line, cost: str, within: float) -> list[float]:
    """Of each seed the cost from which on it stays this near to the optimum, up to the budget; nan if it does not."""
    column, budget = f"metric{line.column_suffix}", line.budgets.get(cost, np.inf)
    return [reach(run, column, cost, within, run.problem["optimum_metric"], budget) for run in line.runs]


def median_cost(costs: Sequence[float]) -> float:
    """Over the seeds, where one that never got there counts as infinite."""
    return float(np.median(np.where(np.isnan(costs), np.inf, costs)))


def ended(line: Line, column: str) -> float:
    """The median of where the runs were at the end of the time budget; one that diverged, or has nothing to compare
    with, counts as the worst."""
    name = column if column == "objective" else column + line.column_suffix
    records = [records_within(run, TIME, line.budgets.get(TIME, np.inf)) for run in line.runs]
    last = [float(column_of(run, name)[k - 1]) for run, k in zip(line.runs, records, strict=True)]
    upward = column == "metric" and line.runs[0].problem["task"] == "classification"
    return float(np.median(np.where(np.isnan(last), -np.inf if upward else np.inf, last)))
