"""The files of the named data sets: in the folder AMBLE_DATA, in the user's cache, or downloaded on first use.

The environment variable AMBLE_DATA_URL replaces the address of the LIBSVM page: for a mirror, or a server in a test. A
file that has its own web address comes from there.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from amble.data import libsvm
from amble.data.datasets import Dataset
from amble.data.files import TABLES, Reading, read_content
from amble.data.known import SETS, Part, checksum
from amble.data.packed import inner_suffix, read_bytes, unpacked
from amble.errors import AmbleError, NotInstalled, Unusable, unusable

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UNPACKED_BYTES_MAX = 512 * 2**20
PACKINGS = (".bz2", ".xz", ".gz", "")


def cache_folder() -> Path:
    """The user's folder for files that can be downloaded again."""
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder) / "amble"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "amble" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "amble"


def folders() -> list[Path]:
    """The folders in which files are searched, in this order."""
    own = os.environ.get("AMBLE_DATA")
    return [*([Path(own)] if own else []), cache_folder()]


def find(part: Part) -> Path | None:
    """The file of a part, if it is here."""
    places = (folder / f"{part.file}{packing}" for folder in folders() for packing in PACKINGS)
    return next((place for place in places if place.is_file()), None)


def url_of(part: Part) -> str:
    if "://" in part.address:
        return part.address
    return (os.environ.get("AMBLE_DATA_URL") or PAGE).rstrip("/") + "/" + part.address


def check(name: str, part: Part, content: bytes, where: str) -> Dataset:
    """The rows of a part, if its file is complete and has the published values."""
    known, kind, content = SETS[name], inner_suffix(Path(part.file)), unpacked(content, where, UNPACKED_BYTES_MAX)
    if kind in (*TABLES, ".npz"):
        target, categorical = known.target if kind in TABLES else None, "one-hot" if known.one_hot else "refuse"
        first = known.parts[0]  # a test part has the categories of the training part
        columns = read_part(name, first).columns if known.one_hot and part is not first else None
        try:
            data = read_content(content, kind, name, where, Reading(known.task, target, None, categorical, columns))
        except NotInstalled:
            raise
        except AmbleError as error:
            raise unusable(
                f"{where} is not {part.file} as it was published ({str(error).rstrip('.')})", "copy it again"
            ) from error
    else:
        X, y = libsvm.parse(content, where, known.columns)
        data = Dataset(name, known.task, X, y, columns=known.names, target=known.target)
    digest = checksum(data.X, data.y)
    if digest != part.sha256:
        raise unusable(
            f"{where} is not {part.file} as it was published: the checksum of its {len(data.y):,} rows begins with "
            f"{digest[:12]}, and that of the {part.rows:,} published ones with {part.sha256[:12]}",
            "copy it again",
        )
    return data


def read_part(name: str, part: Part) -> Dataset:
    """The rows of a part; it is downloaded first if it is not on this machine."""
    path = find(part) or fetch(name, part)
    try:
        return check(name, part, read_bytes(path), str(path))
    except Unusable as error:
        raise AmbleError(f"{error.problem}; delete it, and fetch it again with: amble data get {name}.") from error


def fetch(name: str, part: Part) -> Path:
    """Download a part to the cache; it gets its final name only when it is complete and correct."""
    from amble.data.download import download  # this imports the web libraries, which most runs never need

    folder, url = cache_folder(), url_of(part)
    goal = folder / url.rpartition("/")[2]
    partial = goal.with_name(f"{goal.name}.{os.getpid()}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = download(url, goal.name)
        check(name, part, content, url)
        partial.write_bytes(content)
        os.replace(partial, goal)
    except Unusable as error:
        files = " and ".join(url_of(each) for each in SETS[name].parts if each is part or find(each) is None)
        raise AmbleError(
            f"{error.problem}; try again, or get {files} in another way and copy it into {folder}, or into the "
            "folder that the environment variable AMBLE_DATA names."
        ) from error
    except OSError as error:
        raise AmbleError(
            f"nothing can be written to the cache folder {folder} ({error.strerror}); "
            "set XDG_CACHE_HOME to a folder that you can write to."
        ) from error
    finally:
        with suppress(OSError):
            partial.unlink()
    return goal


def ensure(name: str) -> None:
    """Download the files of a set that are not on this machine; files are checked when they are read."""
    for part in SETS[name].parts:
        find(part) or fetch(name, part)


def get(name: str) -> list[tuple[Path, bool]]:
    """Every file of a set, and whether it was downloaded: it is if it is missing here, or damaged in the cache."""
    files = []
    for part in SETS[name].parts:
        path = find(part)
        if path is not None and path.parent != cache_folder():
            read_part(name, part)  # amble does not repair this folder: if the file is wrong, this raises an error
            files.append((path, False))
        elif path is not None and is_right(name, part, path):
            files.append((path, False))
        else:
            files.append((fetch(name, part), True))
            if path is not None and path != files[-1][0]:
                path.unlink()  # only now: a damaged file may be the only copy
    return files


def is_right(name: str, part: Part, path: Path) -> bool:
    try:
        check(name, part, read_bytes(path), str(path))
    except Unusable:
        return False
    return True
