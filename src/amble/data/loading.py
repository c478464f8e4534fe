"""Loading a data set by its name."""

from dataclasses import replace

from amble.data import embedded
from amble.data.cache import read_part
from amble.data.datasets import Dataset
from amble.data.known import SETS
from amble.errors import unknown

NAMES = tuple(SETS)


def load(name: str) -> Dataset:
    """A data set by name.

    Parameters
    ----------
    name : diabetes (regression), breast_cancer (two classes) and digits (ten) are embedded; `amble data` lists all.
        The files of the others are looked for in the folder that the environment variable AMBLE_DATA names, then in the
        user's cache (~/.cache/amble), and else downloaded to the cache; their values are checked against a checksum
        each time.

    Returns
    -------
    Dataset

    Example
    -------
    >>> import amble
    >>> amble.load("diabetes")
    Dataset(diabetes: regression, 442 rows, 10 columns, target progression)
    """
    if not isinstance(name, str) or name not in SETS:
        raise unknown("data set", name, SETS)
    known = SETS[name]
    if not known.parts:
        X, y, names = embedded.read(name)
        return Dataset(name, known.task, X, y, columns=names, target=known.target)
    data = read_part(name, known.parts[0])
    if len(known.parts) == 1:
        return data
    test = read_part(name, known.parts[1])
    return replace(data, X_test=test.X, y_test=test.y)
