"""The cost at which a run came as close to the optimum as asked, and stayed there."""

from typing import Any

import numpy as np

from amble.errors import AmbleError, is_number, unknown
from amble.results.reading import Readable

LOCAL = "_local"  # of a column: read at the mean of the agents' x, not at the tokens' mean

COSTS = ("time_s", "comm_units", "bytes", "hop")


def column_of(run: Readable, name: str) -> Any:
    """A column of the history; nan throughout where the run has none, because the optimum is not known."""
    history = run.history
    return history[name] if name in history else np.full(len(history["hop"]), np.nan)


def reach(run: Readable, column: str, cost: str, within: float, best: float | None, budget: float = np.inf) -> float:
    """The cost from which on the run stays `within` of the optimum's metric to its end, or up to this budget of the
    cost; nan if it does not.

    Better than the optimum counts as within. Without a metric (best is None) the distance has to be at most `within`.
    """
    if best is None or np.isnan(best):
        return stays(run, column.replace("metric", "distance"), cost, within, budget)
    accuracy = run.problem["task"] == "classification"
    return stays(run, column, cost, best * (1 - within) if accuracy else best * (1 + within), budget)


def stays(run: Readable, column: str, cost: str, bound: float, budget: float = np.inf) -> float:
    """The cost from which on the column is at `bound` or better, to the run's end or the budget; nan if it is not."""
    values = column_of(run, column)[: records_within(run, cost, budget)]
    accuracy = column.startswith("metric") and run.problem["task"] == "classification"
    missed = np.flatnonzero(~(values >= bound if accuracy else values <= bound))
    first = int(missed[-1]) + 1 if len(missed) else 0
    return float("nan") if first == len(values) else float(run.history[cost][first])


def records_within(run: Readable, cost: str, budget: float) -> int:
    """How many records lie within a budget of this cost."""
    return int(np.searchsorted(run.history[cost], budget, side="right"))


def time_to(run: Readable, metric: float | None, within: float | None, cost: str, local: bool) -> float:
    """The work of `Run.time_to`, which documents the arguments; checked."""
    if cost not in COSTS:
        raise unknown("cost", cost, COSTS)
    options = {"metric": metric, "within": within}
    bounds = {name: value for name, value in options.items() if value is not None}
    if len(bounds) != 1:
        raise AmbleError(f"{' and '.join(bounds) or 'nothing'} was given to reach; give metric=0.5 or within=0.01.")
    [(name, bound)] = bounds.items()
    if not is_number(bound) or (name == "within" and not bound >= 0):
        raise AmbleError(f"{name}={bound!r} was given; it must be a number{', zero or more' * (name == 'within')}.")
    column = "metric_local" if local else "metric"
    best = run.problem.get("optimum_metric")
    for needed in [column] if metric is not None or best is not None else [column.replace("metric", "distance")]:
        if needed not in run.history or not np.isfinite(run.history[needed]).any():
            raise AmbleError(unreachable(run, name, bound, column))
    return stays(run, column, cost, bound) if metric is not None else reach(run, column, cost, bound, best)


def unreachable(run: Readable, name: str, bound: float, column: str) -> str:
    """Why nothing says when the run came to a bound."""
    tested = column in run.history and np.isfinite(run.history[column]).any()
    if name == "metric":
        return f"this run has no test rows, so it is not known when it reached metric={bound:g}."
    optimum = run.problem.get("optimum", {})
    kind = "the optimum was not computed (optimum=False)" if not optimum.get("asked", True) else "no optimum is known"
    advice = "give metric= to reach instead" if tested else "it has no test rows either"
    return f"it is not known when this run came to within={bound:g} of the optimum: {kind}; {advice}."
