"""What Zenoh does not do with its own sockets, which are found among the open files of this process."""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator

AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: what is unsent is thrown away, and nobody waits for it


def cut_off(here: str, there: str) -> bool:
    """End the connection between these two addresses of Zenoh, if it still exists; returns whether it did.

    A link that Zenoh has given up is closed only after what it is sending has been sent, and into a dead connection
    whose buffer is full that takes the quarter of an hour after which the system gives up. Until then the neighbour
    counts as there, and is not dialled.
    """
    ends = _address(here), _address(there)
    for connection in _sockets():
        with contextlib.suppress(OSError):
            if (connection.getsockname()[:2], connection.getpeername()[:2]) == ends:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                connection.shutdown(socket.SHUT_RDWR)
                return True
    return False


def _address(locator: str) -> tuple[str, int]:
    """Of `tls/127.0.0.1:7447` or `tls/[::1]:7447`."""
    host, _, port = locator.split("/", 1)[-1].partition("?")[0].rpartition(":")
    return host.strip("[]"), int(port)


def _sockets() -> Iterator[socket.socket]:
    """Every connection of this process, each as a copied handle: closing it here does not close the connection."""
    try:
        files = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:  # a system that does not show them
        return
    for file in files:
        handle = -1
        try:
            handle = os.dup(file)
            connection = socket.socket(fileno=handle)
        except OSError:  # no socket, or closed meanwhile
            if handle >= 0:
                os.close(handle)
            continue
        with connection:
            if connection.type == socket.SOCK_STREAM and connection.family in (socket.AF_INET, socket.AF_INET6):
                yield connection
