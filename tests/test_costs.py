"""What amble costs, in counts that are the same on every machine: compilations, bytes of state, hops and bytes to 1e-4.

benchmarks/ measures seconds. A change that lowers a count here lowers its number below; one that raises it says why.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amble
from amble import engines
from amble.losses import JaxLoss

N, P, M = 12, 5, 3
NETWORK = amble.networks.random(N, 0.7, seed=0)


def problem_of(seed=0):
    """Well-conditioned least squares; each agent has an optimum of its own."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(30, P)) for _ in range(N)]
    rows = [(X, X @ (1 + rng.normal(size=P)) + 0.1 * rng.normal(size=30)) for X in parts]
    return amble.Problem.from_agents(rows, ridge=0.0, intercept=False, scale=False)


@pytest.fixture
def compiled():
    """The names of the programs that XLA has compiled since."""
    names = []

    def heard(event, _, **about):
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(about.get("fun_name", "not known"))

    jax.monitoring.register_event_duration_secs_listener(heard)
    yield names
    jax.monitoring.unregister_event_duration_listener(heard)


def test_a_comparison_compiles_once(compiled):
    """Other rows, seeds, settings and numbers of hops use the same programs."""

    def compare(seed, hops, tau, alpha):
        methods = amble.APIBCD(tau=tau, tokens=M), amble.Relay(), amble.EXTRA(alpha=alpha)
        amble.compare(methods, problem_of(seed), NETWORK, hops=hops, seed=seed, progress=False)

    compare(seed=0, hops=200, tau=0.5, alpha=0.5)
    assert 9 <= len(compiled) <= 11, compiled  # start, loop and model of each; in a new process two schedules
    compiled.clear()
    compare(seed=7, hops=500, tau=0.7, alpha=0.2)
    assert compiled == []


def test_a_loss_of_your_own_compiles_once(compiled):
    """Problems with the same loss and shapes share the programs, whatever their rows; another loss has its own."""

    def squares(w, batch):
        X, y = batch
        return jnp.mean((X @ w - y) ** 2)

    def steeper(w, batch):
        return 2 * squares(w, batch)

    def go(loss, seed):
        rng = np.random.default_rng(seed)
        rows = [(X := rng.normal(size=(8, P)), X @ np.ones(P)) for _ in range(N)]
        problem = amble.Problem.from_objectives(JaxLoss(loss, np.zeros(P), rows, batch_size=4))
        return amble.simulate(amble.WPG(alpha=0.1), problem, NETWORK, hops=60, progress=False).model

    first = go(squares, seed=0)
    assert compiled
    compiled.clear()
    assert not np.array_equal(go(squares, seed=1), first)
    assert compiled == []
    go(steeper, seed=1)
    assert compiled


@pytest.mark.parametrize(
    ("method", "per_agent", "per_token"),
    [
        (amble.IBCD(), 2 * P + 1, P + 3),
        (amble.APIBCD(tokens=M), 2 * P + 2 * P * M, P + 1),
        (amble.WPG(tokens=M), 2 * P + M * (P + 2) + 1, M * (P + 2) + 1),
        (amble.WADMM(), 3 * P + 1, P + 3),
        (amble.DGD(), P, 0),
        (amble.EXTRA(), 3 * P, 0),
        (amble.DADMM(), 2 * P, 0),
    ],
    ids=lambda value: getattr(value, "label", str(value)),
)
def test_numbers_that_a_run_keeps(method, per_agent, per_token):
    """Per agent, its slots for the tokens included, and per token; 8 bytes each."""
    state = engines.engine_for("compiled", method, problem_of(), NETWORK).start()
    agents, slots, tokens = (sum(leaf.nbytes for leaf in jax.tree.leaves(part)) for part in state[:3])
    assert agents + slots <= 8 * N * per_agent
    assert tokens <= 8 * getattr(method, "tokens", 0) * per_token


def test_numbers_that_a_loss_keeps():
    """Least squares: the Gram matrix, its eigenvectors and eigenvalues, b, c and the share; no rows."""
    assert sum(leaf.nbytes for leaf in problem_of().stacked) <= 8 * N * (2 * P * P + 2 * P + 2)


@pytest.mark.parametrize(
    ("method", "hops", "size_bytes"),
    [
        (amble.Relay(), N, 1_760),  # "the optimum after one lap"
        (amble.Relay(tokens=M, form="scalar"), 386, 64_344),
        (amble.WPG(alpha=0.5), 108, 4_280),
        (amble.EXTRA(alpha=0.5), 228, 69_920),
        (amble.DADMM(rho=0.3), 600, 184_000),
    ],
    ids=str,
)
def test_hops_and_bytes_to_accuracy(method, hops, size_bytes):
    """Until the model is within 1e-4 of the optimum for good; rounding may move a hop or two."""
    run = amble.simulate(method, problem_of(), NETWORK, hops=1000, every=1, progress=False)
    far = np.flatnonzero(~(run.history["distance"] <= 1e-4))
    assert far[-1] + 1 < len(run.history["hop"]), f"it is {run.history['distance'][-1]:.0e} away after 1,000 hops"
    assert run.history["hop"][far[-1] + 1] <= 1.02 * hops
    assert run.history["bytes"][far[-1] + 1] <= 1.02 * size_bytes
