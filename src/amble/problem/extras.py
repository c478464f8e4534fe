"""What is known of each row besides its columns and its target: a weight, and an offset of the linear predictor."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array, Indices
from amble.errors import AmbleError
from amble.losses import LOSSES, choose


class Extras(NamedTuple):
    """One number per row each; None: there are none."""

    weight: Array | None = None
    offset: Array | None = None  # with the logarithm of the exposure in it

    def of(self, chosen: Indices) -> "Extras":
        """Those of some rows."""
        return Extras(*(None if each is None else each[chosen] for each in self))


NO_EXTRAS = Extras()


def extras(
    rows: int,
    whose: str,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> Extras:
    """As `Problem.from_arrays` is given them, checked."""
    weight = numbers(sample_weight, rows, "sample_weight", whose)
    if weight is not None and (weight < 0).any():
        raise AmbleError(f"{whose}: sample_weight has {weight.min():g}; a weight is zero or more.")
    moved, exposed = numbers(offset, rows, "offset", whose), numbers(exposure, rows, "exposure", whose)
    if exposed is not None and (exposed <= 0).any():
        raise AmbleError(f"{whose}: exposure has {exposed.min():g}; an exposure is above zero.")
    if exposed is not None:
        moved = np.log(exposed) + (0.0 if moved is None else moved)
    return Extras(weight, moved)


def numbers(values: ArrayLike | None, rows: int, name: str, whose: str) -> Array | None:
    """One finite number per row."""
    if values is None:
        return None
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise AmbleError(f"{whose}: {name} must hold numbers: {error}.") from error
    if found.shape != (rows,):
        raise AmbleError(f"{whose}: {name} has shape {found.shape}, and there are {rows:,} rows; give one per row.")
    if not np.isfinite(found).all():
        raise AmbleError(f"{whose}: {name} has values that are not finite; fill or drop them first.")
    return found


def of_agents(
    rows: Sequence[int],
    sample_weight: Sequence[ArrayLike] | None,
    offset: Sequence[ArrayLike] | None,
    exposure: Sequence[ArrayLike] | None,
) -> Extras:
    """Those of all agents put together, from a list with an array per agent each."""
    given = {"sample_weight": sample_weight, "offset": offset, "exposure": exposure}
    for name, lists in given.items():
        if lists is not None and len(lists) != len(rows):
            raise AmbleError(
                f"{name} was given for {len(lists)} agents, and there are {len(rows)}; give one list each."
            )
    each = [
        extras(count, f"agent {i}", **{name: None if lists is None else lists[i] for name, lists in given.items()})
        for i, count in enumerate(rows)
    ]
    joined = (np.concatenate(side) if side[0] is not None else None for side in zip(*each, strict=True))
    return Extras(*joined)


def refuse_offset(loss: str, given: str = "offset or exposure") -> None:
    """An offset is for losses that have a logarithm as their link."""
    _refuse(loss, given, "log")


def refuse_event(loss: str | None, column: str) -> None:
    """A column that says whether an event was seen is for losses of times until one."""
    _refuse(choose(loss, 0), f"event={column!r}", "hazard")


def _refuse(loss: str, given: str, link: str) -> None:
    if LOSSES[loss].link() != link:
        takers = " and ".join(repr(name) for name, kind in LOSSES.items() if kind.link() == link)
        raise AmbleError(f"{given} was given with loss={loss!r}, which takes none; it is for {takers}.")
