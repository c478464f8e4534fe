"""Limits linear algebra to one thread. It must be called before NumPy is imported."""

import os

LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def one_thread() -> None:
    """An agent's systems are small: several threads would mostly wait for each other. Sums that are split differently
    differ in the last bit, so that a replay would not be exact. A value that the user has set is kept."""
    for name in LIBRARIES:
        os.environ.setdefault(name, "1")
