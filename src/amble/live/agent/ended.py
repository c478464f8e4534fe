"""What a run has come to: the model of all agents, and how good it is at each of them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from amble.arrays import Array, Flags
from amble.digests import hasher
from amble.live.settings.agent_config import AgentConfig
from amble.results.model import Model
from amble.results.own_model import OwnModel
from amble.results.sums import Judged, Sums

EACH = tuple(name for name in Judged._fields if name != "scores")  # one number each
PART_BYTES = 2**20
DIGITS = 12  # of a file's digest, in hexadecimal: as a number it is below 2^53, so a sum with zeros keeps it


class Known(NamedTuple):
    """What the closing survey says of single agents, by their names."""

    judged: dict[str, dict[str, dict[str, float]]]  # how good the model is on their rows: train and test
    digest: dict[str, str]  # of the files with their rows


def file_digest(path: Path) -> str:
    """Of a file's bytes, as sha256sum prints it, cut."""
    sha = hasher(path.stat().st_size)
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            sha.update(part)
    return sha.hexdigest()[:DIGITS]


def judged(sums: Sums, index: int, places: int, digest: str | None) -> Array:
    """How good the model is on this agent's own rows, and the digest of their file, in a region of its own: a sum over
    agents has all of them."""
    regions = np.zeros((places, 1 + 2 * len(EACH)))
    if sums.agents:
        regions[index, 0] = int(digest or "0", 16)
        regions[index, 1:] = [float(getattr(part, name)) for part in (sums.train, sums.test) for name in EACH]
    return regions.ravel()


def judged_by_agent(numbers: Array, config: AgentConfig) -> Known:
    """The reverse, by the agents' names."""
    names = {index: name for name, index in config.protocol_settings().indices.items()}
    known = Known({}, {})
    for index, (number, *region) in enumerate(numbers.reshape(-1, 1 + 2 * len(EACH)).tolist()):
        train, test = (dict(zip(EACH, half, strict=True)) for half in (region[: len(EACH)], region[len(EACH) :]))
        if train["rows"] > 0:
            name = names.get(index, f"guest{index}")
            known.judged[name] = {"train": train, "test": test}
            if 0 < number < 16**DIGITS:  # others may send anything
                known.digest[name] = f"{int(number):0{DIGITS}x}"
    return known


def model_from(
    config: AgentConfig,
    w: Array,
    digest: str | None,
    numbers: Array | None = None,
    inside: Flags | None = None,
    recounting: bool = False,
) -> Model | OwnModel:
    """The model; with the sums of the closing survey, where there was one, and before it with the digest of this
    agent's own file. `recounting`: see core/stages.py."""
    survey = None if config.agreement is None else config.agreement.to_json()
    if numbers is None:
        return config.trained(w, survey=survey, digest=None if digest is None else {config.name: digest})
    model = config.model
    of = (model.loss_name, model.width + model.intercept, len(model.labels))
    size = len(Sums.zeros(*of).vector())
    sums = Sums.of_vector(numbers[:size], *of)
    silent = 0 if inside is None else int(inside.sum() - sums.agents)  # in the model, and not in the closing survey
    known = judged_by_agent(numbers[size:], config)._asdict()
    return config.trained(w, sums, survey=survey, **known, silent=silent, recounting=recounting)
