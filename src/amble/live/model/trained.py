"""A trained model in the file model.npz: its numbers, and what is needed to predict from rows of a file."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from amble.arrays import BEYOND, Array
from amble.data.packed import DAMAGED, arrays_of, npz_of
from amble.data.targets import Targets
from amble.errors import AmbleError
from amble.files import write_whole
from amble.live.model import model as models
from amble.live.model.model import Model
from amble.problem.prediction import METRICS, predict, score

FORMAT = 1
FILE = "model.npz"
ZIP = b"PK"  # how every .npz begins
CUT = "is damaged or cut short; copy it again, or train again"


@dataclass(frozen=True, eq=False)
class Trained:
    """A model that can predict."""

    model: Model
    w: Array

    def predict(self, X: Array, whose: str) -> Targets:
        """Targets in their own units, or labels, for rows as they are in files."""
        if X.shape[1] != self.model.width:
            raise AmbleError(
                f"{whose} has {X.shape[1]} columns, and the model was trained on {self.model.width}; give it the same."
            )
        predicted: Targets = predict(self.w, X, self.model.scaling, self.model.intercept, self.model.labels or None)
        return predicted

    def metric(self, guess: Targets, y: Targets) -> tuple[str, float]:
        """Its name and value: accuracy, or the NMSE |guess - y|^2 / |y - mean(y)|^2."""
        regression = self.model.task == "regression"
        return METRICS[self.model.task], float(score(guess, y, y.mean() if regression else 0.0, regression))

    def save(self, path: Path) -> None:
        """Writes the file completely or not at all."""
        w = np.ascontiguousarray(self.w, np.float64)
        about = {"format": FORMAT, "model": asdict(self.model), "sha256": hashlib.sha256(w.data).hexdigest()}
        write_whole({path: npz_of({"about": np.array(json.dumps(about)), "w": w})})


def load(path: Path) -> Trained:
    """The model that `save` wrote, everything checked; nothing in the file is executed."""
    if not path.is_file():
        raise AmbleError(f"there is no model {path}; amble up writes model.npz into its folder, and so does an agent.")
    content = path.read_bytes()
    if not content.startswith(ZIP):
        raise AmbleError(f"{path} is not a model file; give the {FILE} that amble up or an agent wrote.")
    try:
        arrays = arrays_of(content)
        if not {"about", "w"} <= arrays.keys():
            raise AmbleError(f"{path} is not a model file; give the {FILE} that amble up or an agent wrote.")
        about, w = json.loads(str(arrays["about"])), arrays["w"]
        if about["format"] != FORMAT:
            raise AmbleError(f"{path} is a model of format {about['format']}, and this amble reads format {FORMAT}.")
        table = {key: value for key, value in about["model"].items() if value is not None and value != []}
        model = models.make_model(table)
        right = w.shape == (model.dimension,) and w.dtype == np.float64
        if not right or about["sha256"] != hashlib.sha256(np.ascontiguousarray(w).data).hexdigest():
            raise ValueError
        if not np.abs(w).sum() < BEYOND:
            raise AmbleError(f"{path} has numbers as large as {np.abs(w).max():.1g}: its run diverged; train it again.")
        return Trained(model, w)
    except AmbleError:
        raise
    except (*DAMAGED, AttributeError) as error:
        raise AmbleError(f"the model {path} {CUT}.") from error
