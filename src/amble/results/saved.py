"""A run as two files: PATH.json with its settings, PATH.npz with its arrays. `results/loading.py` reads them."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amble import methods
from amble.arrays import named_leaves
from amble.data.packed import npz_of
from amble.errors import AmbleError, as_path
from amble.files import ending, write_whole
from amble.methods import own
from amble.schedule import timing

if TYPE_CHECKING:
    from amble.results.run import Run

FORMAT = 1


def write(run: "Run", path: str | Path) -> Path:
    """The work of `Run.save`, which documents the arguments."""
    base = base_path(path)
    arrays: dict[str, Any] = {
        "network.starts": run.network.starts,
        "network.neighbours": run.network.neighbours,
        "compute_s": run.compute_s,
        "recorded": run.recorded,
        "consensus": run.consensus,
        "local": run.local,
        "state.x_sum": run.state.x_sum,
        "state.lost": run.state.lost,
    }
    arrays |= {f"schedule.{key}": value for key, value in run.schedule._asdict().items() if value is not None}
    arrays |= {f"history.{key}": value for key, value in run.history.items()}
    for part in ("agents", "slots", "tokens"):
        arrays |= named_leaves(getattr(run.state, part), f"state.{part}")
    if run.start is not None:
        arrays["start"] = run.start
    if not isinstance(run.walk, str):
        arrays |= {f"walk.{key}": column for key, column in run.walk._asdict().items()}
    content = npz_of({key: np.asarray(value) for key, value in arrays.items()}, compressed=True)
    plain = {
        "format": FORMAT,
        "method": run.method.label,
        "settings": methods.settings(run.method),
        **({} if type(run.method) in methods.METHODS.values() else {"own": own.origin(run.method)}),
        "network": {"name": run.network.name, "agents": run.network.agents},
        "walk": run.walk_name,
        "timing": timing.settings(run.timing),
        "seed": run.seed,
        "every": run.every,
        "message_bytes": run.message_bytes,
        "problem": run.problem,
        "tuning": run.tuning,
        "stopped": run.stopped,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    text = json.dumps(plain, indent=2, default=lambda number: number.item())  # NumPy's numbers as plain ones
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        write_whole({ending(base, ".npz"): content, ending(base, ".json"): f"{text}\n".encode()})
    except OSError as error:
        raise AmbleError(
            f"the run cannot be saved to {base} ({error.strerror}); give a path that you can write to."
        ) from error
    return ending(base, ".json")


def base_path(path: str | Path) -> Path:
    """What the .json and the .npz of a saved run have in common."""
    path = as_path(path, "a saved run")
    return path.with_suffix("") if path.suffix in (".npz", ".json") else path
