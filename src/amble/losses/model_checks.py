"""Checks what the losses of a model of a user's own are given, in whichever framework it is written."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array
from amble.digests import hasher
from amble.errors import AmbleError, shown, unknown

WEIGHTS, TASKS = ("rows", "agents"), ("custom", "classification", "regression")


def check_functions(loss: object, advice: str, metric: object, test: object) -> None:
    if not callable(loss):
        raise AmbleError(f"loss={shown(loss)} was given; {advice}.")
    if metric is not None and not callable(metric):
        raise AmbleError(f"metric={shown(metric)} was given; it must be a function metric(params, test).")
    if (metric is None) != (test is None):
        raise AmbleError("metric and test belong together: a function, and the held-out rows that it is called with.")


def check_task(task: str) -> str:
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    return task


def shares_of(rows: Sequence[int], weights: str) -> Array:
    """Each agent's part in the sum: N d_i / D where rows count alike, 1 where agents do."""
    if weights not in WEIGHTS:
        raise unknown("weights", weights, WEIGHTS)
    return np.array(rows) * len(rows) / sum(rows) if weights == "rows" else np.ones(len(rows))


def smoothness_given(L: ArrayLike, shares: Array, estimate: str = "") -> Array:
    """L of each agent's loss, from that of its mean loss: one number, or one per agent."""
    numbers = np.asarray(L)
    if numbers.dtype.kind not in "fiu" or numbers.shape not in ((), shares.shape) or not (numbers > 0).all():
        raise AmbleError(f"smoothness={L!r} was given; it must be above zero, one number or one per agent{estimate}.")
    return np.asarray(numbers * shares, np.float64)


def second(start: Array) -> Array:
    """Another model: at the first one, unlike losses often agree, as where the last layer is zero."""
    return start + 0.1 * np.cos(np.arange(len(start)))


def digest_of(about: str, arrays: Sequence[Any]) -> str:
    """Names losses by their settings and their arrays."""
    flat = [np.ascontiguousarray(np.asarray(array)).reshape(-1).view(np.uint8) for array in arrays]
    sha = hasher(sum(array.nbytes for array in flat))
    sha.update(about.encode())
    for array in flat:
        sha.update(array.data)
    return sha.hexdigest()
