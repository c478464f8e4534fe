"""Compiled programs in the user's cache: a later process reads what an earlier one has compiled.

JAX can keep programs in a folder, but its setting is for the whole process, and it does not write files in one piece.
So the setting is ours only while amble compiles, and only where nobody has chosen another. JAX works in a folder of
this process, with links to the files of the cache; what is new there gets a link in the cache when it is complete.

AMBLE_CACHE in the environment names another folder; "off" keeps nothing.
"""

import atexit
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from amble.data.cache import cache_folder

PROGRAMS_MAX = 1000  # the oldest go; one takes about 10 to 100 kB
LEFT_OVER_S = 24 * 3600.0  # a process that was killed leaves its folder


class Folders(NamedTuple):
    kept: Path  # one file per program
    own: Path  # of this process, until it ends


@contextmanager
def kept_programs(jax: Any) -> Iterator[None]:
    """While it is open, JAX reads programs from the user's cache, and those that it compiles are kept there."""
    folders = None if jax.config.jax_compilation_cache_dir else open_cache(os.environ.get("AMBLE_CACHE", ""))
    if folders is None:
        yield
        return
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    ours = {
        "jax_compilation_cache_dir": str(folders.own),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_enable_xla_caches": "none",  # it would make the folder part of the names of programs
    }
    before = {name: getattr(jax.config, name) for name in ours}
    changed_ns = changed(folders)
    try:
        for name, value in ours.items():
            jax.config.update(name, value)
        reset_cache()  # JAX looks at the setting once, unless it is told to look again
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        reset_cache()
        if changed(folders) != changed_ns:
            keep(folders)


def changed(folders: Folders) -> int:
    """When a program came last: to look for it among a thousand others would take milliseconds."""
    with suppress(OSError):
        return folders.own.stat().st_mtime_ns
    return 0


@cache
def open_cache(chosen: str) -> Folders | None:
    """The folders of the cache; None where there is none, or nothing can be written."""
    if chosen == "off":
        return None
    kept = (Path(chosen) if chosen else cache_folder() / "compiled") / machine()
    try:
        kept.mkdir(parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix="process-", dir=kept))
        atexit.register(shutil.rmtree, own, ignore_errors=True)
        programs = sorted(kept.glob("*-cache"), key=lambda path: path.stat().st_mtime)
        for path in programs[:-PROGRAMS_MAX]:
            path.unlink(missing_ok=True)
        for path in programs[-PROGRAMS_MAX:]:
            os.link(path, own / path.name)
        for path in kept.glob("process-*"):
            if time.time() - path.stat().st_mtime > LEFT_OVER_S:
                shutil.rmtree(path, ignore_errors=True)
    except OSError:  # a full or read-only disk, or one without links: then every process compiles for itself
        return None
    return Folders(kept, own)


def keep(folders: Folders) -> None:
    """Links in the cache to the programs that this process has compiled, each of which appears there as a whole."""
    with suppress(OSError):
        new = {path.name for path in folders.own.glob("*-cache")} - {*os.listdir(folders.kept)}
        for name in new:
            with suppress(FileExistsError):
                os.link(folders.own / name, folders.kept / name)


@cache
def machine() -> str:
    """Names what a program was compiled for: a home folder may be shared by machines with unlike processors."""
    described = [platform.machine(), platform.processor()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described += [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    return sha256("\n".join(described).encode()).hexdigest()[:16]
