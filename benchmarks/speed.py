"""Speed and memory of the simulator, on one core: ratios within one run, so that they mean the same on any machine.

python benchmarks/speed.py            # about a minute
python benchmarks/speed.py --hops 1000000
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before anything starts threads

import numpy as np
from rich.console import Console
from rich.table import Table

import amble
from amble import engines
from amble.networks import walks
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.schedule import schedule, timing
from amble.schedule.cost import compute_seconds

P, M = 12, 5
STATE_RATIO_MAX = 3


def least_squares(agents: int, rows: int = 4) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(agents * rows, P))
    y = X @ rng.normal(size=P) + rng.normal(size=len(X))
    return Problem.from_arrays(X, y, agents=agents, intercept=False, scale=False)


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(method: Any, problem: Problem, network: Network, hops: int) -> dict[str, float]:
    """Seconds of schedule and engines, first call (compilation included) and best of three more."""
    clock = timing.timing_from("paper")
    parts = {"compute_s": compute_seconds(clock, method, problem), "message_bytes": 8 * P, "seed": 0}
    steps = walks.walk_for("cycle", network, method.tokens, 0)
    planned: list[schedule.Schedule] = []

    def plan() -> None:
        planned.append(schedule.plan_hops(network, steps, clock, tokens=method.tokens, hops=hops, **parts))

    engine = engines.engine_for("compiled", method, problem, network)

    def go() -> None:
        engine.advance(engine.start(), planned[-1], 0, hops)

    first = seconds(plan) + seconds(go)
    planning = min(seconds(plan) for _ in range(3))
    going = min(seconds(go) for _ in range(3))
    return {
        "first_s": first,
        "schedule_us": planning / hops * 1e6,
        "replay_us": going / hops * 1e6,
        "all_s": planning + going,
    }


def held_bytes(agents: int) -> int:
    """What a run of API-BCD must hold: the objectives, two vectors an agent, two an (agent, token), the tokens."""
    return 8 * agents * (2 * P * P + 2 * P + 1 + 2 * P + 2 * P * M)


def memory_child(agents: int) -> None:
    """Run once and print how far the resident memory rose above that of a small run, which holds code and caches."""

    def once(count: int) -> int:
        amble.simulate(amble.APIBCD(), least_squares(count), amble.networks.ring(count), hops=20_000, progress=False)
        status = Path("/proc/self/status").read_text()  # getrusage would count the parent's memory before the exec
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    small = once(100)
    print(once(agents) - small)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hops", type=int, default=200_000)
    options.add_argument("--memory-child", type=int, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.memory_child:
        memory_child(arguments.memory_child)
        return
    console = Console()
    table = Table(title=f"{arguments.hops:,} hops, least squares, p={P}, one core")
    for heading in ("method", "agents", "schedule us/hop", "replay us/hop", "together us/hop", "compile s"):
        table.add_column(heading, justify="right")
    together: dict[tuple[str, int], float] = {}
    chosen = (amble.IBCD(), amble.APIBCD(tokens=M), amble.GAPIBCD(tokens=M), amble.WPG())
    cases = [(method, 20) for method in chosen] + [(amble.APIBCD(tokens=M), n) for n in (100, 100_000)]
    for method, agents in cases:
        console.print(f"measuring {method.label} with {agents:,} agents ...", style="dim")
        network = amble.networks.ring(agents) if agents > 1000 else amble.networks.random(agents, 0.7)
        figures = measure(method, least_squares(agents), network, arguments.hops)
        total = figures["schedule_us"] + figures["replay_us"]
        together[method.label, agents] = total
        numbers = (figures["schedule_us"], figures["replay_us"], total, figures["first_s"] - figures["all_s"])
        table.add_row(method.label, f"{agents:,}", *(f"{number:.2f}" for number in numbers))
    console.print(table)

    label, problem, network = amble.APIBCD.label, least_squares(20), amble.networks.random(20, 0.7)
    few = max(1000, arguments.hops // 40)
    plain = seconds(
        lambda: amble.simulate(amble.APIBCD(tokens=M), problem, network, hops=few, engine="plain", progress=False)
    )
    agents = 100_000
    child = [sys.executable, __file__, "--memory-child", str(agents)]
    rose = int(subprocess.run(child, check=True, capture_output=True, text=True).stdout)
    console.print(
        f"plain NumPy engine / compiled, a hop of {label}: {plain / few * 1e6 / together[label, 20]:.0f} times"
    )
    growth = together[label, agents] / together[label, 100]
    console.print(f"a hop with {agents:,} agents / with 100: {growth:.2f} times (at most 3)")
    console.print(
        f"memory of {agents:,} agents: {rose / 1e6:,.0f} MB, {rose / held_bytes(agents):.2f} times the states "
        f"it must hold (at most {STATE_RATIO_MAX})"
    )


if __name__ == "__main__":
    main()
