"""Which columns a problem's penalties are on: l1, ridge, and the sign of a coefficient."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from amble.arrays import Array, Tree
from amble.errors import AmbleError, is_number, is_whole, unknown
from amble.losses import Softmax
from amble.losses.penalty import Penalty


def penalty_settings(
    l1: Any, positive: Any, unpenalised: Any, width: int, columns: Sequence[str] | None
) -> dict[str, Any]:
    """Those that were given, as they are saved: columns by their numbers."""
    if not (is_number(l1) and 0 <= l1 < np.inf):
        raise AmbleError(f"l1={l1!r} was given; it must be a number, zero or more.")
    if isinstance(positive, bool | np.bool_):
        positive = list(range(width)) if positive else []
    chosen = {
        "positive": column_numbers(positive, "positive", width, columns),
        "unpenalised": column_numbers(unpenalised, "unpenalised", width, columns),
    }
    return {**({"l1": float(l1)} if l1 else {}), **{key: numbers for key, numbers in chosen.items() if numbers}}


def column_numbers(given: Any, what: str, width: int, columns: Sequence[str] | None) -> list[int]:
    """Columns that were given by name or number, as their numbers in order."""
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise AmbleError(f"{what}={given!r} was given; give a list of columns, by name or number.")
    numbers = set()
    for each in given:
        if isinstance(each, str):
            if each not in (columns or ()):
                raise unknown(f"column in {what}", each, columns or [f"0 to {width - 1}, for they have no names"])
            numbers.add(list(columns or ()).index(each))
        elif is_whole(each) and 0 <= each < width:
            numbers.add(int(each))
        else:
            raise AmbleError(f"{what} has {each!r}; columns have names, or numbers from 0 to {width - 1}.")
    return sorted(numbers)


def without_pins(stacked: Tree, penalty: Penalty | None) -> Tree:
    """The losses as they are under a penalty: softmax holds some sums of coefficients at zero where there is none."""
    return stacked.under(penalty) if penalty is not None and isinstance(stacked, Softmax) else stacked


def spread(
    settings: Mapping[str, Any], width: int, intercept: bool, dimension: int, units: Array | float = 1.0
) -> Penalty | None:
    """The penalty beside the mean loss; None where the losses hold all of it.

    The intercept is never penalised, and may have any sign. Several classes have the columns one after another.
    """
    if "l1" not in settings and "positive" not in settings:
        return None
    l1, signs = np.full(width + intercept, settings.get("l1", 0.0)), np.zeros(width + intercept, bool)
    l1[:width] /= units
    l1[[*settings.get("unpenalised", ()), *range(width, width + intercept)]] = 0.0
    signs[settings.get("positive", [])] = True
    classes = dimension // (width + intercept)
    return Penalty(np.tile(l1, classes), np.zeros(dimension), np.tile(signs, classes))
