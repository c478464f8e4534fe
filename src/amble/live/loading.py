"""load_model: the model of a finished run, or the one that a running agent has so far; load_params: the same of a model
of your own."""

from pathlib import Path
from typing import Any

from amble.errors import AmbleError, as_path
from amble.results.choosing import model_at
from amble.results.model import Model
from amble.results.model_file import FILE
from amble.results.own_model import read


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
    if config.code is not None:
        raise AmbleError(f"agent {config.name} trains a model of your own; {numbers} has its numbers so far.")
    survey = config.agreement and config.agreement.to_json()
    model = config.trained(read_npy(numbers), so_far=True, survey=survey)
    assert isinstance(model, Model)
    return model


def load_params(path: str | Path, file: str | Path) -> Any:
    """The weights of a model of your own that `amble up` or an agent has trained.

    Parameters
    ----------
    path : a model.npz, or a folder with one
    file : the Python file of the model, which is imported: the one that the run began with

    Returns
    -------
    of a TorchLoss a state_dict, of a JaxLoss a pytree like its params, else an array

    Example
    -------
    >>> amble.load_params("amble-up", "net.py")  # doctest: +SKIP
    """
    import numpy as np

    from amble.live.model.own import code_at, loss_of

    path = as_path(path, "the model")
    model, code = read(path / FILE if path.is_dir() else path), code_at(as_path(file, "the model's file"))
    if code.digest != model.code:
        raise AmbleError(f"{code.path} is not the {model.file} that {path} was trained with; give that one.")
    y = np.zeros(1, np.int64 if model.labels else np.float64)
    return loss_of(code, np.zeros((1, model.width)), y).params(model.w)
