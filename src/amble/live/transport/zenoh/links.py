"""Who is linked to us, by the names in the certificates: is a session shared, is a name there twice?

Two things must not be trusted. Somebody may add a link to a neighbour's session (Zenoh checks only the certificate of
the first link). And a neighbour's folder may have been copied, so that two agents have one name and would count the
same data twice. Then both are ignored until only one is left. After a crash an old link may linger until the lease
ends; a name that exists twice for longer than that is reported to everybody.

No clock and no I/O.
"""

import threading
from typing import NamedTuple


class End(NamedTuple):
    """One link: the other's session, and the two addresses."""

    session: str
    here: str
    there: str


class Links:
    """All present links; safe for several threads."""

    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s  # for which a restart explains two sessions of one name
        self._names: dict[End, str] = {}
        self._joined: frozenset[str] = frozenset()
        self._twice_s: dict[str, float] = {}  # names with two sessions, and since when
        self._lock = threading.Lock()

    def change(self, now: float, end: End, name: str | None) -> None:
        """A link was made, or with None lost. The consequences are computed here, because links change less often than
        messages come."""
        with self._lock:
            self._names.pop(end, None)
            if name is not None:
                self._names[end] = name
            names: dict[str, set[str]] = {}
            sessions: dict[str, set[str]] = {}
            for link, other in self._names.items():
                names.setdefault(link.session, set()).add(other)
                sessions.setdefault(other, set()).add(link.session)
            self._joined = frozenset(other for them in names.values() if len(them) > 1 for other in them)
            twice = [other for other, them in sessions.items() if len(them) > 1]
            self._twice_s = {other: self._twice_s.get(other, now) for other in twice}

    def clear(self) -> None:
        with self._lock:
            self._names.clear()
            self._joined, self._twice_s = frozenset(), {}

    def linked(self, name: str) -> bool:
        with self._lock:
            return name in self._names.values()

    def joined(self, name: str) -> bool:
        """Whether somebody else has a link of this neighbour's session, too."""
        return name in self._joined

    def twice(self, name: str) -> bool:
        return name in self._twice_s

    def doubled(self, now: float) -> dict[str, str]:
        """Names that are there twice for longer than a restart can explain, each with a sentence."""
        with self._lock:
            long = [name for name, since_s in self._twice_s.items() if now - since_s > self.patience_s]
            return {name: self._sentence(name) for name in long}

    def _sentence(self, name: str) -> str:
        ends = sorted(end for end, other in self._names.items() if other == name)
        who = " and ".join(f"session {end.session} from {end.there.split('/')[-1]}" for end in ends)
        return (
            f"two agents have the name {name}: {who}; stop one of them, because both are ignored until only one is left"
        )
