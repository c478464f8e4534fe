"""Identifies an agent's process, so that a reader of its status knows whether it still runs; and keeps it small."""

import json
import os
import platform
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from amble.live.codec import msgspec

PROC = Path("/proc")
APART_S = 10.0  # what is found in a child process takes well below a second

Condition = Literal["runs", "frozen", "gone"]


class Process(msgspec.Struct, frozen=True):
    """A process number is valid only on its own machine, and may later belong to another process."""

    pid: Annotated[int, msgspec.Meta(gt=0, lt=2**31)]  # zero and less would mean groups of processes
    begun: str  # when it started, in the system's own units; "" if that cannot be read
    machine: str


def as_bytes(process: Process) -> bytes:
    """For a file that is meant for one process only."""
    return msgspec.json.encode(process)


def this_process() -> Process:
    return Process(os.getpid(), _stat(os.getpid())[1], _machine())


def condition(process: Process | None) -> Condition | None:
    """The state of the process; None if it cannot be seen from here."""
    if process is None or os.name != "posix" or process.machine != _machine():
        return None
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:  # another user's process: it exists
        pass
    state, begun = _stat(process.pid)
    if (begun and begun != process.begun) or state in ("Z", "X"):
        return "gone"
    return "frozen" if state in ("T", "t") else "runs"


def apart(function: Callable[..., list[str]], *arguments: object) -> list[str]:
    """What the function returns, found in a child process, so that this one does not keep the libraries it needs.

    Where that is not possible, or fails, it is called here; then its error is raised here, too.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:  # a child has but one thread, and locks of the others
        return function(*arguments)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, json.dumps(function(*arguments)).encode())
            code = 0
        finally:
            os._exit(code)  # nothing of this process is ended twice
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        if not select.select([file], [], [], APART_S)[0]:  # no child may hold an agent up
            os.kill(child, signal.SIGKILL)
        answer = file.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        return function(*arguments)
    found: list[str] = json.loads(answer)
    return found


def _machine() -> str:
    """The same for processes that see each other by number: one start of one system, and one namespace of it."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return platform.node()


def _stat(pid: int) -> tuple[str, str]:
    """A process's state and when it began; its name, in parentheses before them, may hold anything."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""
