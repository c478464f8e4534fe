"""Run: settings, seed, schedule, recorded models and costs. Everything shown to a person is computed from a Run."""

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from amble import methods
from amble.arrays import as_tuple, from_named, named_leaves
from amble.engines import State
from amble.errors import AmbleError, as_path, is_number, need
from amble.files import ending, write_whole
from amble.methods import own
from amble.networks.network import Network
from amble.networks.walks import Matrix
from amble.problem.assemble import Scaling
from amble.problem.prediction import predict
from amble.results.reaching import time_to
from amble.schedule import timing
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule
from amble.schedule.timing import Timing

FORMAT = 1
# why a run ended: at a limit that was given; its model stood still; somebody stopped it; it diverged; of a live run, it
# lost a token that it could not reissue
STOPPED = ("hops", "rounds", "time_s", "comm_units", "tolerance", "interrupted", "diverged", "lost")


def settings_text(method: Any, tuned: str | None = None) -> str:
    """A method's settings in a few words; the one that was tuned without its value, which depends on the seed."""
    settings = methods.settings(method)
    rule, form = settings.pop("token_rule", None), settings.pop("form", None)
    if settings.get("tokens") == 1 and not methods.is_round(method):
        settings.pop("tokens")
    shown = {key: f"{value:g}" if is_number(value) else str(value) for key, value in settings.items()}
    parts = [
        f"{key} tuned" if key == tuned else f"{key}={shown[key]}"
        for key, value in settings.items()
        if value is not None
    ]
    return ", ".join([*parts, *(value for value in (rule, form) if value)])


