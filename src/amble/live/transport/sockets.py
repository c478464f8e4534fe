"""Ports and open files, as any transport over sockets needs them."""

import errno
import logging
import socket

from amble.errors import AmbleError

MANY_FILES = 2**16  # some systems allow a billion, and keep a table of them

log = logging.getLogger(__name__)


def check_free(host: str, port: int) -> None:
    """Raise a sentence if nobody could listen there."""
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
    """Let this process open as many files as allowed: every connection is one, even a stranger's."""
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
