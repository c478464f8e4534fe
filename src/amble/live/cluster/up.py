"""amble up: real agents on this machine, from the data to the model and a replayed record."""

import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amble import networks
from amble.arrays import Array
from amble.errors import AmbleError, unknown
from amble.files import write_whole
from amble.live.cluster import cluster
from amble.live.cluster.cluster import Cluster
from amble.live.cluster.folder import MADE, RUN, check_folder, hold, remove
from amble.live.control import glance
from amble.live.control.glance import Overview
from amble.live.control.view import DISTANCE, View
from amble.live.core import divergence, visits
from amble.live.model.own import deterministic, own_loss
from amble.live.model.shared import Agents
from amble.live.records import collect, export, record, replay
from amble.live.settings.agent_config import AgentConfig
from amble.live.settings.config import Config
from amble.live.settings.parts import make_method
from amble.losses.objective import Objective
from amble.networks.network import Network
from amble.problem import reference, rows
from amble.problem.extras import Extras, extras
from amble.problem.optimum import Optimum
from amble.problem.prediction import METRICS
from amble.problem.problem import Problem
from amble.problem.split import split
from amble.results import model_file
from amble.results.model import Model
from amble.results.own_model import OwnModel
from amble.simulation.experiment import Experiment

LOOK_S = 0.25
REFUSED_S = 2.0  # after a site was refused: others may be, for the same reason
PATIENCE_S, START_S = 4.0, 0.25  # all agents start at once: the more there are, the later is the last
WORSE = 10.0  # times the loss that the run began with; see has_diverged
OPTIMUM_MAX = 2000  # unknowns, beyond which finding the optimum may take longer than the run

Looked = Callable[[Overview, Mapping[str, float]], None]  # at all agents, and at the figures of the newest model


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is needed before the first agent starts, checked."""

    folder: Path
    problem: Problem
    network: Network
    config: Config
    rows: list[dict[str, Any]]
    target: str | None  # the name of the column that is predicted
    again: bool = False  # whether it may replace an earlier run

    def figures(self, w: Array) -> dict[str, float]:
        """The metric on rows that nobody trains on, by its name; empty where there is none."""
        metric = self.problem.metric(w)
        return {} if np.isnan(metric) else {METRICS.get(self.problem.task, "metric"): metric}

    def optimum(self, without: Collection[str] = (), guests: Collection[Objective] = ()) -> Array | None:
        """The centralised optimum's numbers, or None where there is none or it takes too long to find; `guests` are
        objectives of agents that joined later."""
        problem = self.problem
        if self.config.code is not None:  # such a loss is seldom convex
            return None
        if problem.dimension > OPTIMUM_MAX and problem.task != "regression":
            return None
        if without or guests:
            left = [problem.objective(i) for i, name in enumerate(self.config.agents) if name not in without]
            others = Problem.from_objectives([*left, *guests], problem.dimension)
            problem = replace(others, penalty=problem.penalty)
        best = reference.known(problem)
        return best.w if isinstance(best, Optimum) else None


def prepare(
    settings: Experiment,
    stop: dict[str, Any],
    folder: Path,
    again: bool,
    pause_s: float = 0.0,
    start: Path | None = None,
    file: Path | None = None,
) -> Plan:
    """Everything is checked; nothing is written. Each visit takes `pause_s` longer than it would; `start` is the file
    of the initial model, and `file` that of a model of the user's own."""
    if settings.agents < 2:
        raise AmbleError(f"agents = {settings.agents} was given; a live run needs at least two.")
    if settings.network not in networks.KINDS:
        raise unknown("network", settings.network, networks.KINDS)
    method = make_method(settings.methods[0], settings.agents)
    network = networks.named(settings.network, settings.agents, settings.density, settings.seed)
    data = rows.hold_out(settings.read_data(), settings.test, settings.seed)
    keys = ("agents", "how", "alpha", "sizes", "seed", "test", "ridge", "intercept", "scale", "loss", "weights",
            "l1", "positive", "unpenalised")  # fmt: skip
    problem = split(data, **{key: getattr(settings, key) for key in keys})
    timing = {"patience_s": max(PATIENCE_S, START_S * settings.agents), "pause_s": pause_s}
    first = None if start is None else str(start.absolute())
    own = None if file is None else str(file.absolute())
    config = cluster.configure(problem, method, network, stop, settings.seed, timing, first, own)
    check_folder(folder, again)  # last, because other mistakes in the command should be reported first
    extra = extras(len(data.y), data.name, data.sample_weight, data.offset, data.exposure)
    held = cluster.rows_of(problem, data.X, data.y, extra)
    if config.code is not None:
        problem = own_problem(config, held, data)
    return Plan(folder, problem, network, config, held, data.target, again)


