"""Where asynchrony pays: every method under stragglers, slow and thin links, label skew and sparse networks.

AMBLE_DATA=folder python benchmarks/asynchrony.py            # all that is missing in docs/asynchrony.json
python benchmarks/asynchrony.py --data generated             # no files needed
python benchmarks/asynchrony.py --show                       # what is there, as tables

Time is counted in messages: one takes U(0.5, 1.5), and a gradient at an average agent takes 1. What else a visit
computes (a prox, a Hessian) takes longer by its operations. Every setting has the same search, on another seed and
another split of the rows than those reported: eight values over four decades, and up to six more beyond an end while
the best is there, each with the whole budget of time.
The search looks at what the table shows: the time until the training loss has fallen by 99.9 % (else 99 %) of the way
from the start to the optimum, for good, on average over all who hold a model (holders.py).
`python docs/asynchrony.py` writes the tables of docs/asynchrony.md.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from holders import first_good
from searching import best_setting

import amble
from amble import methods
from amble.files import write_whole
from amble.results.history import values_of
from amble.schedule.cost import modelled
from amble.simulation.many import run_many
from amble.simulation.running import begin

KEPT = Path(__file__).parent.parent / "docs" / "asynchrony.json"
AGENTS, TIME, SEEDS, TUNING_SEED = 20, 2000.0, range(10), 100
LEVELS = (0.01, 0.001)
METHODS = {
    "Relay": amble.Relay(),
    "Relay, 4 tokens": amble.Relay(tokens=4),
    "Relay, 10 tokens": amble.Relay(tokens=10),
    "WPG": amble.WPG(),
    "Dual-BCD": amble.DualBCD(),
    "WADMM": amble.WADMM(),
    "WADMM, 4 tokens": amble.WADMM(tokens=4),
    "API-BCD, tracked, 5 tokens": amble.APIBCD(token_rule="tracked"),
    "AD-PSGD": amble.ADPSGD(),
    "DGD": amble.DGD(),
    "EXTRA": amble.EXTRA(),
    "DIGing": amble.DIGing(),
    "DATOS": amble.DATOS(),
    "D-ADMM": amble.DADMM(),
    "Central": amble.Central(),
    "FedAvg": amble.FedAvg(),
}


class Scenario(NamedTuple):
    """What differs from the plain case: 20 agents of one speed on a random network, with rows dealt out evenly."""

    speeds: Callable[[np.random.Generator], Any] = lambda _: np.ones(AGENTS)  # how much longer each agent computes
    gradient: float = 1.0  # how long an average gradient takes, in messages
    thin: bool = False  # a message takes as long as it has bytes: one with a model takes 1
    network: str = "random"
    skewed: bool = False  # rows sorted by label or target


def slow(count: int) -> Callable[[np.random.Generator], Any]:
    """So many agents, at random, take ten times as long."""
    return lambda rng: np.where(rng.permutation(AGENTS) < count, 10.0, 1.0)


SCENARIOS = {
    "even": Scenario(),
    "one agent 10x": Scenario(slow(1)),
    "10 % of agents 10x": Scenario(slow(AGENTS // 10)),
    "lognormal speeds": Scenario(lambda rng: rng.lognormal(0, 1, AGENTS)),
    "slow links": Scenario(gradient=0.1),
    "thin links": Scenario(thin=True),
    "label skew": Scenario(skewed=True),
    "ring": Scenario(network="ring"),
}


def generated(split: int, skewed: bool) -> amble.Problem:
    """Least squares, 11 columns and an intercept, correlated: a condition number of about 100."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1250, 11)) @ np.linalg.qr(rng.normal(size=(11, 11)))[0] * np.geomspace(1, 0.1, 11)
    X = X @ np.linalg.qr(rng.normal(size=(11, 11)))[0]
    y = X @ rng.normal(size=11) + 0.3 * rng.normal(size=1250)
    data = amble.Dataset(name="generated", X=X, y=y, task="regression")
    return amble.split(data, AGENTS, "sorted" if skewed else "even", split, scale=False)


def real(name: str, split: int, skewed: bool) -> amble.Problem:
    data = amble.load(name)
    how = "even" if not skewed else "by-label" if data.task == "classification" else "sorted"
    return amble.split(data, AGENTS, how, split, ridge=1e-4 if data.task == "regression" else 1e-2)


def problem_of(data: str, split: int, skewed: bool) -> amble.Problem:
    return generated(split, skewed) if data == "generated" else real(data, split, skewed)


def timing_of(scenario: Scenario, problem: amble.Problem, seed: int) -> amble.Timing:
    speeds = scenario.speeds(np.random.default_rng([seed, 9]))
    factor = scenario.gradient / modelled(amble.DGD(), problem).mean()
    slowdown = dict(enumerate((factor * speeds).tolist()))
    if scenario.thin:
        return amble.Timing(low_s=0.0, high_s=0.0, bytes_per_s=8 * problem.dimension, slowdown=slowdown)
    return amble.Timing(low_s=0.5, high_s=1.5, slowdown=slowdown)


