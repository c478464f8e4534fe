"""The record of a live run: all visits, from the agents' journals, in one file.

Order is by (token, epoch, hop) for a token and by its own count of visits for an agent, never by two machines' clocks.
The record has digests of tokens, but none of their numbers: no data, dual, slot or gradient leaves an agent with it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amble.data.datasets import count
from amble.data.packed import DAMAGED, arrays_of, npz_of
from amble.digests import hasher
from amble.errors import AmbleError
from amble.files import write_whole
from amble.live.journal.file import ARITHMETIC
from amble.live.journal.journal import Event, Visited, event_of

FORMAT, WITHOUT_BURIED = 3, 2  # the earlier one named the buried in the words of an event only
FILE = "record.npz"


class Record(NamedTuple):
    """What agents wrote down; agents whose folders were missing are not in the mappings."""

    run: str  # the digest of its settings
    agents: tuple[str, ...]  # of the run, by their places; "" for one that is not known
    founders: int  # how many of them were there at its beginning
    tokens: int
    visits: Mapping[str, tuple[Visited, ...]]  # of each agent, in the order of its own visits
    events: Mapping[str, tuple[Event, ...]]
    status: Mapping[str, Mapping[str, Any]]  # what each last said of itself
    arithmetic: int = ARITHMETIC  # of the visits; of several the earliest

    @property
    def hops(self) -> int:
        return sum(map(len, self.visits.values()))

    @property
    def dropped(self) -> dict[str, int]:
        """How many of its first visits each agent has dropped (visits_max); each counts its own visits from 1."""
        return {name: lines[0].number - 1 for name, lines in self.visits.items() if lines and lines[0].number > 1}

    def cuts(self) -> list[str]:
        """The same as sentences."""
        return [
            f"the first {count(lines, 'visit')} of {name} {'was' if lines == 1 else 'were'} dropped (visits_max)"
            for name, lines in self.dropped.items()
        ]

    def in_order(self) -> list[tuple[str, Visited]]:
        """All visits, token by token, in the order of the walk."""
        every = ((name, visit) for name, visits in self.visits.items() for visit in visits)
        return sorted(every, key=lambda each: (each[1].token, each[1].epoch, each[1].author, each[1].hop))

    def counts(self) -> dict[str, int]:
        """How often each kind of event happened; visits are not events."""
        counts: dict[str, int] = {}
        for events in self.events.values():
            for event in events:
                counts[event.kind] = counts.get(event.kind, 0) + 1
        return counts


def save(record: Record, path: Path) -> None:
    """One .npz file: one array per column, in the order of in_order, and the rest as text; complete or not at all."""
    lines = record.in_order()
    columns: dict[str, Any] = {field: [getattr(visit, field) for _, visit in lines] for field in Visited._fields}
    columns["agent"] = [name for name, _ in lines]
    events = {name: [event._asdict() for event in events] for name, events in record.events.items()}
    about = {
        "format": FORMAT,
        "run": record.run,
        "agents": record.agents,
        "founders": record.founders,
        "tokens": record.tokens,
        "arithmetic": record.arithmetic,
        "events": events,
        "status": record.status,
    }
    arrays = {key: np.array(column) if column else np.zeros(0) for key, column in columns.items()}
    about["sha256"] = _sha(arrays)
    write_whole({path: npz_of({"about": np.array(json.dumps(about)), **arrays}, compressed=True)})


def load(path: Path) -> Record:
    """The record that `save` wrote, equal to it."""
    if not path.is_file():
        raise AmbleError(f"there is no record {path}; amble collect writes one.")
    try:
        arrays = arrays_of(path.read_bytes())
        about = json.loads(str(arrays.pop("about")))
        if about["format"] not in (FORMAT, WITHOUT_BURIED):
            raise AmbleError(f"{path} is a record of format {about['format']}, and this amble reads format {FORMAT}.")
        if about["sha256"] != _sha(arrays):
            raise ValueError
        visits: dict[str, list[Visited]] = {name: [] for name in about["events"]}
        columns = [arrays[field].tolist() for field in Visited._fields]
        for name, *line in zip(arrays["agent"].tolist(), *columns, strict=True):
            visits[name].append(Visited(*line))
        return Record(
            about["run"],
            tuple(about["agents"]),
            about["founders"],
            about["tokens"],
            {name: tuple(sorted(lines)) for name, lines in visits.items()},
            {name: tuple(map(event_of, events)) for name, events in about["events"].items()},
            about["status"],
            about.get("arithmetic", 1),
        )
    except AmbleError:
        raise
    except DAMAGED as error:
        raise AmbleError(f"the record {path} is damaged or cut short; collect it again.") from error


def _sha(arrays: Mapping[str, NDArray[Any]]) -> str:
    whole = hasher(sum(array.nbytes for array in arrays.values()))
    for key in sorted(arrays):
        whole.update(f"{key} {arrays[key].dtype.str} {arrays[key].shape}".encode())
        whole.update(np.ascontiguousarray(arrays[key]).data)
    return whole.hexdigest()
