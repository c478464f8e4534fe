"""Rounds of the gossip methods on one core, beside the same updates of all agents in bare NumPy and SciPy.

python benchmarks/rounds.py            # half a minute; benchmarks/peers.py sets them beside other packages

The models of both are compared after 20 rounds first: they must be equal.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before anything starts threads

import numpy as np
import scipy.sparse
from measure import Row, Timed, Work, check_equal, clocked, compare, parser, table

import amble
from amble import engines
from amble.networks.network import Network
from amble.problem.problem import Problem

P, ROWS, DEGREE = 12, 300, 4
ALPHA, RHO = 0.1, 0.1
SPARSE = 100  # agents from which on a sparse matrix of weights is faster
CHECKED = 20  # rounds after which both must have the same models


def make_job(agents: int, degree: float = DEGREE) -> dict[str, Any]:
    """Rows and links, as plain arrays."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(agents, ROWS, P))
    y = X @ rng.normal(size=P) + rng.normal(size=(agents, ROWS))
    return {"X": X, "y": y, "edges": amble.networks.random(agents, min(1.0, degree / (agents - 1))).edges}


def problem_of(job: dict[str, Any]) -> tuple[Problem, Network]:
    rows = list(zip(job["X"], job["y"], strict=True))
    problem = amble.Problem.from_agents(rows, ridge=0, intercept=False, scale=False, weights="agents")
    return problem, amble.networks.from_edges(len(rows), job["edges"])


def rounds_of(
    method: Any, problem: Problem, network: Network, clock: Callable[[], float] = time.process_time
) -> tuple[Timed, Any]:
    """Rounds of amble's compiled engine, and all agents' models after CHECKED of them."""
    engine = engines.engine_for("compiled", method, problem, network)
    state = engine.advance(engine.start(), None, 0, CHECKED)
    models = np.array(state.agents.x)

    def work(times: int) -> None:
        nonlocal state
        state = engine.advance(state, None, 0, times)

    return clocked(work, clock), models


def weights(network: Network) -> Any:
    """The matrix of Metropolis weights."""
    across, own = network.metropolis()
    W = np.diag(own)
    W[np.repeat(np.arange(network.agents), network.degrees), network.neighbours] = across
    return W


def bare(problem: Problem, network: Network) -> dict[str, tuple[Callable[[], Any], Work]]:
    """By method: what returns all models, and rounds in NumPy. All agents are rows of one array."""
    A, b, N = problem.stacked.A, problem.stacked.b, problem.agents
    W = weights(network) if N < SPARSE else scipy.sparse.csr_array(weights(network))

    def grad(x: Any) -> Any:
        return (A @ x[:, :, None])[:, :, 0] - b

    dgd = {"x": np.zeros((N, P))}

    def dgd_rounds(times: int) -> None:
        for _ in range(times):
            dgd["x"] = W @ dgd["x"] - ALPHA * grad(dgd["x"])

    extra: dict[str, Any] = {"x": np.zeros((N, P)), "last": None, "grad": None}

    def extra_rounds(times: int) -> None:
        for _ in range(times):
            x, g = extra["x"], grad(extra["x"])
            if extra["last"] is None:
                new = W @ x - ALPHA * g
            else:
                new = x + W @ x - (extra["last"] + W @ extra["last"]) / 2 - ALPHA * (g - extra["grad"])
            extra.update(x=new, last=x, grad=g)

    return {"DGD": (lambda: dgd["x"], dgd_rounds), "EXTRA": (lambda: extra["x"], extra_rounds)}


def rows() -> Iterator[Row]:
    for agents in (20, 100, 1000):
        problem, network = problem_of(make_job(agents))
        references, bare_name = (
            bare(problem, network),
            "the same in bare NumPy" + (", SciPy's links" if agents >= SPARSE else ""),
        )
        for method in (amble.DGD(alpha=ALPHA), amble.EXTRA(alpha=ALPHA)):
            timed, models = rounds_of(method, problem, network)
            read, reference = references[method.label]
            reference(CHECKED)
            check_equal(f"{method.label} with {agents} agents", models, read())
            yield compare(f"a round of {method.label} (N={agents}, p={P})", timed, bare_name, clocked(reference))


if __name__ == "__main__":
    table(rows(), parser(__doc__).parse_args().json)
