"""The sums of a problem's agents at a model, as live agents would send them, added up."""

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError
from amble.losses import choose
from amble.problem.assemble import prepare
from amble.problem.problem import Problem
from amble.results.sums import KNOWN, Sums, sums_of


def sums_at(problem: Problem, w: Array) -> Sums:
    """Over the rows of all agents. The problem's held-out rows, which no agent has, are judged as one agent's."""
    if problem.rows is None or problem.scaling is None:
        raise AmbleError("this problem was made from objectives, not from rows; it has no statistics.")
    X, wanted, parts, extra = problem.rows
    scaling, intercept = problem.scaling, bool(problem.settings.get("intercept", True))
    classes = 0 if problem.labels is None else len(problem.labels)
    loss = choose(problem.loss, classes)
    if loss not in KNOWN:
        raise AmbleError(f"{loss} has no likelihood here, so no statistics; use run.trained() without the problem.")
    test = None
    if problem.heldout is not None:
        held = problem.heldout
        test = held.X, held.y, held.weight, held.offset

    def of_agent(i: int) -> Sums:
        rows, (weight, offset) = prepare(X[parts[i]], scaling, intercept), extra.of(parts[i])
        y = np.asarray(wanted[parts[i]], np.float64)
        return sums_of(loss, w, rows, y, weight, offset, classes=classes, test=None if i else test)

    total = of_agent(0).vector()
    for i in range(1, len(parts)):
        total += of_agent(i).vector()
    return Sums.of_vector(total, loss, X.shape[1] + intercept, classes)