@dataclass(frozen=True, eq=False)
class Run:
    """What happened when a method ran on a problem over a network, made by `simulate`, `resume` and `load_run`.

    `history` is a dict of arrays, one entry per record:

    hop, time_s, comm_units, bytes      cost so far
    idle                                share of all agents' seconds so far in which they did not compute: 1 less the
                                        compute seconds of all visits that have ended / (N time_s); 1 at the start.
                                        An agent that waits, for a token or for the slowest of its round, is idle
    objective, suboptimality            sum_i f_i at the model; the same less its minimum
    distance, distance_local            |w - w*| / |w*| of the model, and of the mean of the agents' x_i
                                        (these three where the optimum w* is known; else problem["optimum"] says why)
    metric, metric_local                test NMSE or accuracy of the model, and of the mean of the agents' x_i
    penalised                           F of the paper's eq. 3 and 10, in a run that was asked for it
    """

    method: Any
    network: Network
    walk: str | Matrix
    timing: Timing
    seed: int
    every: int | None  # hops (rounds, for a round method) between records; None: each 2 % further than the last
    compute_s: Any  # seconds of a visit at each agent
    message_bytes: int
    problem: dict[str, Any]  # name, task, digest, settings
    schedule: Schedule | Rounds
    state: State
    recorded: Any  # the hops after which the model was recorded (rounds, for a round method)
    consensus: Any  # the model at those: the mean of the tokens' estimates
    local: Any  # the mean of the agents' x_i at those
    history: dict[str, Any] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)  # which setting was chosen, from what was tried
    start: Any = None  # the initial model; None: zeros
    stopped: str = "hops"  # one of STOPPED

    def __repr__(self) -> str:
        last = {key: column[-1] for key, column in self.history.items()}
        words = ", ".join(f"{key} {last[key]:.3g}" for key in ("metric", "distance") if key in last)
        missed = f" ({len(self.unvisited)} of {self.network.agents} agents not visited)" if self.unvisited else ""
        where = f"{self.problem['name']}, {self.schedule.hops:,} hops{missed}"
        return f"Run({self.label} on {where}, {words}, stopped: {self.stopped})"

    @property
    def walk_name(self) -> str:
        return self.walk if isinstance(self.walk, str) else "matrix"

    @property
    def model(self) -> Any:
        """The consensus model: the mean of the tokens' estimates (round methods: the mean of the x_i)."""
        return self.consensus[-1]

    @property
    def _models_unknown(self) -> bool:
        """Whether an earlier version saved this live run with zeros in place of the agents' x_i."""
        return self.walk == "live" and not self.state.x_sum.any()

    @property
    def models(self) -> Any:
        """The local models x_i, one row per agent."""
        if self._models_unknown:
            raise AmbleError(
                "the x_i of this live run are not known: an earlier amble saved it without them; run amble up again to "
                "have them."
            )
        agents = self.state.agents
        return np.asarray(agents.x if hasattr(agents, "x") else agents.own.x)  # of a board whose class is not here

    @property
    def unvisited(self) -> tuple[int, ...]:
        """The numbers of the agents that no token came to; the model knows nothing of their rows."""
        everyone = range(self.network.agents)
        if isinstance(self.schedule, Rounds):
            return () if self.schedule.hops else tuple(everyone)
        return tuple(sorted({*everyone} - {*self.schedule.agent.tolist()}))

    @property
    def label(self) -> str:
        """The method's name and settings, for tables and legends."""
        return f"{self.method.label} ({self.settings_text})"

    @property
    def settings_text(self) -> str:
        """The method's settings in a few words."""
        return settings_text(self.method)

    def predict(self, X: Any) -> Any:
        """Predictions of the run's model.

        Parameters
        ----------
        X : rows (d, p) in the units of training, not scaled; a DataFrame's columns are taken by name

        Returns
        -------
        array of d targets in their own units, or labels

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> run = amble.simulate(amble.Relay(), amble.split(data), hops=20)
        >>> run.predict(data.X[:3]).round()
        array([208.,  69., 179.])
        """
        about = self.problem
        if about.get("scaling") is None:
            raise AmbleError("this run was made on objectives, not on rows; it has nothing to predict with.")
        scaling = Scaling(*(np.asarray(about["scaling"][key]) for key in Scaling._fields))  # type: ignore[arg-type]
        return predict(self.model, X, scaling, about["intercept"], about.get("labels"), about.get("columns"))

    def time_to(
        self, *, metric: float | None = None, within: float | None = None, cost: str = "time_s", local: bool = False
    ) -> float:
        """What the run had cost when it came as close as asked, and stayed there to its end.

        Parameters
        ----------
        metric : the test NMSE (at most) or accuracy (at least) to reach
        within : instead of it, the share by which the metric may be worse than the centralised optimum's: 0.01 is 1 %.
            Without test rows, the relative distance to the optimum
        cost : time_s (virtual seconds), comm_units, bytes or hop
        local : of the mean of the agents' own models, not of the tokens'

        Returns
        -------
        float : the cost at the first record from which on it holds; nan where it does not hold at the end

        Example
        -------
        >>> import amble
        >>> run = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=200)
        >>> run.time_to(within=0.01, cost="hop")
        12.0
        """
        return time_to(self, metric, within, cost, local)

    def to_pandas(self) -> Any:
        """The history as a table.

        Returns
        -------
        pandas.DataFrame : one row per record, one column per key of `history`

        Example
        -------
        >>> import amble
        >>> run = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20)
        >>> int(run.to_pandas()["hop"].max())
        20
        """
        return need("pandas", "all").DataFrame(self.history)

    def plot_network(self, path: str | Path) -> Path:
        """A picture of the network and of the tokens' first steps over it (the paper's figure 1).

        Parameters
        ----------
        path : of the picture, whose ending (.png, .svg, .pdf) says its format

        Returns
        -------
        Path : that of the picture

        Example
        -------
        >>> import amble
        >>> run = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20)
        >>> print(run.plot_network("network.png"))
        network.png
        """
        from amble.results.pictures import network_picture

        return network_picture(self, Path(path))

    def plot_timeline(self, path: str | Path, hops: int = 40) -> Path:
        """A picture of which agent updates which local copy when (the paper's figure 2).

        Parameters
        ----------
        path : of the picture, whose ending (.png, .svg, .pdf) says its format
        hops : how many visits it shows

        Returns
        -------
        Path : that of the picture

        Example
        -------
        >>> import amble
        >>> run = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20)
        >>> print(run.plot_timeline("timeline.png", hops=10))
        timeline.png
        """
        from amble.results.pictures import timeline_picture

        return timeline_picture(self, Path(path), hops)

    def save(self, path: str | Path) -> Path:
        """Keep the run as PATH.json and PATH.npz, from which `amble.load_run` reads it.

        Parameters
        ----------
        path : of both files, without their endings; files that are there are replaced

        Returns
        -------
        Path : that of the .json file

        Example
        -------
        >>> import amble
        >>> run = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20)
        >>> print(run.save("relay"))
        relay.json
        """
        base = base_path(path)
        arrays: dict[str, Any] = {
            "network.starts": self.network.starts,
            "network.neighbours": self.network.neighbours,
            "compute_s": self.compute_s,
            "recorded": self.recorded,
            "consensus": self.consensus,
            "local": self.local,
            "state.x_sum": self.state.x_sum,
            "state.lost": self.state.lost,
        }
        arrays |= {f"schedule.{key}": value for key, value in self.schedule._asdict().items()}
        arrays |= {f"history.{key}": value for key, value in self.history.items()}
        for part in ("agents", "slots", "tokens"):
            arrays |= named_leaves(getattr(self.state, part), f"state.{part}")
        if self.start is not None:
            arrays["start"] = self.start
        if not isinstance(self.walk, str):
            arrays |= {f"walk.{key}": column for key, column in self.walk._asdict().items()}
        held = io.BytesIO()
        np.savez_compressed(held, allow_pickle=False, **{key: np.asarray(value) for key, value in arrays.items()})
        plain = {
            "format": FORMAT,
            "method": self.method.label,
            "settings": methods.settings(self.method),
            **({} if type(self.method) in methods.METHODS.values() else {"own": own.origin(self.method)}),
            "network": {"name": self.network.name, "agents": self.network.agents},
            "walk": self.walk_name,
            "timing": timing.settings(self.timing),
            "seed": self.seed,
            "every": self.every,
            "message_bytes": self.message_bytes,
            "problem": self.problem,
            "tuning": self.tuning,
            "stopped": self.stopped,
            "sha256": hashlib.sha256(held.getbuffer()).hexdigest(),
        }
        text = json.dumps(plain, indent=2, default=lambda number: number.item())  # NumPy's numbers as plain ones
        try:
            base.parent.mkdir(parents=True, exist_ok=True)
            write_whole({ending(base, ".npz"): held.getvalue(), ending(base, ".json"): f"{text}\n".encode()})
        except OSError as error:
            raise AmbleError(f"the run cannot be saved to {base} ({error.strerror}); give a path of yours.") from error
        return ending(base, ".json")


