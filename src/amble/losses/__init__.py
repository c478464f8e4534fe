"""Objectives: one agent's private loss, and the losses that have a name.

Every objective has

    value(w)                       f(w)
    grad(w)                        the gradient of f at w
    prox(center, weight, start)    argmin_x f(x) + weight/2 |x - center|^2
    hessian(w)                     the Hessian of f at w
    curvature                      the mean curvature: trace of the Hessian (or an upper bound of it) over p
    curvatures                     the same for each unknown: the Hessian's diagonal at zero (optional)
    smoothness                     L: the gradient is L-Lipschitz
    local_smoothness               in place of it where no L holds everywhere: that around the targets. Methods whose
                                   step rests on L refuse such a loss, and its curvature is that at zero
    reach(step)                    how far a step moves the linear predictor of any row (optional: of a loss whose
                                   curvature follows from that predictor); Relay's full form limits it
    stride(step)                   the same in the root mean square over rows, over 2 (optional: of a loss that hardly
                                   bends where rows are sure)
    excess(w)                      what makes of the Hessian a quadratic that is nowhere below the loss (optional: of a
                                   loss with straight parts); Relay's full form adds it while the token moves
    share                          the agent's part in the sum: 1, or N d_i / D where rows are weighed
    quadratic                      whether the Hessian is the same everywhere
    drawn(hop), again(step)        of a loss with mini-batches: itself with the rows of a hop, or of another local step
                                   of the same visit (optional; losses/objective.py calls them)
    flops(kind)                    operations of one "value", "grad", "prox" or "hessian", for the fixed cost model

and is a NamedTuple of arrays, so that agents are stacked by stacking arrays and the same code runs on NumPy and JAX.
An objective of your own needs `grad` or `prox`, whichever the method calls, and `value` for the curves.

A loss with a name (registry.py) also has

    fits(classes)                  whether it is for so many classes; 0 is a regression
    unknowns(columns, classes)     how many numbers its model has
    link()                         identity, logit, log (which takes an offset) or hazard (which has no intercept)
    flaw(y)                        of a regression: what it needs of targets that these are not; None: nothing
    build(X, y, rows, ridge, classes)   the objective of some rows, or of several agents' stacked; with a log link also
                                   offset, a number per row that is added to x.w
    keeps_rows()                   whether its arrays hold one entry per row, padded where agents have fewer rows
    pooled()                       of stacked objectives: their sum as one objective
    predict(W, X)                  what models, one per row of W, say of rows: targets, or the numbers of labels; with a
                                   log link also offset; with the hazard link the logarithm of the relative hazard
    hessian_times(w)               v -> Hessian v, for many unknowns (not where the prox has a closed form)
"""

from amble.errors import AmbleError, unknown
from amble.losses import registry
from amble.losses.jax_loss import JaxLoss
from amble.losses.objective import Loss, NamedLoss, Objective
from amble.losses.registry import LeastSquares, Logistic, Softmax
from amble.losses.torch_loss import TorchLoss

__all__ = [
    "ALIASES", "LOSSES", "JaxLoss", "LeastSquares", "Logistic", "Loss", "NamedLoss", "Objective", "Softmax",
    "TorchLoss", "choose", "for_model", "named",
]  # fmt: skip

ALIASES = {"squared": "least-squares"}

LOSSES: dict[str, type[NamedLoss]] = {
    kind.__module__.rpartition(".")[2].replace("_", "-"): kind
    for kind in vars(registry).values()
    if isinstance(kind, type)
}


def named(loss: str) -> str:
    """The name of a loss in the registry."""
    name = ALIASES.get(loss, loss) if isinstance(loss, str) else loss
    if name not in LOSSES:
        raise unknown("loss", loss, [*LOSSES, *ALIASES])
    return name


def choose(loss: str | None, classes: int) -> str:
    """The loss that was asked for, if it fits so many classes (0: a regression); else the first that does."""
    loss = None if loss is None else named(loss)
    fits = [name for name, kind in LOSSES.items() if kind.fits(classes)]
    if loss is not None and loss not in fits:
        task = f"classification with {classes} classes" if classes else "regression"
        raise AmbleError(f"loss={loss!r} was given for {task}; it takes {' or '.join(map(repr, fits))}.")
    return loss or fits[0]


def for_model(numbers: int, columns: int, classes: int, loss: str | None = None) -> type[NamedLoss] | None:
    """The loss that a model of so many numbers was trained with: this one or, as far as its size says, the first; None:
    no such model."""
    named_ones = LOSSES.values() if loss is None else [LOSSES[named(loss)]]
    kinds = (kind for kind in named_ones if kind.fits(classes) and kind.unknowns(columns, classes) == numbers)
    return next(kinds, None)
