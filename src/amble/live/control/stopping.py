"""Asks a run to end, by a file in the folders of the agents that run here. They tell all others."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from amble.errors import AmbleError, is_number
from amble.files import write_whole
from amble.live.agent.requests import STOP
from amble.live.control import glance
from amble.live.process import as_bytes
from amble.live.records.collect import agent_folders
from amble.live.status import read

WITHIN_MAX_S = 86_400.0
LOOK_S = 0.2


def stop(paths: Iterable[Path], within_s: float, say: Callable[[str], None]) -> tuple[glance.Overview, list[str]]:
    """End the run of these agents; return their state, and which of them still run."""
    if not (is_number(within_s) and 0 < within_s <= WITHIN_MAX_S):
        raise AmbleError(f"within = {within_s!r} was given; give seconds, above zero and at most {WITHIN_MAX_S:g}.")
    folders = agent_folders(paths, unreadable=True)
    seen = glance.look(folders)
    running = [name for name in folders if seen.agents[name].runs]
    if not running:
        advice = "start an agent, or give the folder of one that runs"
        advice = f"the run has ended: {seen.words}" if seen.state == "ended" else advice
        raise AmbleError(f"none of {', '.join(folders)} runs; {advice}.")
    asked: dict[Path, bytes] = {}
    try:
        end_s = time.monotonic() + within_s
        while running and time.monotonic() < end_s:
            _ask([folders[name] for name in running], asked)
            say(f"waiting for {', '.join(running)} to end ...")
            time.sleep(LOOK_S)
            seen = glance.look(folders)
            running = [name for name in running if seen.agents[name].runs]
        return seen, running
    except OSError as error:
        raise AmbleError(
            f"{error.filename} cannot be written ({error.strerror}); run as the agents' own user."
        ) from error
    finally:
        for path in asked:
            path.unlink(missing_ok=True)


def _ask(folders: Iterable[Path], asked: dict[Path, bytes]) -> None:
    """Ask each process once, and again if it was restarted; all of them, because any may hang or have no link."""
    processes = {folder / STOP: read(folder).process for folder in folders}
    new = {path: as_bytes(process) for path, process in processes.items() if process is not None}
    new = {path: content for path, content in new.items() if asked.get(path) != content}
    asked |= new
    write_whole(new)
