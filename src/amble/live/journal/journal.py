"""An agent's journal: everything that must survive a crash, in one SQLite file per agent.

    about    whose journal this is, and how long its agent has been in the run
    rows     the agent's state (rows.py): one row per name, so that it does not grow
    visits   the record: one line per visit; beyond `visits_max` the oldest lines go, so that the file stops growing
    events   what else happened: tokens reissued, discarded, refused; bounded likewise

A transaction is on the disk (write-ahead log, full sync) before `persist` returns, and only then may the agent answer.
Each row has a checksum of its own, as SQLite has none; the record has none, for replaying it finds what is wrong there.
While a journal is open no other process can open it: two processes that are one agent would make two of each token.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from amble.errors import AmbleError
from amble.files import ending
from amble.live.core.effects import Persist, Report, Visit
from amble.live.core.packing import digest
from amble.live.core.parcels import Visits
from amble.live.formats.shape import Shape
from amble.live.journal import file as journal_file
from amble.live.journal.file import sentences
from amble.live.journal.rows import Rows
from amble.losses.objective import Objective

PUT = "INSERT INTO rows VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body"
VISIT = "INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
EVENT = "INSERT INTO events (kind, token, epoch, author, hop, words, time_s, buried) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
ABOUT = "REPLACE INTO about VALUES (?, ?)"
ELAPSED = "elapsed_s"
DROP = "DELETE FROM {0} WHERE number <= ? AND number < (SELECT min(number) FROM {0}) + ?"
DROP_VISITS, DROP_EVENTS = DROP.format("visits"), DROP.format("events")
BATCH = 256  # visits between two deletions of old lines: each deletion writes a page or two more
DROP_MAX = 4096  # lines per deletion, because visits_max may have been larger before

Work = tuple[str, Sequence[tuple[Any, ...]]]  # a statement, and the values of each line that it writes


class Visited(NamedTuple):
    """A line of the record."""

    number: int  # the agent's own count of visits; no two lines have the same
    token: int
    epoch: int
    author: int
    hop: int
    giver: str
    time_s: float  # when it ended
    waited_s: float  # between the token's arrival and its visit
    compute_s: float  # of the visit, a pause included; on the agent's own clock, as what it waited
    before: str  # digests of the parcel
    after: str


class Event(NamedTuple):
    """A report, and when it was made."""

    kind: str
    token: int
    epoch: int | None
    author: int | None
    hop: int
    words: str  # for people
    time_s: float
    buried: tuple[str, ...] = ()  # of a recount or reissue: the agents that were counted out when it began

    @classmethod
    def of(cls, report: Report, time_s: float) -> "Event":
        number, author = report.epoch or (None, None)
        return cls(report.kind, report.token, number, author, report.hop, report.words, time_s, report.buried)


def read_events(connection: sqlite3.Connection, last: int = -1) -> tuple[Event, ...]:
    """In their order, from a journal of any format that is read; all of them, or so many of the last."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    columns = [name for name in Event._fields if version == journal_file.FORMAT or name != "buried"]
    lines = connection.execute(f"SELECT {', '.join(columns)} FROM events ORDER BY number DESC LIMIT ?", (last,))
    return tuple(event_of(dict(zip(columns, line, strict=True))) for line in lines)[::-1]


def event_of(fields: dict[str, Any]) -> Event:
    """An event from its fields; the earlier formats did not have all of them."""
    buried = fields.get("buried")
    if buried is None:
        buried = journal_file.buried_before_4(fields["kind"], fields["words"])
    return Event(**{**fields, "buried": tuple(json.loads(buried) if isinstance(buried, str) else buried)})


