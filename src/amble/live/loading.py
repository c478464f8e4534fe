"""load_model: the model of a finished run, or the one that a running agent has so far."""

from pathlib import Path

from amble.errors import AmbleError, as_path
from amble.results.choosing import model_at
from amble.results.model import Model
from amble.results.model_file import FILE


def load_model(path: str | Path) -> Model:
    """The model that `save`, `amble up` or an agent wrote.

    Parameters
    ----------
    path : a model.npz, a saved run (.json or .npz), or a folder with a model.npz or one saved run; or the folder of an
        agent that runs, for the model that it has so far, without statistics

    Returns
    -------
    Model

    Example
    -------
    >>> import amble
    >>> run = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20)
    >>> amble.load_model(run.trained().save(folder / "model.npz"))
    Model(least-squares: 10 columns)
    """
    path = as_path(path, "the model")
    if (path / "agent.toml").is_file() and not (path / FILE).is_file():
        return _so_far(path)
    return model_at(path)


def _so_far(folder: Path) -> Model:
    """Of an agent that has not ended: its own estimate."""
    from amble.data.packed import read_npy  # these need the extra live
    from amble.live.settings.agent_config import AgentConfig

    config, numbers = AgentConfig.read(folder), folder / "model.npy"
    if config.open or not numbers.is_file():
        raise AmbleError(f"agent {config.name} has no model yet; try again when tokens have come to it (amble status).")
    return config.trained(read_npy(numbers), so_far=True, survey=config.agreement and config.agreement.to_json())
