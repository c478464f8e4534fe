"""The centralised optimum: looked for, and verified before it is called one.

A built-in loss is convex, so a point without slope is a minimiser. Losses of a user's own may be anything. Their point
counts only if no gradient shows that they are not convex, no slope is left, the curvature is nowhere negative, and the
point stays where it is when the pull towards it is made ever weaker: a loss that falls for ever has no such point.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import norm
from amble.errors import AmbleError
from amble.objectives import LeastSquares
from amble.objectives.newton import TOLERANCE, minimise

UNASKED_UP_TO = 10_000  # unknowns of built-in losses: beyond it, finding the optimum may take longer than the run
UNASKED_UP_TO_OWN = 1_000  # the same for losses of a user's own, which may be expensive
STILL = 1e-6  # of the model: what moves less between the last two proximal steps has arrived
SLOPE = 1e-7  # of the slope at zero: less counts as none
UNEVEN = 1e4  # the largest curvature of an unknown over the smallest, from which on their units differ
NEWTON_STEPS_OWN = 100  # within each proximal step
GRADIENTS_MAX = 10_000  # of sum_i f_i, after which the search is given up
PROBES = (0.01, 0.1, 1.0, 10.0)  # lengths at which convexity is looked at, each in several places
PROBES_EACH = 4
BENT_BACK = 1e-6  # of the slopes' length: a change of slope against the way that is more than rounding
LANCZOS_STEPS = 40
DIFFERENCE = 1e-4  # of the model's length: the step of a difference of gradients
ROUNDING = 1e-12  # of a loss: smaller differences say nothing
NEGATIVE = 1e-4  # of the largest curvature: a negative one beyond it is more than the difference's error


class Optimum(NamedTuple):
    w: Any
    value: float  # sum_i f_i(w)


class NoOptimum(NamedTuple):
    """There is none, or none that could be verified."""

    why: str


def find(problem: Any) -> Optimum | NoOptimum:
    """The minimiser of sum_i f_i (the shortest, if there are several), or why it is not known."""
    try:
        if isinstance(problem.total, LeastSquares):
            w = of_least_squares(problem.total)
        elif problem.total is not None:
            w = of_classes(problem.total)
        else:
            w = of_own(problem)
    except AmbleError as error:
        return NoOptimum(str(error))
    return Optimum(w, float(problem.value(w)))


def of_least_squares(f: LeastSquares) -> Any:
    """In the scaling of the diagonal, so that units do not matter; where that leaves several, the shortest as it is."""
    diagonal = np.diagonal(f.A)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(scale[:, None] * f.A * scale)
    if values[0] > 1e-13 * values[-1]:
        return scale * (vectors @ ((vectors.T @ (scale * f.b)) / values))
    solid = f.values > 1e-13 * f.values[-1]
    return f.vectors[:, solid] @ ((f.vectors[:, solid].T @ f.b) / f.values[solid])


def of_classes(f: Any) -> Any:
    """Logistic and softmax: Newton's method within each proximal step."""
    own, each = f, np.asarray(f.curvatures)
    scale = np.ones(len(each))
    if each.max() > UNEVEN * min(each[each > 0], default=1.0):  # columns of unlike units: make them even
        scale = 1 / np.sqrt(np.where(each > 0, each, 1.0))
        f = rescaled(f, scale)
    w, moved = loosen(lambda w, weight: minimise(f, w, weight, w, TOLERANCE), np.zeros(len(f.ridge)),
                      [1e-8 * 10.0**-k * f.curvature for k in range(6)])  # fmt: skip
    f, w = own, scale * w
    # a row's loss below log 2 is a row on its right side: if all are, w can grow for ever, as where it still moves
    apart = not f.ridge.any() and f.value(w) < np.log(2) * f.rows.min()
    if apart or moved > STILL:
        raise AmbleError(
            "there is no centralised optimum, or one too far out: the classes are separable, in part at least; "
            "give ridge= a value above zero, such as 1e-4."
        )
    return w


def rescaled(f: Any, scale: Any) -> Any:
    """The same loss of u, for w = scale u."""
    columns = scale[: f.X.shape[-1]]
    f = f._replace(X=f.X * columns, ridge=f.ridge * scale**2)
    if hasattr(f, "pin"):
        f = f._replace(pin=f.pin * columns**2)
    return f._replace(L=f.curvatures.sum())


