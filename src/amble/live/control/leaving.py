"""Asks a running agent to leave, by a file in its folder, and follows its status until it has left."""

import time
from collections.abc import Callable
from pathlib import Path

from amble.errors import AmbleError, is_number
from amble.files import write_whole
from amble.live.agent.requests import LEAVE
from amble.live.control import glance
from amble.live.settings.agent_config import AgentConfig
from amble.live.status import RUNNING, read

WITHIN_MAX_S = 86_400.0
GRACE_S = 10.0  # for the agent to see the file, and to end


def ask(folder: Path, within_s: float) -> None:
    """Everything is checked before anything is asked."""
    if not (is_number(within_s) and 0 < within_s <= WITHIN_MAX_S):
        raise AmbleError(f"within = {within_s!r} was given; give seconds, above zero and at most {WITHIN_MAX_S:g}.")
    config, status = AgentConfig.read(folder), read(folder)
    if not (visits := config.visits()).removes:
        advice = " Stop the agent instead: the others go on without it." if visits.exact else ""
        raise AmbleError(
            f"no agent can leave a run of {config.method.label}: this method cannot remove what an agent gave.{advice}"
        )
    if status.state == "left":
        raise AmbleError(f"{config.name} has left already: {status.left}.")
    if status.cause:
        raise AmbleError(f"the run has ended ({status.stopped}), so there is nothing to leave.")
    if (agent := glance.of_agent(status, folder)).state not in RUNNING:
        raise AmbleError(
            f"{config.name} in {folder} does not run ({agent.words}); an agent can leave only while it runs."
        )
    try:
        write_whole({folder / LEAVE: f"{within_s:g}\n".encode()})
    except OSError as error:
        raise AmbleError(f"{folder} cannot be written ({error.strerror}); run as the agent's own user.") from error


def follow(folder: Path, within_s: float, say: Callable[[str], None]) -> tuple[str, bool]:
    """Wait until it has left; return how, and whether all its gifts are out of the model."""
    end_s = time.monotonic() + within_s + GRACE_S
    while time.monotonic() < end_s:
        status = read(folder)
        name = status.name or folder.name
        if status.state == "left":
            return f"{name} has left: {status.left}", status.all_out
        if status.cause:
            return f"the run has ended before {name} had left: {status.stopped}", False
        waits = [f"token {m} waits for {sight.to}" for m, sight in status.tokens.items() if sight.to]
        say(f"{name} leaves ... {', '.join(waits)}")
        time.sleep(0.2)
    return f"{folder.name} has not left in time and keeps trying; see its log", False
