"""Data sets: named ones, files, and how rows are divided among agents."""

from amble.data.datasets import Dataset
from amble.data.files import read_file

__all__ = ["Dataset", "load", "read_file"]
