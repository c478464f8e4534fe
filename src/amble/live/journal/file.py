"""The file of a journal: created in one step, checked when it is opened, with errors as clear sentences."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amble.errors import AmbleError
from amble.files import ending
from amble.live.core.packing import Refusal
from amble.live.journal.rows import Rows

FORMAT = 4
WITHOUT_BURIED = 3  # an earlier format, which names the buried in words only
WITH_LEDGERS = 2  # and one before that, with a share per token in the rows, too
# of visits, which digests depend on: in 1, which journals did not name, Relay's full form solved otherwise; in 2 it had
# another guard, in 3 it gave once in a visit
ARITHMETIC = 4
APPLICATION = int.from_bytes(b"ambl")  # marks the file as ours; SQLite keeps it in the header
SQLITE, HEADER_BYTES = b"SQLite format 3\x00", 100
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
WAIT_S = 1.0  # how long to wait for another process to release the file
LOG_PAGES, PAGE_BYTES, FRAME_BYTES = 256, 4096, 24  # of the log until it begins again, and of a page and its header
STATE, RECORD = ("about", "rows"), ("visits", "events")  # the tables that an agent goes on from, and the others

TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
BEGIN;
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE rows (name TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE visits (
    number INTEGER PRIMARY KEY, token INTEGER NOT NULL, epoch INTEGER NOT NULL, author INTEGER NOT NULL,
    hop INTEGER NOT NULL, giver TEXT NOT NULL, time_s REAL NOT NULL, waited_s REAL NOT NULL, compute_s REAL NOT NULL,
    before TEXT NOT NULL, after TEXT NOT NULL
) STRICT;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, token INTEGER NOT NULL, epoch INTEGER, author INTEGER,
    hop INTEGER NOT NULL, words TEXT NOT NULL, time_s REAL NOT NULL, buried TEXT NOT NULL DEFAULT '[]'
) STRICT;
"""


def connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.resolve().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False)


