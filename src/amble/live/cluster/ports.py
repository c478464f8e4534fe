"""Ports of this machine for the agents of a run, which no other run gets between their choice and their use."""

import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

from amble.errors import AmbleError

PORTS = range(20_000, 32_000)  # Zenoh needs ports below 32768


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, and that no other process of this user was given and still runs."""
    ports: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
        if not reserve(port):
            continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise AmbleError(
        f"{count} free ports between {PORTS.start} and {PORTS.stop} are needed; close some programs first."
    )


def reserve(port: int) -> bool:
    """Keeps a port for this process until it ends; False: another process has it.

    A run's agents listen seconds after their ports were chosen, and a port that another run has chosen meanwhile would
    leave one agent out, for which all others wait. The system releases the lock of a process that ends. Where there are
    no such locks, nothing is kept.
    """
    try:
        import fcntl
    except ImportError:
        return True
    if (file := _locks()) is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)  # one byte of an empty file is enough
    except OSError:
        return False
    return True


@cache
def _locks() -> int | None:
    """The file whose bytes are locked: open until the process ends, because closing it would release them all."""
    path = Path(tempfile.gettempdir()) / f"amble-ports-{os.getuid()}"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
