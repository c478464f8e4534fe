"""Dataset: rows, targets and the names of their columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np


@final
@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and targets, with their names.

    Parameters
    ----------
    name : of the data, for tables and pages
    task : regression or classification
    X, y : rows (d, p) and targets (d): numbers for regression, labels for classification
    X_test, y_test : a published test part; without one, some rows are kept for testing when the data are split
    columns : the names of X's columns; colour=red is a category, one-hot encoded
    target : the name of y
    groups : a label per row that says which agent it belongs to, such as the site; `split` makes one agent per label
    sample_weight, offset, exposure : a number per row of X, as of `Problem.from_arrays`
    sample_weight_test, offset_test : the same per row of X_test, the logarithm of the exposure included in the offset
    table : of a file: which column was the event, offset, exposure and weight, and which (categories) are one-hot

    Example
    -------
    >>> import amble
    >>> amble.Dataset("stairs", "regression", X=[[0.0], [1.0], [2.0]], y=[0.1, 0.9, 2.1])
    Dataset(stairs: regression, 3 rows, 1 column)
    """

    name: str
    task: str
    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    columns: tuple[str, ...] | None = None
    target: str | None = None
    groups: Any = None
    sample_weight: Any = None
    offset: Any = None
    exposure: Any = None
    sample_weight_test: Any = None
    offset_test: Any = None
    table: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        kind = self.task
        if self.task == "classification":
            kind += f" of {count(len(np.unique(self.y)), 'class', 'classes')}"
        test = "" if self.X_test is None else f", {count(len(self.X_test), 'test row')}"
        rows, columns = np.shape(self.X) if np.ndim(self.X) == 2 else (0, 0)
        target = "" if self.target is None else f", target {self.target}"
        roles = "".join(f", {role} {name}" for role, name in self.table.items() if role != "categories")
        return f"Dataset({self.name}: {kind}, {count(rows, 'row')}{test}, {count(columns, 'column')}{target}{roles})"


def count(number: int, one: str, several: str | None = None) -> str:
    """1 row, 2,000 rows."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
