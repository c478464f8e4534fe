"""Asking a running agent to leave, and seeing how it goes: by a file in its folder, and by what it writes there."""

import time
from collections.abc import Callable
from pathlib import Path

from amble.errors import AmbleError, is_number
from amble.live import glance
from amble.live.node import LEAVE
from amble.live.records.collect import read_status
from amble.live.settings.agent_config import AgentConfig
from amble.run import write_whole

WITHIN_MAX_S = 86_400.0
GRACE_S = 10.0  # for the agent to see the file, and to end


def ask(folder: Path, within_s: float) -> None:
    """Everything is checked before anything is asked."""
    if not (is_number(within_s) and 0 < within_s <= WITHIN_MAX_S):
        raise AmbleError(f"within = {within_s!r} was given; give seconds, above zero and at most {WITHIN_MAX_S:g}.")
    config, status = AgentConfig.read(folder), read_status(folder)
    if not config.visits().exact:
        raise AmbleError(f"nobody can leave a run of {config.method.label}: it cannot take out what an agent gave it.")
    if status.get("left"):
        raise AmbleError(f"{config.name} has left already: {status['left']}.")
    if status.get("stopped"):
        raise AmbleError(f"the run has ended ({status['stopped']}), and there is nothing to leave.")
    if not status or status["ended"] or time.time() - status["time_s"] > glance.FROZEN_S:
        raise AmbleError(f"{config.name} in {folder} {glance.sentences(status)[0]}; let it leave while it runs.")
    try:
        write_whole({folder / LEAVE: f"{within_s:g}\n".encode()})
    except OSError as error:
        raise AmbleError(f"{folder} cannot be written ({error.strerror}); run as the agent's own user.") from error


def follow(folder: Path, within_s: float, say: Callable[[str], None]) -> tuple[str, bool]:
    """Until it has left: how, and whether all that it gave is out."""
    end_s = time.monotonic() + within_s + GRACE_S
    while time.monotonic() < end_s:
        status = read_status(folder)
        name = status.get("name", folder.name)
        if status.get("left"):
            return f"{name} has left: {status['left']}", bool(status.get("all_out"))
        if status.get("stopped"):
            return f"the run has ended before {name} had left: {status['stopped']}", False
        waits = [f"token {m} waits {said['waits']}" for m, said in status.get("tokens", {}).items() if said["waits"]]
        say(f"{name} leaves ... {', '.join(waits)}")
        time.sleep(0.2)
    return f"{folder.name} has not left in time, and goes on trying; see its log", False
