"""Reads files that may be compressed, by their ending. A file that is cut short gives a clear error."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amble.errors import AmbleError, unusable

OPENERS: dict[str, Any] = {".bz2": bz2.open, ".xz": lzma.open, ".gz": gzip.open}
HALF = (EOFError, OSError, lzma.LZMAError, zlib.error)  # errors that the openers raise on half a file

# errors of reading a damaged .npz file or its content
DAMAGED = (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile)


def inner_suffix(path: Path) -> str:
    """The ending that says the format, without that of a compression: .csv for rows.csv.bz2."""
    return (path.with_suffix("") if path.suffix.lower() in OPENERS else path).suffix.lower()


def read_bytes(path: Path) -> bytes:
    """The file's content, still compressed if it was."""
    if not path.is_file():
        raise unusable(f"there is no file {path}", "give the path of one")
    try:
        return path.read_bytes()
    except OSError as error:
        raise unusable(f"{path} cannot be read ({error.strerror})", "give one that you may read") from error


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file."""
    content = io.BytesIO(read_bytes(path))
    try:
        return np.lib.format.read_array(content, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise AmbleError(f"{path} is not a .npy file of numbers; write it with numpy.save(path, numbers).") from error


def npz_of(arrays: Mapping[str, NDArray[Any]], compressed: bool = False) -> bytes:
    """The content of a .npz file of these arrays."""
    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, allow_pickle=False, **arrays)
    return content.getvalue()


def arrays_of(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file, or one of the errors in DAMAGED. Nothing in the file is executed: objects are
    refused."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


def unpacked(content: bytes, where: str, limit: int | None = None) -> bytes:
    """The content decompressed, by the file's ending; a limit keeps a small file from filling the memory."""
    opener = OPENERS.get(Path(where).suffix.lower())
    if opener is None:
        return content
    try:
        with opener(io.BytesIO(content), "rb") as file:
            whole: bytes = file.read() if limit is None else file.read(limit + 1)
    except HALF as error:
        raise unusable(f"{where} is cut short or damaged ({str(error).rstrip('.')})", "copy it again") from error
    if limit is not None and len(whole) > limit:
        raise unusable(f"{where} unpacks to more than {limit:,} bytes", "copy it again")
    return whole


def as_text(content: bytes, where: str) -> str:
    """The content as text, with or without the mark that some programs put at its start."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise AmbleError(f"{where}, line {line} is not UTF-8 text; save the file as UTF-8.") from error
