"""Zenoh's own log, turned into ours: whom it refused and why, and why a neighbour cannot be reached.

Zenoh logs nothing unless it is told to, and then it writes to the standard output, whatever Python does with that. So
the process's output is given to a pipe that is read here, and Python's own print goes on to where it went before.
"""

import logging
import os
import re
import sys
import threading
import time
from typing import IO

from amble.errors import need
from amble.live.transport.zenoh.configuration import OPEN_S, OPEN_TRIPS

FILTER = "off,zenoh_link_tls=warn,zenoh::net::runtime::orchestrator=debug"
AGAIN_S = 60.0  # the same sentence is not said more often: neighbours are dialled every second, strangers may be many
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+ +(TRACE|DEBUG|INFO|WARN|ERROR) .*?(zenoh\w*(?:::\w+)*): (.*)")
REFUSED = re.compile(r"(.*?)(?:: verification time .*)?\.? Hint: .*")
UNREACHED = re.compile(r"Unable to connect to configured peer \w+/(\S+)! (.*?)(?: at /\S+)?\.* Retry in .*")
INNER = re.compile(r"Can not create a new TLS link bound to .*?\)\)\)?: (?:\[\S+: )?(.*?)\]?$")  # what the system says
SOURCE_LINE = re.compile(r" at /\S+\.rs:\d+\.?")  # in the engine's source

log = logging.getLogger(__name__)
_begun = threading.Lock()


def listen() -> None:
    """Begin, before the first session is opened; once is enough, because it lasts as long as the process."""
    if not _begun.acquire(blocking=False):
        return
    zenoh = need("zenoh", "live")
    sys.stdout.flush()
    before = os.fdopen(os.dup(1), "w", buffering=1)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)  # what is too much is lost: Zenoh's threads must never wait for us
    os.dup2(writing, 1)
    os.close(writing)
    sys.stdout = before
    zenoh.init_log_from_env_or(FILTER)
    threading.Thread(target=_read, args=(os.fdopen(reading, errors="replace"), before), daemon=True).start()


def end() -> None:
    """The process's output goes where it went before."""
    if _begun.locked():
        sys.stdout.flush()
        os.dup2(sys.stdout.fileno(), 1)


def _read(lines: IO[str], others: IO[str]) -> None:
    said: dict[str, float] = {}
    for line in lines:
        match = LINE.match(COLOUR.sub("", line))
        if match is None:
            others.write(line)  # a child process's, or one of another library's
            continue
        sentence, now = sentence_of(match[2], match[3]), time.monotonic()
        if sentence and now - said.get(sentence, -AGAIN_S) >= AGAIN_S:
            said = {old: at_s for old, at_s in said.items() if now - at_s < AGAIN_S}
            said[sentence] = now
            log.warning(sentence)


def sentence_of(source: str, sentence: str) -> str:
    """What one line of Zenoh's log means for the user; "" for most lines."""
    if source.startswith("zenoh_link_tls") and (refused := REFUSED.match(sentence)):
        other = ": it does not trust our certificate; are both folders of the same amble init?"
        return f"refused a connection: {refused[1]}" + (other if "DecryptError" in refused[1] else "")
    if unreached := UNREACHED.match(sentence):
        why = INNER.sub(r"\1", SOURCE_LINE.sub("", unreached[2]))
        if "invalid peer certificate" in why:
            return f"{unreached[1]} answers, but {why}: are its folder and this one of the same amble init?"
        if "deadline has elapsed" in why:
            why = (
                f"no link within {OPEN_S:g} s, the time for {OPEN_TRIPS} round trips; is it up, does a "
                f"firewall drop what is sent, does a round trip take longer than {OPEN_S / OPEN_TRIPS:g} s?"
            )
            return f"cannot reach {unreached[1]}: {why} It is tried until it answers"
        return f"cannot reach {unreached[1]}: {why}; it is tried until it answers"
    return ""
