"""Finds the model at a path: a model file, a saved run, or a folder with one of them."""

from pathlib import Path

import numpy as np

from amble.arrays import BEYOND
from amble.errors import AmbleError
from amble.files import ending
from amble.live.model.model import Model
from amble.live.model.trained import FILE, Trained, load
from amble.results.loading import load_run
from amble.results.run import Run
from amble.results.saved import base_path


def choose(path: Path) -> Trained:
    """The model of a model.npz, of a saved run's .json or .npz, or of a folder that has a model.npz or one run."""
    if path.is_dir():
        if (path / FILE).is_file():
            return load(path / FILE)
        runs = sorted(base_path(each) for each in path.glob("*.json") if is_run(each))
        if not runs:
            raise AmbleError(f"the folder {path} has no {FILE} and no saved run; give a file, or a folder with one.")
        if len(runs) > 1:
            raise AmbleError(f"the folder {path} has {len(runs)} saved runs; give one of them, such as {runs[0]}.npz.")
        return of_run(load_run(runs[0]), runs[0])
    return of_run(load_run(path), path) if is_run(path) else load(path)


def is_run(path: Path) -> bool:
    """Whether a .json and a .npz lie side by side under this name."""
    return all(ending(base_path(path), suffix).is_file() for suffix in (".json", ".npz"))


def of_run(run: Run, path: Path) -> Trained:
    """The consensus model of a run, with everything needed to use it on rows of a file."""
    about = run.problem
    if about.get("scaling") is None:
        raise AmbleError(f"{path} was made on objectives, not on rows; it has nothing to predict with.")
    if not np.abs(run.model).sum() < BEYOND:
        raise AmbleError(
            f"the model of {path} has numbers as large as {np.abs(run.model).max():.1g}: its run diverged."
        )
    scaling = about["scaling"]
    columns = about.get("columns")
    model = Model(
        task=about["task"],
        columns=len(scaling["X_mean"]) if columns is None else tuple(columns),
        labels=tuple(about.get("labels", ())),
        intercept=about["intercept"],
        target=about.get("target"),
        X_mean=tuple(scaling["X_mean"]),
        X_std=tuple(scaling["X_std"]),
        y_mean=scaling["y_mean"],
        y_std=scaling["y_std"],
    )
    return Trained(model, run.model)
