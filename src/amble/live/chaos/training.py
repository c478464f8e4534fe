"""What the agents of a simulated world do: by the seed, they train on numbers whose mean is exact, or on real losses;
or they add numbers up in a survey; or they do all that, in three stages."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from amble.live.chaos import losses
from amble.live.chaos.staged import GATHER_S, document
from amble.live.chaos.tally import Mean, TrackedMean
from amble.live.core.effects import Settings
from amble.live.core.model_visits import ModelVisits
from amble.live.core.parcels import Visits
from amble.live.core.tracked_visits import TrackedVisits
from amble.live.core.visits import GiftVisits
from amble.methods.relay import Relay
from amble.methods.survey import Part, Survey
from amble.methods.tokensgd import TokenSGD

START = -3.0  # the initial model, in half of the worlds; below all numbers that are trained on
# by the seed: numbers, with both kinds of accounts; real losses, with both forms of Relay, and with a token that is the
# model; a survey; three stages
KINDS = ("tracked", "gifts", "full", "gifts", "survey", "tracked", "gifts", "scalar", "model", "stages")
TOLERANCE, SLOW_TOLERANCE = 1e-12, 1e-8  # the scalar form of Relay takes many laps
ALPHA = 0.05  # of a token that is the model
IN_STAGES = ("full", "gifts", "tracked")


class Training:
    """`kind` is one of KINDS, by default the seed's; `visits_kind` is where a test plants a bug."""

    def __init__(self, chance: Random, settings: Settings, kind: str = "", visits_kind: Any = None) -> None:
        self.chance, tokens, self.index = chance, settings.tokens, -1
        self.kind = kind or KINDS[settings.seed % len(KINDS)]
        self.staged = self.kind == "stages"
        if self.staged and not settings.hops_max:
            settings = replace(settings, tolerance=TOLERANCE)
        if self.kind in ("scalar", "model") and settings.tolerance:  # a model that takes constant steps never rests
            settings = replace(settings, tolerance=SLOW_TOLERANCE if self.kind == "scalar" else 0.0)
        self.start = (0.0, START)[settings.seed // len(KINDS) % 2]
        self.loss = chance.choice(losses.NAMES) if self.kind in ("full", "scalar", "model") else ""
        settle, weigh = chance.randint(1, 20), chance.choice(("scalar", "agents"))
        if self.staged:
            self.kind, self.start, settle, weigh = chance.choice(IN_STAGES), 0.0, 1, "scalar"
            self.loss = chance.choice(losses.NAMES) if self.kind == "full" else ""
        make_visits = visits_kind or (TrackedVisits if self.kind == "tracked" else GiftVisits)
        tracked = issubclass(make_visits, TrackedVisits)
        method: Any = TrackedMean(tokens, settle) if tracked else Mean(tokens, settle, weigh)
        if self.kind == "model":
            make_visits = visits_kind or ModelVisits
            method = TokenSGD(ALPHA, tokens, step=chance.choice(("plain", "momentum")), beta=0.5, mix=0.0)
        elif self.loss:
            short = self.kind == "full" and settings.seed // (2 * len(KINDS)) % 2 > 0  # its matrices travel in float32
            method = Relay(tokens, self.kind, "float32" if short else "float64")
        dimension = losses.unknowns(self.loss) if self.loss else 1
        start = np.full(dimension, self.start)
        agents = len(settings.agents)
        self.settings = settings
        if self.kind == "survey":
            method, dimension, start = Survey(), settings.size, np.zeros(settings.size)
            self.settings = replace(settings, tokens=1, hops_max=0, result=2 * settings.size)
            if settings.tolerance:
                founders, gather_s = np.arange(settings.size) < agents, chance.choice((None, GATHER_S))
                self.settings = replace(self.settings, expected=founders, gather_s=gather_s)
        self.visits: Visits = make_visits(method, dimension, agents, settings.tolerance, settings.room, start)

    def objective(self) -> Any:
        """Of one more agent: a loss, or its number, or what it adds to a survey."""
        self.index += 1
        if self.kind == "survey":
            return Part(document(self.index, self.settings.size))
        if self.loss:
            return losses.some_loss(self.loss, self.chance.randrange(2**32))
        return float(self.chance.randint(1, 9))
