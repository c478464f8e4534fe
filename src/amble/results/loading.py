"""The run that two files hold (`results/saved.py`), as it was when it was saved."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from amble import methods
from amble.arrays import as_tuple, from_named, named_leaves
from amble.data.packed import DAMAGED, arrays_of
from amble.engines import State
from amble.errors import AmbleError
from amble.files import ending
from amble.methods import Method, own
from amble.methods.absent import Absent
from amble.networks.network import Network
from amble.networks.walks import Matrix, Weighted, meets
from amble.results.history import costs
from amble.results.run import Run, models_unknown
from amble.results.saved import FORMAT, base_path
from amble.schedule import timing
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule


def load_run(path: str | Path, methods: Any = ()) -> Run:
    """The run that `save` wrote, equal to it.

    Parameters
    ----------
    path : the run's .json or .npz, or what both have in common
    methods : classes of your own, the run's method among them: the classes, or texts such as "mine.py:Heavy", which are
        imported. Without it, a run of a method of your own has all its results and cannot be resumed: nothing that a
        saved run names is imported.

    Returns
    -------
    Run

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=5)
    >>> file = amble.simulate(amble.Relay(), problem, hops=5, progress=False).save(folder / "run")
    >>> amble.load_run(file).schedule.hops
    5
    """
    kinds = own.classes(methods)
    base = base_path(path)
    for file in (ending(base, ".json"), ending(base, ".npz")):
        if not file.is_file():
            raise AmbleError(f"there is no {file}; a saved run is a .json and a .npz file side by side.")
    whole = ending(base, ".npz").read_bytes()
    try:
        plain = json.loads(ending(base, ".json").read_text())
        if plain["format"] != FORMAT:
            raise AmbleError(f"{base}.json has format {plain['format']}, and this amble reads format {FORMAT}.")
        if plain["sha256"] != hashlib.sha256(whole).hexdigest():
            raise ValueError
        return _assemble(plain, arrays_of(whole), kinds)
    except AmbleError:
        raise
    except DAMAGED as error:
        raise AmbleError(
            f"the saved run {base} is damaged or cut short; save it again, or copy both files again."
        ) from error


def _method(plain: dict[str, Any], rounds: bool, kinds: list[type[Any]]) -> Method | Absent:
    """amble's own by its label; else the user's, if its class is among those given, or a stand-in that can be read."""
    label, origin = plain["method"], plain.get("own", {})
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in plain["settings"].items()}
    if not origin and label in methods.METHODS:
        return methods.from_settings(label, settings)
    kind = own.choose(kinds, label, origin)
    return Absent(label, settings, rounds, origin) if kind is None else methods.from_settings(kind, settings)


WALKS: dict[str, type[Any]] = {"matrix": Matrix, "weighted": Weighted}  # those that are more than a name


def _assemble(plain: dict[str, Any], arrays: dict[str, Any], kinds: list[type[Any]]) -> Run:
    rounds = "schedule.token" not in arrays
    method = _method(plain, rounds, kinds)
    network = plain["network"]

    def under(prefix: str) -> dict[str, Any]:
        return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}

    meet = not isinstance(method, Absent) and meets(plain["walk"], methods.tokens(method))
    if isinstance(method, Absent):
        parts = {part: as_tuple(f"state.{part}", arrays) for part in ("agents", "slots", "tokens")}
    else:
        like = methods.first_state(method, arrays["consensus"].shape[1], meet)  # its tuples are known by its first ones
        for key, first in named_leaves(like["agents"], "state.agents").items():  # what an earlier version did not keep
            arrays.setdefault(key, np.broadcast_to(first, (network["agents"], *np.shape(first))))  # is as at the start
        parts = {part: from_named(tree, f"state.{part}", arrays) for part, tree in like.items()}
    run = Run(
        method=cast(Method, method),  # a stand-in can only be read: running it is an error
        network=Network(network["agents"], arrays["network.starts"], arrays["network.neighbours"], network["name"]),
        walk=WALKS[plain["walk"]](**under("walk.")) if plain["walk"] in WALKS else plain["walk"],
        timing=timing.from_settings(plain["timing"]),
        seed=plain["seed"],
        every=plain["every"],
        compute_s=arrays["compute_s"],
        message_bytes=plain["message_bytes"],
        problem=plain["problem"],
        schedule=(Rounds if rounds else Schedule)(**under("schedule.")),
        state=State(**parts, x_sum=arrays["state.x_sum"], lost=arrays["state.lost"]),
        recorded=arrays["recorded"],
        consensus=arrays["consensus"],
        local=arrays["local"],
        history=under("history."),
        tuning=plain["tuning"],
        start=arrays.get("start"),
        stopped=plain["stopped"],
    )
    history = costs(run) | run.history  # an earlier version may have saved fewer columns
    if models_unknown(run):  # ... or called the model's own columns those of the x_i
        history = {key: column for key, column in history.items() if not key.endswith("_local")}
    return replace(run, history=history)
