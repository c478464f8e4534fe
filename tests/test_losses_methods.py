"""Every method on every loss: those that can take it converge, the others say so before any work."""

import numpy as np
import pytest

import amble
from amble.errors import AmbleError
from amble.losses import LOSSES
from loss_samples import LOG_LINK, NEW, Sites

NETWORK = amble.networks.random(8, 0.7, seed=0)
# settings with which each converges on the loss of sites that are not far apart; the prox methods need no tuning
METHODS = {
    "I-BCD": amble.IBCD(tau=1.0),
    "API-BCD": amble.APIBCD(tau=0.3, tokens=3, token_rule="tracked"),
    "gAPI-BCD": amble.GAPIBCD(tau=0.3, tokens=3, rho=5.0, token_rule="tracked"),
    "WPG": amble.WPG(alpha=0.1),
    "W-ADMM": amble.WADMM(beta=1.0),
    "PW-ADMM": amble.PWADMM(),
    "Relay scalar": amble.Relay(form="scalar"),
    "Relay full": amble.Relay(form="full"),
    "DGD": amble.DGD(alpha=0.05),
    "EXTRA": amble.EXTRA(alpha=0.05),
    "DIGing": amble.DIGing(alpha=0.05),
    "DATOS": amble.DATOS(),
    "D-ADMM": amble.DADMM(rho=0.3),
    "Central": amble.Central(),
    "SyncWalks": amble.SyncWalks(),
    "FedAvg": amble.FedAvg(),
}


def alike(loss, **options):
    """Rows of one kind dealt out evenly, so that plain gradient steps do, too."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 3))
    eta = X @ [0.4, -0.3, 0.2]
    y = {
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: rng.gamma(2, np.exp(eta) / 2),
        "huber": lambda: eta + rng.standard_t(1.5, 120),
    }.get(loss, lambda: np.ceil(9 * rng.exponential(np.exp(-eta))) * np.where(rng.random(120) < 0.7, 1, -1))()
    return amble.Problem.from_arrays(X, y, loss=loss, agents=8, ridge=1e-2, **options)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("loss", [name for name in NEW if name != "cox-breslow"])
def test_every_method_converges_on_every_loss(loss, name):
    """Far enough down for what it minimises: some of them converge to a neighbourhood that their step sets."""
    problem = alike(loss)
    run = amble.simulate(METHODS[name], problem, NETWORK, hops=1600, progress=False)
    assert run.stopped == "hops" or run.stopped == "rounds"
    start = problem.value(np.zeros(problem.dimension)) - problem.optimum().value
    assert run.history["suboptimality"][-1] < 0.1 * start
    if name.startswith("Relay"):
        assert run.history["distance"][-1] < (1e-10 if name == "Relay full" else 1e-4)


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("loss", NEW)
def test_full_relay_converges_where_sites_differ_a_hundredfold(loss, seed, tokens):
    """Few rows per site, no penalty, unlike columns: to the pooled optimum within 50 laps, by both engines."""
    problem = Sites(loss, seed).problem()
    run = amble.simulate(amble.Relay(tokens=tokens), problem, NETWORK, hops=400, progress=False)
    assert run.history["distance"][-1] < 1e-9
    if seed == 0:
        plain = amble.simulate(amble.Relay(tokens=tokens), problem, NETWORK, hops=60, engine="plain", progress=False)
        known = int(np.flatnonzero(run.recorded <= 60)[-1])
        same = int(np.flatnonzero(plain.recorded == run.recorded[known])[0])
        np.testing.assert_allclose(plain.consensus[same], run.consensus[known], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", LOG_LINK)
@pytest.mark.parametrize("method", [amble.GAPIBCD(), amble.Relay(form="gradient")], ids=["gAPI-BCD", "Relay"])
def test_methods_that_step_by_a_bound_refuse_a_loss_without_one(loss, method, monkeypatch):
    problem = alike(loss)
    monkeypatch.setattr(LOSSES[loss], "grad", None)  # no work is begun
    with pytest.raises(AmbleError, match=f"steps by a bound L of the loss's curvature, and loss='{loss}' has none"):
        amble.simulate(method, problem, NETWORK, hops=8)


@pytest.mark.parametrize("loss", ["huber", "cox"])
@pytest.mark.parametrize("method", [amble.GAPIBCD(token_rule="tracked"), amble.Relay(form="gradient")], ids=repr)
def test_methods_that_step_by_a_bound_take_a_loss_with_one(loss, method):
    problem = alike(loss)
    run = amble.simulate(method, problem, NETWORK, hops=4000, progress=False)
    start = problem.value(np.zeros(problem.dimension)) - problem.optimum().value
    assert run.history["suboptimality"][-1] < 0.1 * start


@pytest.mark.parametrize("loss", ["poisson", "cox"])
def test_a_step_is_tuned_on_a_loss_without_a_bound(loss):
    run = amble.simulate(amble.WPG(), alike(loss), NETWORK, hops=400, tune=True, progress=False)
    assert run.history["objective"][-1] < run.history["objective"][0]


def test_a_saved_run_predicts_with_its_loss(tmp_path):
    problem = Sites("poisson").problem()
    X, _, _, exposure, _ = Sites("poisson").pooled()
    run = amble.simulate(amble.Relay(), problem, NETWORK, hops=80, progress=False)
    loaded = amble.load_run(run.save(tmp_path / "run"))
    expected = problem.predict(run.model, X, exposure=exposure)
    assert np.array_equal(loaded.predict(X, exposure=exposure), expected)
    np.testing.assert_allclose(loaded.predict(X), expected / exposure, rtol=1e-12)
