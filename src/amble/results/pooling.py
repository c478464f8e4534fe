"""The sums of a problem's agents at a model, as live agents would send them, added up."""

from functools import reduce

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError
from amble.losses import choose
from amble.problem.assemble import prepare, targets_in_units
from amble.problem.problem import Problem
from amble.results.sums import Sums, sums_of


def sums_at(problem: Problem, w: Array) -> Sums:
    """Over the rows of all agents. The problem's held-out rows, which no agent has, are judged as one agent's."""
    if problem.rows is None or problem.scaling is None:
        raise AmbleError("this problem was made from objectives, not from rows; it has no statistics.")
    X, y, parts = problem.rows
    classes = 0 if problem.labels is None else len(problem.labels)
    loss = choose(problem.settings.get("loss"), classes)
    wanted = np.asarray(targets_in_units(y, problem.scaling, problem.labels), np.float64)
    intercept = bool(problem.settings.get("intercept", True))

    def of_agent(i: int) -> Sums:
        rows = prepare(X[parts[i]], problem.scaling, intercept)
        test = None if i or problem.heldout is None else problem.heldout[:2]
        return sums_of(loss, w, rows, wanted[parts[i]], classes=classes, test=test)

    return reduce(Sums.plus, map(of_agent, range(len(parts))))
