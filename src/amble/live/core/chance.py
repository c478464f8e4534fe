"""An agent's random numbers: a function of the run's seed, the agent, the token and the purpose. They have no state."""

from amble.live.core.effects import Settings
from amble.randomness import draw_one

HOP, RETRY, SILENCE = 0, 1, 2  # purposes


def draw(settings: Settings, me: str, m: int, hop: int, purpose: int) -> float:
    """A number from 0 to below 1."""
    return draw_one(settings.seed * 8191 + settings.indices[me], m, hop, purpose)
