"""Which files a piece of code opens, by Python's own audit of all that is opened."""

import contextlib
import os
import sys
from pathlib import Path

_listening: list[tuple[Path, set[Path]]] = []


def _heard(event, arguments):
    if event in ("open", "sqlite3.connect") and isinstance(arguments[0], str | bytes | os.PathLike):
        path = Path(os.fsdecode(arguments[0]).removeprefix("file://").partition("?")[0])
        for folder, files in _listening:
            if folder in path.parents:
                files.add(path)


sys.addaudithook(_heard)  # it stays until the process ends: there is no way to take it away


@contextlib.contextmanager
def below(folder):
    """The files in this folder that are opened in the block, by any thread."""
    files = set()
    _listening.append((folder, files))
    try:
        yield files
    finally:
        _listening.remove((folder, files))
