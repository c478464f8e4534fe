"""What a person sees of a run on this machine: a table that is drawn anew, or a line now and then."""

import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amble.live import glance
from amble.live.glance import Status

LINE_S = 3.0
RATE_S = 3.0  # hops/s are over so long


@dataclass
class View:
    """Shows statuses; `measure` gives figures of a model, by their names."""

    title: str
    measure: Any
    began_s: float = field(default_factory=time.monotonic)
    counts: deque[tuple[float, int]] = field(default_factory=deque)
    said_s: float = field(default_factory=time.monotonic)
    live: Any = None

    def __enter__(self) -> "View":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def note(self, words: str) -> None:
        """Something that must not be missed, above the table or between the lines."""
        if self.live is not None:
            self.live.console.print(words, style="yellow", highlight=False, markup=False)
        else:
            sys.stderr.write(f"{words}\n")

    def show(self, statuses: Mapping[str, Status], states: Mapping[str, str], model: Any) -> None:
        now = time.monotonic()
        self.counts.append((now, glance.hops(statuses.values())))
        while now - self.counts[0][0] > RATE_S:
            self.counts.popleft()
        if self.live is not None:
            self.live.update(self._table(statuses, states, self._figures(statuses, model)), refresh=True)
        elif now - self.said_s >= LINE_S:
            self.said_s = now
            up = sum(state == "up" for state in states.values())
            sys.stderr.write(f"{up} of {len(states)} up; {self._figures(statuses, model)}\n")

    def _figures(self, statuses: Mapping[str, Status], model: Any) -> str:
        (first_s, first), (last_s, last) = self.counts[0], self.counts[-1]
        rate = (last - first) / (last_s - first_s) if last_s > first_s else 0.0
        heard = sum(status.get("bytes", 0) for status in statuses.values())
        words = [f"{time.monotonic() - self.began_s:.0f} s", f"{last:,} hops, {rate:,.0f}/s", glance.size(heard)]
        if model is not None:
            words += [f"{name} {value:.4g}" for name, value in self.measure(model).items()]
        return ", ".join(words)

    def _table(self, statuses: Mapping[str, Status], states: Mapping[str, str], figures: str) -> Any:
        from rich.console import Group
        from rich.table import Table

        agents = Table("agent", "", "links up", "visits", box=None, pad_edge=False)
        for name, state in states.items():
            status = statuses.get(name, {})
            links = f"{len(status['up'])} of {len(status['up']) + len(status['down'])}" if status else ""
            style = {"up": "green", "ended": "dim"}.get(state, "yellow")
            agents.add_row(name, f"[{style}]{state}[/]", links, f"{status['visits']:,}" if status else "")
        tokens = Table("token", "epoch", "hop", "", box=None, pad_edge=False)
        for m, place in glance.tokens(statuses).items():
            tokens.add_row(str(m), str(place.epoch[0]), f"{place.hop:,}", place.where)
        return Group(self.title, agents, "", tokens, "", figures)
