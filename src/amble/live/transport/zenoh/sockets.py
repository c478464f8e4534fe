"""What is done to sockets that Zenoh does not do by itself: its own are found among the open files of this process."""

import contextlib
import errno
import logging
import os
import socket
import struct
from collections.abc import Iterator

from amble.errors import AmbleError

log = logging.getLogger(__name__)

MANY_FILES = 2**16  # some systems allow a billion, and keep a table of them
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: what is unsent is thrown away, and nobody waits for it


def cut_off(here: str, there: str) -> bool:
    """End the connection between these two of Zenoh's addresses, if there is one still; whether there was.

    A link that Zenoh has given up is closed only after what it is sending has been sent, and into a dead connection
    whose buffer is full that takes the quarter of an hour after which the system gives up. Until then the neighbour
    counts as there, and is not dialled.
    """
    ends = _address(here), _address(there)
    for held in _sockets():
        with contextlib.suppress(OSError):
            if (held.getsockname()[:2], held.getpeername()[:2]) == ends:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                held.shutdown(socket.SHUT_RDWR)
                return True
    return False


def check_free(host: str, port: int) -> None:
    """Raise a sentence if nobody could listen there; Zenoh's own is long, and does not say what to do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
            trial.listen()
    except OSError as error:
        advice = "give a free port and an address of this machine"
        if error.errno == errno.EADDRINUSE:
            advice = "another program listens there, or this agent runs from a copy of its folder: end that one first"
        raise AmbleError(f"cannot listen on {host} port {port} ({error.strerror}); {advice}.") from error


def more_files() -> None:
    """Let this process have as many open files as it may: every connection is one, a stranger's, too."""
    try:
        import resource
    except ImportError:  # there is no such limit there
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError) as error:
        log.warning("only %d files can be open at once, and each connection is one: raising that to %d failed (%s)",
                    soft, wanted, error)  # fmt: skip


def _address(locator: str) -> tuple[str, int]:
    """Of `tls/127.0.0.1:7447` or `tls/[::1]:7447`."""
    host, _, port = locator.split("/", 1)[-1].partition("?")[0].rpartition(":")
    return host.strip("[]"), int(port)


def _sockets() -> Iterator[socket.socket]:
    """Every connection of this process, each as a handle of its own: that it is closed here closes nothing."""
    try:
        files = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:  # a system that does not show them
        return
    for file in files:
        handle = -1
        try:
            handle = os.dup(file)
            held = socket.socket(fileno=handle)
        except OSError:  # no socket, or closed meanwhile
            if handle >= 0:
                os.close(handle)
            continue
        with held:
            if held.type == socket.SOCK_STREAM and held.family in (socket.AF_INET, socket.AF_INET6):
                yield held
