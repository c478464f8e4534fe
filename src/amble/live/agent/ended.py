"""What a run has come to: the model of all agents, and how good it is at each of them."""

import numpy as np

from amble.arrays import Array, Flags
from amble.live.settings.agent_config import AgentConfig
from amble.results.model import Model
from amble.results.sums import Judged, Sums

EACH = tuple(name for name in Judged._fields if name != "scores")  # one number each


def judged(sums: Sums, index: int, places: int) -> Array:
    """How good the model is on this agent's own rows, in a region of its own: a sum over agents has all of them."""
    regions = np.zeros((places, 2, len(EACH)))
    if sums.agents:
        regions[index] = [[float(getattr(part, name)) for name in EACH] for part in (sums.train, sums.test)]
    return regions.ravel()


def judged_by_agent(numbers: Array, config: AgentConfig) -> dict[str, dict[str, dict[str, float]]]:
    """The reverse, by the agents' names."""
    names = {index: name for name, index in config.protocol_settings().indices.items()}
    return {
        names.get(index, f"guest{index}"): {
            part: dict(zip(EACH, row.tolist(), strict=True))
            for part, row in zip(("train", "test"), region, strict=True)
        }
        for index, region in enumerate(numbers.reshape(-1, 2, len(EACH)))
        if region[0, 0] > 0
    }


def model_from(
    config: AgentConfig,
    w: Array,
    numbers: Array | None = None,
    inside: Flags | None = None,
    recounting: bool = False,
) -> Model:
    """The model; with the sums of the closing survey, where there was one. `recounting`: see core/stages.py."""
    survey = None if config.agreement is None else config.agreement.to_json()
    if numbers is None:
        return config.trained(w, survey=survey)
    model = config.model
    of = (model.loss_name, model.width + model.intercept, len(model.labels))
    size = len(Sums.zeros(*of).vector())
    sums = Sums.of_vector(numbers[:size], *of)
    silent = 0 if inside is None else int(inside.sum() - sums.agents)  # in the model, and not in the closing survey
    by_agent = judged_by_agent(numbers[size:], config)
    return config.trained(w, sums, survey=survey, judged=by_agent, silent=silent, recounting=recounting)
