"""An agent's random numbers: a function of the run's seed, the agent, the token and the purpose. They have no state."""

from collections.abc import Callable
from typing import Any

import numpy as np

from amble import randomness
from amble.live.core.effects import Settings

HOP, RETRY, SILENCE = 0, 1, 2  # purposes


def draw(settings: Settings, me: str, m: int, hop: int, purpose: int) -> float:
    """A number from 0 to below 1."""
    as_bits: Callable[[int], Any] = np.uint64
    seed = settings.seed * 8191 + settings.indices[me]
    return float(randomness.draw(np, as_bits(seed % 2**64), as_bits(m), as_bits(hop), purpose))
