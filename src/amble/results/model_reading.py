"""Reads the file of a model. An agent needs no more than this, so nothing of runs is imported here."""

from pathlib import Path

import numpy as np

from amble.arrays import BEYOND
from amble.errors import AmbleError
from amble.problem.assemble import Scaling
from amble.results import model_file
from amble.results.model import Model
from amble.results.own_model import OWN
from amble.results.sums import Sums


def read(path: Path) -> Model:
    """The model of a model file, everything checked."""
    about, arrays = model_file.read(path)
    if OWN in about:
        raise AmbleError(
            f"{path} has the numbers of a model of your own; amble.load_params({str(path)!r}, {about[OWN]['file']!r}) "
            "makes its weights."
        )
    try:
        w, width = arrays["w"], len(arrays["X_mean"])
        if not np.abs(w).sum() < BEYOND:
            raise AmbleError(f"{path} has numbers as large as {np.abs(w).max():.1g}: its run diverged; train it again.")
        labels, columns = tuple(about["labels"]), about["columns"]
        sums = None
        if "sums" in arrays:
            sums = Sums.of_vector(arrays["sums"], about["loss"], width + about["intercept"], len(labels))
        model = Model(
            task=about["task"],
            loss=about["loss"],
            columns=columns if isinstance(columns, int) else tuple(columns),
            labels=labels,
            intercept=about["intercept"],
            w=w,
            scaling=Scaling(arrays["X_mean"], arrays["X_std"], about["y_mean"], about["y_std"]),
            target=about["target"],
            penalty=about["penalty"],
            sums=sums,
            about=about["about"],
        )
        if not model.width == width == len(arrays["X_std"]):
            raise ValueError
        return model
    except AmbleError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise model_file.damaged(path) from error