@dataclass(frozen=True, eq=False)
class Journal:
    """An open journal. One caller at a time, from whichever thread."""

    path: Path
    rows: Rows
    connection: sqlite3.Connection
    visits_max: int = 0  # lines of the record, and of the events; 0 is no limit

    @classmethod
    def open(
        cls, path: Path, shape: Shape, visits: Visits, objective: Objective, agent: str, visits_max: int = 0
    ) -> "Journal":
        """The journal of this agent in this run; a new one where there is none, and an error where it is another's."""
        rows = Rows.of(shape, visits, objective)
        about = {"run": shape.digest, "layout": f"{shape.fingerprint.hex()} {rows.digest}", "agent": agent}
        about["arithmetic"] = str(journal_file.ARITHMETIC)
        if path.exists():
            journal_file.check(path, rows, about)
        else:
            journal_file.create(path, about)
        with sentences(path):
            connection = journal_file.connect(path, "rw")
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # first: then the log's index is never a file
                connection.execute("PRAGMA synchronous = FULL")
                if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                    raise AmbleError(f"a journal does not work on the disk of {path}; put it on a local disk.")
                connection.execute("BEGIN IMMEDIATE")  # locks the file
                connection.execute("COMMIT")
                journal_file.upgrade(connection)
                journal_file.allocate(connection, path)
                ending(path, "-shm").unlink(missing_ok=True)  # an index that the check of a crashed one's log has left
                return cls(path, rows, connection, visits_max)
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        self.connection.close()

    def load(self) -> dict[str, Any]:
        """All rows as they were last persisted."""
        with sentences(self.path):
            return journal_file.load(self.connection, self.rows)

    def persist(
        self,
        effect: Persist,
        time_s: float,
        waited_s: float = 0.0,
        compute_s: float = 0.0,
        elapsed_s: float | None = None,
    ) -> None:
        """One transaction. Without space on the disk nothing of it is kept: persist the same again before anything
        else.

        `elapsed_s`, where it is given, is how long the agent has been in the run.
        """
        visits = [] if effect.visit is None else [line_of(effect.visit, time_s, waited_s, compute_s)]
        self.write(effect.rows, visits, elapsed_s)

    def write(self, rows: Mapping[str, Any], visits: Sequence[Visited], elapsed_s: float | None = None) -> None:
        """The same, of several effects: the newest of each row, and all their visits."""
        work: list[Work] = [(PUT, [(name, self.rows.pack(name, row)) for name, row in rows.items()])]
        if visits:
            work.append((VISIT, visits))
            for visit in visits:
                work += self._dropped(visit.number)
        if elapsed_s is not None:
            work.append((ABOUT, [(ELAPSED, repr(elapsed_s))]))
        self._write(work)

    def _dropped(self, number: int) -> list[Work]:
        """The oldest lines, some visits before there are more than `visits_max`; nothing at most visits."""
        batch = min(BATCH, max(1, self.visits_max // 10))
        if not self.visits_max or number % batch:
            return []
        return [(DROP_VISITS, [(number - (self.visits_max - batch + 1), DROP_MAX)])]

    def event(self, report: Report, time_s: float) -> None:
        """One line among the events."""
        work: list[Work] = [(EVENT, [(*Event.of(report, time_s)[:-1], json.dumps(report.buried))])]
        if self.visits_max:
            with sentences(self.path):
                (last,) = self.connection.execute("SELECT max(number) FROM events").fetchone()
            work.append((DROP_EVENTS, [((last or 0) + 1 - self.visits_max, DROP_MAX)]))
        self._write(work)

    def elapsed_s(self) -> float | None:
        """How long the agent has been in the run, as it was last kept; None where it has not begun."""
        with sentences(self.path):
            kept = self.connection.execute("SELECT value FROM about WHERE key = ?", (ELAPSED,)).fetchone()
        try:
            return None if kept is None else float(kept[0])
        except ValueError as error:
            raise journal_file.damaged(self.path) from error

    def keep_elapsed(self, elapsed_s: float) -> None:
        """Stored in a separate transaction, if no visit stores it."""
        self._write([(ABOUT, [(ELAPSED, repr(elapsed_s))])])

    def has_other_data(self, digest: str) -> bool:
        """Whether the agent had other data when it was here last; these are the ones it has from now on."""
        with sentences(self.path):
            before = self.connection.execute("SELECT value FROM about WHERE key = 'data'").fetchone()
            if before != (digest,):
                self.connection.execute(ABOUT, ("data", digest))
        return before not in (None, (digest,))

    def visits(self) -> list[Visited]:
        """The record, in the order of the agent's own visits."""
        with sentences(self.path):
            return [Visited(*line) for line in self.connection.execute("SELECT * FROM visits ORDER BY number")]

    def events(self, last: int = -1) -> list[Event]:
        """All of them, or so many of the last."""
        with sentences(self.path):
            return list(read_events(self.connection, last))

    def counts(self) -> Counter[str]:
        """How many events of each kind there are."""
        with sentences(self.path):
            return Counter(dict(self.connection.execute("SELECT kind, count(*) FROM events GROUP BY kind")))

    def _write(self, work: list[Work]) -> None:
        with sentences(self.path):
            try:
                cursor = self.connection.execute("BEGIN IMMEDIATE")
                for statement, lines in work:
                    cursor.executemany(statement, lines)
                cursor.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise


def line_of(visit: Visit, time_s: float, waited_s: float, compute_s: float) -> Visited:
    """A visit as a line of the record, with digests of the parcels."""
    digests, times = (digest(visit.before), digest(visit.after)), (time_s, waited_s, compute_s)
    return Visited(visit.number, visit.token, *visit.epoch, visit.hop, visit.giver, *times, *digests)