def of_own(problem: Any) -> Any:
    """Losses of which only value and gradient are known: Newton's method with differences of gradients."""
    if not all(hasattr(f, "value") and hasattr(f, "grad") for f in problem.own):
        raise AmbleError("the optimum of your own objectives is found with their value and grad; give them both.")
    rng, zero = np.random.default_rng(0), np.zeros(problem.dimension)
    with np.errstate(all="ignore"):
        slope = sum(float(norm(np.asarray(f.grad(zero), np.float64))) for f in problem.own)
    if not np.isfinite(slope):
        raise AmbleError("the optimum of your losses is not known: their gradients at zero are not finite.")
    check_convex(problem.grad, problem.dimension, rng)
    _, curvature = curvatures(hessian_times(problem.grad, zero), len(zero), rng)
    f = Differences(problem, curvature if 0 < curvature < np.inf else 1.0)
    with np.errstate(all="ignore"):  # a loss that falls for ever is followed until its numbers end
        w, moved = loosen(
            lambda w, weight: minimise(f, w, weight, w, TOLERANCE, NEWTON_STEPS_OWN),
            zero,
            [10.0**power * f.smoothness for power in (-4, -6, -8, -10, -12)],
        )
        left = float(norm(problem.grad(w)))
        lower = falls_on(f.value, w, left, rng)
    if not moved <= STILL:
        raise AmbleError(
            "your losses have no minimiser, or none that could be located: the point of least loss still moved by "
            f"{moved:.0e} of its length when it was held ever more loosely; a small ridge in each loss gives them one."
        )
    smallest, largest = curvatures(hessian_times(problem.grad, w), len(w), rng)
    if not smallest >= -NEGATIVE * largest:
        raise AmbleError(
            f"the optimum of your losses is not known: where their slope is zero they curve down ({smallest:.1e}), "
            "so that point is a saddle or a top; losses that are not convex have no verified optimum here."
        )
    if lower or not left <= SLOPE * (slope + f.smoothness * float(norm(w))):
        raise AmbleError(
            f"the optimum of your losses was not found: where the search ended grad is {left:.1e} long (at zero "
            f"{slope:.1e}){', and value falls on' if lower else ''}; is grad the gradient of value?"
        )
    return w


def loosen(step: Callable[[Any, float], Any], w: Any, weights: list[float]) -> tuple[Any, float]:
    """Proximal steps of ever smaller weight, each of which holds still what the losses leave free; and how far the last
    one moved, relative to the length."""
    for weight in weights:
        before, w = w, step(w, weight)
        if not np.isfinite(w).all():
            return before, np.inf
    return w, float(norm(w - before) / (norm(w) or 1.0))


def falls_on(value: Callable[[Any], float], w: Any, slope: float, rng: np.random.Generator) -> bool:
    """Whether the loss is lower beside w than the slope left there can explain."""
    here, h = value(w), 10 * DIFFERENCE * (float(norm(w)) or 1.0)
    ways = [h * unit(rng.normal(size=len(w))) for _ in range(PROBES_EACH)]
    beside = min(value(w + way) for way in (*ways, *(-way for way in ways)))
    return bool(beside < here - 2 * h * slope - ROUNDING * max(abs(here), abs(value(0 * w))))


class Differences:
    """The sum of all losses with its Hessian by differences of gradients, for Newton's method."""

    def __init__(self, problem: Any, smoothness: float) -> None:
        self.problem, self.smoothness, self.gradients = problem, smoothness, 0

    def value(self, w: Any) -> float:
        return float(self.problem.value(w))

    def grad(self, w: Any) -> Any:
        self.gradients += 1
        if self.gradients > GRADIENTS_MAX:
            raise AmbleError(f"the optimum of your losses was not found with {GRADIENTS_MAX:,} of their gradients.")
        return np.asarray(self.problem.grad(w), np.float64)

    def hessian(self, w: Any) -> Any:
        H = np.stack([hessian_times(self.grad, w)(v) for v in np.eye(len(w))])
        return (H + H.T) / 2

    def hessian_times(self, w: Any) -> Callable[[Any], Any]:
        times = hessian_times(self.grad, w)
        return lambda v: norm(v) * times(unit(v))


def check_convex(grad: Callable[[Any], Any], dimension: int, rng: np.random.Generator) -> None:
    """A convex loss has (grad a - grad b).(a - b) >= 0 for any two points; pairs at several lengths are tried."""
    for length in PROBES:
        for _ in range(PROBES_EACH):
            a, b = length * rng.normal(size=(2, dimension)) / np.sqrt(dimension)
            with np.errstate(all="ignore"):
                slopes = np.asarray(grad(a), np.float64), np.asarray(grad(b), np.float64)
                change = float((slopes[0] - slopes[1]) @ (a - b))
                noise = BENT_BACK * float((norm(slopes[0]) + norm(slopes[1])) * norm(a - b))
            if change < -noise:
                raise AmbleError(
                    "the optimum of your losses is not known: they are not convex (between two points their slope "
                    "falls), so no point can be verified to be the lowest."
                )


def hessian_times(grad: Callable[[Any], Any], w: Any) -> Callable[[Any], Any]:
    """The product of the Hessian at w with a vector of length 1, by a central difference of gradients."""
    h = DIFFERENCE * (float(norm(w)) or 1.0)
    return lambda v: (np.asarray(grad(w + h * v), np.float64) - np.asarray(grad(w - h * v), np.float64)) / (2 * h)


def curvatures(times: Callable[[Any], Any], dimension: int, rng: np.random.Generator) -> tuple[float, float]:
    """The smallest and the largest curvature that Lanczos' method sees: of few unknowns, those of all directions."""
    basis, product = [unit(rng.normal(size=dimension))], []
    for _ in range(min(dimension, LANCZOS_STEPS)):
        product.append(times(basis[-1]))
        rest = product[-1]
        for _ in range(2):  # once more, for what rounding left
            rest = rest - sum((v @ rest) * v for v in basis)
        if not norm(rest) > 1e-8 * norm(product[-1]):
            break
        basis.append(unit(rest))
    V, HV = np.array(basis[: len(product)]), np.array(product)
    if not np.isfinite(HV).all():
        return -np.inf, np.inf
    seen = np.linalg.eigvalsh((V @ HV.T + HV @ V.T) / 2)
    return float(seen[0]), float(seen[-1])


def unit(v: Any) -> Any:
    return v / norm(v)
