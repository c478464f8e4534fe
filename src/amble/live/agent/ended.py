"""What a run has come to: the model of all agents, and how good it is at each of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from amble.arrays import Array, Flags
from amble.live.settings.agent_config import AgentConfig
from amble.results.model import Model, versions
from amble.results.sums import Judged, Sums

EACH = tuple(name for name in Judged._fields if name != "scores")  # one number each


def pack_judged(sums: Sums, index: int, places: int) -> Array:
    """How good the model is on this agent's own rows, in a region of its own: a sum over agents has all of them."""
    regions = np.zeros((places, 2, len(EACH)))
    if sums.agents:
        regions[index] = [[float(getattr(judged, name)) for name in EACH] for judged in (sums.train, sums.test)]
    return regions.ravel()


def judged_by_agent(numbers: Array, config: AgentConfig) -> dict[str, dict[str, dict[str, float]]]:
    """The reverse, by the agents' names."""
    regions = numbers.reshape(-1, 2, len(EACH))
    names = {index: name for name, index in config.protocol_settings().indices.items()}
    return {
        names.get(index, f"guest{index}"): {
            part: dict(zip(EACH, region[k].tolist(), strict=True)) for k, part in enumerate(("train", "test"))
        }
        for index, region in enumerate(regions)
        if region[0, 0] > 0
    }


def model_from(
    config: AgentConfig, w: Array, numbers: Array | None = None, inside: Flags | None = None
) -> Model:
    """The model, with the sums of the closing survey where there was one."""
    model, agreement = config.model, config.agreement
    classes, columns = len(model.labels), model.width + model.intercept
    about: dict[str, Any] = {"run": config.run, "method": config.method.label, "versions": versions()}
    sums = None
    if numbers is not None:
        size = len(Sums.zeros(model.loss_name, columns, classes).vector())
        sums = Sums.of_vector(numbers[:size], model.loss_name, columns, classes)
        about["agents"] = judged_by_agent(numbers[size:], config)
        if inside is not None and sums.agents < inside.sum():
            about["without"] = f"{int(inside.sum() - sums.agents)} agents whose data is in the model did not answer the closing survey"
    if agreement is not None:
        about["survey"] = agreement.to_json()
    return Model(
        task=model.task, loss=model.loss_name, columns=model.columns, labels=model.labels, intercept=model.intercept,
        w=w, scaling=model.scaling, target=model.target, penalty={"ridge": model.ridge}, sums=sums, about=about,
    )  # fmt: skip
