"""A small live run's settings, for the tests of its configuration and of amble init."""

import copy

import numpy as np
import pytest

from amble import AmbleError
from amble.live.settings.config import Config

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X @ [1.0, 2.0, -1.0] + 0.1 * RNG.normal(size=30)
PLAIN = {
    "name": "plant",
    "method": {"name": "Relay", "tokens": 2},
    "model": {"task": "regression", "columns": 3},
    "stop": {"tolerance": 1e-8},
    "links": [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"], ["a", "c"]],
    "agents": [{"name": name, "host": "10.0.0.1", "port": 7000 + k} for k, name in enumerate("abcd")],
}


def settings(**changed):
    """PLAIN with some tables or values replaced; what is None is left out."""
    given = copy.deepcopy(PLAIN) | changed
    return {key: value for key, value in given.items() if value is not None}


def made(**changed):
    return Config.from_settings(settings(**changed))


def refused(sentence):
    return pytest.raises(AmbleError, match=sentence)


def model(**changed):
    return {"model": PLAIN["model"] | changed}


def agents(**changed):
    """With the second agent's table changed."""
    tables = copy.deepcopy(PLAIN["agents"])
    tables[1] |= changed
    return {"agents": tables}
