"""Named data sets: the embedded ones come with scikit-learn, the paper's four are LIBSVM files in AMBLE_DATA."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amble.errors import AmbleError, need, unknown

EMBEDDED = {
    "diabetes": ("load_diabetes", "regression"),
    "breast_cancer": ("load_breast_cancer", "classification"),
    "digits": ("load_digits", "classification"),
}
LIBSVM = {  # task, columns, files: training and, where one is published, test
    "cpusmall": ("regression", 12, ["cpusmall.bz2"]),
    "cadata": ("regression", 8, ["cadata.bz2"]),
    "ijcnn1": ("classification", 22, ["ijcnn1.bz2", "ijcnn1.t.bz2"]),
    "usps": ("classification", 256, ["usps.bz2", "usps.t.bz2"]),
}
NAMES = (*EMBEDDED, *LIBSVM)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows X (d, p) and targets y (d): numbers for regression, labels for classification."""

    name: str
    task: str  # "regression" or "classification"
    X: Any
    y: Any
    X_test: Any = None  # a published test part; without one, some rows are held out when the data are split
    y_test: Any = None


def load(name: str) -> Dataset:
    """A data set by name: diabetes (regression), breast_cancer (two classes) and digits (ten classes) are embedded;
    cpusmall, cadata, ijcnn1 and usps are read from the folder that the environment variable AMBLE_DATA names.

    >>> load("diabetes").X.shape
    (442, 10)
    """
    if name in EMBEDDED:
        loader, task = EMBEDDED[name]
        X, y = getattr(need("sklearn.datasets", "sim"), loader)(return_X_y=True)
        return Dataset(name, task, np.asarray(X, np.float64), np.asarray(y))
    if name not in LIBSVM:
        raise unknown("data set", name, NAMES)
    task, columns, files = LIBSVM[name]
    folder = Path(os.environ.get("AMBLE_DATA", "."))
    parts: list[Any] = []
    for file in files:
        if not (folder / file).is_file():
            raise AmbleError(
                f"{name} needs the file {file}, which is not in {folder.absolute()}; "
                "set AMBLE_DATA to the folder that holds it."
            )
        read = need("sklearn.datasets", "sim").load_svmlight_file
        X, y = read(str(folder / file), n_features=columns, zero_based=False)
        parts += [X.toarray(), y]
    return Dataset(name, task, *parts)
