"""tune: a method's step or penalty by a small search on pilot runs, under the same budget of hops for every method.

The search is over powers of ten around the problem's own scale, by default nine values over six decades, and up to four
more beyond an end where the best lies there; then the four that lie halfway and a quarter of the way between the best
and its neighbours. The best is the one with the lowest sum_i f_i at the end of its pilot run, so nothing is used that
is not known before the optimum is.
"""

import warnings
from dataclasses import fields, replace
from typing import Any

import numpy as np

from amble import methods
from amble import simulation as simulations
from amble.network import Network
from amble.problem import Problem

PILOT_LAPS = 50  # visits an agent in each pilot run
POWERS = (-4.0, 2.0, 9)  # of ten, times the scale: from, to, how many
BEYOND_MAX = 4  # steps beyond the coarse grid's ends, where the best lies at one
FINE = (-0.5, -0.25, 0.25, 0.5)  # of the coarse grid's width


def tune(
    method: Any,
    problem: Problem,
    network: Network,
    *,
    laps: int = PILOT_LAPS,
    powers: tuple[float, float, int] = POWERS,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """The method with its step or penalty chosen, and a record of what was tried; takes the options of `simulate`."""
    names = [f.name for f in fields(method) if f.name in methods.positive(method)]
    if not names:
        return method, {}
    name = names[0]
    scale = scale_of(name, problem)
    hops = laps * problem.agents
    tried: dict[float, float] = {}

    def loss(power: float) -> float:
        value = float(f"{scale * 10**power:.3g}")
        if value not in tried:
            tried[value] = pilot(replace(method, **{name: value}), problem, network, hops, options)
        return tried[value]

    coarse = np.linspace(*powers).tolist()
    width = coarse[1] - coarse[0]
    best = min(coarse, key=loss)
    for _ in range(BEYOND_MAX):
        if best not in (coarse[0], coarse[-1]):
            break
        coarse = [coarse[0] - width, *coarse] if best == coarse[0] else [*coarse, coarse[-1] + width]
        best = min(coarse, key=loss)
    best = min([best, *(best + part * width for part in FINE)], key=loss)
    chosen = float(f"{scale * 10**best:.3g}")
    found = {f"{value:g}": tried[value] if np.isfinite(tried[value]) else None for value in sorted(tried)}
    record = {"setting": name, "chosen": chosen, "hops": hops, "tried": found}  # None: diverged
    return replace(method, **{name: chosen}), record


def scale_of(name: str, problem: Problem) -> float:
    """What the setting is measured in: a step in 1/L, a penalty in the mean curvature."""
    each = [problem.stacked] if problem.own is None else problem.own
    kind = "smoothness" if name == "alpha" else "curvature"
    values = np.concatenate([np.atleast_1d(np.asarray(getattr(f, kind, 1.0), np.float64)) for f in each])
    return float(1 / values.max() if name == "alpha" else values.mean())


def pilot(method: Any, problem: Problem, network: Network, hops: int, options: dict[str, Any]) -> float:
    """sum_i f_i after a short run; infinite where it diverged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = simulations.simulate(
            method, problem, network, hops=hops, every=hops, optimum=False, progress=False, **options
        )
    value = run.history["objective"][-1]
    if (
        getattr(method, "hears", "mean") != "mean"
    ):  # each agent's model is an answer; their mean hides how far apart they are
        with np.errstate(all="ignore"):
            value = np.mean([float(problem.value(x)) for x in run.models])
    return float(value) if run.stopped != "diverged" and np.isfinite(value) else float("inf")
