"""What an agent knows and says: its rows, who is up, who is gone, and where a token goes next."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amble import randomness
from amble.live.core.doubts import Doubts
from amble.live.core.effects import Ask, Effect, Persist, Settings, Visit
from amble.live.core.message import Question, Token

HOP, RETRY, SILENCE = 0, 1, 2  # streams of chance
STRAY = 0.25
MISSED_LAPS, UNMET_LAPS = 2, 6  # without meeting somebody: it is looked for; it is gone, if its neighbour says so


@dataclass
class Standpoint:
    me: str
    neighbours: tuple[str, ...]
    settings: Settings
    visits: Any  # as visits.make has them
    objective: Any
    down_s: dict[str, float] = field(default_factory=dict, kw_only=True)  # since when a neighbour is; absent: it is up
    parting: set[str] = field(default_factory=set, kw_only=True)  # neighbours that are about to leave
    watch: dict[tuple[int, str], float] = field(default_factory=dict, kw_only=True)  # the hop when one was looked for
    begun_s: float = field(default=0.0, kw_only=True)
    up_s: dict[str, float] = field(default_factory=dict, kw_only=True)  # since when a neighbour is, if it is
    doubts: Doubts = field(init=False)
    rows: dict[str, Any] = field(default_factory=dict)  # what Persist was given, as the journal has it
    asked: dict[int, tuple[str, Question]] = field(default_factory=dict, kw_only=True)  # and not yet answered
    number: int = field(default=0, kw_only=True)
    saying: list[Effect] = field(default_factory=list, kw_only=True)

    def __post_init__(self) -> None:
        self.doubts = Doubts(self.settings.stall_s)

    @property
    def place(self) -> int:
        return self.settings.places[self.me]

    def _up(self) -> list[str]:
        return [name for name in self.neighbours if name not in self.down_s and name not in self.parting]

    def _next(self, now: float, message: Token, giver: str) -> str:
        """The walk: the way laid out for this token, else any neighbour that is up; "" if none is.

        It goes to one in doubt only where there is nobody else. Where the way is broken, two agents on either side of
        the gap would send a token to and fro for ever: so it does not go straight back where there is another way, and
        while somebody is gone it strays from its way at times. If only a link is down nobody is gone, but a few agents
        may pass the token round among themselves: once it has not met somebody for long, it goes to whom it has not met
        for longest.
        """
        doubtful, up = self.doubts.now(now), self._up()
        up = [name for name in up if name not in doubtful] or up
        ways = [name for name in up if name != giver] or up
        met, buried, places = message.payload.met.tolist(), message.payload.buried.tolist(), self.settings.places
        latest = max(met)
        if ways and latest - min((met[k] for k in places.values() if not buried[k]), default=latest) > (
            MISSED_LAPS * len(self.settings.agents)
        ):
            return min(ways, key=lambda name: float(met[places[name]]))
        laid = self.settings.next[message.token].get(self.me, "") if self.settings.next else ""
        stray = STRAY if any(buried) else 0.0
        if laid in ways and not stray:
            return laid
        draw = self._draw(message.token, message.hop * 64 + message.epoch.number, HOP)
        if laid in ways and draw >= stray:
            return laid
        return ways[int(draw / (stray if laid in ways else 1.0) * len(ways))] if ways else ""

    def _gone(self, now: float, m: int, parcel: Any, lost: str = "") -> Any:
        """1 for each neighbour that has been down, or in doubt, for longer than is waited, and that the token has not
        met for laps.

        A link may be down between two that are well; then the token meets it elsewhere, and it is not gone. `lost` is
        who had the token when it was lost: it is recounted in any case, so there is nothing to wait for.
        """
        gone = np.zeros(self.settings.size)
        doubtful = {name: self.doubts.of[name].since_s for name in self.doubts.now(now)}
        for name, since_s in (doubtful | self.down_s).items():
            place, latest = self.settings.places[name], float(parcel.met.max())
            if name == lost:
                gone[place] = 1.0 - parcel.buried[place]
            elif now - since_s >= self.settings.patience_s:
                watched = self.watch[m, name] = min(self.watch.get((m, name), latest), latest)
                unmet = latest - max(watched, float(parcel.met[place]))
                if unmet >= UNMET_LAPS * (1.0 + float(parcel.members)):
                    gone[place] = 1.0 - parcel.buried[place]
        return gone

    def _warned(self, now: float, parcel: Any) -> None:
        """Whom others have counted out, though it has been up from here for long, is in doubt."""
        for name in self._up():
            if parcel.buried[self.settings.places[name]] and now - self.up_s.get(name, now) > self.settings.stall_s:
                self.doubts.warned(now, name)  # and is asked whether it works, before it gets a token

    def _everybody(self, now: float, parcel: Any) -> bool:
        """Whether all agents were met, and all are in the model but for those that are known to be gone since.

        Who has never been met is waited for, but not for ever: it may have died before.
        """
        waits = self.visits.exact and now - self.begun_s < self.settings.silence_s
        founders = len(self.settings.agents)
        if parcel.recounting or (waits and not parcel.met[:founders].all()):
            return False
        known = np.append(np.ones(founders, bool), parcel.met[founders:] > 0)
        return bool(parcel.members >= np.count_nonzero(known & (parcel.buried == 0)))

    def _names(self, flags: Any) -> Iterable[str]:
        return (name for name, place in self.settings.places.items() if flags[place])

    def _draw(self, m: int, hop: int, stream: int) -> float:
        as_bits: Callable[[int], Any] = np.uint64
        seed = self.settings.seed * 8191 + self.place
        return float(randomness.draw(np, as_bits(seed % 2**64), as_bits(m), as_bits(hop), stream))

    def _persist(self, rows: dict[str, Any], visit: Visit | None = None) -> None:
        self.rows.update(rows)
        self.saying.append(Persist(rows, visit))

    def _ask(self, to: str, question: Question) -> int:
        self.number += 1
        self.asked[self.number] = (to, question)
        self.saying.append(Ask(self.number, to, question))
        return self.number
