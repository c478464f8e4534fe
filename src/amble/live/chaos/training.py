"""What the agents of a simulated world train: by the seed, numbers whose mean is exact, or real losses."""

from random import Random
from typing import Any

import numpy as np

from amble.live.chaos import losses
from amble.live.chaos.tally import Mean, TrackedMean
from amble.live.core.effects import Settings
from amble.live.core.parcels import Visits
from amble.live.core.tracked_visits import TrackedVisits
from amble.live.core.visits import GiftVisits
from amble.methods.relay import Relay

START = -3.0  # the initial model, in half of the worlds; below all numbers that are trained on
# by the seed: numbers, with both kinds of accounts, and real losses, with both forms of Relay
KINDS = ("tracked", "gifts", "full", "gifts", "tracked", "gifts", "scalar", "gifts")


class Training:
    """`kind` is one of KINDS, by default the seed's; `visits_kind` is where a test plants a bug."""

    def __init__(self, chance: Random, settings: Settings, kind: str = "", visits_kind: Any = None) -> None:
        self.chance, tokens = chance, settings.tokens
        self.kind = kind or KINDS[settings.seed % len(KINDS)]
        self.start = (0.0, START)[settings.seed // len(KINDS) % 2]
        self.loss = chance.choice(losses.NAMES) if self.kind in ("full", "scalar") else ""
        settle, weigh = chance.randint(1, 20), chance.choice(("scalar", "agents"))
        make_visits = visits_kind or (TrackedVisits if self.kind == "tracked" else GiftVisits)
        tracked = issubclass(make_visits, TrackedVisits)
        method: Any = TrackedMean(tokens, settle) if tracked else Mean(tokens, settle, weigh)
        if self.loss:
            method = Relay(tokens, self.kind)
        dimension = losses.unknowns(self.loss) if self.loss else 1
        start = np.full(dimension, self.start)
        agents = len(settings.agents)
        self.visits: Visits = make_visits(method, dimension, agents, settings.tolerance, settings.room, start)

    def objective(self) -> Any:
        """Of one more agent: a loss, or its number."""
        if self.loss:
            return losses.some_loss(self.loss, self.chance.randrange(2**32))
        return float(self.chance.randint(1, 9))
