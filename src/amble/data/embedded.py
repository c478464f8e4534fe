"""The data sets that come with scikit-learn, read from its files without importing it, which would take seconds.

The values are those of its own loaders, bit for bit."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.data.targets import Targets
from amble.errors import AmbleError, not_installed

PATIENT = "age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"
CELL = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry",
    "fractal dimension",
)  # fmt: skip
CELLS = *(f"mean {name}" for name in CELL), *(f"{name} error" for name in CELL), *(f"worst {name}" for name in CELL)
PIXELS = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))


def read(name: str) -> tuple[Array, Targets, tuple[str, ...]]:
    """Rows, targets and the names of the columns."""
    if name == "diabetes":
        X = _table("diabetes_data_raw.csv.gz")
        X = (X - X.mean(axis=0)) / X.std(axis=0) / len(X) ** 0.5
        return X, _table("diabetes_target.csv.gz"), PATIENT
    if name == "breast_cancer":
        rows, columns = _table("breast_cancer.csv", delimiter=",", skiprows=1), CELLS
    else:
        rows, columns = _table("digits.csv.gz", delimiter=","), PIXELS
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].astype(int), columns


def _table(file: str, **options: Any) -> Array:
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise not_installed("sim")
    path = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / file
    if not path.is_file():
        raise AmbleError(
            f"scikit-learn has no {path}; install a version that has it: pip install 'scikit-learn==1.5.*'"
        )
    return np.loadtxt(path, **options)
