"""The centralised optimum: a search, and a check that the point it ends at is the optimum.

A built-in loss is convex, so a point without slope is a minimiser. Losses of a user's own may be anything. Their point
counts only if no gradient shows that they are not convex (around zero, around the point and between the two), no slope
is left, the curvature is nowhere negative, and the point stays where it is when the pull towards it is made ever
weaker: a loss that falls for ever has no such point.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from amble.arrays import Array, Number, norm
from amble.errors import AmbleError
from amble.losses.newton import TOLERANCE, minimise
from amble.losses.objective import NamedLoss, Objective, knows, smoothness_of
from amble.losses.penalty import Penalty

UNASKED_UP_TO = 10_000  # unknowns of built-in losses: beyond it, finding the optimum may take longer than the run
UNASKED_UP_TO_PENALISED = 2_000  # the same under a penalty, where each step takes the whole Hessian
UNASKED_UP_TO_OWN = 1_000  # the same for losses of a user's own, which may be expensive
STILL = 1e-6  # of the model: what moves less between the last two proximal steps has arrived
LOWER = 0.99  # of the value at a point: less at twice the point shows that it is no minimiser
SLOPE = 1e-7  # of the slope at zero: less counts as none
UNEVEN = 1e4  # the largest curvature of an unknown over the smallest, beyond which their units differ
NEWTON_STEPS_OWN = 100  # within each proximal step
GRADIENTS_MAX = 10_000  # of sum_i f_i, after which the search is given up
UNASKED_GRADIENTS = 1_000  # the same if the user did not ask for the optimum ...
UNASKED_LAPS = 10  # ... or as many for each lap of the run, if that is more: the search may not dwarf the run
PROBES = (0.01, 0.1, 1.0, 10.0)  # lengths at which convexity is looked at, each in several places
PROBES_EACH = 4
LINES = 4  # through the point that was found, on which the slope may never fall
PLACES = 24  # on each side of it, from NEAREST to 10 of its length
NEAREST = 1e-4
PATH_PARTS = 32  # of the way from zero to twice the point, where the same holds
BENT_BACK = 1e-6  # of the slopes' length: a change of slope against the way that is more than rounding
LANCZOS_STEPS = 40
DIFFERENCE = 1e-4  # of the model's length: the step of a difference of gradients
ROUNDING = 1e-12  # of a loss: smaller differences say nothing
NEWTON_STEPS_PENALISED, STUCK_STEPS = 200, 3  # at most; without progress
SHORTEST = 1e-12  # of a step
ROUNDING_SLOPE, SLOPE_PENALISED = 1e-15, 1e-10  # of the slope at zero: less is rounding; more is no optimum
NEGATIVE = 1e-4  # of the largest curvature: a negative one beyond it is more than the difference's error
Times = Callable[[Array], Array]  # a gradient, or the product of a matrix with a vector


class Optimum(NamedTuple):
    w: Array
    value: float  # sum_i f_i(w)


class NoOptimum(NamedTuple):
    """There is no optimum, or none that could be verified."""

    why: str
    settled: bool = True  # False: the search was given up early, and a longer one may find it


class GivenUp(AmbleError):
    """The search was stopped, or needed more gradients than allowed."""


class Watch:
    """Counts the gradients of a search, shows them, and ends it when it is asked to or when they are too many."""

    def __init__(
        self,
        gradients_max: int = GRADIENTS_MAX,
        show: Callable[[int], None] = lambda _: None,
        asked: Callable[[], bool] = lambda: False,
    ) -> None:
        self.gradients, self.gradients_max, self.show, self.asked = 0, gradients_max, show, asked

    def count(self) -> None:
        self.gradients += 1
        self.show(self.gradients)
        if self.asked():
            raise GivenUp("the optimum is not known: the search for it was stopped.")

    def spend(self) -> None:
        """Count one of those that are limited."""
        self.count()
        if self.gradients > self.gradients_max:
            raise GivenUp(f"the optimum of your losses was not found with {self.gradients_max:,} of their gradients.")


class Losses(Protocol):
    """What a search asks of a problem: sum_i f_i, which is one built-in loss or the sum of a user's own."""

    @property
    def dimension(self) -> int: ...
    @property
    def total(self) -> NamedLoss | None: ...
    @property
    def penalty(self) -> Penalty | None: ...
    @property
    def whole_penalty(self) -> Penalty | None: ...
    @property
    def own(self) -> Sequence[Objective] | None: ...
    def value(self, w: Array, /) -> Number: ...
    def grad(self, w: Array, /) -> Array: ...


