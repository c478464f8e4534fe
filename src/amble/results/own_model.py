"""What a live run of a model of the user's own ends with: its numbers, and which file they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from amble.arrays import BEYOND, Array
from amble.errors import AmbleError
from amble.results import model_file

OWN = "own"  # what such a file has in place of a loss


@final
@dataclass(frozen=True, eq=False)
class OwnModel:
    """The numbers alone: nothing in the file of a model is ever run. `amble.load_params` makes weights of them."""

    w: Array
    file: str  # its name
    code: str  # the digest of its content
    columns: int | tuple[str, ...]
    labels: tuple[Any, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    def save(self, path: Path) -> Path:
        own = {"file": self.file, "code": self.code, "columns": self.columns, "labels": self.labels}
        model_file.write(path, {OWN: own, "about": dict(self.about)}, {"w": self.w})
        return path


def read(path: Path) -> OwnModel:
    """From a model file."""
    about, arrays = model_file.read(path)
    if OWN not in about:
        raise AmbleError(f"{path} is a linear model, not one of a file of your own; read it with amble.load_model.")
    try:
        own, w = about[OWN], arrays["w"]
        columns = own["columns"] if isinstance(own["columns"], int) else tuple(own["columns"])
        if w.ndim != 1 or not np.abs(w).sum() < BEYOND:
            raise ValueError
        return OwnModel(w, str(own["file"]), str(own["code"]), columns, tuple(own["labels"]), about["about"])
    except (KeyError, TypeError, ValueError) as error:
        raise model_file.damaged(path) from error
