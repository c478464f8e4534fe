"""Writing files so that a crash never leaves half of one, locking them, and reading TOML."""

import os
import tomllib
from pathlib import Path
from typing import IO, Any

from amble.errors import AmbleError


def write_whole(files: dict[Path, bytes]) -> None:
    """Write all files under temporary names, then rename them, so that nobody sees half a file or half of the files."""
    try:
        for path, content in files.items():
            ending(path, ".part").write_bytes(content)
        for path in files:
            os.replace(ending(path, ".part"), path)
    except BaseException:
        for path in files:
            ending(path, ".part").unlink(missing_ok=True)
        raise


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The settings in a TOML file."""
    if not path.is_file():
        raise AmbleError(f"there is no {what} {path}; give the path of a TOML file.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AmbleError(f"{path} is not valid TOML: {str(error).rstrip('.')}.") from error
    except OSError as error:
        raise AmbleError(f"{path} cannot be read ({error.strerror}); give one that you may read.") from error


def lock(file: IO[bytes], wait: bool = False) -> None:
    """Lock a file until it is closed, or its process dies. If it is locked already, wait, or raise OSError.

    Some systems have no such locks; there, nothing happens.
    """
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def ending(base: Path, suffix: str) -> Path:
    """The name with an ending added; with_suffix would cut a name that has a dot."""
    return base.with_name(base.name + suffix)
