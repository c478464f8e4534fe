"""DGD on one network of PyTorch, by amble and by decent-bench: accuracy and seconds.

python benchmarks/peers_torch.py           # some minutes; at the first time decent-bench is installed from PyPI

The network of docs/networks.md as a torch module in float64, digits, ten agents, a random network of density 0.5,
Metropolis weights, one thread. First both compute rounds with all rows, and all agents' models must be equal to 1e-9.
Then both train with batches of 32, each with the batches that it draws itself, and with the same step: the accuracy on
test rows of the mean of the agents' models, and the CPU seconds of the rounds alone. Each has the step, of three, with
which it is best on rows kept back.
"""

import argparse
import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import networks
import numpy as np
import peers
import torch

import amble
from amble import engines
from amble.losses import TorchLoss

PEER = peers.DECENT_BENCH._replace(
    script="drive_decent_bench_torch.py", packages=(*peers.DECENT_BENCH.packages, "torch")
)
AGENTS, ROUNDS, CHECKED, BATCH = 10, 200, 3, 32
ALPHAS = (0.1, 0.3, 1.0)
KEPT = networks.DOCS / "networks-decent-bench.json"


def network_of(side: int) -> torch.nn.Module:
    """The module of peers/torch_network.py, which both sides run."""
    space: dict[str, Any] = {}
    exec((peers.HERE / "peers" / "torch_network.py").read_text(), space)
    module: torch.nn.Module = space["network_of"](side)
    return module


def cross_entropy(module: Any, batch: Any) -> Any:
    return torch.nn.functional.cross_entropy(module(batch[0]), batch[1])


def accuracy(module: Any, test: Any) -> Any:
    return (module(test[0]).argmax(dim=1) == test[1]).double().mean()


def problem_of(parts: list[Any], test: Any, batch: int, seed: int) -> tuple[amble.Problem, TorchLoss]:
    torch.manual_seed(seed)
    loss = TorchLoss(
        network_of(8), cross_entropy, parts, batch_size=batch or None, seed=seed, weights="agents",
        metric=accuracy, test=test, task="classification",
    )  # fmt: skip
    return amble.Problem.from_objectives(loss, name="digits"), loss


def by_amble(problem: amble.Problem, loss: TorchLoss, network: Any, alpha: float, rounds: int) -> tuple[Any, float]:
    """The agents' models after so many rounds, and their CPU seconds."""
    engine = engines.engine_for("plain", amble.DGD(alpha=alpha), problem, network, loss.start)
    state, begun = engine.start(), time.process_time()
    state = engine.advance(state, None, 0, rounds)
    return np.array(state.agents.x), time.process_time() - begun


def by_decent_bench(job: dict[str, Any], alpha: float, rounds: int) -> tuple[Any, float]:
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(peers.Driven(PEER, {**job, "alpha": alpha}, "DGD", Path(folder))) as driven,
    ):
        seconds = driven(rounds)
        return np.load(driven.models), seconds


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    peers.install(PEER)
    (X, y), (X_kept, y_kept), test = networks.rows_of("digits")
    X, X_kept, test = X.astype(float), X_kept.astype(float), (test[0].astype(float), test[1])
    result: dict[str, Any] = {"rounds": ROUNDS, "batch": BATCH, "splits": {}}
    for split in ("even", "by-label"):
        seed = 1
        held = amble.Problem.from_arrays(X, y, agents=AGENTS, seed=seed, **networks.SPLITS[split]).parts
        parts = [(X[part], y[part]) for part in held]
        network = amble.networks.random(AGENTS, 0.5, seed=seed)
        job: dict[str, Any] = {f"{'Xy'[k]}{i}": part[k] for i, part in enumerate(parts) for k in (0, 1)}
        job |= {"edges": network.edges, "agents": AGENTS, "seed": seed}
        whole, loss = problem_of(parts, test, 0, seed)
        job["start"] = loss.start
        ours, _ = by_amble(whole, loss, network, 0.1, CHECKED)
        theirs, _ = by_decent_bench({**job, "batch": 0}, 0.1, CHECKED)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
        batched, loss = problem_of(parts, test, BATCH, seed)
        kept, _ = problem_of(parts, (X_kept, y_kept), BATCH, seed)
        sides: dict[str, list[dict[str, float]]] = {"amble": [], PEER.title: []}
        for alpha in ALPHAS:
            for name, made in sides.items():
                if name == "amble":
                    models, seconds = by_amble(batched, loss, network, alpha, ROUNDS)
                else:
                    models, seconds = by_decent_bench({**job, "batch": BATCH}, alpha, ROUNDS)
                mean = models.mean(axis=0)
                tested, held_back = batched.metric(mean), kept.metric(mean)
                made.append({"alpha": alpha, "accuracy": tested, "kept": held_back, "seconds": seconds})
        best = {name: max(made, key=lambda each: each["kept"]) for name, made in sides.items()}
        apart = float(abs(ours - theirs).max())
        result["splits"][split] = {"difference": apart, "sides": sides, "best": best}
        print(f"{split}: models equal to {apart:.1e} after {CHECKED} rounds with all rows", flush=True)
        for name, each in best.items():
            print(f"  {name}: step {each['alpha']:g}, accuracy {each['accuracy']:.3f}, "
                  f"{each['seconds']:.1f} s of CPU for {ROUNDS} rounds", flush=True)  # fmt: skip
    KEPT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
