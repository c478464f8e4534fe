"""Limits linear algebra to one thread. It must be called before NumPy is imported."""

import os

LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def one_thread() -> None:
    """An agent's systems are small: more threads wait for each other, longer than they work, and sums that are split
    otherwise differ in the last bit, so that a replay would not be exact. What a person has set stays."""
    for name in LIBRARIES:
        os.environ.setdefault(name, "1")
