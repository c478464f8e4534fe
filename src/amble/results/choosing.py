"""Finds the model that a path means: a model file, a saved run, or a folder with one of them."""

from pathlib import Path

import numpy as np

from amble.arrays import BEYOND
from amble.errors import AmbleError
from amble.files import ending
from amble.results import model_file
from amble.results.loading import load_run
from amble.results.model import Model
from amble.results.model_reading import read
from amble.results.saved import base_path


def model_at(path: Path) -> Model:
    """Of a finished run; `amble.load_model` also knows agents that run."""
    if path.is_dir():
        if (path / model_file.FILE).is_file():
            return read(path / model_file.FILE)
        runs = sorted(base_path(each) for each in path.glob("*.json") if is_run(each))
        if not runs:
            below = min(path.glob(f"*/{model_file.FILE}"), default=None)
            advice = "give a file, or a folder with one" if below is None else f"give an agent's, such as {below}"
            raise AmbleError(f"the folder {path} has no {model_file.FILE} and no saved run; {advice}.")
        if len(runs) > 1:
            raise AmbleError(f"the folder {path} has {len(runs)} saved runs; give one of them, such as {runs[0]}.npz.")
        return of_run(runs[0])
    return of_run(path) if is_run(path) else read(path)


def is_run(path: Path) -> bool:
    """Whether a .json and a .npz lie side by side under this name."""
    return all(ending(base_path(path), suffix).is_file() for suffix in (".json", ".npz"))


def of_run(path: Path) -> Model:
    """The consensus model of a saved run."""
    run = load_run(path)
    if run.problem.get("scaling") is None:
        raise AmbleError(f"{path} was made on objectives, not on rows; it has nothing to predict with.")
    if not np.abs(run.model).sum() < BEYOND:
        raise AmbleError(
            f"the model of {path} has numbers as large as {np.abs(run.model).max():.1g}: its run diverged."
        )
    return run.trained()
