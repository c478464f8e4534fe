"""What an agent shows in its folder: its status, and its model."""

import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from amble.files import write_whole
from amble.live import status
from amble.live.agent.stages import LiveCourse
from amble.live.core.protocol import Core
from amble.results import model_file


def model_of(core: Core) -> Any:
    """The model that an agent may show, or None: only this decides whether a model is written.

    An agent's estimate is what it read from a token before it gave anything. So there is one only after a visit of a
    token that somebody had visited before: what is read from a token at its beginning is zero, whatever the data. A run
    that has diverged has none.
    """
    if core.ending is not None and core.ending.cause == "diverged":
        return None
    sights = (core.rows.get(f"sight/{m}") for m in range(core.settings.tokens))
    return core.rows["holder"].z if any(sight is not None and sight.hop > 1 for sight in sights) else None


@cache
def _header(shape: tuple[int, ...]) -> bytes:
    """Of a .npy file of float64 numbers: it is written twice a second, and to make it takes longer than all numbers."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return made.getvalue()


def write(folder: Path, course: LiveCourse, said: status.Status, w: Any, ended: bool) -> None:
    """status.json and model.npy, for whoever looks into the folder; at the end model.npz, which predicts."""
    status.write(folder, said)
    model = folder / "model.npy"
    if w is None:
        model.unlink(missing_ok=True)  # of an earlier journal
        if said.cause == "diverged":
            (folder / model_file.FILE).unlink(missing_ok=True)  # of this run, before it was started again
        return
    numbers = np.ascontiguousarray(w, "<f8")
    write_whole({model: _header(numbers.shape) + numbers.tobytes()})
    if ended and (whole := course.model(w)) is not None:
        whole.save(folder / model_file.FILE)
