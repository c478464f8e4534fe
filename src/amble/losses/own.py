"""Checks a user's own loss once, before its first run: what it returns must be usable."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, is_number
from amble.losses.objective import knows


def answers(objectives: Sequence[object], dimension: int) -> list[Array]:
    """value and, where there is one, grad of each objective at a point of its own, as arrays; checked."""
    results = []
    for k, f in enumerate(objectives):
        if isinstance(f, type):
            raise AmbleError(f"the objective of agent {k} is the class {f.__name__}; give an object of that class.")
        owner = f"the objective of agent {k}, of class {type(f).__name__},"
        if not callable(getattr(f, "value", None)):
            raise AmbleError(f"{owner} has no value(w), from which the curves of a run are computed; give it one.")
        w = np.cos(np.arange(dimension) + k)
        for name, shape in (("value", ()), ("grad", (dimension,))):
            if knows(f, name):
                try:
                    answer = getattr(f, name)(w)
                except Exception as error:
                    raise AmbleError(
                        f"{owner} fails in {name}(w) for an array w of {dimension} numbers, with "
                        f"{type(error).__name__}: {error}; call it with such an array yourself to see where."
                    ) from error
                if flaw := flaw_of(answer, shape):
                    raise AmbleError(f"{owner} has a {name}(w) that {flaw}.")
                results.append(np.asarray(answer, np.float64))
    return results


def flaw_of(answer: Any, shape: tuple[int, ...]) -> str | None:
    """What is wrong with a returned value, its type or its shape; None if it is right."""
    expected = f"an array of shape {shape}" if shape else "one number"
    if not (hasattr(answer, "__array__") or (not shape and is_number(answer))):
        return f"is a {type(answer).__name__}; it must be {expected}"
    if np.shape(answer) != shape:
        return f"has shape {np.shape(answer)}; it must have {shape}"
    if np.asarray(answer).dtype.kind not in "fiu":
        return f"has the type {np.asarray(answer).dtype}; it must be {expected}, of real numbers"
    return None
