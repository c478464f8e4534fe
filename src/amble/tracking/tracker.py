"""Tracker: a callback that sends records to a service, one run after another."""

import warnings
from types import TracebackType
from typing import Protocol, Self, final

from amble.tracking.record import Record


class Service(Protocol):
    """Where records go. Any of these may raise whatever its library raises."""

    name: str

    def begin(self, record: Record) -> None: ...
    def log(self, record: Record) -> None: ...
    def end(self, well: bool) -> None: ...


@final
class Tracker:
    """Sends records to a service: made by `to_mlflow` and `to_tensorboard`, and given as `on_record`.

    A record of a run with another number begins a new run. Use a tracker in a `with` block, which ends the last run; it
    is marked as failed if the block ends with an exception.

    If the service fails during a run, a warning says so, once, and later records are dropped: the run goes on.

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> with amble.to_tensorboard("curves") as tracker:
    ...     run = amble.simulate(amble.Relay(), problem, hops=100, on_record=tracker)
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._run: int | None = None
        self._failed = False

    def __call__(self, record: Record) -> None:
        if self._failed:
            return
        try:
            if record.run != self._run:
                self._end(well=True)
                self._service.begin(record)
                self._run = record.run
            self._service.log(record)
        except Exception as error:
            self._give_up(error)

    def _end(self, well: bool) -> None:
        if self._run is not None:
            self._run = None
            self._service.end(well)

    def _give_up(self, error: Exception) -> None:
        self._failed = True
        reason = next(iter(str(error).splitlines()), "").rstrip(".")
        cause = f"{self._service.name} failed ({type(error).__name__}: {reason})"
        warnings.warn(f"{cause}; the run goes on, and is not tracked from here on.", stacklevel=3)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end(well=error is None and not self._failed)
        except Exception as failure:
            if not self._failed:
                self._give_up(failure)
