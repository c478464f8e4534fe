"""The prox of a smooth convex loss that has no closed form: damped Newton from the given start."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from amble.arrays import Array, Flags, Number, namespace, norm, while_loop
from amble.losses.objective import smoothness_of

DIRECT_UP_TO = 200  # unknowns; beyond it conjugate gradients are cheaper than forming and factoring the Hessian
NEWTON_STEPS_MAX, HALVINGS_MAX = 1000, 60
STEPS_TYPICAL = 5  # seen from a warm start; only the fixed cost model uses it
TOLERANCE, TOLERANCE_LARGE = 1e-12, 1e-9  # of the gradient's length at the centre: direct, and by conjugate gradients
NEAR = 1e-2  # of the gradient's length, for a step of an approach
ROUNDING = 2e-16


class Iterate(NamedTuple):
    x: Array
    phi: Array  # f(x) + weight/2 |x - center|^2
    g: Array  # its gradient
    steps: Array
    stuck: Flags  # no step made phi smaller: only rounding errors remain


class Smooth(Protocol):
    """What Newton's method asks of a loss: the Hessian of few unknowns, products with it of many."""

    def value(self, w: Array, /) -> Number: ...
    def grad(self, w: Array, /) -> Array: ...
    def hessian(self, w: Array, /) -> Array: ...
    def hessian_times(self, w: Array, /) -> Callable[[Array], Array]: ...  # and smoothness, or local_smoothness


def minimise(
    f: Smooth,
    center: Array,
    weight: Number,
    start: Array,
    tolerance: float | None = None,
    steps_max: int = NEWTON_STEPS_MAX,
) -> Array:
    """argmin_x phi(x) = f(x) + weight/2 |x - center|^2: to rounding, or to 1e-9 where there are many unknowns.

    Newton direction d of phi, then the first of d, d/2, d/4, ... that lowers phi enough (Armijo): phi is strongly
    convex, so this converges from any start, and quadratically near the end, where the full step is taken.
    """
    xp = namespace(center)
    p = center.shape[-1]

    def phi(x: Array) -> Array:
        return f.value(x) + 0.5 * weight * xp.sum((x - center) ** 2)

    def gradient(x: Array) -> Array:
        return f.grad(x) + weight * (x - center)

    def direction(x: Array, g: Array) -> Array:
        if p <= DIRECT_UP_TO:
            return -xp.linalg.solve(f.hessian(x) + weight * xp.eye(p), g)
        times = f.hessian_times(x)
        # as exact as this step needs: the remaining error is quadratic in the gradient, and never far below the goal
        length = norm(g)
        exact = 0.1 * xp.maximum(xp.minimum(length / scale, 1.0), xp.maximum(goal, floor(x)) / length)
        return -conjugate_gradients(lambda v: times(v) + weight * v, g, exact)

    def floor(x: Array) -> Array:
        """The length of gradient that rounding alone makes."""
        return 4 * ROUNDING * (xp.sqrt(L) + (L + weight) * norm(x) + weight * norm(center))

    L = smoothness_of(f)
    scale = norm(f.grad(center))
    if tolerance is None:
        tolerance = TOLERANCE if p <= DIRECT_UP_TO else TOLERANCE_LARGE
    goal = tolerance * scale

    def unfinished(at: Iterate) -> Array:
        far = norm(at.g) > xp.maximum(goal, floor(at.x))
        return far & (at.steps < steps_max) & ~at.stuck

    def step(at: Iterate) -> Iterate:
        d = direction(at.x, at.g)
        slope = at.g @ d
        slack = 8 * ROUNDING * (abs(at.phi) + xp.sqrt(L) * norm(at.x))  # the scores X w round, too

        def too_high(trial: tuple[Array, Array, Array]) -> Array:
            t, value, halvings = trial
            return ~(value <= at.phi + 1e-4 * t * slope + slack) & (halvings < HALVINGS_MAX)

        def halve(trial: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            t, _, halvings = trial
            return t / 2, phi(at.x + t / 2 * d), halvings + 1

        one = xp.ones_like(at.phi)
        t, value, halvings = while_loop(xp, too_high, halve, (one, phi(at.x + d), xp.zeros_like(at.steps)))
        x = at.x + t * d
        g = gradient(x)
        lower = halvings < HALVINGS_MAX
        flat = (value >= at.phi) & (norm(g) >= norm(at.g))
        keep = lower & ~flat
        x, value, g = (xp.where(keep, new, old) for new, old in ((x, at.x), (value, at.phi), (g, at.g)))
        return Iterate(x, value, g, at.steps + 1, ~keep)

    start = xp.where(phi(center) < phi(start), center, start)
    begin = Iterate(start, phi(start), gradient(start), xp.asarray(0), xp.asarray(False))
    return while_loop(xp, unfinished, step, begin).x


def approach(f: Smooth, center: Array, weight: Number, start: Array, steps: Number, products: Number) -> Array:
    """Nearly the prox: undamped Newton steps from the start, each by at most so many products with the Hessian.

    For losses of bounded curvature, and a start that is near: nothing here makes sure that phi falls.
    """
    xp = namespace(center)

    def step(at: tuple[Array, Array]) -> tuple[Array, Array]:
        x, taken = at
        times = f.hessian_times(x)
        g = f.grad(x) + weight * (x - center)
        d = conjugate_gradients(lambda v: times(v) + weight * v, g, xp.asarray(NEAR), products)
        return x - d, taken + 1

    def unfinished(at: tuple[Array, Array]) -> Flags:
        taken: Flags = at[1] < steps
        return taken

    x: Array = while_loop(xp, unfinished, step, (start, xp.asarray(0)))[0]
    return x


def flops(kind: str, rows: Array, p: int) -> Array:
    """Operations of one "value", "grad", "prox" or "hessian" of a loss of x.w, for the fixed cost model."""
    if kind == "value":
        return 2.0 * rows * p
    if kind == "grad":
        return 4.0 * rows * p
    if kind == "hessian":
        return 2.0 * rows * p * p
    return STEPS_TYPICAL * (2.0 * rows * p * p + 6.0 * rows * p + p**3 / 3)


def conjugate_gradients(
    times: Callable[[Array], Array], b: Array, tolerance: Array, most: Number | None = None
) -> Array:  # fmt: skip
    """Solve A x = b for a positive definite A given as a product, to a relative residual, in `most` products or 2 p."""
    xp = namespace(b)
    bound, most = tolerance**2 * (b @ b), 2 * b.shape[-1] if most is None else most

    def unfinished(state: tuple[Array, ...]) -> Flags:
        _, _, _, rr, k = state
        return (rr > bound) & (k < most)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, r, d, rr, k = state
        Ad = times(d)
        a = rr / (d @ Ad)
        r = r - a * Ad
        rr_new = r @ r
        return x + a * d, r, r + (rr_new / rr) * d, rr_new, k + 1

    zero = xp.zeros_like(b)
    solution: Array = while_loop(xp, unfinished, step, (zero, b, b, b @ b, xp.asarray(0)))[0]
    return solution
