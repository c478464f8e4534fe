"""Rounds a second of the gossip methods, beside decent-bench on the same job: ratios within one run, on one core.

python benchmarks/rounds.py --peer ~/py313/bin/python     # a Python 3.13 with decent-bench; about a minute
python benchmarks/rounds.py                               # this Python's decent-bench, or amble's figures alone
python benchmarks/rounds.py --degree 2 --cost rows        # fewer links; decent-bench's loss of rows

Seconds are the processor's, of all threads: on a quiet machine those of the clock, and the same on a busy one.
Only rounds are timed, after set-up and compilation. decent-bench (AGPL) is run in a process of its own, as installed.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before anything starts threads; children inherit it

import numpy as np
from rich.console import Console
from rich.table import Table

P, ROWS = 12, 300
ALPHA, RHO = 0.1, 0.1
CHECKED = 20  # rounds after which both must stand at the same models
DIFFERENCE_MAX = 1e-9
RATIO_MIN, RATIO_AGENTS = 100, 100

Figures = dict[str, tuple[float, Any]]  # by method: rounds a second, all agents' models after CHECKED rounds


def best(advance: Callable[[int], object], piece_s: float) -> float:
    """Rounds a second, best of three pieces of about piece_s each."""

    def seconds(rounds: int) -> float:
        begin = time.process_time()
        advance(rounds)
        return time.process_time() - begin

    rounds = 1
    while (took := seconds(rounds)) < piece_s / 10:
        rounds *= 2
    rounds = max(1, round(rounds * piece_s / took))
    return max(rounds / seconds(rounds) for _ in range(3))


def make_job(agents: int, degree: float) -> dict[str, Any]:
    """Rows and links, as plain arrays: the peer's Python need not have amble, so only what uses it imports it."""
    from amble import networks

    rng = np.random.default_rng(0)
    X = rng.normal(size=(agents, ROWS, P))
    y = X @ rng.normal(size=P) + rng.normal(size=(agents, ROWS))
    return {"X": X, "y": y, "edges": networks.random(agents, degree / (agents - 1)).edges}


def measure(job: dict[str, Any], piece_s: float) -> Figures:
    import amble
    from amble import engines

    rows = list(zip(job["X"], job["y"], strict=True))
    problem = amble.Problem.from_agents(rows, ridge=0, intercept=False, scale=False)
    network = amble.networks.from_edges(len(rows), job["edges"])
    figures: Figures = {}
    for method in (amble.DGD(alpha=ALPHA), amble.EXTRA(alpha=ALPHA), amble.DADMM(rho=RHO)):
        engine = engines.engine_for("compiled", method, problem, network)
        state = engine.advance(engine.start(), None, 0, CHECKED)
        models = np.array(state.agents.x)

        def advance(rounds: int, engine: Any = engine) -> None:
            nonlocal state
            state = engine.advance(state, None, 0, rounds)

        figures[method.label] = best(advance, piece_s), models
    return figures


def measure_peer(job: dict[str, Any], piece_s: float, cost: str) -> Figures:
    """decent-bench: no metrics, and no snapshot but that of the last round, which its `run` always takes."""
    import networkx as nx
    from decent_array import interoperability as iop
    from decent_bench.agents import Agent
    from decent_bench.algorithms.p2p import ADMM, DGD, EXTRA
    from decent_bench.costs import LinearRegressionCost, QuadraticCost
    from decent_bench.networks import P2PNetwork

    iop.set_backend("numpy")
    array = iop.from_numpy

    def loss(X: Any, y: Any) -> Any:
        if cost == "rows":
            return LinearRegressionCost([(array(x), array(target)) for x, target in zip(X, y[:, None], strict=True)])
        return QuadraticCost(array(X.T @ X / len(y)), array(-X.T @ y / len(y)))  # holds what amble's loss holds

    links = nx.Graph()
    links.add_nodes_from(range(len(job["X"])))
    links.add_edges_from(job["edges"].tolist())
    # its weights are Metropolis's unless others are given; its ADMM relaxed by a half, penalty 2 rho, is D-ADMM of rho
    algorithms = {
        "DGD": DGD(step_size=ALPHA),
        "EXTRA": EXTRA(step_size=ALPHA),
        "D-ADMM": ADMM(penalty=2 * RHO, relaxation=0.5),
    }
    figures: Figures = {}
    for label, algorithm in algorithms.items():
        losses = (loss(X, y) for X, y in zip(job["X"], job["y"], strict=True))
        agents = [Agent(f, state_snapshot_period=sys.maxsize) for f in losses]
        network, done = P2PNetwork(links, agents), CHECKED
        algorithm.run(network, CHECKED)
        models = np.stack([iop.to_numpy(agent.x) for agent in agents])

        def advance(rounds: int, algorithm: Any = algorithm, network: Any = network) -> None:
            nonlocal done
            algorithm.run(network, done + rounds, start_iteration=done)
            done += rounds

        figures[label] = best(advance, piece_s), models
    return figures


