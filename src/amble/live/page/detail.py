"""What the page shows of one agent, when it is asked for: from its status, its certificate, the size of its journals
and the end of its log. Lines of the log that may quote the agent's rows are left out."""

import contextlib
import re
from pathlib import Path

from amble.live import status
from amble.live.codec import msgspec
from amble.live.control import glance
from amble.live.core.message import printable
from amble.live.records import collect

LOG, LOG_BYTES, LOG_LINES, LINE_MAX = "log.txt", 65_536, 80, 400
# as agent.py has its log written; lines of the level PRIVATE, and what libraries write, are not shown
SHOWN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) ")


class Detail(msgspec.Struct, frozen=True):
    name: str
    state: str
    why: str  # it is down
    folder: str
    process: int | None
    status_s: float | None
    up: tuple[str, ...]  # neighbours
    down: tuple[str, ...]
    visit: status.Recent | None  # the last one
    journal_bytes: int
    certificate_until_s: float | None
    log: tuple[str, ...]
    log_left_out: int  # lines among these that may quote rows, or have another form
    log_there: bool


def detail_of(name: str, folder: Path) -> Detail:
    from amble.live.trust import identity  # which needs the cryptography package

    said = status.read(folder)
    seen = glance.of_agent(said, folder)
    log, left_out = tail(folder / LOG)
    return Detail(
        name=name,
        state=seen.state,
        why=glance.DOWN[seen.why] if seen.why else "",
        folder=str(folder),
        process=said.process.pid if said.process and seen.runs else None,
        status_s=seen.status_s,
        up=seen.up,
        down=seen.down,
        visit=said.recent[-1] if said.recent else None,
        journal_bytes=collect.journal_bytes(folder),
        certificate_until_s=identity.valid_until_s(folder),
        log=log,
        log_left_out=left_out,
        log_there=(folder / LOG).is_file(),
    )


def tail(path: Path) -> tuple[tuple[str, ...], int]:
    """The last lines that may be shown, and how many others there are among them."""
    lines: list[str] = []
    with contextlib.suppress(OSError), path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - LOG_BYTES))
        lines = file.read(LOG_BYTES).decode(errors="replace").splitlines()[size > LOG_BYTES :]
    shown = [line for line in lines if SHOWN.match(line)]
    return tuple(printable(line)[:LINE_MAX] for line in shown[-LOG_LINES:]), len(lines) - len(shown)
