"""Run: settings, seed, schedule, recorded models and costs. Everything shown to a person is computed from a Run."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amble import methods
from amble.arrays import Array, Indices
from amble.drawing import save
from amble.engines import State
from amble.errors import AmbleError, is_number, need
from amble.losses import choose
from amble.methods import Method
from amble.networks.network import Network
from amble.networks.walks import Matrix, Weighted, has_roles
from amble.problem.assemble import Scaling
from amble.problem.problem import Problem
from amble.results.model import PENALTIES, Model
from amble.results.model_file import provenance
from amble.results.pooling import sums_at
from amble.results.reaching import time_to
from amble.results.saved import write
from amble.results.tables import Given
from amble.schedule.cost import idle_shares
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule
from amble.schedule.timing import Timing
from amble.tracking.record import Record, record_of

# why a run ended: a limit was reached; its model converged, or is good enough on test rows; somebody stopped it; it
# diverged; of a live run, it lost a token that it could not reissue
STOPPED = ("hops", "rounds", "time_s", "comm_units", "tolerance", "metric", "interrupted", "diverged", "lost")


SETTINGS_SHOWN = 6  # in a label, of one method


def settings_text(method: Method, tuned: str | None = None) -> str:
    """A method's settings in a few words; the one that was tuned without its value, which depends on the seed."""
    settings = methods.settings(method)
    rule, form = settings.pop("token_rule", None), settings.pop("form", None)
    if settings.get("tokens") == 1 and not methods.is_round(method):
        settings.pop("tokens")
    if settings.get("message") == "float64":
        settings.pop("message")
    if len(settings) > SETTINGS_SHOWN:  # then those that are as they are by default are left out, but for the first
        usual = {field.name: field.default for field in fields(cast(Any, method))}
        first = methods.tunable(method)
        settings = {key: value for key, value in settings.items() if key == first or value != usual[key]}
    shown = {key: f"{value:g}" if is_number(value) else str(value) for key, value in settings.items()}
    parts = [
        f"{key} tuned" if key == tuned else f"{key}={shown[key]}"
        for key, value in settings.items()
        if value is not None
    ]
    return ", ".join([*parts, *(value for value in (rule, form) if value)])


def label_text(method: Method) -> str:
    """A method's name and settings, for tables, legends and pages."""
    text = settings_text(method)
    return f"{method.label} ({text})" if text else method.label


