"""Tables of several sites for runs with a survey: a category, different sizes and scales, and the pooled table."""

import numpy as np
import pandas as pd

from amble.live.settings import bundle
from amble.live.settings.config import Config

MODEL = ("loss", "task", "ridge", "l1", "positive", "unpenalised", "reference")
SIZES = {"north": 40, "east": 25, "south": 60}


def tables(loss="least-squares", sizes=None, seed=3):
    """One DataFrame per site."""
    rng = np.random.default_rng(seed)
    made = {}
    for k, (name, rows) in enumerate((sizes or SIZES).items()):
        age = rng.normal(50 + 5 * k, 10, rows)
        dose = rng.gamma(2.0, 10.0 ** (k - 1), rows)
        group = rng.choice(["a", "b", "c"] if k else ["a", "b"], rows)
        eta = 0.03 * (age - 50) + 0.2 * np.log(dose) + np.where(group == "b", 0.5, 0.0) - np.where(group == "c", 0.4, 0)
        if loss == "least-squares":
            y = 100 + 20 * eta + rng.normal(0, 3, rows)
        elif loss == "logistic":
            y = np.where(rng.random(rows) < 1 / (1 + np.exp(-eta)), "yes", "no")
        else:
            y = rng.poisson(np.exp(eta + 0.5))
        made[name] = pd.DataFrame({"age": age, "dose": dose, "group": group, "y": y})
    return made


def make_bundle(folder, frames, port=23_400, method=None, tests=None, **survey):
    """A bundle of a run with a survey, with each site's table in its folder, and the test tables of some."""
    tests = tests or {}
    names = list(frames)
    model = {"target": "y"} | {key: survey.pop(key) for key in MODEL if key in survey}
    settings = {
        "name": "study",
        "method": method or {"name": "Relay"},
        "model": model,
        "survey": survey,
        "stop": {"tolerance": 1e-10},
        "network": {"kind": "complete"},
        "agents": [
            {"name": name, "host": "127.0.0.1", "port": port + k, "data": "rows.csv"}
            | ({"test": "test.csv"} if name in tests else {})
            for k, name in enumerate(names)
        ],
    }
    config = Config.from_settings(settings)
    bundle.make_bundle(config, folder, 30)
    for name, frame in frames.items():
        frame.to_csv(folder / name / "rows.csv", index=False)
    for name, frame in tests.items():
        frame.to_csv(folder / name / "test.csv", index=False)
    return config
