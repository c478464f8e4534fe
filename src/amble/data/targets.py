"""Which column is the target, and whether it holds labels (classification) or amounts (regression)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array
from amble.data.tables import Column, Table
from amble.errors import AmbleError, unknown

Targets = NDArray[Any]  # amounts, or labels of any type
TASKS = ("regression", "classification")
CLASSES_MAX = 20  # whole-number targets with more different values than this count as amounts


def find_target(table: Table, target: str | int | None, role: str = "target") -> Column:
    """By name or by number: from 0, or from the end with -1; without either, the last."""
    names = [column.name for column in table.columns]
    if target is None:
        return table.columns[-1]
    if isinstance(target, str) and target in names:
        return table.columns[names.index(target)]
    try:
        return table.columns[int(target)]
    except IndexError as error:
        raise AmbleError(
            f"{role}={target} was given and {table.where} has {len(names)} columns; give a name, a number from 0 to "
            f"{len(names) - 1}, or -1 for the last."
        ) from error
    except (TypeError, ValueError):
        raise unknown(f"column of {table.where}", target, names) from None


def targets(table: Table, column: Column, task: str | None) -> tuple[Targets, str]:
    """Targets and task. Text is labels, and so are few different whole numbers, unless the task is regression."""
    if column.numbers is not None:
        return labels_or_amounts(column.numbers, task)
    if task == "regression":
        table.refuse_text(column, "regression needs numbers: fix it, or give another target or task='classification'")
    if task is None and is_amounts(column):
        table.refuse_text(column, "most of the column is numbers: fix it, or give task='classification' for labels")
    return np.array(column.texts), "classification"


def is_amounts(column: Column) -> bool:
    """Whether a column of text has mostly numbers, many and different, with other text among them by mistake."""
    numbers = [number for text in column.texts or () if (number := as_number(text)) is not None]
    return 2 * len(numbers) > len(column.texts or ()) and len(set(numbers)) > CLASSES_MAX


def as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def labels_or_amounts(numbers: Array, task: str | None) -> tuple[Targets, str]:
    """Targets that are numbers, and the task: whole numbers of at most 20 values are labels, unless the task says
    otherwise."""
    whole = bool((numbers == np.round(numbers)).all() and np.abs(numbers).max(initial=0.0) < 2**53)
    if task is None:
        task = "classification" if whole and len(np.unique(numbers)) <= CLASSES_MAX else "regression"
    return (numbers.astype(np.int64) if task == "classification" and whole else numbers), task
