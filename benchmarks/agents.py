"""From 100 to 1,000,000 agents on one core: seconds of set-up, memory, and the cost of a hop. CPU time.

python benchmarks/agents.py                            # about two minutes; 6 GB of memory
python benchmarks/agents.py --most 100000
python benchmarks/agents.py --figure docs/agents.png

Least squares, p=8, four rows per agent, a ring, API-BCD with ten tokens, at least ten hops per agent. Each number of
agents has its own process. What a run must hold: the losses of all agents, and their states.
"""

import argparse
import json
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
from amble import drawing
from amble.arrays import leaves
from amble.look import COLOURS, look

P, M, ROWS = 8, 10, 4
AGENTS = (100, 1_000, 10_000, 100_000, 1_000_000)
HOPS_LEAST, HOPS_FEW = 1_000_000, 100
HEADINGS = ("agents", "problem s", "network s", "100 hops s", "hops", "run s", "us/hop", "peak MB", "peak/held")


def seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    return work(), time.process_time() - begin


def peak_bytes() -> int:
    """The most memory so far; getrusage would count the parent's before the exec."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024


def build(agents: int) -> tuple[amble.Problem, float]:
    """The problem, and the seconds that it took; drawing the rows is not amble's work."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(agents * ROWS, P))
    y = X @ rng.normal(size=P) + rng.normal(size=len(X))
    return seconds(lambda: amble.Problem.from_arrays(X, y, agents=agents, intercept=False, scale=False))


def child(agents: int) -> dict[str, float]:
    """All figures of one number of agents, beside a small run of the same kind, which loads code and caches."""

    def run(problem: Any, network: Any, hops: int) -> Any:
        return amble.simulate(amble.APIBCD(tokens=M), problem, network, hops=hops, optimum=False, progress=False)

    run(build(50)[0], amble.networks.ring(50), HOPS_FEW)
    small = peak_bytes()
    problem, problem_s = build(agents)
    network, network_s = seconds(lambda: amble.networks.ring(agents))
    first, first_s = seconds(lambda: run(problem, network, HOPS_FEW))  # with compilation, or reading what was compiled
    held = sum(leaf.nbytes for leaf in (*leaves(problem.stacked), *leaves(first.state)))
    del first
    few_s = seconds(lambda: run(problem, network, HOPS_FEW))[1]
    hops = max(HOPS_LEAST, 10 * agents)
    all_s = seconds(lambda: run(problem, network, hops))[1]
    rose = peak_bytes() - small
    hop_us = (all_s - few_s) / (hops - HOPS_FEW) * 1e6
    return {
        "agents": agents, "problem_s": problem_s, "network_s": network_s, "first_s": first_s, "hops": hops,
        "run_s": all_s, "hop_us": hop_us, "held_bytes": held, "rose_bytes": rose,
    }  # fmt: skip


def figure(results: list[dict[str, float]], path: Path) -> None:
    """Three panels over the number of agents."""
    agents = [each["agents"] for each in results]
    with look():
        drawn = drawing.new_figure(8.0, 2.6)
        setup, memory, hop = drawn.subplots(1, 3)
        lines = {
            "problem": [each["problem_s"] for each in results],
            "network": [each["network_s"] for each in results],
        }
        for colour, (label, values) in zip(COLOURS, lines.items(), strict=False):
            setup.plot(agents, values, "o-", color=colour, ms=3, label=label)
        setup.set(yscale="log", ylabel="set-up, s")
        for colour, name, label in zip(COLOURS, ("rose", "held"), ("at its peak", "losses and states"), strict=False):
            values = [each[f"{name}_bytes"] / 1e6 for each in results]
            memory.plot(agents, values, "o-", color=colour, ms=3, label=label)
        memory.set(yscale="log", ylabel="memory of a run, MB")
        hop.plot(agents, [each["hop_us"] for each in results], "o-", color=COLOURS[0], ms=3)
        hop.set(ylabel="a hop, µs", ylim=(0, None))
        for panel in (setup, memory, hop):
            panel.set(xscale="log", xlabel="agents")
        for panel in (setup, memory):
            panel.legend(fontsize=7)
        drawing.save(drawn, path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--most", type=int, default=AGENTS[-1])
    options.add_argument("--figure", type=Path, help="a picture of the table")
    options.add_argument("--child", type=int, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.child:
        print(json.dumps(child(asked.child)))
        return
    console = Console(width=120)
    table = Table(title=f"least squares, p={P}, a ring, API-BCD with {M} tokens, one core")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    results = []
    for agents in (each for each in AGENTS if each <= asked.most):
        console.print(f"measuring {agents:,} agents ...", style="dim")
        command = [sys.executable, __file__, "--child", str(agents)]
        each = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        results.append(each)
        spent = (f"{each[name]:.2f}" for name in ("problem_s", "network_s", "first_s"))
        ratio = each["rose_bytes"] / each["held_bytes"]
        table.add_row(
            f"{agents:,}", *spent, f"{each['hops']:,}", f"{each['run_s']:.1f}", f"{each['hop_us']:.2f}",
            f"{each['rose_bytes'] / 1e6:,.0f}", f"{ratio:.2f}",
        )  # fmt: skip
    console.print(table)
    if asked.figure:
        figure(results, asked.figure)


if __name__ == "__main__":
    main()
