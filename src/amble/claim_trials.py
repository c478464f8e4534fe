"""Runs for the claims that the paper's figures do not test: networks of many sizes, and of many kinds.

They are short runs on cadata, in the fixed cost model, so that they are the same on every machine.
"""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from amble import methods, tuning
from amble import network as networks
from amble.data.datasets import load
from amble.network import Network
from amble.problem import Problem, split
from amble.reproduction import DENSITY, FIGURES, LOCAL, PILOT_POWERS, SEEDS, TOKENS
from amble.run import Run, load_run
from amble.run import ending as ending_of
from amble.simulation import resume, simulate
from amble.workers import Workers

FIGURE = FIGURES[1]  # cadata: it has rows for a thousand agents
SIZES = (10, 30, 100, 300, 1000)
QUICK_SIZES = (10, 30, 100)
USUAL = f"random {DENSITY}"
KINDS = ("random 0.2", "random 0.5", USUAL, "random 1.0", "ring", "grid", "geometric")
QUICK_KINDS = (USUAL, "ring", "grid")
UNITS_PER_AGENT = 60  # the budgets of every method:
TIME_S_PER_AGENT = 7.2e-4  # what five tokens need for these units
PILOT_LAPS = 5
FOLDER = "claims"  # beside the figures' runs
SETTLED = 1e-6  # a model that moves by less in a lap has converged, and its run may end before the budgets do


@dataclass(frozen=True)
class Trial:
    """One method on one network, and the seeds that it runs with."""

    agents: int
    network: str
    method: Any
    tuned: bool
    seeds: tuple[int, ...]
    reading: str | None = None  # what it is tuned for, where the readings differ

    def stem(self, what: str) -> str:
        """A name for a file of this trial's: it changes with all that the trial depends on."""
        about = [asdict(self), self.method.label, UNITS_PER_AGENT, TIME_S_PER_AGENT, PILOT_LAPS, PILOT_POWERS, SETTLED]
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.agents}-{self.network.replace(' ', '-')}-{self.method.label.lower()}-{what}-{digest}"


def trials(quick: bool, seeds: Sequence[int] = SEEDS) -> list[Trial]:
    """All that is to be run. Quick: one seed, up to a hundred agents, three kinds of network, and nothing tuned."""
    chosen = tuple(seeds[:1]) if quick else tuple(seeds)
    places = [(agents, USUAL) for agents in (QUICK_SIZES if quick else SIZES)]
    places += [(FIGURE.agents, kind) for kind in (QUICK_KINDS if quick else KINDS)]
    planned = []
    for agents, kind in places:
        planned += [Trial(agents, kind, method, False, chosen) for method in caption_methods()]
        if not quick:
            planned += [Trial(agents, kind, method, True, chosen, reading) for method, reading in tuned_methods()]
    return planned


def caption_methods() -> list[Any]:
    """The paper's methods at the settings of its caption, and Relay, which has none."""
    return [
        methods.make("I-BCD", {"tau": FIGURE.tau_is}),
        methods.make("API-BCD", {"tau": FIGURE.tau_api, "tokens": TOKENS}),
        methods.make("WPG", {"alpha": FIGURE.alpha}),
        methods.make("Relay", {}),
    ]


def tuned_methods() -> list[tuple[Any, str | None]]:
    """The paper's methods and one of gossip, tuned on each network; API-BCD for the mean of x, which is the faster."""
    return [
        (methods.make("I-BCD", {}), None),
        (methods.make("API-BCD", {"tokens": TOKENS}), LOCAL),
        (methods.make("WPG", {}), None),
        (methods.make("D-ADMM", {}), None),
    ]


def make_trials(planned: Sequence[Trial], folder: Path, workers: int | None) -> dict[Trial, list[Run]] | None:
    """Every trial's runs, one per seed; None when Ctrl-C came first. What is in the folder is not made again."""
    if not planned:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    left = [trial for trial in planned if not all(is_there(trial, seed, folder) for seed in trial.seeds)]
    left.sort(key=lambda trial: trial.agents * (1 + trial.tuned), reverse=True)  # the longest first

    def there() -> int:
        return sum(is_there(trial, seed, folder) for trial in planned for seed in trial.seeds)

    total = sum(len(trial.seeds) for trial in planned)
    with Workers(workers) as pool:
        if not pool.run(make_runs, [(trial, folder) for trial in left], there, total, "other claims"):
            return None
    return {trial: [load_run(folder / trial.stem(f"seed{seed}")) for seed in trial.seeds] for trial in planned}


def is_there(trial: Trial, seed: int, folder: Path) -> bool:
    return all(ending_of(folder / trial.stem(f"seed{seed}"), end).is_file() for end in (".json", ".npz"))


@lru_cache(maxsize=4)
def problem_of(agents: int, seed: int) -> Problem:
    return split(load(FIGURE.data), agents=agents, seed=seed, ridge=FIGURE.ridge)


@lru_cache(maxsize=4)
def network_of(kind: str, agents: int, seed: int) -> Network:
    name, _, density = kind.partition(" ")
    if name == "random":
        return networks.random(agents, float(density), seed)
    if name == "geometric":
        return networks.geometric(agents, seed=seed)
    if name == "grid":
        rows = max(r for r in range(1, int(agents**0.5) + 1) if agents % r == 0)
        return networks.grid(rows, agents // rows)
    return networks.ring(agents)


def make_runs(trial: Trial, folder: Path) -> None:
    """The trial's runs that are not there yet: tuned on the first seed, if it is to be, and each kept when done."""
    method, record = trial.method, dict[str, Any]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that diverges says so in the table
        if trial.tuned:
            seed = trial.seeds[0]
            search: dict[str, Any] = {"laps": PILOT_LAPS, "powers": PILOT_POWERS, "seed": seed}
            parts = problem_of(trial.agents, seed), network_of(trial.network, trial.agents, seed)
            method, record = tuning.tune(trial.method, *parts, reading=trial.reading, **search)
        for seed in trial.seeds:
            if not is_there(trial, seed, folder):
                run = spend(method, trial, seed)
                replace(run, tuning=record).save(folder / trial.stem(f"seed{seed}"))


def spend(method: Any, trial: Trial, seed: int) -> Run:
    """A run that goes on until both budgets are spent, the virtual time and the communication, or it has converged."""
    problem, network = problem_of(trial.agents, seed), network_of(trial.network, trial.agents, seed)
    options: dict[str, Any] = {"tolerance": SETTLED, "progress": False}
    run = simulate(method, problem, network, time_s=TIME_S_PER_AGENT * trial.agents, seed=seed, **options)
    units = UNITS_PER_AGENT * trial.agents
    if run.stopped == "time_s" and run.history["comm_units"][-1] < units:
        run = resume(run, problem, comm_units=units, **options)
    return run