def own_problem(config: Config, held: Sequence[Mapping[str, Any]], data: Any) -> Problem:
    """The losses of all agents, by the file of the user's own model."""
    each = [
        config.agent(name).objective(rows["X"], rows["y"], Extras(rows.get("sample_weight"), rows.get("offset")))
        for name, rows in zip(config.agents, held, strict=True)
    ]
    heldout = None
    if data.X_test is not None and len(data.y_test):
        assert config.code is not None
        heldout = own_loss(config.code, config.model, data.X_test, data.y_test, "the held-out rows")
    return Problem.from_objectives(Agents(each, heldout), name=data.name)


def start(plan: Plan) -> Cluster:
    """The bundle and each agent's rows are written, in place of an earlier run's; no agent is started yet."""
    about = {"format": 1, "problem": plan.problem.name, "method": plan.config.method.label}
    return begin(plan.folder, plan.again, about, lambda: Cluster.create(plan.folder, plan.config, plan.rows))


def begin(folder: Path, again: bool, about: dict[str, Any], create: Callable[[], Cluster]) -> Cluster:
    """The folder of a run, marked as ours and held, in place of an earlier one."""
    check_folder(folder, again)  # as it is by now
    if (folder / MADE).is_file():
        remove(folder)
    agents = create()
    write_whole({folder / MADE: (json.dumps(about) + "\n").encode()})
    agents.locked_files.append(hold(folder))
    return agents


def watch(
    plan: Plan, agents: Cluster, title: str, halt: Callable[[], bool], looked: Looked = lambda *_: None
) -> dict[str, str]:
    """Start all agents and show them until they have ended, or `halt` is true; return those that failed, and why."""
    w = plan.optimum() if plan.problem.task == "regression" else None

    def measure(model: Array) -> dict[str, float]:
        figures = plan.figures(model)
        return figures if w is None else figures | {DISTANCE: distance(model, w)}

    return follow(agents, title, measure, halt, looked)


def follow(
    agents: Cluster,
    title: str,
    measure: Callable[[Array], dict[str, float]],
    halt: Callable[[], bool],
    looked: Looked = lambda *_: None,
) -> dict[str, str]:
    """Start all agents and show them, with what `measure` says of their newest model, until they have ended."""
    config, lost, refused_s = agents.config, dict[str, str](), math.inf
    folders = {name: agents.folder / name for name in config.agents}

    def look() -> tuple[Overview, dict[str, float]]:
        best = glance.newest({name: agents.status(name) for name in folders})
        model = None if best is None else agents.model(best)
        return glance.look(folders), {} if model is None else measure(model)

    with View(title) as view:
        agents.start_all()
        while agents.running() and not halt():
            time.sleep(LOOK_S)
            failed = agents.failed()
            for name in [name for name in lost if name not in failed]:
                del lost[name]
                view.note(f"{name} is back")
            for name, reason in failed.items():
                if name not in lost:
                    lost[name] = reason
                    if config.surveyed is not None and agents.status(name).state == "refused":
                        refused_s = min(refused_s, time.monotonic())  # why is said once for all, at the end
                    else:
                        view.note(f"{name} has failed ({reason})")
            if lost and not visits.kind_for(config.method).exact:
                view.note(f"{config.method.label} cannot go on without it; all others are stopped.")
                break
            if time.monotonic() - refused_s > REFUSED_S:
                view.note(f"the sites cannot agree without {', '.join(lost)}; all others are stopped.")
                break
            view.show(*(seen := look()))
            looked(*seen)
    if not halt():
        lost |= agents.failed()  # the last ones may have gone since
    agents.end()
    looked(*look())
    return lost


class NoModel(NamedTuple):
    """A run that has none, and why."""

    why: str