def find(problem: Losses, watch: Watch | None = None) -> Optimum | NoOptimum:
    """The minimiser of sum_i f_i and the penalty (the shortest, if there are several), or why it is not known."""
    watch = watch or Watch()
    try:
        if problem.whole_penalty is not None:
            f = Summed(problem.own or ()) if problem.total is None else problem.total
            w = of_penalised(f, problem.whole_penalty, np.zeros(problem.dimension), watch)
        elif problem.total is None:
            w = of_own(problem, problem.own or (), watch)
        elif problem.total.quadratic:
            w = of_quadratic(problem.total, np.zeros(problem.dimension))
        else:
            w = of_convex(problem.total, np.zeros(problem.dimension), watch)
        value = float(problem.value(w))
        if not np.isfinite(value):
            raise AmbleError(f"the optimum of your losses is not known: where their slope is zero, value is {value}.")
    except AmbleError as error:
        return NoOptimum(str(error), settled=not isinstance(error, GivenUp))
    return Optimum(w, value)


def of_quadratic(f: NamedLoss, zero: Array) -> Array:
    """In the scaling of the diagonal, so that units do not matter; where that leaves several, the shortest as it is."""
    A, b = f.hessian(zero), -f.grad(zero)
    diagonal = np.diagonal(A)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(scale[:, None] * A * scale)
    if values[0] > 1e-13 * values[-1]:
        even: Array = scale * (vectors @ ((vectors.T @ (scale * b)) / values))
        return even
    values, vectors = np.linalg.eigh(A)
    solid = values > 1e-13 * values[-1]
    shortest: Array = vectors[:, solid] @ ((vectors[:, solid].T @ b) / values[solid])
    return shortest


def of_convex(f: NamedLoss, zero: Array, watch: Watch) -> Array:
    """A built-in loss without a closed form: Newton's method within each proximal step."""
    each, scale, smoothness, curvature = np.asarray(f.curvatures), np.ones_like(zero), smoothness_of(f), f.curvature
    if each.max() > UNEVEN * min(each[each > 0], default=1.0):  # columns of unlike units: make them even
        scale = 1 / np.sqrt(np.where(each > 0, each, 1.0))
        smoothness, curvature = (scale**2 * each).sum(), (scale**2 * each).mean()
    watched = Watched(f, scale, smoothness, watch)
    w, moved = loosen(
        lambda w, weight: minimise(watched, w, weight, w, TOLERANCE),
        zero,
        [1e-8 * 10.0**-k * float(curvature) for k in range(6)],
    )
    w = scale * w
    # no convex loss is lower beyond its minimiser: the loss of separable rows falls without end, and slowly
    falls = f.value(2 * w) < LOWER * f.value(w)
    if falls or moved > STILL:
        classes, free = "the classes are separable, at least in part", "the rows do not determine the whole model"
        reason = free if type(f).fits(0) else classes
        raise AmbleError(
            f"there is no centralised optimum, or one too far out: {reason}; give ridge= a value above zero, such as "
            "1e-4."
        )
    return w


class Summed(NamedTuple):
    """Losses that are not stacked, as one."""

    losses: Sequence[Objective]

    def value(self, w: Array) -> Number:
        return sum(f.value(w) for f in self.losses)

    def grad(self, w: Array) -> Array:
        return np.asarray(sum(f.grad(w) for f in self.losses))

    def hessian(self, w: Array) -> Array:
        return np.asarray(sum(f.hessian(w) for f in self.losses))


