"""Time against bytes until the model is as good as the optimum, within 0.1 %: every method at its best setting, and
Relay with 1 to N tokens, on the paper's four data sets.

AMBLE_DATA=folder python benchmarks/pareto.py                    # all that is missing in docs/pareto.json
AMBLE_DATA=folder python benchmarks/pareto.py --methods Relay --again   # after a change of Relay; minutes
python benchmarks/pareto.py --show                               # what is there
python docs/pareto.py                                            # the figure and the sentences of docs/pareto.md

The setting of each method is the best of eight values over four decades, and of up to six more beyond an end while
the best is there, on another seed and another split of the rows than those reported. "As good" is the test NMSE or
accuracy, for good (to the end of the run), on average over all who hold a model (holders.py). Problems are those
of `amble reproduce`; time is virtual: a message takes U(1e-5, 1e-4) s, and an operation a nanosecond.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from holders import first_good
from searching import best_setting

import amble
from amble import methods
from amble.files import write_whole
from amble.paper.plan import DENSITY, FIGURES, INEXACT, Figure
from amble.simulation.many import run_many
from amble.simulation.running import begin

KEPT = Path(__file__).parent.parent / "docs" / "pareto.json"
WITHIN, SEEDS, TUNING_SEED = 0.001, (0, 1, 2), 100
LAPS = {"cpusmall": 500, "cadata": 500, "ijcnn1": 60, "usps": 15}  # visits per agent in a run
LAPS_OF_GRADIENTS = {**LAPS, "usps": 150}  # where a visit of gradients is so much cheaper that time would be unequal
RIVALS = {
    "I-BCD": amble.IBCD(),
    "API-BCD, tracked": amble.APIBCD(token_rule="tracked"),
    "gAPI-BCD, tracked": amble.GAPIBCD(token_rule="tracked"),
    "WPG": amble.WPG(),
    "WPG, 5 tokens": amble.WPG(tokens=5),
    "Dual-BCD": amble.DualBCD(),
    "WADMM": amble.WADMM(),
    "WADMM, 5 tokens": amble.WADMM(tokens=5),
    "PW-ADMM": amble.PWADMM(),
    "AD-PSGD": amble.ADPSGD(),
    "DGD": amble.DGD(),
    "EXTRA": amble.EXTRA(),
    "DIGing": amble.DIGing(),
    "DATOS": amble.DATOS(),
    "D-ADMM": amble.DADMM(),
    "Central": amble.Central(),
    "FedAvg": amble.FedAvg(),
}


def tokens_of(agents: int) -> list[int]:
    """1, 2, 5, 10 and so on, up to N."""
    return [count for count in (1, 2, 3, 5, 10, 15, 25, 35) if count < agents] + [agents]


def methods_of(figure: Figure) -> dict[str, Any]:
    relays = {f"Relay, M={count}": amble.Relay(tokens=count) for count in tokens_of(figure.agents)}
    if figure.data in INEXACT:
        relays |= {f"Relay, inexact, M={count}": amble.Relay(count, "inexact") for count in tokens_of(figure.agents)}
    return {**relays, **RIVALS}


def problem_of(figure: Figure, split: int) -> amble.Problem:
    return amble.split(amble.load(figure.data), figure.agents, seed=split, ridge=figure.ridge, weights="agents")


def go(chosen: list[tuple[Any, int]], figure: Figure, problem: amble.Problem) -> list[amble.Run]:
    """A run of each method with its seed, as lanes of one program."""
    networks = {seed: amble.networks.random(figure.agents, DENSITY, seed) for _, seed in chosen}
    begun = [begin(method, problem, networks[seed], seed=seed) for method, seed in chosen]
    laps = LAPS_OF_GRADIENTS if all("prox" not in run.method.work for run in begun) else LAPS
    return run_many(begun, [problem] * len(begun), hops=laps[figure.data] * figure.agents)


def cost(run: amble.Run, problem: amble.Problem) -> tuple[float, float]:
    """Time and bytes until the level is reached; infinite where it is not."""
    optimum, accuracy = run.problem["optimum_metric"], problem.task == "classification"
    bound = optimum * (1 - WITHIN if accuracy else 1 + WITHIN)

    def good(models: Any) -> bool:
        metric = problem.metrics(models).mean()
        return bool(metric >= bound if accuracy else metric <= bound)

    time_s = run.time_to(within=WITHIN)
    first = None if np.isnan(time_s) else int(np.searchsorted(run.history["time_s"], time_s))
    found = first_good(run, problem, [first], [good])[0]
    if found is None:
        return np.inf, np.inf
    return float(run.history["time_s"][found]), float(run.history["bytes"][found])


def tuned(method: Any, figure: Figure) -> Any:
    """The value that reaches the level first; of those that do not, the one with the best model at the end."""
    problem = problem_of(figure, TUNING_SEED)

    def rank(run: amble.Run) -> tuple[float, float]:
        end = run.history["suboptimality"][-1] if run.stopped != "diverged" else np.inf
        return cost(run, problem)[0], float(end)

    return best_setting(method, problem, lambda made: go([(each, TUNING_SEED) for each in made], figure, problem), rank)


def point(method: Any, figure: Figure) -> dict[str, Any]:
    """The median time and bytes of a method at its best setting, and the part of the seeds that got there."""
    best, problem = tuned(method, figure), problem_of(figure, SEEDS[0])
    runs = go([(best, seed) for seed in SEEDS], figure, problem)
    name = methods.tunable(best)
    costs = np.array([cost(run, problem) for run in runs])
    middle = dict(zip(("time_s", "bytes"), np.median(costs, axis=0).tolist(), strict=True))
    return {
        "setting": None if name is None else [name, getattr(best, name)],
        "reached": int(np.isfinite(costs[:, 0]).sum()),
        **{each: value if np.isfinite(value) else None for each, value in middle.items()},
    }


def show(kept: dict[str, Any]) -> None:
    for data, points in kept.items():
        print(f"\n{data}: to within {WITHIN:.1%} of the optimum")
        for label, found in sorted(points.items(), key=lambda item: item[1]["time_s"] or np.inf):
            there = (
                "not reached" if found["time_s"] is None else f"{found['time_s']:.3g} s, {found['bytes']:,.0f} bytes"
            )
            print(f"  {label:24} {there}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[figure.data for figure in FIGURES])
    parser.add_argument("--methods", nargs="+", help="these only, by the beginning of their names")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    warnings.simplefilter("ignore")  # settings of the search that diverge
    for figure in () if arguments.show else FIGURES:
        if figure.data not in arguments.data:
            continue
        points = kept.setdefault(figure.data, {})
        for label, method in methods_of(figure).items():
            asked = arguments.methods is None or label.startswith(tuple(arguments.methods))
            if not asked or (label in points and not arguments.again):
                continue
            begun = time.process_time()
            points[label] = point(method, figure)
            print(f"{figure.data}, {label}: {points[label]} ({time.process_time() - begun:.1f} s of CPU)", flush=True)
            write_whole({KEPT: (json.dumps(kept, indent=1) + "\n").encode()})
    show(kept)


if __name__ == "__main__":
    main()
