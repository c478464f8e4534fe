"""Data sets, and who holds which rows."""

from amble.data.datasets import Dataset, load

__all__ = ["Dataset", "load"]
