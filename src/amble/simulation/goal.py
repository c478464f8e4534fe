"""The metric that a run may stop at: of a loss that is not convex there is no optimum to come near to."""

from typing import NamedTuple

import numpy as np

from amble.errors import AmbleError, is_number
from amble.problem.problem import Problem


class Goal(NamedTuple):
    """A metric on the held-out rows that is good enough."""

    metric: float
    higher: bool  # whether a higher one is better

    def reached(self, metric: float) -> bool:
        return metric >= self.metric if self.higher else metric <= self.metric


def goal_of(metric: float | None, problem: Problem) -> Goal | None:
    """The metric to stop at, checked."""
    if metric is None:
        return None
    if not (is_number(metric) and np.isfinite(metric)):
        raise AmbleError(f"metric={metric!r} was given; give the accuracy, or the NMSE, to stop at.")
    if problem.own is None and problem.task == "classification" and not 0 < metric <= 1:
        raise AmbleError(f"metric={metric!r} was given; an accuracy is a share of the test rows: give 0.9 for 90 %.")
    if problem.own is None and problem.task == "regression" and metric <= 0:
        raise AmbleError(f"metric={metric!r} was given; the NMSE is above zero, and lower is better: give such as 0.5.")
    first = np.zeros(problem.dimension) if problem.trains is None else problem.trains.start
    if np.isnan(problem.metric(first)):
        raise AmbleError(f"metric={metric} was given, and {problem!r} has no metric on held-out rows; stop by hops.")
    return Goal(float(metric), problem.task == "classification")
