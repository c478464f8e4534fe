"""The table of named data sets: three come with scikit-learn, the paper's four are files of the LIBSVM page.

A new one is an entry of SETS: a file of any kind that `amble.read_file` reads, compressed or not.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array
from amble.digests import hasher


class Part(NamedTuple):
    """One published file. Its checksum is of the values, because the same rows are published in several notations."""

    file: str  # the name without the ending of a compression: its own ending says the format
    address: str  # a web address, or a path below that of the LIBSVM page
    rows: int
    size_bytes: int  # of the download, about
    sha256: str


class Known(NamedTuple):
    """What is known of a data set before it is read; one with no parts comes with scikit-learn (embedded.py)."""

    task: str
    rows: int
    columns: int
    classes: int = 0
    parts: tuple[Part, ...] = ()  # training and, where one is published, test
    names: tuple[str, ...] | None = None  # of the columns, if the file does not have them
    target: str | None = None  # its name; in a table, which column it is
    one_hot: bool = False  # whether columns of text become one of 0 and 1 per category


CPUSMALL, CADATA, IJCNN1, IJCNN1_TEST, USPS, USPS_TEST = (
    "d0750d9c0a3a503d41ed3201748c7d31bce7f7be5cfb6f0a257802df8bacef6d",
    "3658a8239926f8a3124db49b6daa112aebe3f862371868eb14848e329416cd25",
    "4866496f5011bc5ae0952737618e35cf52b7384e22f3e1b5929f37dd705b90ce",
    "35880d211b59695b126d8e725fe9c479d640dcd55a50983c0ca272c2ffb0b157",
    "acb89dcc7216697287b32b25f3f366a8c4dd49e13055efe5473f9d4a007a395a",
    "7b83f7fde929b4772f084122648ef75e2d222d30790299d06bc9a754e3b363c2",
)
CPU = "lread", "lwrite", "scall", "sread", "swrite", "fork", "exec", "rchar", "wchar", "runqsz", "freemem", "freeswap"
HOUSES = "income", "age", "rooms", "bedrooms", "population", "households", "latitude", "longitude"

cpusmall = Part("cpusmall", "regression/cpusmall", 8192, 700_000, CPUSMALL)
cadata = Part("cadata", "regression/cadata", 20640, 1_500_000, CADATA)
ijcnn1 = (
    Part("ijcnn1", "binary/ijcnn1.bz2", 49990, 1_398_220, IJCNN1),
    Part("ijcnn1.t", "binary/ijcnn1.t.bz2", 91701, 2_597_597, IJCNN1_TEST),
)
usps = (
    Part("usps", "multiclass/usps.bz2", 7291, 6_579_383, USPS),
    Part("usps.t", "multiclass/usps.t.bz2", 2007, 1_831_726, USPS_TEST),
)
SETS = {
    "diabetes": Known("regression", 442, 10, target="progression"),
    "breast_cancer": Known("classification", 569, 30, 2, target="benign"),
    "digits": Known("classification", 1797, 64, 10, target="digit"),
    "cpusmall": Known("regression", 8192, 12, parts=(cpusmall,), names=CPU, target="usr"),
    "cadata": Known("regression", 20640, 8, parts=(cadata,), names=HOUSES, target="value"),
    "ijcnn1": Known("classification", 49990, 22, 2, ijcnn1),
    "usps": Known("classification", 7291, 256, 10, usps),
}


def checksum(X: Array, y: NDArray[Any]) -> str:
    """SHA-256 of the shape, the targets and the rows, as little-endian doubles; -0 counts as 0, text is UTF-8."""
    sha = hasher(X.nbytes)
    sha.update(f"{X.shape[0]} {X.shape[1]}".encode())
    for values in (y, X):
        array = np.ascontiguousarray(values)
        text = "\n".join(array.tolist()).encode() if array.dtype.kind == "U" else None
        sha.update((array + 0.0).astype("<f8").tobytes() if text is None else text)
    return sha.hexdigest()
