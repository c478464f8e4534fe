"""amble: train one model across many agents that keep their data, with no server."""

import importlib
from typing import Any

__version__ = "0.1.0"

# where `amble.NAME` is defined; each is imported at its first use, so that `import amble` is fast
_HOMES = {
    "amble.simulation.comparison": ["Comparison", "compare"],
    "amble.data.datasets": ["Dataset"],
    "amble.data.loading": ["load"],
    "amble.data.files": ["read_file"],
    "amble.errors": ["AmbleError"],
    "amble.estimators.classifier": ["Classifier"],
    "amble.estimators.regressor": ["Regressor"],
    "amble.live.following": ["follow"],
    "amble.live.loading": ["load_model", "load_params"],
    "amble.methods.parameters": ["method"],
    "amble.networks.network": ["Network"],
    "amble.problem.problem": ["Problem"],
    "amble.problem.split": ["split"],
    "amble.results.loading": ["load_run"],
    "amble.results.model": ["Model"],
    "amble.results.run": ["Run"],
    "amble.results.penalty_path": ["PenaltyPath"],
    "amble.simulation.path": ["path"],
    "amble.simulation.simulate": ["resume", "simulate"],
    "amble.schedule.timing": ["Timing"],
    "amble.sweeps.results": ["Sweep"],
    "amble.sweeps.sweep": ["sweep"],
    "amble.tracking.mlflow": ["to_mlflow"],
    "amble.tracking.record": ["Record"],
    "amble.tracking.tensorboard": ["to_tensorboard"],
    "amble.tracking.tracker": ["Tracker"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", "networks", *_HOME]  # and every method and loss, by its class name


def __getattr__(name: str) -> Any:
    if name == "networks":
        return importlib.import_module("amble.networks")
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        value = _registered().get(name)
        if value is None:
            raise AttributeError(f"module 'amble' has no attribute {name!r}")
    globals()[name] = value
    return value


def _registered() -> dict[str, Any]:
    """Every method and every loss that has a name, by its class name."""
    tables = importlib.import_module("amble.methods").METHODS, importlib.import_module("amble.losses").LOSSES
    return {kind.__name__: kind for table in tables for kind in table.values()}


def __dir__() -> list[str]:
    return sorted([*__all__, *_registered()])
