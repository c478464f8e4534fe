"""An agent's neighbours: who is up, who is in doubt, who is gone, and where a token goes next."""

from dataclasses import dataclass, field

import numpy as np

from amble.arrays import Array
from amble.live.core.chance import HOP, draw
from amble.live.core.doubts import Doubts
from amble.live.core.effects import Settings
from amble.live.core.message import Token
from amble.live.core.parcels import Parcel

STRAY = 0.25
MISSED_LAPS, UNMET_LAPS = (
    2,
    6,
)  # without meeting an agent: then the token looks for it; it is gone if its neighbour says so


@dataclass
class Neighbours:
    me: str  # whose they are
    names: tuple[str, ...]
    settings: Settings
    down_s: dict[str, float] = field(default_factory=dict)  # since when a neighbour is; absent: it is up
    up_s: dict[str, float] = field(default_factory=dict)  # since when a neighbour is, if it is
    parting: set[str] = field(default_factory=set)  # those that are about to leave
    watch: dict[tuple[int, str], float] = field(default_factory=dict)  # the hop when one was looked for
    doubts: Doubts = field(init=False)

    def __post_init__(self) -> None:
        self.doubts = Doubts(self.settings.stall_s)

    def start(self, now: float) -> None:
        self.down_s = dict.fromkeys(self.names, now)

    def went(self, now: float, name: str) -> None:
        self.down_s.setdefault(name, now)

    def came(self, now: float, name: str) -> bool:
        """Whether this is news."""
        if self.down_s.pop(name, None) is None:
            return False
        self.up_s[name] = now
        self.doubts.works(name)
        self.watch = {key: hop for key, hop in self.watch.items() if key[1] != name}
        self.parting.discard(name)
        return True

    @property
    def up(self) -> list[str]:
        return [name for name in self.names if name not in self.down_s]

    @property
    def staying(self) -> list[str]:
        """The neighbours that are up and not leaving: a token may be sent to them."""
        return [name for name in self.up if name not in self.parting]

    def next(self, now: float, message: Token, giver: str) -> str:
        """The next agent of the walk: that of the token's cycle, else any neighbour that is up; "" if none is.

        A neighbour in doubt gets it only if there is no other. If the cycle is broken, two agents on either side of the
        gap could send a token back and forth endlessly. So it does not go straight back if there is another way, and
        while an agent is gone it sometimes leaves its cycle. If only a link is down, nobody is gone, but a few agents
        may pass the token round among themselves. So if it has not met some agent for long, it goes to the neighbour
        that it has not met for the longest time.
        """
        up = self.staying if self.down_s or self.parting else list(self.names)
        if self.doubts.of:
            doubtful = self.doubts.now(now)
            up = [name for name in up if name not in doubtful] or up
        ways = [name for name in up if name != giver] or up
        met, buried, indices = message.payload.met.tolist(), message.payload.buried.tolist(), self.settings.indices
        latest, missed = max(met), any(buried)
        if missed or len(indices) < len(met):
            since = latest - min([met[k] for k in indices.values() if not buried[k]], default=latest)
        else:
            since = latest - min(met)
        if ways and since > MISSED_LAPS * len(self.settings.agents):
            return min(ways, key=lambda name: float(met[indices[name]]))
        laid = self.settings.next[message.token].get(self.me, "") if self.settings.next else ""
        stray = STRAY if missed else 0.0
        if laid in ways and not stray:
            return laid
        if len(ways) == 1:
            return ways[0]
        chance = draw(self.settings, self.me, message.token, message.hop * 64 + message.epoch.number, HOP)
        if laid in ways and chance >= stray:
            return laid
        return ways[int(chance / (stray if laid in ways else 1.0) * len(ways))] if ways else ""

    def gone(self, now: float, m: int, parcel: Parcel, lost: str = "") -> Array:
        """1 for each neighbour that has been down, or in doubt, for longer than the patience, and that the token has
        not met for laps.

        If only the link between two agents is down, the token meets the other one elsewhere, and it is not gone. `lost`
        had the token when it was lost: it is recounted in any case, so there is nothing to wait for.
        """
        gone = np.zeros(self.settings.size)
        if not self.doubts.of and not self.down_s:
            return gone
        doubtful = {name: self.doubts.of[name].since_s for name in self.doubts.now(now)}
        for name, since_s in (doubtful | self.down_s).items():
            index, latest = self.settings.indices[name], float(parcel.met.max())
            if name == lost:
                gone[index] = 1.0 - parcel.buried[index]
            elif now - since_s >= self.settings.patience_s:
                watched = self.watch[m, name] = min(self.watch.get((m, name), latest), latest)
                unmet = latest - max(watched, float(parcel.met[index]))
                if unmet >= UNMET_LAPS * (1.0 + float(parcel.members)):
                    gone[index] = 1.0 - parcel.buried[index]
        return gone

    def heed(self, now: float, parcel: Parcel) -> None:
        """A neighbour that others have counted out is in doubt, even if it has been up from here for long."""
        if not np.count_nonzero(parcel.buried):
            return
        for name in self.staying:
            if parcel.buried[self.settings.indices[name]] and now - self.up_s.get(name, now) > self.settings.stall_s:
                self.doubts.warned(now, name)  # and is asked whether it works, before it gets a token