def of_penalised(f: NamedLoss | Summed, penalty: Penalty, w: Array, watch: Watch) -> Array:
    """Newton's method with the penalty as it is (proximal Newton): each step minimises the losses' quadratic model and
    the penalty, and is halved until the sum of both falls. The slopes that are left say whether it has arrived."""

    def value(w: Array) -> float:
        return float(f.value(w) + penalty.value(w))

    def slope(w: Array, g: Array, H: Array) -> float:
        """The largest that is left, each in the units of its curvature."""
        each = np.sqrt(np.diagonal(H) + penalty.ridge)
        return float(np.max(penalty.slopes(w, g) / np.where(each > 0, each, 1.0)))

    g, H = f.grad(w), f.hessian(w)
    best, stuck, left = w, 0, slope(w, g, H)
    first = float(np.max(abs(g) / np.sqrt(np.maximum(np.diagonal(H), 1e-300)), where=np.diagonal(H) > 0, initial=0.0))
    for _ in range(NEWTON_STEPS_PENALISED):
        if left <= ROUNDING_SLOPE * first or stuck > STUCK_STEPS:
            break
        watch.count()
        d = penalty.minimiser(H @ w - g, H, w, w) - w
        fall = g @ d + penalty.value(w + d) - penalty.value(w)  # without the curvature: zero at most
        t, here = 1.0, value(w)
        while not value(w + t * d) <= here + 1e-4 * t * fall + ROUNDING * abs(here) and t > SHORTEST:
            t /= 2
        w = w + t * d
        g, H = f.grad(w), f.hessian(w)
        now = slope(w, g, H)
        best, left, stuck = (w, now, 0) if now < left else (best, left, stuck + 1)
    free = np.where(penalty.l1 > 0, 0.0, best)  # what has no corner: where it could go on, the losses fall for ever
    if not left <= SLOPE_PENALISED * first or f.value(best + free) < LOWER * f.value(best):
        raise AmbleError(
            f"there is no centralised optimum under this penalty, or none was found: a slope of {left:.0e} is left, of "
            f"{first:.0e} that the losses have at zero; columns without a penalty may separate the classes: leave none "
            "unpenalised."
        )
    return best


class Watched:
    """A built-in loss of u, for w = scale u, that counts gradients and products with the Hessian without a limit."""

    def __init__(self, f: NamedLoss, scale: Array, smoothness: Number, watch: Watch) -> None:
        self.f, self.scale, self.smoothness, self.watch = f, scale, smoothness, watch

    def value(self, u: Array) -> Number:
        return self.f.value(self.scale * u)

    def grad(self, u: Array) -> Array:
        self.watch.count()
        return self.scale * self.f.grad(self.scale * u)

    def hessian(self, u: Array) -> Array:
        return self.scale[:, None] * self.f.hessian(self.scale * u) * self.scale

    def hessian_times(self, u: Array) -> Times:
        times = self.f.hessian_times(self.scale * u)

        def watched(v: Array) -> Array:
            self.watch.count()
            return self.scale * times(self.scale * v)

        return watched


def of_own(problem: Losses, own: Sequence[Objective], watch: Watch) -> Array:
    """Losses of which only value and gradient are known: Newton's method with differences of gradients."""
    if not all(knows(f, "value") and knows(f, "grad") for f in own):
        raise AmbleError("the optimum of your own objectives is found with their value and grad; give them both.")
    rng, zero = np.random.default_rng(0), np.zeros(problem.dimension)
    with np.errstate(all="ignore"):
        slope = sum(float(norm(np.asarray(f.grad(zero), np.float64))) for f in own)
    if not np.isfinite(slope):
        raise AmbleError("the optimum of your losses is not known: their gradients at zero are not finite.")
    f = Differences(problem, watch)
    check_convex(f.grad, problem.dimension, rng)
    _, curvature = curvatures(hessian_times(f.grad, zero), len(zero), rng)
    f.smoothness = curvature if 0 < curvature < np.inf else 1.0
    with np.errstate(all="ignore"):  # a loss that falls without end is followed until its numbers overflow
        w, moved = loosen(
            lambda w, weight: minimise(f, w, weight, w, TOLERANCE, NEWTON_STEPS_OWN),
            zero,
            [10.0**power * f.smoothness for power in (-4, -6, -8, -10, -12)],
        )
        left = float(norm(f.grad(w)))
        lower = falls_on(f.value, w, left, rng)
    if not moved <= STILL:
        raise AmbleError(
            "your losses have no minimiser, or none that could be located: the point of least loss still moved by "
            f"{moved:.0e} of its length when it was held ever more loosely; a small ridge in each loss gives them one."
        )
    smallest, largest = curvatures(hessian_times(f.grad, w), len(w), rng)
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
    if w.any():
        check_line(f.grad, 0 * w, w, np.linspace(0, 2, PATH_PARTS + 1))
        places = np.geomspace(NEAREST, 10, PLACES)
        for _ in range(LINES if len(w) > 1 else 1):
            check_line(f.grad, w, norm(w) * unit(rng.normal(size=len(w))), np.concatenate([-places[::-1], places]))
    return w


