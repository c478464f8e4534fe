"""What Relay reaches on real data, beside every baseline at its best setting: hops, virtual time and bytes to 1e-4.

AMBLE_DATA=folder python benchmarks/relay.py             # cpusmall, cadata, ijcnn1; several minutes
python benchmarks/relay.py --data diabetes breast_cancer # embedded sets, no files needed
python benchmarks/relay.py --ratio                       # Relay's hops and bytes over the best baseline's, in a minute
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import measure
import numpy as np
from measure import Row, count_of, missing, parser
from rich.console import Console
from rich.table import Table
from searching import best_setting

import amble

AGENTS = {"cpusmall": 20, "cadata": 50, "ijcnn1": 50}
RIDGE = {"cpusmall": 0.0, "cadata": 0.0, "diabetes": 0.0}  # least squares as it is; 1e-4 for the rest
BASELINES = (
    amble.WPG(),
    amble.WADMM(),
    amble.PWADMM(),
    amble.IBCD(),
    amble.APIBCD(token_rule="tracked"),
    amble.EXTRA(),
    amble.DADMM(),
)


def real(data: str, agents: int) -> amble.Problem:
    return amble.split(amble.load(data), agents=agents, ridge=RIDGE.get(data, 1e-4))


def synthetic(agents: int) -> amble.Problem:
    """Well-conditioned least squares, p = 12, 30 rows an agent, each agent with an optimum of its own."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(30, 12)) for _ in range(agents)]
    rows = [(X, X @ (1 + rng.normal(size=12)) + 0.1 * rng.normal(size=30)) for X in parts]
    return amble.Problem.from_agents(rows, ridge=0.0, intercept=False, scale=False)


def cost_of(run: amble.Run, distance: float) -> dict[str, float] | None:
    """What it took to come that near to the optimum, for good; None if it did not."""
    far = np.flatnonzero(~(run.history["distance"] <= distance))
    first = int(far[-1]) + 1 if len(far) else 0
    if first >= len(run.history["hop"]):
        return None
    return {key: float(run.history[key][first]) for key in ("hop", "time_s", "bytes")}


def go(method: Any, problem: amble.Problem, network: amble.Network, hops: int, **options: Any) -> amble.Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # settings of the search that diverge
        return amble.simulate(method, problem, network, hops=hops, progress=False, **options)


def best_rival(method: Any, problem: amble.Problem, network: amble.Network, hops: int, distance: float) -> Any:
    """The run of the search that came near in the fewest hops, or None."""
    made: dict[Any, amble.Run] = {}

    def runs(chosen: list[Any]) -> list[amble.Run]:
        made.update({each: go(each, problem, network, hops) for each in chosen})
        return [made[each] for each in chosen]

    def rank(run: amble.Run) -> tuple[float, float]:
        cost, end = cost_of(run, distance), float(run.history["distance"][-1])
        return cost["hop"] if cost else np.inf, end if np.isfinite(end) else np.inf

    best = made[best_setting(method, problem, runs, rank)]
    return best if cost_of(best, distance) else None


def ratio(hops: int, distance: float) -> Iterator[Row]:
    """Relay with nothing to set beside the baseline that needs least of each, its setting the best of the search."""
    for data, problem in (("diabetes", real("diabetes", 20)), ("well-conditioned least squares", synthetic(20))):
        network = amble.networks.random(20, 0.7)
        own = cost_of(go(amble.Relay(), problem, network, 600, every=1), distance)
        rivals = {method.label: best_rival(method, problem, network, hops, distance) for method in BASELINES}
        costs = {label: cost_of(run, distance) for label, run in rivals.items() if run}
        for cost, unit in (("hop", "hops"), ("bytes", "bytes")):
            what = f"{unit} of Relay to a distance of {distance:g}, {data}, N=20"
            if not costs:
                yield missing(what, "every baseline, tuned", f"no baseline is there within {hops:,} hops")
                continue
            best = min(costs, key=lambda label: costs[label][cost])
            yield count_of(
                what, f"{best}, the best of {len(BASELINES)} baselines, tuned", own[cost], costs[best][cost], unit
            )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--ratio", action="store_true")
    options.add_argument("--data", nargs="+", default=list(AGENTS))
    options.add_argument("--hops", type=int, default=6000, help="of each baseline's run and of scalar Relay's")
    options.add_argument("--distance", type=float, default=1e-4)
    arguments = options.parse_args()
    if arguments.ratio:
        measure.table(ratio(arguments.hops, arguments.distance), arguments.json)
        return
    console = Console()
    for data in arguments.data:
        agents = AGENTS.get(data, 20)
        problem = synthetic(agents) if data == "synthetic" else real(data, agents)
        network = amble.networks.random(agents, 0.7)
        table = Table(title=f"{data}, {agents} agents: to a distance of {arguments.distance:g}")
        for heading in ("method", "tokens", "setting", "hops", "hops / tokens", "virtual ms", "kB"):
            table.add_column(heading, justify="right")

        def row(run: Any, label: str, tokens: int, setting: str, table: Table = table) -> None:
            cost = cost_of(run, arguments.distance) if run else None
            numbers = ["not reached", "", "", ""]
            if cost:
                numbers = [f"{cost['hop']:,.0f}", f"{cost['hop'] / tokens:,.0f}"]
                numbers += [f"{cost['time_s'] * 1e3:,.2f}", f"{cost['bytes'] / 1e3:,.1f}"]
            table.add_row(label, str(tokens), setting, *numbers)

        begun = time.monotonic()
        for form, message in (("full", "float64"), ("full", "float32"), ("scalar", "float64")):
            for tokens in (1, 2, 5, 10):
                hops = arguments.hops * (1 if form == "scalar" else 0) + 15 * agents * max(1, tokens // 2)
                method = amble.Relay(tokens, form, message)
                run = go(method, problem, network, hops, every=1 if form == "full" else None)
                row(run, f"Relay, {form}, {message}", tokens, "none")
        for method in BASELINES:
            console.print(f"{data}: {method.label}, {time.monotonic() - begun:.0f} s so far", style="dim")
            run = best_rival(method, problem, network, arguments.hops, arguments.distance)
            name = method.positive[0]
            setting = f"{name}={getattr(run.method, name):.3g}" if run else "any"
            row(run, method.label, getattr(method, "tokens", 1), setting)
        console.print(table)


if __name__ == "__main__":
    main()