def go(chosen: Sequence[tuple[Any, int]], scenario: Scenario, problem: amble.Problem) -> list[amble.Run]:
    """A run of each method with its seed, as lanes of one program."""
    networks = {s: amble.networks.named(scenario.network, AGENTS, 0.3, s) for _, s in chosen}
    begun = [
        begin(method, problem, networks[seed], seed=seed, timing=timing_of(scenario, problem, seed))
        for method, seed in chosen
    ]
    return run_many(begun, [problem] * len(begun), time_s=TIME)


def times_of(run: amble.Run, problem: amble.Problem) -> list[float]:
    """The time to each level of the loss, for good; infinite where it is not reached."""
    fall = run.history["suboptimality"][0]
    best = run.history["objective"][0] - fall
    firsts: list[int | None] = []
    for level in LEVELS:
        missed = np.flatnonzero(~(run.history["suboptimality"] <= level * fall))
        first = int(missed[-1]) + 1 if len(missed) else 0
        firsts.append(first if first < len(run.recorded) else None)

    def good(level: float) -> Callable[[Any], bool]:
        return lambda models: bool(values_of(problem, models).mean() - best <= level * fall)

    found = first_good(run, problem, firsts, [good(level) for level in LEVELS])
    return [np.inf if record is None else float(run.history["time_s"][record]) for record in found]


def tuned(method: Any, scenario: Scenario, problem: amble.Problem) -> Any:
    """The value with the least time to 0.1 %, then to 1 %, then with the lowest loss."""

    def rank(run: amble.Run) -> tuple[float, ...]:
        end = run.history["suboptimality"][-1] if run.stopped != "diverged" else np.inf
        return (*reversed(times_of(run, problem)), float(end))

    return best_setting(
        method, problem, lambda made: go([(each, TUNING_SEED) for each in made], scenario, problem), rank
    )


def cell(label: str, scenario: Scenario, data: str) -> dict[str, Any]:
    """One method in one scenario: its setting, its times over the seeds, and how idle each agent was."""
    reported, other = (problem_of(data, split, scenario.skewed) for split in (0, TUNING_SEED))
    method = tuned(METHODS[label], scenario, other)
    runs = go([(method, seed) for seed in SEEDS], scenario, reported)
    times = np.array([times_of(run, reported) for run in runs])
    speeds = np.array([scenario.speeds(np.random.default_rng([seed, 9])) for seed in SEEDS])
    idle = np.array([run.idle for run in runs])
    slowest = speeds.argmax(axis=1)
    name = methods.tunable(method)
    return {
        "setting": None if name is None else [name, getattr(method, name)],
        "times": [[quantile(column, q) for q in (0.25, 0.5, 0.75)] for column in times.T],
        "reached": [int(np.isfinite(column).sum()) for column in times.T],
        "idle": float(idle.mean()),
        "idle_slowest": float(idle[np.arange(len(runs)), slowest].mean()) if np.ptp(speeds) else None,
        "idle_of_agents": np.round(idle[0][np.argsort(speeds[0], kind="stable")], 3).tolist(),
    }


def quantile(values: Any, q: float) -> float | None:
    """Of the seeds' times; None: not reached there. Between two values, the later one."""
    value = float(np.quantile(values, q, method="higher"))
    return value if np.isfinite(value) else None


def show(kept: dict[str, Any]) -> None:
    for data, scenarios in kept.items():
        for level, share in enumerate(("1 %", "0.1 %")):
            print(f"\n{data}: median time to {share}, in messages")
            print(f"{'':28}" + "".join(f"{name[:18]:>20}" for name in scenarios))
            for label in METHODS:
                cells = [scenarios[name].get(label) for name in scenarios]
                texts = ["" if each is None else f"{each['times'][level][1] or np.inf:.0f}" for each in cells]
                print(f"{label:28}" + "".join(f"{text:>20}" for text in texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["generated", "cpusmall"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="makes these again")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not arguments.show:
        warnings.simplefilter("ignore")  # settings of the search that diverge
        for data in arguments.data:
            for label in arguments.methods:  # one after another, so that programs are compiled once
                for name, scenario in SCENARIOS.items():
                    cells = kept.setdefault(data, {}).setdefault(name, {})
                    if label in cells and not arguments.again:
                        continue
                    begun = time.process_time()
                    cells[label] = cell(label, scenario, data)
                    took = time.process_time() - begun
                    print(f"{data}, {name}, {label}: {cells[label]['times'][1][1]} ({took:.1f} s of CPU)", flush=True)
                    write_whole({KEPT: (json.dumps(kept, indent=1) + "\n").encode()})
    show(kept)


if __name__ == "__main__":
    main()
