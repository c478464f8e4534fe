"""Whether a run diverges, and the likely cause, from an agent's own rows and the method's settings."""

from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array
from amble.losses.objective import Objective, knows, number_of, smoothness_of
from amble.methods.protocol import TokenMethod
from amble.methods.pwadmm import PWADMM

APART = 1e3  # columns whose sizes differ by more than this make steps of any size wrong for some of them
GROWN = 1e8  # times the loss of a model of zeros: such a model is about 1e4 times too large. An agent sees its own rows
# only, and a good model may fit these badly, say where all targets here are zero; so the factor is a large one


class Bound(NamedTuple):
    """The bound of a gradient method's setting, with L the smoothness of the agent's loss."""

    setting: str
    value: float
    limit: float
    below: bool  # whether the setting must be below its limit, or above it

    @property
    def broken(self) -> bool:
        return self.value > self.limit if self.below else self.value < self.limit


class Finding(NamedTuple):
    """What an agent's rows and the method's settings say about a divergence."""

    is_cause: bool  # False: the facts here look normal
    sentence: str  # private: it is about the agent's rows


def has_diverged(f: Objective, z: Array, start: Array) -> bool:
    """Whether the loss at this model is far beyond that of no model at all; for a model of a user's own file, beyond
    that of the initial one."""
    if not knows(f, "value"):
        return False
    with np.errstate(all="ignore"):
        if of_file(f):
            return has_grown(float(f.value(z)), float(f.value(start)), GROWN)
        return not float(f.value(z)) <= GROWN * (float(f.value(0 * z)) + float(smoothness_of(f)))


def of_file(f: object) -> bool:
    """Whether it is the loss of a user's own file, which may be below zero, and not finite at zero."""
    return bool(number_of(f, "of_file", False))


def has_grown(now: float, first: float, times: float) -> bool:
    """Whether a loss of any sign is not finite, or far above the first one."""
    return not np.isfinite(now) or now - first > times * (abs(first) + 1)


def likely_cause(method: TokenMethod, f: Objective, columns: int | tuple[str, ...], whose: str) -> Finding:
    """What is wrong and what to do, from facts; where the facts are as they should be, that they are."""
    if not (knows(f, "smoothness") and (knows(f, "A") or knows(f, "X"))):
        return Finding(False, f"nothing is known of the loss of {whose}; give a smaller step, or another setting")
    bound, sizes = bound_of(method, float(f.smoothness)), column_sizes(f)
    small, large = _ends(sizes)
    ratio = sizes[large] / sizes[small] if sizes[small] else 1.0
    facts, advice = [], []
    if ratio > APART:
        names = [_name(columns, k) for k in (large, small)]
        facts.append(f"in the rows of {whose} {names[0]} is {ratio:.1g} times as large as {names[1]}")
        advice.append("scale the columns (X_mean and X_std of [model])")
    if bound is not None and bound.broken:
        side, limit = ("above", "2 / L") if bound.below else ("below", "L / 2")
        facts.append(
            f"{bound.setting} = {bound.value:g} is {side} {limit} = {bound.limit:.3g}, with L the smoothness of the "
            f"loss of {whose}"
        )
        advice.append(f"give {bound.setting} {'below' if bound.below else 'above'} that")
    if isinstance(method, PWADMM) and method.form == "own" and method.tokens > 1:
        facts.append(f'PW-ADMM with form = "own" and {method.tokens} tokens diverges in many settings')
        advice.append('give form = "copies"')
    if facts:
        return Finding(True, f"{', and '.join(facts)}; {', or '.join(advice)}")
    step = "" if bound is None else f", {bound.setting} = {bound.value:g} is within its bound {bound.limit:.3g}"
    return Finding(
        False,
        f"the rows of {whose} show no cause (its columns are within a factor of {ratio:.2g}{step}); see whether "
        "those of another agent do, or give another setting of the method",
    )


def bound_of(method: TokenMethod, L: float) -> Bound | None:
    """None for a method that takes no gradient step: a prox of any weight is a step towards a minimum."""
    if "grad" not in getattr(method, "work", {}) or L <= 0:
        return None
    if hasattr(method, "alpha"):
        return Bound("alpha", method.alpha, 2 / L, below=True)
    for setting in ("beta", "rho"):
        if getattr(method, setting, None) is not None:
            return Bound(setting, getattr(method, setting), L / 2, below=False)
    return None


def column_sizes(f: Any) -> Any:
    """The root mean square of each column, the intercept's too, up to a factor."""
    squares = np.diagonal(f.A) if hasattr(f, "A") else f.rows @ (f.X * f.X)
    return np.sqrt(np.maximum(squares, 0.0))


def _ends(sizes: Array) -> tuple[int, int]:
    """The smallest column that is not zero throughout, and the largest."""
    return int(np.where(sizes > 0, sizes, np.inf).argmin()), int(sizes.argmax())


def _name(columns: int | tuple[str, ...], k: int) -> str:
    count = columns if isinstance(columns, int) else len(columns)
    if k >= count:
        return "the intercept"
    return f"column {k + 1}" if isinstance(columns, int) else f"column {columns[k]!r}"
