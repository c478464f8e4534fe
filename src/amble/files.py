"""Writing files so that a crash never leaves half of one."""

import os
from pathlib import Path


def write_whole(files: dict[Path, bytes]) -> None:
    """Write all files under temporary names, then rename them, so that nobody sees half a file or half the set."""
    try:
        for path, content in files.items():
            ending(path, ".part").write_bytes(content)
        for path in files:
            os.replace(ending(path, ".part"), path)
    finally:
        for path in files:
            ending(path, ".part").unlink(missing_ok=True)


def ending(base: Path, suffix: str) -> Path:
    """The name with an ending added; with_suffix would cut a name that has a dot."""
    return base.with_name(base.name + suffix)
