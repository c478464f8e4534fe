"""The search for a method's best setting: the same for every method of a comparison."""

from collections.abc import Callable
from typing import Any

import numpy as np

import amble
from amble import methods
from amble.simulation.tuning import scale_of

POWERS, STEP = np.linspace(-3, 0.5, 8).tolist(), 0.5  # of ten, times the problem's own scale
FURTHER = 6  # values beyond an end, while the best is there
Rank = tuple[float, ...]


def best_setting(
    method: Any,
    problem: amble.Problem,
    go: Callable[[list[Any]], list[amble.Run]],
    rank: Callable[[amble.Run], Rank],
) -> Any:
    """The method with the value whose run ranks least; a method without a setting as it is."""
    name = methods.tunable(method)
    if name is None:
        return method

    def at(power: float) -> Any:
        return methods.with_setting(method, name, scale_of(name, problem) * 10**power)

    ranks = dict(zip(POWERS, map(rank, go([at(power) for power in POWERS])), strict=True))
    for _ in range(FURTHER):
        best = min(ranks, key=lambda power: ranks[power])
        if min(ranks) < best < max(ranks):
            break
        beyond = best + (STEP if best == max(ranks) else -STEP)
        ranks[beyond] = rank(go([at(beyond)])[0])
    return at(min(ranks, key=lambda power: ranks[power]))
