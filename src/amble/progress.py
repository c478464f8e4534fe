"""What a long job shows: a bar with hops/s and time left, from the second second on."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

QUIET_S = 2.0  # jobs shorter than this show nothing


class Meter:
    """A progress bar that appears only when the job turns out to be long."""

    def __init__(self, label: str, total: int, begin: int = 0, show: bool = True) -> None:
        self.label, self.total, self.begin, self.show = label, total, begin, show and sys.stderr.isatty()
        self.started = time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def update(self, done: int) -> None:
        elapsed = time.monotonic() - self.started
        if not self.show or (self.bar is None and (elapsed < QUIET_S or done >= self.total)):
            return
        if self.bar is None:
            self._open()
        rate = (done - self.begin) / max(elapsed, 1e-9)
        self.bar.update(self.task, completed=done, rate=f"{rate:,.0f}")

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]} hops/s"),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(self.label, total=self.total, completed=self.begin, rate="0")
        self.bar.start()

    def __enter__(self) -> "Meter":
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


_asked: list[threading.Event] = []  # the event of the outermost `interruptible`, while there is one


@contextmanager
def interruptible(patient: bool = False) -> Iterator[threading.Event]:
    """Within it, Ctrl-C sets the event that is given instead of breaking off a computation half-way.

    A second Ctrl-C acts as usual, unless `patient`: then it, too, waits until what there is has been kept. One within
    another shares its event. Outside the main thread, where Python gives no signals, nothing changes.
    """
    if _asked:
        yield _asked[0]
        return
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: Any) -> None:
        if patient and not asked.is_set():
            sys.stderr.write("\nstopping; what there is will be kept ...\n")
        asked.set()
        if not patient:
            signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    _asked.append(asked)
    try:
        yield asked
    finally:
        _asked.clear()
        signal.signal(signal.SIGINT, before)
