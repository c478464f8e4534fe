"""Named data sets. The embedded ones come with scikit-learn and need no network."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from amble.errors import need, unknown

EMBEDDED = {
    "diabetes": ("load_diabetes", "regression"),
    "breast_cancer": ("load_breast_cancer", "classification"),
    "digits": ("load_digits", "classification"),
}


@dataclass(frozen=True)
class Dataset:
    """Rows X (d, p) and targets y (d): numbers for regression, labels for classification."""

    name: str
    task: str  # "regression" or "classification"
    X: Any
    y: Any
    X_test: Any = None  # a published test part; without one, some rows are held out when the data are split
    y_test: Any = None


def load(name: str) -> Dataset:
    """A data set by name: diabetes (regression), breast_cancer (two classes), digits (ten classes).

    >>> load("diabetes").X.shape
    (442, 10)
    """
    if name not in EMBEDDED:
        raise unknown("data set", name, EMBEDDED)
    loader, task = EMBEDDED[name]
    X, y = getattr(need("sklearn.datasets", "sim"), loader)(return_X_y=True)
    return Dataset(name, task, np.asarray(X, np.float64), np.asarray(y))