def create(path: Path, about: dict[str, str]) -> None:
    """Created under another name first: a file with the journal's name is always complete."""
    log, part = ending(path, "-wal"), ending(path, ".part")
    if log.exists():  # SQLite would replay it into the new file
        raise AmbleError(f"there is {log} but no {path}, which it belongs to; bring {path} back, or move {log} away.")
    with sentences(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in (part, ending(part, "-journal")):  # left by a start that was interrupted
            left.unlink(missing_ok=True)
        part.touch(mode=0o600)  # an agent's state is its own; SQLite makes the log as the file is
        with contextlib.closing(connect(part, "rw")) as connection:
            connection.executescript(TABLES)
            connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            connection.execute("COMMIT")
        os.replace(part, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name is on the disk too
        finally:
            os.close(folder)


def allocate(connection: sqlite3.Connection, path: Path) -> None:
    """The log as large as it will be, before anything waits for it: a sync of a file that grows also waits for the file
    system's own journal, and so for whatever else the machine writes. What is behind the last frame counts as nothing.
    """
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    with contextlib.suppress(OSError), ending(path, "-wal").open("r+b") as log:  # without space it grows, as it may
        size = log.seek(0, os.SEEK_END)
        log.write(bytes(max(0, (LOG_PAGES + 16) * (PAGE_BYTES + FRAME_BYTES) - size)))
        log.flush()
        os.fsync(log.fileno())


def check(path: Path, rows: Rows, about: dict[str, str]) -> dict[str, Any]:
    """The rows. Nothing is written, so that a refused file stays unchanged."""
    with sentences(path), path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES and SQLITE.startswith(header[: len(SQLITE)]):
        raise damaged(path)
    if not header.startswith(SQLITE) or int.from_bytes(header[68:72]) != APPLICATION:
        raise AmbleError(f"{path} is not a journal of amble; name another file, or move this one away.")
    check_format(path, int.from_bytes(header[60:64]))
    log = ending(path, "-wal")
    whole = not log.exists() or not log.stat().st_size
    if whole and path.stat().st_size < int.from_bytes(header[16:18]) * int.from_bytes(header[28:32]):  # of pages
        raise damaged(path)
    mode = "ro&immutable=1" if whole else "ro"  # SQLite would make an empty log where there is none
    with sentences(path), contextlib.closing(connect(path, mode)) as connection:
        for table in STATE:  # not the record, so that a long record does not slow down the start
            if connection.execute(f"PRAGMA quick_check({table})").fetchone() != ("ok",):
                raise damaged(path)
        for table in RECORD:  # only its ends, where lines are added and dropped
            for end in ("min", "max"):
                connection.execute(f"SELECT {end}(number) FROM {table}").fetchone()
        stored = dict(connection.execute("SELECT key, value FROM about"))
        if stored.get("run") != about["run"]:
            raise AmbleError(
                f"{path} is the journal of another run ({stored.get('run')}, and this one has {about['run']}); give "
                "this run its own folder."
            )
        if stored.get("layout") != about["layout"]:
            raise AmbleError(
                f"{path} was written by an amble that keeps other numbers for this run; finish the run with the amble "
                "that began it, or start it again in a new folder."
            )
        if stored.get("agent") != about["agent"]:
            raise AmbleError(
                f"{path} is the journal of agent {stored.get('agent')!r}, and this is agent {about['agent']!r}; "
                "give each agent its own."
            )
        return load(connection, rows)


def run_of(path: Path) -> str | None:
    """The digest of the run whose journal this is; None where there is none that can be read."""
    if not path.is_file():
        return None
    with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(path, "ro")) as connection:
        return str(connection.execute("SELECT value FROM about WHERE key = 'run'").fetchone()[0])
    return None


def check_format(path: Path, version: int, record_only: bool = False) -> None:
    if version == WITH_LEDGERS and not record_only:
        raise AmbleError(
            f"{path} is a journal of format {version}, of an earlier amble: its record is read, but a run goes on in "
            f"format {FORMAT} only; finish the run with the amble that began it, or start it again in a new folder."
        )
    if version not in (FORMAT, WITHOUT_BURIED, WITH_LEDGERS):
        raise AmbleError(f"{path} is a journal of format {version}, and this amble reads format {FORMAT}.")


def upgrade(connection: sqlite3.Connection) -> None:
    """A journal of format 3 as one of format 4, whole or not at all."""
    if connection.execute("PRAGMA user_version").fetchone() != (WITHOUT_BURIED,):
        return
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ALTER TABLE events ADD COLUMN buried TEXT NOT NULL DEFAULT '[]'")
    for number, kind, sentence in connection.execute("SELECT number, kind, words FROM events").fetchall():
        names = json.dumps(buried_before_4(kind, sentence))
        connection.execute("UPDATE events SET buried = ? WHERE number = ?", (names, number))
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def buried_before_4(kind: str, sentence: str) -> list[str]:
    """From an event of a journal of format 3 or a record of format 2, whose words were these names."""
    return [name for name in sentence.split(", ") if name] if kind in ("recount", "reissue") else []


def load(connection: sqlite3.Connection, rows: Rows) -> dict[str, Any]:
    return {name: rows.unpack(name, body) for name, body in connection.execute("SELECT name, body FROM rows")}


class InUse(AmbleError):
    """Another process has the journal open."""


def in_use(path: Path) -> bool:
    """Whether a running agent has this journal open. Other problems of the file do not matter here."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(path, "ro")) as connection:
        try:
            connection.execute("SELECT count(*) FROM about").fetchone()
        except sqlite3.OperationalError as error:
            return _primary_code(error) in BUSY
    return False


def _primary_code(error: sqlite3.Error) -> int:
    """SQLite's code, without the details that it adds above."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF


class Unwritable(AmbleError):
    """The disk is full, or fails: it may recover, and then the same can be written."""


def damaged(path: Path) -> AmbleError:
    files = f"{path.name} and, if it exists, {path.name}-wal"
    return AmbleError(
        f"the journal {path} is damaged or cut short; delete {files}, and start the agent again: it begins as new, its "
        "data are recounted, once, and nothing is lost but its part of the record. (Only a run whose method "
        "cannot recount, as amble init has said of it, must be started from the beginning.)"
    )


def _unusable(path: Path, error: Exception) -> Unwritable:
    return Unwritable(f"the journal {path} cannot be read or written ({error}); check its folder and disk.")


@contextlib.contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Turns errors of SQLite and of rows into errors that say what to do."""
    try:
        yield
    except (Refusal, UnicodeDecodeError) as error:  # SQLite quotes what is damaged
        raise damaged(path) from error
    except OSError as error:
        raise _unusable(path, error) from error
    except sqlite3.Error as error:
        code = _primary_code(error)
        if code == sqlite3.SQLITE_FULL:
            raise Unwritable(
                f"there is no space left for the journal {path}; free some, and the agent continues."
            ) from error
        if code in BUSY:
            raise InUse(f"the journal {path} is in use by another process; stop that one first.") from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR):
            raise _unusable(path, error) from error
        if code == sqlite3.SQLITE_CONSTRAINT:
            raise AmbleError(f"the journal {path} has this visit already ({error}); no visit is made twice.") from error
        raise damaged(path) from error
