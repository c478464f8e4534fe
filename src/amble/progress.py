"""Progress of long jobs: a bar with the rate and the time left, and a clean stop on Ctrl-C."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

QUIET_S = 2.0  # a shorter job shows no bar
FLAG_S = 0.05  # between two looks at a flag


class Meter:
    """A progress bar that appears only when the job turns out to be long. Where there is no terminal to draw on, it is
    a line at every tenth of the job if `lines` is true, or else nothing."""

    def __init__(
        self,
        label: str,
        total: int | None,
        begin: int = 0,
        show: bool = True,
        unit: str = "hops",
        lines: bool = False,
    ) -> None:
        self.label, self.total, self.begin, self.unit = label, total, begin, unit  # a total of None is not known
        self.show = show and sys.stderr.isatty()
        self.lines = show and lines and not self.show
        self.tenths = 0
        self.started = time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def update(self, done: int, total: int | None = None) -> None:
        """Show that this much is done; a total given here replaces the earlier one."""
        self.total = self.total if total is None else total
        elapsed = time.monotonic() - self.started
        if self.lines and self.total and done * 10 // self.total > self.tenths:
            self.tenths = done * 10 // self.total
            sys.stderr.write(f"{self.label}: {done} of {self.total}\n")
        finished = self.total is not None and done >= self.total
        if not self.show or (self.bar is None and (elapsed < QUIET_S or finished)):
            return
        if self.bar is None:
            self._open()
        rate = (done - self.begin) / max(elapsed, 1e-9)
        self.bar.update(
            self.task, completed=done, total=self.total, rate=f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
        )

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(f"{{task.fields[rate]}} {self.unit}/s"),
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


class Flag:
    """As threading.Event, but a signal's handler may set it while the main thread waits for it. An Event cannot: its
    lock may be held by the thread that the handler interrupts, which would then wait for itself forever."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        end_s = time.monotonic() + seconds
        while not self._is_set and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, FLAG_S))
        return self._is_set


class Asked:
    """Whether the program was asked to end, and by which signal."""

    def __init__(self) -> None:
        self.event = Flag()
        self.times = 0
        self.code = 128 + signal.SIGINT  # the exit code that shells give to this signal

    def set(self, number: int = signal.SIGINT) -> None:
        if not self.is_set():
            self.code = 128 + number
        self.times += 1
        self.event.set()

    def is_set(self) -> bool:
        return self.event.is_set()


_asked: list[Asked] = []  # what the outermost `interruptible` gave, while there is one


@contextmanager
def interruptible(patient: bool = False) -> Iterator[Asked]:
    """Inside this block, Ctrl-C sets a flag instead of interrupting a computation. A second Ctrl-C acts as usual,
    unless `patient`: then it also waits until the results are saved, and so does SIGTERM. Nested blocks share one flag.
    Outside the main thread, where Python gives no signals, nothing changes.
    """
    if _asked:
        yield _asked[0]
        return
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    numbers = (signal.SIGINT, signal.SIGTERM) if patient else (signal.SIGINT,)
    before = {number: signal.getsignal(number) for number in numbers}

    def ask(number: int, _: Any) -> None:
        if patient and not asked.is_set():
            sys.stderr.write("\nstopping; the results so far will be kept ...\n")
        asked.set(number)
        if not patient:
            signal.signal(number, before[signal.Signals(number)])

    for number in numbers:
        signal.signal(number, ask)
    _asked.append(asked)
    try:
        yield asked
    finally:
        _asked.clear()
        for number in numbers:
            signal.signal(number, before[number])