def finish(plan: Plan, agents: Cluster) -> Model | OwnModel | NoModel:
    """The record and the newest model are kept, if there is one and the run has not diverged."""
    folders = collect.agent_folders([plan.folder])  # with those that joined
    record.save(collect.collect(folders), plan.folder / record.FILE)
    statuses = {name: status for name in folders if (status := agents.status(name)).state != "left"}
    objectives = objectives_of(folders)
    for status in statuses.values():
        if status.cause == "diverged":
            return NoModel(f"{status.stopped}: {likely_cause(plan, objectives)}")
    best = glance.newest(statuses)  # of those that have one
    w = None if best is None else agents.model(best)
    if best is None or w is None:
        return NoModel("no agent has a model, because no token was passed on")
    counted = [name for name in statuses if statuses[name].visits and name not in statuses[best].missing]
    laps = min((statuses[name].visits for name in counted), default=0)
    start = plan.config.agent(plan.config.agents[0]).visits().initial
    if has_diverged([objectives[name] for name in counted if name in objectives], w, start, laps):
        for file in [file for folder in folders.values() for file in folder.glob("model.np[yz]")]:
            file.unlink()
        grown = "far above" if plan.config.code is not None else f"more than {WORSE:g} times"
        return NoModel(
            f"the run has diverged, as the loss of its model is {grown} that of the initial one: "
            f"{likely_cause(plan, objectives)}"
        )
    model = plan.config.agent(best).trained(w, data=plan.problem.name, digest=plan.problem.digest)
    model.save(plan.folder / model_file.FILE)
    return model


def has_diverged(objectives: Sequence[Objective], w: Array, start: Array, laps: int) -> bool:
    """Whether the sum of these losses is far above what it was at the initial model, or at a model of zeros; that of a
    user's own file is never asked about zeros, where it need not be finite.

    A run that ends early may have a model of one agent's rows only, which can be bad for the others' without any
    divergence. So a run is judged after two visits of each agent: the model is one of all rows then, and a method on
    its way to a minimum, or to an answer near it, is below the loss that it began with.
    """
    if laps < 2:
        return False
    with np.errstate(all="ignore"):
        now, first = (sum(float(f.value(model)) for f in objectives) for model in (w, start))
        if any(map(divergence.of_file, objectives)):
            return divergence.has_grown(now, first, WORSE)
        return not now <= WORSE * max(sum(float(f.value(0 * w)) for f in objectives), first)


def likely_cause(plan: Plan, objectives: Mapping[str, Objective]) -> str:
    """As the first agent whose rows show one has it."""
    method, columns = plan.config.method, plan.config.model.columns
    findings = [divergence.likely_cause(method, f, columns, name) for name, f in objectives.items()]
    return next((finding for finding in findings if finding.is_cause), findings[0]).sentence


def unmet(agents: Cluster, lost: Collection[str]) -> list[str]:
    """Agents that run well, and that no token met before the run ended."""
    return [name for name in agents.config.agents if name not in lost and not agents.status(name).visits]


def again(
    folders: dict[str, Path], halt: Callable[[], bool] = lambda: False, plan: Plan | None = None
) -> replay.Outcome:
    """Recompute every visit from the data in the agents' folders; with a plan, keep the curves for a report."""
    gathered, rules = collect.collect(folders), next(iter(collect.read_configs(folders).values())).visits()
    objectives = objectives_of({name: folder for name, folder in folders.items() if gathered.visits[name]})
    replay.check_arithmetic(gathered, rules.method)
    curves = None if plan is None else export.Curves(gathered, rules.initial)
    with deterministic():
        replayed = replay.Replay(gathered, rules, objectives, *([curves] if curves else []))
        outcome = replayed.run(halt)
    if gathered.dropped and not halt():  # not a damage: later visits cannot be recomputed without the earlier ones
        outcome = outcome._replace(left=(*gathered.cuts(), "later visits cannot be recomputed without them"))
    same = len(gathered.agents) == gathered.founders  # a run's problem is that of one and the same agents
    if plan is not None and curves is not None and same and outcome.whole and gathered.hops:
        method, seed, optimum = plan.config.method, plan.config.walk.seed, plan.optimum() is not None
        run = export.as_run(plan.problem, plan.network, method, seed, replayed, curves, optimum)
        run.save(plan.folder / RUN)
    return outcome


def objectives_of(folders: dict[str, Path]) -> dict[str, Objective]:
    """The objectives of the agents whose data are here."""
    configs = {name: AgentConfig.read(folder) for name, folder in folders.items()}
    held = {name: config for name, config in configs.items() if config.data and (folders[name] / config.data).is_file()}
    return {name: config.objective_in(folders[name]) for name, config in held.items()}


def distance(w: Array, best: Array) -> float:
    return float(np.linalg.norm(w - best) / (np.linalg.norm(best) or 1.0))
