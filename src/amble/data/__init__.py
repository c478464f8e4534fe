"""Data sets, and who holds which rows."""

from amble.data.datasets import Dataset, load
from amble.data.files import read_file

__all__ = ["Dataset", "load", "read_file"]