@final
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

    method: Method
    network: Network
    walk: str | Matrix | Weighted
    timing: Timing
    seed: int
    every: int | None  # hops (rounds, for a round method) between records; None: each 2 % further than the last
    compute_s: Array  # seconds of a visit at each agent
    message_bytes: int
    problem: dict[str, Any]  # name, task, digest, settings
    schedule: Schedule | Rounds
    state: State
    recorded: Indices  # the hops after which the model was recorded (rounds, for a round method)
    consensus: Array  # the model at those: the mean of the tokens' estimates
    local: Array  # the mean of the agents' x_i at those
    history: dict[str, NDArray[Any]] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)  # which setting was chosen, from what was tried
    start: Array | None = None  # the initial model; None: zeros
    stopped: str = "hops"  # one of STOPPED

    def __repr__(self) -> str:
        # without test rows the metric is nan
        last = {key: self.history[key][-1] for key in ("metric", "distance") if key in self.history}
        words = "".join(f"{key} {value:.3g}, " for key, value in last.items() if not np.isnan(value))
        missed = f" ({len(self.unvisited)} of {self.network.agents} agents not visited)" if self.unvisited else ""
        where = f"{self.problem['name']}, {self.schedule.hops:,} hops{missed}"
        return f"Run({self.label} on {where}, {words}stopped: {self.stopped})"

    @property
    def meets(self) -> bool:
        """Whether its tokens meet, or jump: then a hop may be something else than a visit."""
        return has_roles(self.walk, methods.tokens(self.method))

    @property
    def walk_name(self) -> str:
        return self.walk if isinstance(self.walk, str) else type(self.walk).__name__.lower()

    @property
    def clock(self) -> str:
        """What its times are: measured in a live run, virtual in a simulated one."""
        return "time" if self.walk_name == "live" else "virtual time"

    @property
    def model(self) -> Array:
        """The consensus model: the mean of the tokens' estimates (round methods: the mean of the x_i)."""
        return np.asarray(self.consensus[-1])

    @property
    def models(self) -> Array:
        """The local models x_i, one row per agent."""
        if models_unknown(self):
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
    def idle(self) -> Array:
        """Of each agent, the share of the run's time in which it did not compute."""
        return idle_shares(self.method, self.schedule, self.compute_s)

    @property
    def label(self) -> str:
        """The method's name and settings, for tables and legends."""
        return label_text(self.method)

    @property
    def settings_text(self) -> str:
        """The method's settings in a few words."""
        return settings_text(self.method)

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen for the run: the method and its settings, the data, the network, the walk and the seed."""
        own = {key: value for key, value in methods.settings(self.method).items() if value is not None}
        about = {"data": self.problem["name"], "agents": self.network.agents, "network": self.network.name}
        return {"method": self.method.label, **own, **about, "walk": self.walk_name, "seed": self.seed}

    def predict(self, X: Given, *, offset: ArrayLike | None = None, exposure: ArrayLike | None = None) -> NDArray[Any]:
        """Predictions of the run's model.

        Parameters
        ----------
        X, offset, exposure : as of `Model.predict`

        Returns
        -------
        array of d targets in their own units, or labels

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> run = amble.simulate(amble.Relay(), amble.split(data), hops=20)
        >>> run.predict(data.X[:3]).round()
        array([208.,  68., 180.])
        """
        return self.trained().predict(X, offset, exposure)

    def trained(self, problem: Problem | None = None) -> Model:
        """The run's model on its own: to use, to save, and to take statistics from.

        Parameters
        ----------
        problem : that of the run. With it, the model has the sums over all rows that its statistics are made of;
            without it, coefficients and predictions alone

        Returns
        -------
        Model

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=5)
        >>> amble.simulate(amble.Relay(), problem, hops=20).trained(problem)
        Model(least-squares: 10 columns, 354 rows of 5 agents)
        """
        about = self.problem
        if about.get("scaling") is None:
            raise AmbleError(
                "this run was made on objectives, not on rows; it has nothing to predict with. The weights of a model "
                "of your own are problem.as_params(run.model)."
            )
        if problem is not None and problem.digest != about["digest"].removeprefix("live "):
            raise AmbleError("another problem was given than the run was made on; give that one.")
        columns, scaling = about.get("columns"), {key: np.asarray(about["scaling"][key]) for key in Scaling._fields}
        labels, settings = tuple(about.get("labels", ())), about["settings"]
        return Model(
            task=about["task"],
            loss=choose(about.get("loss", settings.get("loss")), len(labels)),
            columns=len(scaling["X_mean"]) if columns is None else tuple(columns),
            labels=labels,
            intercept=about["intercept"],
            w=self.model,
            scaling=Scaling(scaling["X_mean"], scaling["X_std"], float(scaling["y_mean"]), float(scaling["y_std"])),
            target=about.get("target"),
            penalty={key: settings[key] for key in PENALTIES if key in settings}
            | ({"positive": True} if settings.get("positive") else {}),
            sums=None if problem is None else sums_at(problem, self.model),
            about=provenance(
                data=about["name"],
                table=about.get("table"),
                digest=about["digest"],
                agents=self.network.agents,
                method=self.label,
                network=self.network.name,
                seed=self.seed,
                hops=self.schedule.hops,
                stopped=self.stopped,
            ),
        )

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

    def records(self) -> list[Record]:
        """The history as records, to send a run that is done, saved or live, to a tracker.

        Returns
        -------
        list of Record : what `on_record` would have been called with, and the columns that are known only now

        Example
        -------
        >>> import amble
        >>> run = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20)
        >>> with amble.to_tensorboard("curves") as tracker:
        ...     for record in run.records():
        ...         tracker(record)
        """
        rows = (dict(zip(self.history, row, strict=True)) for row in zip(*self.history.values(), strict=True))
        return [record_of(row, self.label, 1, self.settings) for row in rows]

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
        from amble.results.pictures import network_figure

        return save(network_figure(self), Path(path))

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
        from amble.results.pictures import timeline_figure

        return save(timeline_figure(self, hops), Path(path))

    def plot_walk(self, path: str | Path, hops: int = 40) -> Path:
        """An animation of the tokens, walking: an SVG that moves in a browser, in a README and in slides.

        Parameters
        ----------
        path : of the picture, which must end in .svg
        hops : how many visits it shows

        Returns
        -------
        Path : that of the picture

        Example
        -------
        >>> import amble
        >>> run = amble.simulate(amble.Relay(tokens=2), amble.split(amble.load("diabetes")), hops=60, every=1)
        >>> print(run.plot_walk("walk.svg", hops=60))
        walk.svg
        """
        from amble.results.animation import write_animation

        return write_animation(self, Path(path), hops)

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
        return write(self, path)


def models_unknown(run: Run) -> bool:
    """Whether an earlier version saved this live run with zeros in place of the agents' x_i."""
    return run.walk == "live" and not run.state.x_sum.any()
