"""Asking a run to end: by a file in the folder of one agent that runs here, which tells all others."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from amble.errors import AmbleError, is_number
from amble.live import glance
from amble.live.node import STOP
from amble.run import write_whole

WITHIN_MAX_S = 86_400.0
LOOK_S = 0.2


def stop(paths: Iterable[Path], within_s: float, say: Callable[[str], None]) -> tuple[glance.Overview, list[str]]:
    """End the run of these agents; how they are then, and which of them still run."""
    if not (is_number(within_s) and 0 < within_s <= WITHIN_MAX_S):
        raise AmbleError(f"within = {within_s!r} was given; give seconds, above zero and at most {WITHIN_MAX_S:g}.")
    folders = glance.folders_of(paths)
    seen = glance.look(folders)
    running = [name for name in folders if seen.agents[name].runs]
    if not running:
        words = (
            f"the run has ended: {seen.words}" if seen.words else "start an agent, or give the folder of one that runs"
        )
        raise AmbleError(f"none of {', '.join(folders)} runs; {words}.")
    asked = folders[running[0]] / STOP
    try:
        write_whole({asked: b""})
        end_s = time.monotonic() + within_s
        while running and time.monotonic() < end_s:
            say(f"waiting for {', '.join(running)} to end ...")
            time.sleep(LOOK_S)
            seen = glance.look(folders)
            running = [name for name in running if seen.agents[name].runs]
        return seen, running
    except OSError as error:
        raise AmbleError(
            f"{asked.parent} cannot be written ({error.strerror}); run as the agent's own user."
        ) from error
    finally:
        asked.unlink(missing_ok=True)  # or it would end the agent's next run
