"""Checks that an objective's functions agree with each other, at random points.

An objective of a user's own may have any of them, so it is `Any`, and each is looked for by its name.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, is_whole
from amble.losses.own import flaw_of

POINTS = 3
STEP = 1e-6  # of the differences that slopes are computed by
SLOPE = 1e-5  # relative error of such a slope
PROX = 1e-6  # relative error of a prox
WEIGHTS = (0.1, 1.0, 10.0)
ROUNDING = 1 + 1e-9
SIGNATURES = {"value": "w", "grad": "w", "hessian": "w", "prox": "center, weight, start"}


def check_objective(f: Any, dimension: int, seed: int = 0) -> None:
    """Test whether an objective's functions agree with each other; functions that it does not have are skipped.

    Parameters
    ----------
    f : one agent's objective, with grad(w) or prox(center, weight, start), value(w) for the curves, and, if it has
        them, hessian(w), smoothness and curvature
    dimension : the number of unknowns
    seed : of the points at which it is tested

    Raises
    ------
    AssertionError : with a sentence on what is violated
    AmbleError : for an objective without grad and prox

    Example
    -------
    >>> import numpy as np
    >>> from amble.losses import LeastSquares
    >>> from amble.testing import check_objective
    >>> X, y = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([0.0, 1.0, 3.0])
    >>> check_objective(LeastSquares.build(X, y, np.full(3, 1 / 3), np.full(2, 0.1)), dimension=2)
    """
    if not is_whole(dimension) or dimension < 1:
        raise AmbleError(f"dimension={dimension!r} was given; give the number of unknowns, a whole number.")
    if isinstance(f, type):
        raise AmbleError(f"{f.__name__} is a class; give an object of it, as {f.__name__}(...) makes one.")
    if not any(callable(getattr(f, name, None)) for name in ("grad", "prox")):
        raise AmbleError(f"{type(f).__name__} has neither grad nor prox, and every method needs one of them.")
    rng = np.random.default_rng(seed)
    for _ in range(POINTS):
        w, other = rng.normal(size=(2, dimension))
        _check_answers(f, w)
        _check_slopes(f, w)
        _check_bounds(f, w, other)
        if hasattr(f, "prox"):
            for weight in WEIGHTS:
                _check_prox(f, w, weight, other)


def _require(holds: object, f: Any, sentence: str) -> None:
    if not holds:
        raise AssertionError(f"{type(f).__name__}: {sentence}")


def _check_answers(f: Any, w: Array) -> None:
    """Shapes, finite numbers, nothing changed, and the same answer twice."""
    p = len(w)
    calls = {"value": (w,), "grad": (w,), "hessian": (w,), "prox": (w, 1.0, 0 * w)}
    shapes = {"value": (), "grad": (p,), "hessian": (p, p), "prox": (p,)}
    for name, arguments in calls.items():
        if not hasattr(f, name):
            continue
        copies = [np.copy(each) for each in arguments]
        try:
            answer = getattr(f, name)(*copies)
        except Exception as error:
            call = f"{name}({SIGNATURES[name]})"
            raise AssertionError(f"{type(f).__name__}: {call} raises {type(error).__name__}: {error}.") from error
        flaw = flaw_of(answer, shapes[name])
        _require(flaw is None, f, f"{name} {flaw}.")
        answer = np.array(answer)
        _require(np.isfinite(answer).all(), f, f"{name} is not finite at a point of length {np.linalg.norm(w):.2g}.")
        kept = all(np.array_equal(a, b) for a, b in zip(copies, arguments, strict=True))
        _require(kept, f, f"{name} changes the array that it is given; it must make a new one.")
        again = np.array(getattr(f, name)(*copies))
        _require(
            np.array_equal(answer, again),
            f,
            f"{name} returns two different results at one point; it must have no memory.",
        )


def _slope(function: Callable[[Array], Array], w: Array) -> Array:
    """By central differences, one column per unknown."""
    steps = STEP * max(1.0, float(np.abs(w).max())) * np.eye(len(w))
    return np.stack([(function(w + h) - function(w - h)) / (2 * h.sum()) for h in steps], axis=-1)


def _check_slopes(f: Any, w: Array) -> None:
    for name, slope_of in (("grad", "value"), ("hessian", "grad")):
        if hasattr(f, name) and hasattr(f, slope_of):
            expected, answer = _slope(getattr(f, slope_of), w), np.asarray(getattr(f, name)(w))
            far = np.abs(answer - expected).max() / (1 + np.abs(expected).max())
            _require(far <= SLOPE, f, f"{name} is not the slope of {slope_of}: off by {far:.1e} of its size.")


def _check_bounds(f: Any, w: Array, other: Array) -> None:
    if hasattr(f, "smoothness") and hasattr(f, "grad"):
        change, moved = np.linalg.norm(f.grad(w) - f.grad(other)), np.linalg.norm(w - other)
        holds = change <= f.smoothness * moved * ROUNDING
        _require(holds, f, f"smoothness is {f.smoothness:g}, and grad changes {change / moved:g} times as fast as w.")
    if hasattr(f, "curvature") and hasattr(f, "hessian") and not hasattr(f, "local_smoothness"):
        mean = np.trace(f.hessian(w)) / len(w)
        holds = mean <= f.curvature * ROUNDING
        _require(holds, f, f"curvature is {f.curvature:g}, less than the Hessian's trace over p, {mean:g}.")


def _check_prox(f: Any, center: Array, weight: float, start: Array) -> None:
    """argmin_x f(x) + weight/2 |x - center|^2: no slope is left there, or no point near it is better."""
    x = np.asarray(f.prox(center, weight, start))
    said = f"prox at weight {weight:g} is not the argmin of f(x) + weight/2 |x - center|^2"
    if hasattr(f, "grad"):
        left = np.linalg.norm(f.grad(x) + weight * (x - center))
        size = np.linalg.norm(f.grad(center)) + weight * np.linalg.norm(center) + weight
        _require(left <= PROX * size, f, f"{said}: a slope of {left / size:.1e} of its size is left.")
    elif hasattr(f, "value"):
        low = f.value(x) + weight / 2 * np.sum((x - center) ** 2)
        for h in 1e-3 * np.vstack([np.eye(len(x)), -np.eye(len(x))]):
            near = f.value(x + h) + weight / 2 * np.sum((x + h - center) ** 2)
            _require(near >= low - 1e-12 * abs(low), f, f"{said}: a point near it is lower by {low - near:.1e}.")
    again = np.asarray(f.prox(center, weight, 0 * start))
    far = np.abs(x - again).max() / (1 + np.abs(x).max())
    _require(far <= PROX, f, f"prox depends on its start: off by {far:.1e}; the start may only save time.")
