"""Which neighbours answer: Zenoh says who has a link, but a link may be dead in one direction, or in both. If a
neighbour answers a question, this proves that it was alive when the question was sent. While tokens are handed over,
they are proof enough. After half a lease without proof, a probe is sent: a question that the neighbour's transport
answers by itself, whatever the agent is busy with. After a lease and SLACK_S without proof the neighbour counts as
silent, until it answers a probe again.

No clock and no I/O: the transport asks what is due, and says what was answered.
"""

import threading
from collections.abc import Iterable

SLACK_S = 2.0  # for an answer that is late: the machine is busy, or Python is in a long call that keeps its lock


class Pulse:
    """When each neighbour was last proved to be there; for several threads."""

    def __init__(self, names: Iterable[str], lease_s: float, now: float) -> None:
        self.every_s, self.limit_s = lease_s / 2, lease_s + SLACK_S
        self._proved_s = dict.fromkeys(names, now)
        self._probed_s = dict.fromkeys(self._proved_s, now)
        self._silent: set[str] = set()
        self._looked_s = now
        self._lock = threading.Lock()

    @property
    def tick_s(self) -> float:
        """How often `silent` and `due` want to be asked."""
        return self.every_s / 2

    def begin(self, name: str, now: float) -> None:
        """It has a new link, which proves as much as an answer; but a silent neighbour is probed first."""
        with self._lock:
            self._proved_s[name] = now
            self._probed_s[name] = now - self.every_s if name in self._silent else now

    def proved(self, name: str, asked_s: float) -> None:
        """A question of that time was answered."""
        if asked_s > self._proved_s[name]:
            self._proved_s[name] = asked_s

    def answers(self, name: str) -> bool:
        return name not in self._silent

    def speaks(self, name: str) -> None:
        with self._lock:
            self._silent.discard(name)

    def refuses(self, name: str) -> None:
        """It answers that it ignores us: this counts as silence."""
        with self._lock:
            self._silent.add(name)

    def silent(self, now: float, linked: Iterable[str]) -> list[str]:
        """Who of these has just fallen silent. Time in which this process did not run itself does not count."""
        with self._lock:
            paused_s = now - self._looked_s
            self._looked_s = now
            if paused_s > 2 * self.every_s:
                for name, at_s in self._proved_s.items():
                    self._proved_s[name] = at_s + paused_s
            fallen = [name for name in linked if now - self._proved_s[name] > self.limit_s and name not in self._silent]
            self._silent.update(fallen)
            return fallen

    def due(self, now: float, linked: Iterable[str]) -> list[str]:
        """Whom of these to probe now."""
        with self._lock:
            names = [
                name
                for name in linked
                if now - self._probed_s[name] >= self.every_s
                and (name in self._silent or now - self._proved_s[name] >= self.every_s)
            ]
            self._probed_s.update(dict.fromkeys(names, now))
            return names
