"""What more tokens bring: Relay with M tokens that meet, virtual time and bytes to an accuracy, over seeds.

AMBLE_DATA=folder python benchmarks/parallel.py            # all that is missing in docs/parallel.json
python benchmarks/parallel.py plan words                   # hop times by network; what auto, time, communication choose
AMBLE_DATA=folder python benchmarks/parallel.py cpusmall --again
python benchmarks/parallel.py --family logistic separable --tokens 1 2 10   # generated rows, shown and not kept

Each seed has a network, link times and a closed walk of its own. The accuracy is a distance of 1e-6 from the optimum,
for good; on usps, whose 2,570 unknowns take the scalar form, a test accuracy of at most 0.1 % below the optimum's.
`python docs/parallel.py` writes the tables of docs/relay.md.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import amble
from amble.files import write_whole
from amble.networks import meetings
from amble.networks.choosing import tokens_for
from amble.networks.cycles import closed_walk

KEPT = Path(__file__).parent.parent / "docs" / "parallel.json"
SETS = {  # agents, ridge, numbers of tokens, and from each on: hops of a run, and between two records
    "cpusmall": (20, 0.0, (1, 2, 5, 10, 20), {1: (100, 1)}),
    "cadata": (50, 0.0, (1, 2, 5, 10, 25, 50), {1: (200, 1)}),
    "ijcnn1": (50, 1e-4, (1, 2, 5, 10, 25, 50), {1: (600, 5), 5: (900, 5), 25: (2000, 5)}),
    "usps": (10, 1e-2, (1, 2, 5, 10), {1: (150, 1), 2: (300, 1), 5: (500, 2)}),
}
SEEDS = 10

KINDS = ("plain", "conditioned", "labels", "sizes", "separable")
DENSITY = 0.7
PLANNED = (2, 5, 10, 25, 50)
WORDS = ("auto", "time", "communication")
WORD_SEEDS, WORD_FAMILY = range(20, 23), 200  # networks 0 and 1 with family 1 chose the words' rule
WORD_HOPS = {("least-squares", "plain"): 300, ("logistic", "labels"): 1500}  # of a run, by loss and kind
NETWORKS = {
    "random, density 0.7": lambda seed: amble.networks.random(50, 0.7, seed),
    "random, density 0.15": lambda seed: amble.networks.random(50, 0.15, seed),
    "random, N = 200, density 0.05": lambda seed: amble.networks.random(200, 0.05, seed),
    "geometric": lambda seed: amble.networks.geometric(50, seed=seed),
    "grid, 5 x 10": lambda seed: amble.networks.grid(5, 10),  # noqa: ARG005
    "ring": lambda seed: amble.networks.ring(50),  # noqa: ARG005
}


def generated(loss: str, kind: str, seed: int, agents: int = 50, rows: int = 4000, p: int = 15) -> amble.Problem:
    """Rows of one family: badly conditioned, sorted by label, of uneven sizes, separable, or none of these."""
    rng = np.random.default_rng([seed, 7])
    X = rng.normal(size=(rows, p))
    spread = np.logspace(0, -2, p) if kind == "conditioned" else np.ones(p)
    X = X @ np.linalg.qr(rng.normal(size=(p, p)))[0] * spread
    w = rng.normal(size=p) / spread**0.75
    score = X @ w * ((20.0 if kind == "separable" else 2.0) * np.sqrt(rows) / np.linalg.norm(X @ w))
    if loss == "least-squares":
        y = score + rng.normal(size=rows)
    else:
        y = np.where(kind == "separable", score > 0, rng.random(rows) < 1 / (1 + np.exp(-score))).astype(float)
    order = np.argsort(y + 0.3 * rng.normal(size=rows)) if kind == "labels" else rng.permutation(rows)
    parts = np.array_split(order, agents)
    if kind == "sizes":
        ends = np.cumsum(3 + rng.dirichlet(np.full(agents, 0.5)) * (rows - 3 * agents)).astype(int)
        parts = np.split(order, ends[:-1])
    return amble.Problem.from_agents([(X[part], y[part]) for part in parts], loss=loss, ridge=1e-4, scale=False)


def cost_of(run: amble.Run, by_metric: bool = False) -> tuple[float, float, float] | None:
    """Milliseconds, units and kilobytes until the run is near for good; None: not within its hops."""
    history = run.history
    near = history["distance"] <= 1e-6
    if by_metric:
        near = history["metric"] >= run.problem["optimum_metric"] - 1e-3
    far = np.flatnonzero(~near)
    first = int(far[-1]) + 1 if len(far) else 0
    if first >= len(near):
        return None
    ms, units, kB = (
        float(history[key][first] * by) for key, by in (("time_s", 1e3), ("comm_units", 1), ("bytes", 1e-3))
    )
    return ms, units, kB


def summary(costs: list[tuple[float, float, float] | None]) -> dict[str, Any]:
    """Of each cost the median, the least and the most over the runs that are there; and how many are not."""
    there = [cost for cost in costs if cost is not None]
    names = ("ms", "units", "kB")
    columns = [[None] * 3] * 3 if not there else [[np.median(c), min(c), max(c)] for c in zip(*there, strict=True)]
    rounded = [[None if x is None else float(f"{x:.4g}") for x in column] for column in columns]
    return {**dict(zip(names, rounded, strict=True)), "runs": len(costs), "missed": len(costs) - len(there)}


def of_set(data: str, tokens: int) -> dict[str, Any]:
    """One of the paper's sets with so many tokens."""
    agents, ridge, _, grids = SETS[data]
    problem = amble.split(amble.load(data), agents=agents, ridge=ridge)
    hops, every = next(grid for least, grid in reversed(grids.items()) if tokens >= least)
    runs = (
        amble.simulate(
            amble.Relay(tokens=tokens), problem, amble.networks.random(agents, DENSITY, seed), seed=seed,
            hops=hops, every=every, progress=False,
        )
        for seed in range(SEEDS)
    )  # fmt: skip
    return summary([cost_of(run, data == "usps") for run in runs])


