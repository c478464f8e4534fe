"""Objectives: one agent's private loss, and the losses that have a name.

Every objective has

    value(w)                       f(w)
    grad(w)                        the gradient of f at w
    prox(center, weight, start)    argmin_x f(x) + weight/2 |x - center|^2
    hessian(w)                     the Hessian of f at w
    curvature                      the mean curvature: trace of the Hessian (or an upper bound of it) over p
    curvatures                     the same for each unknown: the Hessian's diagonal at zero (optional)
    smoothness                     L: the gradient is L-Lipschitz
    share                          the agent's part in the sum: 1, or N d_i / D where rows are weighed
    quadratic                      whether the Hessian is the same everywhere
    flops(kind)                    operations of one "grad", "prox" or "hessian", for the fixed cost model

and is a NamedTuple of arrays, so that agents are stacked by stacking arrays and the same code runs on NumPy and JAX.
An objective of your own needs `grad` or `prox`, whichever the method calls, and `value` for the curves.

A loss with a name (registry.py) also has

    fits(classes)                  whether it is for so many classes; 0 is a regression
    unknowns(columns, classes)     how many numbers its model has
    build(X, y, rows, ridge, classes)   the objective of some rows, or of several agents' stacked
    keeps_rows()                   whether its arrays hold one entry per row, padded where agents have fewer rows
    pooled()                       of stacked objectives: their sum as one objective
    predict(W, X)                  what models, one per row of W, say of rows: targets, or the numbers of labels
    hessian_times(w)               v -> Hessian v, for many unknowns (not where the prox has a closed form)
"""

from typing import Any

from amble.errors import AmbleError, unknown
from amble.losses import registry
from amble.losses.objective import Loss, Objective
from amble.losses.registry import LeastSquares, Logistic, Softmax

__all__ = ["LOSSES", "LeastSquares", "Logistic", "Loss", "Objective", "Softmax", "choose", "for_model"]

LOSSES: dict[str, type[Any]] = {
    kind.__module__.rpartition(".")[2].replace("_", "-"): kind
    for kind in vars(registry).values()
    if isinstance(kind, type)
}


def choose(loss: str | None, classes: int) -> str:
    """The named loss, if it fits so many classes (0: a regression); without a name, the first that fits."""
    if loss is not None and loss not in LOSSES:
        raise unknown("loss", loss, LOSSES)
    fits = [name for name, kind in LOSSES.items() if kind.fits(classes)]
    if loss is not None and loss not in fits:
        task = f"classification with {classes} classes" if classes else "regression"
        raise AmbleError(f"loss={loss!r} was given for {task}; it takes {' or '.join(map(repr, fits))}.")
    return loss or fits[0]


def for_model(numbers: int, columns: int, classes: int) -> type[Any] | None:
    """The loss that a model of so many numbers was trained with, as far as its size says; None: no such model."""
    kinds = (kind for kind in LOSSES.values() if kind.fits(classes) and kind.unknowns(columns, classes) == numbers)
    return next(kinds, None)
