"""The folder of a comparison: it holds one at a time, so that runs of two are never mixed."""

import hashlib
import json
import re
from pathlib import Path

from amble.errors import AmbleError
from amble.files import ending
from amble.results.saved import base_path

NUMBERED = re.compile(r"\d+-.+")  # 1-i-bcd, 2-api-bcd, ...
PICTURES = ("compare.png", "partition.png", "network.png", "timeline.png")  # that amble compare draws


def kept_runs(folder: Path) -> list[Path]:
    """The runs of a comparison in this folder, each as the path that its two files have in common."""
    files = folder.glob("*.json") if folder.is_dir() else ()
    bases = (base_path(file) for file in files if NUMBERED.fullmatch(file.stem))
    return sorted(base for base in bases if ending(base, ".npz").is_file())


def check_folder(folder: Path, again: bool, advice: str) -> None:
    """Refuse a folder that holds a comparison already, unless that is to be replaced and nobody has changed it."""
    runs = kept_runs(folder)
    if runs and not again:
        raise AmbleError(f"{folder} holds an earlier comparison ({runs[0].name}, ...); {advice}.")
    for base in runs:
        if not _is_ours(base):
            raise AmbleError(
                f"{folder} holds {base.name}.json, which amble did not write in this form; move it, then try again."
            )


def _is_ours(base: Path) -> bool:
    """A saved run's .json has the digest of its .npz."""
    try:
        about = json.loads(ending(base, ".json").read_text())
        return bool(about["sha256"] == hashlib.sha256(ending(base, ".npz").read_bytes()).hexdigest())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def remove_runs(folder: Path) -> None:
    """Delete the comparison in this folder: its runs and pictures, and nothing else."""
    runs = kept_runs(folder)
    for base in runs:
        for suffix in (".json", ".npz"):
            ending(base, suffix).unlink()
    for name in PICTURES if runs else ():
        (folder / name).unlink(missing_ok=True)