def base_path(path: str | Path) -> Path:
    """What the .json and the .npz of a saved run have in common."""
    path = as_path(path, "a saved run")
    return path.with_suffix("") if path.suffix in (".npz", ".json") else path


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
        with np.load(io.BytesIO(whole), allow_pickle=False) as held:
            arrays = dict(held)
        return _assemble(plain, arrays, kinds)
    except AmbleError:
        raise
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise AmbleError(
            f"the saved run {base} is damaged or cut short; save it again, or copy both files again."
        ) from error


def _method(plain: dict[str, Any], rounds: bool, kinds: list[type[Any]]) -> Any:
    """amble's own by its label; else the user's, if its class is among those given, or a stand-in that can be read."""
    label, origin = plain["method"], plain.get("own", {})
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in plain["settings"].items()}
    if not origin and label in methods.METHODS:
        return methods.make(label, given)
    kind = own.choose(kinds, label, origin)
    return own.Absent(label, given, rounds, origin) if kind is None else methods.make(kind, given)


def _assemble(plain: dict[str, Any], arrays: dict[str, Any], kinds: list[type[Any]]) -> Run:
    rounds = "schedule.token" not in arrays
    method = _method(plain, rounds, kinds)
    network = plain["network"]

    def under(prefix: str) -> dict[str, Any]:
        return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}

    if isinstance(method, own.Absent):
        parts = {part: as_tuple(f"state.{part}", arrays) for part in ("agents", "slots", "tokens")}
    else:
        like = methods.first_state(method, arrays["consensus"].shape[1])  # its tuples are known by its first ones
        parts = {part: from_named(tree, f"state.{part}", arrays) for part, tree in like.items()}
    run = Run(
        method=method,
        network=Network(network["agents"], arrays["network.starts"], arrays["network.neighbours"], network["name"]),
        walk=Matrix(**under("walk.")) if plain["walk"] == "matrix" else plain["walk"],
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
    if run._models_unknown:  # ... or called the model's own columns those of the x_i
        history = {key: column for key, column in history.items() if not key.endswith("_local")}
    return replace(run, history=history)


def costs(run: Run) -> dict[str, Any]:
    """The cost columns of the history, at the recorded hops."""
    k, N = run.recorded, run.network.agents
    time_s = np.concatenate([[0.0], run.schedule.time_s])[k]
    if isinstance(run.schedule, Rounds):
        hop, units = k * N, methods.round_units(run.method, run.network) * k
        busy_s = np.sum(run.compute_s) * k
    else:
        hop, units = k, np.concatenate([[0], np.cumsum(run.schedule.moved, dtype=np.int64)])[k]
        busy_s = np.concatenate([[0.0], np.cumsum(run.compute_s[run.schedule.agent])])[k]
    idle = 1 - busy_s / np.where(time_s > 0, N * time_s, np.inf)
    return {"hop": hop, "time_s": time_s, "comm_units": units, "bytes": units * run.message_bytes, "idle": idle}