def loosen(step: Callable[[Array, float], Array], w: Array, weights: list[float]) -> tuple[Array, float]:
    """Proximal steps of ever smaller weight, each of which holds still what the losses leave free; and how far the last
    one moved, relative to the length."""
    for weight in weights:
        before, w = w, step(w, weight)
        if not np.isfinite(w).all():
            return before, np.inf
    return w, float(norm(w - before) / (norm(w) or 1.0))


def falls_on(value: Callable[[Array], float], w: Array, slope: float, rng: np.random.Generator) -> bool:
    """Whether the loss near w is lower than the remaining slope can explain."""
    here, h = value(w), 10 * DIFFERENCE * (float(norm(w)) or 1.0)
    ways = [h * unit(rng.normal(size=len(w))) for _ in range(PROBES_EACH)]
    beside = min(value(w + way) for way in (*ways, *(-way for way in ways)))
    return bool(beside < here - 2 * h * slope - ROUNDING * max(abs(here), abs(value(0 * w))))


class Differences:
    """The sum of all losses with its Hessian by differences of gradients, for Newton's method."""

    def __init__(self, problem: Losses, watch: Watch) -> None:
        self.problem, self.watch, self.smoothness = problem, watch, 1.0

    def value(self, w: Array) -> float:
        return float(self.problem.value(w))

    def grad(self, w: Array) -> Array:
        self.watch.spend()
        return np.asarray(self.problem.grad(w), np.float64)

    def hessian(self, w: Array) -> Array:
        H = np.stack([hessian_times(self.grad, w)(v) for v in np.eye(len(w))])
        return (H + H.T) / 2

    def hessian_times(self, w: Array) -> Times:
        times = hessian_times(self.grad, w)
        return lambda v: norm(v) * times(unit(v))


def check_convex(grad: Times, dimension: int, rng: np.random.Generator) -> None:
    """A convex loss has (grad a - grad b).(a - b) >= 0 for any two points; pairs at several lengths are tried."""
    for length in PROBES:
        for _ in range(PROBES_EACH):
            a, b = length * rng.normal(size=(2, dimension)) / np.sqrt(dimension)
            check_pair(a, b, grad(a), grad(b))


def check_line(grad: Times, center: Array, way: Array, places: Array) -> None:
    """Along a line, from place to place, the slope of a convex loss never falls."""
    points = [center + place * way for place in places]
    slopes = [grad(point) for point in points]
    for k in range(len(points) - 1):
        check_pair(points[k], points[k + 1], slopes[k], slopes[k + 1])


@np.errstate(all="ignore")
def check_pair(a: Array, b: Array, slope_a: Array, slope_b: Array) -> None:
    change = float((slope_a - slope_b) @ (a - b))
    noise = BENT_BACK * float((norm(slope_a) + norm(slope_b)) * norm(a - b))
    if change < -noise:
        raise AmbleError(
            "the optimum of your losses is not known: they are not convex (between two points their slope falls), so "
            "no point can be verified to be the lowest."
        )


def hessian_times(grad: Times, w: Array) -> Times:
    """The product of the Hessian at w with a vector of length 1, by a central difference of gradients."""
    h = DIFFERENCE * (float(norm(w)) or 1.0)
    return lambda v: (np.asarray(grad(w + h * v), np.float64) - np.asarray(grad(w - h * v), np.float64)) / (2 * h)


def curvatures(times: Times, dimension: int, rng: np.random.Generator) -> tuple[float, float]:
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


def unit(v: Array) -> Array:
    return v / norm(v)
