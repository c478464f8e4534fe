"""Record: a run at one moment, as a callback gets it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from amble.errors import AmbleError, shown


@final
@dataclass(frozen=True)
class Record:
    """A run at one moment: what `on_record` is called with.

    method                  the method's name and settings
    run                     the run's number in a comparison, from 1 on
    hop, time_s             visits so far, and virtual seconds; of a live run, seconds since it was first looked at
    comm_units, bytes       link crossings and bytes so far; a live run does not count link crossings: None
    metrics                 how good the model is, by the names of `Run.history`: objective, metric and so on. Of a live
                            run: `moved` (how far the model moved over a lap, relative), `hops_per_s`, `agents_up`, and
                            where `amble up` knows them, `metric` and `distance`
    about                   what stays the same in a run: the data, the method's settings, the seed

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> records = []
    >>> run = amble.simulate(amble.Relay(), problem, hops=20, on_record=records.append)
    >>> [record.hop for record in records[:3]], records[-1].method
    ([0, 1, 2], 'Relay (full)')
    """

    method: str
    run: int
    hop: int
    time_s: float
    comm_units: int | None
    bytes: int
    metrics: Mapping[str, float]
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def costs(self) -> dict[str, float]:
        """Seconds, link crossings and bytes, where they are known."""
        costs = {"time_s": self.time_s, "comm_units": self.comm_units, "bytes": self.bytes}
        return {name: value for name, value in costs.items() if value is not None}


OnRecord = Callable[[Record], object]
COSTS = ("hop", "time_s", "comm_units", "bytes")


def record_of(row: Mapping[str, Any], method: str, run: int, about: Mapping[str, Any]) -> Record:
    """From one row of a history. A metric that is not a number, because there are no test rows, is left out."""
    hop, time_s, comm_units, bytes_ = (row[name] for name in COSTS)
    metrics = {name: float(value) for name, value in row.items() if name not in COSTS and not math.isnan(value)}
    return Record(method, run, int(hop), float(time_s), int(comm_units), int(bytes_), metrics, about)


def check_callback(on_record: object) -> None:
    if on_record is not None and not callable(on_record):
        raise AmbleError(
            f"on_record={shown(on_record)} was given; give a function of one record, or a tracker such as "
            "amble.to_tensorboard('curves')."
        )
