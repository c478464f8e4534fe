"""What an agent stores before it says anything.

An agent answers for a token, and passes it on, only after the transaction that holds its visit is on the disk. If other
tokens wait by then, their visits may go into the same transaction, so that one sync serves them all: then nothing is
said about any of them before all are stored.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from amble.live.agent.stages import Stage
from amble.live.journal.file import Unwritable
from amble.live.journal.journal import Visited
from amble.live.seldom import Seldom
from amble.progress import Flag

FULL_S = 1.0  # between two attempts to write to a full disk
TOGETHER_S = 0.01  # no visit waits longer for others, however slow the disk is

log = logging.getLogger("amble.live")


class Keeping:
    """What is not stored yet, and what waits for that. `ending`, when set, ends the wait for a full disk."""

    def __init__(self, ending: Flag) -> None:
        self.ending, self.seldom = ending, Seldom()
        self.stage: Stage | None = None  # whose journal it is for
        self.rows: dict[str, Any] = {}  # the newest of each name
        self.visits: list[Visited] = []
        self.elapsed_s: float | None = None
        self.ahead: list[Callable[[], object]] = []
        self.waiting: list[Callable[[], object]] = []
        self.write_s = 0.0  # how long the last transaction took, but TOGETHER_S at most

    def put(self, stage: Stage, rows: Mapping[str, Any], visit: Visited | None, elapsed_s: float | None) -> None:
        """Rows, and a line of the record, for the next transaction."""
        if stage is not self.stage:
            self.flush()
        self.stage = stage
        self.rows |= rows
        if visit is not None:
            self.visits.append(visit)
        self.elapsed_s = self.elapsed_s if elapsed_s is None else elapsed_s

    def then(self, act: Callable[[], object], first: bool = False) -> None:
        """Done once all that was put is stored, in this order; but `first`, before all others, where somebody waits."""
        (self.ahead if first else self.waiting).append(act)

    def worthwhile(self, since_s: float) -> bool:
        """Whether what was put at that time may wait for another visit: not for longer than a transaction takes."""
        return time.monotonic() - since_s < self.write_s

    def flush(self) -> None:
        """Stores what was put, in one transaction, and then does what waits."""
        if self.stage is not None:
            stage, rows, visits, elapsed_s = self.stage, self.rows, self.visits, self.elapsed_s
            begun_s = time.monotonic()
            self.kept(lambda: stage.journal.write(rows, visits, elapsed_s))
            self.write_s = min(time.monotonic() - begun_s, TOGETHER_S)
            self.stage, self.rows, self.visits, self.elapsed_s = None, {}, [], None
        acts, self.ahead, self.waiting = self.ahead + self.waiting, [], []
        for act in acts:
            act()

    def kept(self, write: Callable[[], None]) -> None:
        """Nothing is sent to anybody before this is stored, so the agent waits for a full disk. It does not wait for a
        damaged file: it ends, and has acknowledged nothing that it did not store."""
        while True:
            try:
                return write()
            except Unwritable as error:
                if self.seldom("disk", time.monotonic()) is not None:
                    log.error("%s Until then the agent waits, and nothing is lost.", error)
                if self.ending.wait(FULL_S):
                    raise
