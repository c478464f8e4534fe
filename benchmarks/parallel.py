"""What more tokens bring: Relay with M tokens that meet, virtual time and bytes to an accuracy, medians over seeds.

AMBLE_DATA=folder python benchmarks/parallel.py               # the paper's four sets; some minutes
python benchmarks/parallel.py --data least-squares logistic   # generated sets, no files needed
python benchmarks/parallel.py --plan                          # hop times to the first meeting, by network; no numbers
python benchmarks/parallel.py --data logistic --walk stretches  # another walk

Each seed has a network, link times and a closed walk of its own. The accuracy is a distance of 1e-6 from the optimum,
for good; on usps, whose 2,570 unknowns take the inexact form, a test accuracy of at most 0.1 % below the optimum's.
"""

import argparse
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

import amble
from amble.networks import meetings
from amble.networks.cycles import closed_walk

AGENTS = {"cpusmall": 20, "cadata": 50, "ijcnn1": 50, "usps": 10}
RIDGE = {"cpusmall": 0.0, "cadata": 0.0, "diabetes": 0.0, "usps": 1e-2}  # 1e-4 for the rest
KINDS = ("plain", "conditioned", "labels", "sizes", "separable")
DENSITY = 0.7
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
    name = "least squares" if loss == "least-squares" else loss
    return amble.Problem.from_agents([(X[part], y[part]) for part in parts], loss=name, ridge=1e-4, scale=False)


def problems(data: str, seed: int) -> dict[str, amble.Problem]:
    if data in ("least-squares", "logistic"):
        return {f"{data}, {kind}": generated(data, kind, seed) for kind in KINDS}
    return {data: amble.split(amble.load(data), agents=AGENTS.get(data, 20), ridge=RIDGE.get(data, 1e-4))}


def cost_of(run: amble.Run, by_metric: bool) -> tuple[float, float, float] | None:
    """Milliseconds, units and kilobytes until the run is near for good; None: not within its hops."""
    history = run.history
    near = history["distance"] <= 1e-6
    if by_metric:
        near = history["metric"] >= run.problem["optimum_metric"] - 1e-3
    far = np.flatnonzero(~near)
    first = int(far[-1]) + 1 if len(far) else 0
    if first >= len(near):
        return None
    return tuple(float(history[key][first] * by) for key, by in (("time_s", 1e3), ("comm_units", 1), ("bytes", 1e-3)))


def spread(values: list[float]) -> str:
    return f"{np.median(values):,.3g} ({min(values):,.3g} to {max(values):,.3g})"


def costs(options: argparse.Namespace, console: Console) -> None:
    for data in options.data:
        for name, problem in problems(data, options.family_seed).items():
            N = problem.agents
            table = Table(title=f"{name}, N = {N}, {options.seeds} seeds, walk {options.walk}")
            for heading in ("M", "ms", "faster", "units", "kB", "kB / kB at M = 1", "not reached"):
                table.add_column(heading, justify="right")
            one: np.ndarray | None = None
            for M in dict.fromkeys(min(m, N) for m in options.tokens):
                walk = "auto" if M == 1 else options.walk
                runs = [
                    amble.simulate(
                        amble.Relay(tokens=M), problem, amble.networks.random(N, DENSITY, seed), walk=walk, seed=seed,
                        hops=options.hops * max(1, M // 4), every=options.every, progress=False,
                    )
                    for seed in range(options.seeds)
                ]  # fmt: skip
                reached = [cost for run in runs if (cost := cost_of(run, data == "usps"))]
                if not reached:
                    table.add_row(str(M), *["-"] * 5, str(len(runs)))
                    continue
                ms, units, kB = zip(*reached, strict=True)
                here = np.median(reached, axis=0)
                one = here if M == 1 else one
                ratios = ("-", "-") if one is None else (f"{one[0] / here[0]:.2f}", f"{here[2] / one[2]:.2f}")
                missed = str(len(runs) - len(reached))
                table.add_row(str(M), spread(ms), ratios[0], f"{np.median(units):,.0f}", spread(kB), ratios[1], missed)
            console.print(table)


def plans(options: argparse.Namespace, console: Console) -> None:
    table = Table(title=f"hop times to the first meeting (from one to the next), median of {options.seeds} seeds")
    tokens = [2, 5, 10, 25, 50]
    for heading in ("network", "M = 1", *(f"M = {M}" for M in tokens), "radius"):
        table.add_column(heading, justify="right")
    for name, make in NETWORKS.items():
        found, laps, radius = [], [], []
        for seed in range(options.seeds):
            network = make(seed)
            order = closed_walk(network, np.random.default_rng([seed, 2]))
            made = [meetings.plan(network, order, M) for M in tokens]
            found.append([plan.first_hops for plan in made])
            laps.append([plan.lap_hops for plan in made])
            radius.append(min(int(meetings.distances(network, i).max()) for i in range(network.agents)))
        each = [f"{a:g} ({b:g})" for a, b in zip(np.median(found, axis=0), np.median(laps, axis=0), strict=True)]
        table.add_row(name, str(len(order) - 1), *each, f"{np.median(radius):g}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(AGENTS))
    parser.add_argument("--tokens", nargs="+", type=int, default=[1, 2, 5, 10, 25, 50])
    parser.add_argument("--walk", default="meeting")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--family-seed", type=int, default=100, help="of generated rows; 1 chose the rules")
    parser.add_argument("--hops", type=int, default=600, help="of each run; more for more than four tokens")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    console = Console(width=140)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # runs that diverge are said to be not reached
        (plans if options.plan else costs)(options, console)


if __name__ == "__main__":
    main()
