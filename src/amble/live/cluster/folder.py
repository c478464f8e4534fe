"""The folder of amble up: whether it may be used, who uses it now, and how a new run replaces the old one."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from amble.errors import AmbleError
from amble.files import lock
from amble.live.journal import file as journal_file
from amble.live.records import collect, record
from amble.live.settings import bundle
from amble.live.settings.agent_config import FILE
from amble.live.settings.config import TAKEN
from amble.results import model_file

MADE = "up.json"  # marks a folder of amble up
RUN = "run"  # .json and .npz, for amble report


def check_folder(folder: Path, again: bool) -> None:
    """Refuses a folder unless it is new or empty, or amble up made it, it has nothing else in it, and nobody uses
    it."""
    try:
        _check(folder, again)
    except FileNotFoundError:
        raise _used(folder) from None  # it existed a moment ago: another process is replacing it


def _used(folder: Path) -> AmbleError:
    return AmbleError(
        f"{folder} is in use by another amble up or its agents; wait for them, or give another with --out."
    )


def _check(folder: Path, again: bool) -> None:
    if not folder.exists():
        return
    if folder.is_dir():
        bundle.check_not_here(folder)
        if not any(folder.iterdir()):
            return
    if not folder.is_dir() or not (folder / MADE).is_file():
        raise AmbleError(f"{folder} is not empty, and amble up did not make it; give another with --out.")
    if not again:
        raise AmbleError(f"{folder} holds an earlier run; give another with --out, or --again to replace it.")
    ours = {
        MADE,
        TAKEN,
        f"{RUN}.json",
        f"{RUN}.npz",
        model_file.FILE,
        record.FILE,
        *(path.parent.name for path in folder.glob(f"*/{FILE}")),
    }
    strange = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    if strange:
        raise AmbleError(f"{folder} holds {strange[0]}, which amble up did not make; move it, then give --again.")
    hold(folder).close()
    for path in folder.glob(f"*/{collect.JOURNAL}"):
        if journal_file.in_use(path):
            raise AmbleError(f"the journal {path} is in use by another process; stop that one first.")


def hold(folder: Path) -> IO[bytes]:
    """The file that marks a run, locked by one amble up and its agents; a process that dies releases the lock."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context((folder / MADE).open("rb"))
            lock(file)
            if os.fstat(file.fileno()).st_ino != (folder / MADE).stat().st_ino:
                raise _used(folder)  # another one has replaced it meanwhile
        except OSError:
            raise _used(folder) from None
        stack.pop_all()
        return file


def remove(folder: Path) -> None:
    """Rename it first, so that nobody ever sees half of it."""
    with hold(folder):
        try:
            aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            folder.rename(aside / folder.name)
            shutil.rmtree(aside)
        except OSError as error:
            raise AmbleError(f"{folder} cannot be replaced ({error.strerror}); give another with --out.") from error