def peer_child(folder: Path, piece_s: float, cost: str) -> None:
    with np.load(folder / "job.npz") as job:
        figures = measure_peer(dict(job), piece_s, cost)
    rates = {f"{label} rounds": rate for label, (rate, _) in figures.items()}
    np.savez(folder / "found.npz", **rates, **{f"{label} models": models for label, (_, models) in figures.items()})


def ask_peer(peer: str, job: dict[str, Any], piece_s: float, cost: str) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "job.npz", **job)
        options = ["--peer-child", folder, "--piece-s", str(piece_s), "--cost", cost]
        subprocess.run([peer, __file__, *options], check=True)
        with np.load(Path(folder) / "found.npz") as saved:
            labels = [name.removesuffix(" rounds") for name in saved.files if name.endswith(" rounds")]
            return {label: (float(saved[f"{label} rounds"]), saved[f"{label} models"]) for label in labels}


def has_peer(peer: str) -> bool:
    ask = [peer, "-c", "import decent_bench"]
    return shutil.which(peer) is not None and subprocess.run(ask, capture_output=True).returncode == 0


def main() -> None:
    here = sys.executable if importlib.util.find_spec("decent_bench") else None
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--peer", metavar="PYTHON", default=here, help="an interpreter that has decent-bench")
    options.add_argument("--degree", type=float, default=4, help="neighbours an agent, on average (default 4)")
    options.add_argument("--cost", choices=("quadratic", "rows"), default="quadratic", help="decent-bench's loss")
    options.add_argument("--piece-s", type=float, default=1, help="seconds timed at a time (default 1)")
    options.add_argument("--peer-child", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.peer_child:
        peer_child(arguments.peer_child, arguments.piece_s, arguments.cost)
        return
    console = Console()
    peer = arguments.peer if arguments.peer and has_peer(arguments.peer) else None
    if peer is None:
        where = arguments.peer or "this Python"
        console.print(f"decent-bench is not in {where}, so here are amble's figures alone; see --peer.", soft_wrap=True)
    table = Table(title=f"least squares, p={P}, {ROWS} rows and {arguments.degree:g} neighbours an agent, one core")
    for heading in ("method", "agents", "amble rounds/s", "decent-bench rounds/s", "ratio", "models differ by"):
        table.add_column(heading, justify="right")
    ratios, differences = [], []
    for agents in (20, RATIO_AGENTS):
        console.print(f"measuring with {agents} agents ...", style="dim")
        job = make_job(agents, arguments.degree)
        ours = measure(job, arguments.piece_s)
        theirs = ask_peer(peer, job, arguments.piece_s, arguments.cost) if peer else {}
        for label, (rate, models) in ours.items():
            cells = ["-"] * 3
            if label in theirs:
                their_rate, their_models = theirs[label]
                differences.append(float(np.max(np.abs(models - their_models)) / np.max(np.abs(their_models))))
                if agents == RATIO_AGENTS:
                    ratios.append(rate / their_rate)
                cells = [f"{their_rate:,.0f}", f"{rate / their_rate:,.0f}", f"{differences[-1]:.0e}"]
            table.add_row(label, str(agents), f"{rate:,.0f}", *cells)
    console.print(table)
    if not peer:
        return
    console.print(f"models after {CHECKED} rounds: {max(differences):.0e} of their largest number apart, at most")
    console.print(f"the lowest ratio with {RATIO_AGENTS} agents: {min(ratios):,.0f} times (at least {RATIO_MIN})")
    if not max(differences) <= DIFFERENCE_MAX:
        sys.exit(f"that is more than {DIFFERENCE_MAX:g}: the two did not do the same job, and the ratios mean nothing.")


if __name__ == "__main__":
    main()
