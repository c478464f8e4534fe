"""What a person asks of an agent, by files in its folder: to end the whole run, or to leave it."""

import contextlib
from pathlib import Path

from amble.live.process import Process, as_bytes

STOP = "stop"  # asks for the end of the whole run; it names the process that it asks
LEAVE, LEAVE_S = "leave", 30.0  # asks the agent to leave, with the seconds that it may take


def take_stop(folder: Path, process: Process) -> bool | None:
    """Whether this process is asked to stop; False: another one is, and this run must go on. The request is removed."""
    path = folder / STOP
    try:
        asked = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):  # if it stays, amble stop removes it
        path.unlink()
    return asked == as_bytes(process)


def leave_within_s(folder: Path) -> float | None:
    """How long leaving may take, as amble leave has written it; None: nobody asks for it."""
    if not (folder / LEAVE).is_file():
        return None
    with contextlib.suppress(OSError, ValueError):
        return float((folder / LEAVE).read_text())
    return LEAVE_S
