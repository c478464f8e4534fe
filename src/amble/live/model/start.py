"""The initial model of a run: numbers in the run file, or a file next to it; and start.npy in agents' folders.

Its digest is part of the run's digest, so that agents with different initial models do not work together.
"""

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import BEYOND, Array
from amble.data.packed import read_npy
from amble.digests import sha256
from amble.errors import AmbleError
from amble.files import write_whole
from amble.live import toml
from amble.live.model.model import Model
from amble.results.model_reading import read as read_model

FILE = "start.npy"
KIND = toml.Kind(
    lambda value: toml.text.fits(value) or toml.list_of(toml.number, "").fits(value),
    "a list of numbers, or the path of a .npy file of them or of a model.npz, seen from the run file",
)


@dataclass(frozen=True)
class Start:
    """Two are equal if their digests are. The numbers are None if the file is missing."""

    digest: str
    numbers: Array | None = field(default=None, compare=False, repr=False)


def of(numbers: ArrayLike, model: Model, whose: str) -> Start:
    """The initial model, checked against the run's."""
    try:
        start = np.ascontiguousarray(numbers, np.float64)
    except (TypeError, ValueError) as error:
        raise AmbleError(f"{whose} is no list of numbers; give the {model.dimension} of a model.") from error
    if start.shape != (model.dimension,):
        parts = "one per column" + (", the intercept last" if model.intercept else "")
        per_class = (
            f", for each of the {len(model.labels)} labels in turn"
            if model.dimension > model.width + model.intercept
            else ""
        )
        raise AmbleError(
            f"{whose} has shape {start.shape}, and the run's model has {model.dimension} unknowns; give "
            f"{model.dimension} numbers, {parts}{per_class}."
        )
    if not np.abs(start).sum() < BEYOND:
        raise AmbleError(f"{whose} has numbers that are not finite, or too large for a model; give others.")
    if model.penalty is not None and (start[model.penalty.positive] < 0).any():
        raise AmbleError(f"{whose} has numbers below zero for columns of positive; give others.")
    return Start(sha256(start.astype("<f8").tobytes()).hexdigest(), start)


def make_start(value: Any, model: Model, beside: Path) -> Start:
    """From `start =` of a run file's [model] table; `beside` is the folder of the run file."""
    if not isinstance(value, str):
        return of(value, model, "[model] start")
    path = beside / value
    if path.suffix == ".npz":
        return of(_trained(path, model), model, str(path))
    if not path.is_file():
        raise AmbleError(f"there is no file {path}, which [model] start names; give the path of one.")
    return of(read_npy(path), model, str(path))


def _trained(path: Path, model: Model) -> Array:
    """The numbers of a model that a live run wrote: right only if they are of the same columns in the same units."""
    earlier = read_model(path)
    shape = ("task", "columns", "labels", "intercept")
    ours: dict[str, Any] = {key: getattr(model, key) for key in shape} | model.scaling._asdict()
    theirs: dict[str, Any] = {key: getattr(earlier, key, None) for key in ours} | earlier.scaling._asdict()
    for key, value in ours.items():
        if not np.array_equal(theirs[key], value):
            raise AmbleError(
                f"{path} was trained with another {key} than [model] has, so its numbers mean something else here; "
                "give the same, or start as numbers in the run's own units."
            )
    return earlier.w


def write(start: Start, folder: Path) -> None:
    assert start.numbers is not None  # always present when a folder is written
    content = io.BytesIO()
    np.save(content, start.numbers, allow_pickle=False)
    write_whole({folder / FILE: content.getvalue()})


def read(digest: str, model: Model, folder: Path) -> Start:
    """As it is in an agent's folder; without its numbers if the file is missing."""
    if not (folder / FILE).is_file():
        return Start(digest)
    start = of(read_npy(folder / FILE), model, str(folder / FILE))
    if start.digest != digest:
        raise AmbleError(f"{folder / FILE} is not the initial model that the run began with; copy it again.")
    return start