def of_plan(name: str) -> dict[str, Any]:
    """Hops to the first meeting, and from one to the next, by tokens; medians over networks."""
    first, again, alone, radius = [], [], [], []
    for seed in range(SEEDS):
        network = NETWORKS[name](seed)
        order = closed_walk(network, np.random.default_rng([seed, 2]))
        made = [meetings.plan(network, order, M) for M in PLANNED]
        first.append([plan.first_hops for plan in made])
        again.append([plan.lap_hops for plan in made])
        alone.append(len(order) - 1)
        radius.append(min(int(meetings.distances(network, i).max()) for i in range(network.agents)))
    return {
        "alone": float(np.median(alone)),
        "first": dict(zip(map(str, PLANNED), np.median(first, axis=0).tolist(), strict=True)),
        "again": dict(zip(map(str, PLANNED), np.median(again, axis=0).tolist(), strict=True)),
        "radius": float(np.median(radius)),
    }


def of_words(name: str, loss: str, kind: str) -> dict[str, Any]:
    """What each word chooses on one kind of network, and what it brings: times as fast, times the bytes of one."""
    problem = generated(loss, kind, WORD_FAMILY)
    networks = {seed: NETWORKS[name](seed) for seed in WORD_SEEDS}

    @cache
    def cost(tokens: int, s: int) -> tuple[float, float, float] | None:
        relay = amble.Relay(tokens)
        most = WORD_HOPS[loss, kind]
        return cost_of(amble.simulate(relay, problem, networks[s], seed=s, hops=most, every=1, progress=False))

    ones, found = [(1, cost(1, s)) for s in WORD_SEEDS], {}
    for word in WORDS:
        chosen = [tokens_for(word, networks[s], s, loss == "least-squares") for s in WORD_SEEDS]
        each = [(tokens, cost(tokens, s)) for tokens, s in zip(chosen, WORD_SEEDS, strict=True)]
        both = [(a, b) for (_, a), (_, b) in zip(ones, each, strict=True) if a is not None and b is not None]
        faster = [a[0] / b[0] for a, b in both]
        more = [b[2] / a[2] for a, b in both]
        found[word] = {
            "tokens": [tokens for tokens, _ in each],
            "faster": [float(f"{x:.4g}") for x in (np.median(faster), min(faster), max(faster))],
            "bytes": [float(f"{x:.4g}") for x in (np.median(more), min(more), max(more))],
            "missed": sum(there is None for _, there in each),
        }
    return found


Jobs = dict[str, dict[str, Callable[[], dict[str, Any]]]]


def jobs() -> Jobs:
    """All that docs/parallel.json has, by part and row."""
    made: Jobs = {"plan": {name: (lambda name=name: of_plan(name)) for name in NETWORKS}}
    made["words"] = {
        f"{name}; {loss}, {kind}": (lambda name=name, loss=loss, kind=kind: of_words(name, loss, kind))
        for name in NETWORKS
        if "200" not in name
        for loss, kind in WORD_HOPS
    }
    for data, (_, _, tokens, _) in SETS.items():
        made[data] = {str(M): (lambda data=data, M=M: of_set(data, M)) for M in tokens}
    return made


def measure(parts: list[str], again: bool) -> None:
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for part in parts:
        for row, job in jobs()[part].items():
            if row in kept.setdefault(part, {}) and not again:
                continue
            begun = time.process_time()
            kept[part][row] = job()
            print(f"{part}, {row}: {kept[part][row]} ({time.process_time() - begun:.1f} s of CPU)", flush=True)
            write_whole({KEPT: (json.dumps(kept, indent=1) + "\n").encode()})


def family(loss: str, kind: str, seed: int, tokens: list[int], seeds: list[int], hops: int, walk: str) -> None:
    """Generated rows, over networks of density 0.7: shown, not kept."""
    problem = generated(loss, kind, seed)
    for M in tokens:
        runs = (
            amble.simulate(
                amble.Relay(tokens=M), problem, amble.networks.random(problem.agents, DENSITY, s), seed=s,
                walk="auto" if M == 1 else walk, hops=hops * max(1, M // 4), every=1, progress=False,
            )
            for s in seeds
        )  # fmt: skip
        print(f"{loss}, {kind}, M = {M}: {summary([cost_of(run) for run in runs])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(jobs())}; all by default")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--family", nargs=2, metavar=("LOSS", "KIND"), help=f"rows of {', '.join(KINDS)} instead")
    parser.add_argument("--family-seed", type=int, default=100, help="of generated rows; 1 chose the rules")
    parser.add_argument("--tokens", nargs="+", type=int, default=[1, 2, 5, 10, 25, 50])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(SEEDS)))
    parser.add_argument("--hops", type=int, default=600, help="of each run of --family; more for more tokens")
    parser.add_argument("--walk", default="meeting")
    options = parser.parse_args()
    if strange := set(options.parts) - set(jobs()):
        parser.error(f"there is no part {', '.join(strange)}; choose of {', '.join(jobs())}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # runs that diverge are said to be missed
        if options.family:
            family(*options.family, options.family_seed, options.tokens, options.seeds, options.hops, options.walk)
        else:
            measure(options.parts or list(jobs()), options.again)


if __name__ == "__main__":
    main()
