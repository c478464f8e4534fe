"""The file of a trained model: arrays, and what they mean as JSON, with a digest of both. Nothing in it is run."""

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.data.packed import DAMAGED, arrays_of, npz_of
from amble.digests import hasher, sha256
from amble.errors import AmbleError
from amble.files import write_whole

FORMAT = 2
FILE = "model.npz"
ZIP = b"PK"  # how every .npz begins
CUT = "is damaged or cut short; copy it again, or train again"


def write(path: Path, about: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Whole or not at all."""
    arrays = {name: np.ascontiguousarray(array, np.float64) for name, array in arrays.items()}
    text = json.dumps({"format": FORMAT, **about}, default=lambda number: number.item())  # NumPy's as plain ones
    content = {"about": np.array(text), **arrays, "sha256": np.array(_digest(text, arrays))}
    try:
        write_whole({path: npz_of(content)})
    except OSError as error:
        raise AmbleError(f"the model cannot be saved to {path} ({error.strerror}); give a path of yours.") from error


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `write` was given, checked; or the same of a file of format 1."""
    if not path.is_file():
        raise AmbleError(f"there is no model {path}; amble up writes model.npz into its folder, and so does an agent.")
    content = path.read_bytes()
    if not content.startswith(ZIP):
        raise AmbleError(f"{path} is not a model file; give the {FILE} that amble up or an agent wrote.")
    try:
        arrays = arrays_of(content)
        if not {"about", "w"} <= arrays.keys():
            raise AmbleError(f"{path} is not a model file; give the {FILE} that amble up or an agent wrote.")
        text = str(arrays.pop("about"))
        about = json.loads(text)
        if about["format"] == 1:
            return _from_first(about, arrays["w"])
        if about["format"] != FORMAT:
            raise AmbleError(f"{path} is a model of format {about['format']}, and this amble reads 1 and {FORMAT}.")
        written = str(arrays.pop("sha256"))
        if written != _digest(text, arrays):
            raise ValueError
        return about, arrays
    except AmbleError:
        raise
    except (*DAMAGED, AttributeError) as error:
        raise damaged(path) from error


def damaged(path: Path) -> AmbleError:
    return AmbleError(f"the model {path} {CUT}.")


def _digest(text: str, arrays: dict[str, Array]) -> str:
    sha = hasher(sum(array.nbytes for array in arrays.values()))
    sha.update(text.encode())
    for name in sorted(arrays):
        sha.update(f"{name} {arrays[name].shape} {arrays[name].dtype.str}".encode())
        sha.update(np.ascontiguousarray(arrays[name]).data)
    return sha.hexdigest()


def _from_first(about: dict[str, Any], w: Array) -> tuple[dict[str, Any], dict[str, Array]]:
    """Format 1 had the [model] table of a live run, and no loss: it followed from the labels."""
    if about["sha256"] != sha256(np.ascontiguousarray(w).data).hexdigest():
        raise ValueError
    table = about["model"]
    columns, labels = table["columns"], table["labels"]
    width = columns if isinstance(columns, int) else len(columns)
    arrays = {
        "w": w,
        "X_mean": np.zeros(width) if table["X_mean"] is None else np.array(table["X_mean"], np.float64),
        "X_std": np.ones(width) if table["X_std"] is None else np.array(table["X_std"], np.float64),
    }
    kept = {key: table[key] for key in ("task", "columns", "target", "labels", "intercept", "y_mean", "y_std")}
    loss = {0: "least-squares", 2: "logistic"}.get(len(labels), "softmax")
    return {**kept, "loss": loss, "penalty": {"ridge": table["ridge"]}, "about": {}}, arrays


def provenance(**known: Any) -> dict[str, Any]:
    """What a model says of where it comes from, with the versions that made it; what is None is left out."""
    from amble import __version__

    versions = {"amble": __version__, "numpy": np.__version__, "python": platform.python_version()}
    return {**{key: value for key, value in known.items() if value is not None}, "versions": versions}
