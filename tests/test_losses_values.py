"""The losses of counts, amounts, residuals and times: value, gradient and Hessian, on NumPy and JAX; wrong input."""

import jax
import numpy as np
import pytest
from scipy.optimize import approx_fprime

import amble
from amble.arrays import tree_map
from amble.errors import AmbleError
from amble.losses import LOSSES, choose
from amble.testing import check_objective
from loss_samples import COX, LOG_LINK, NEW, Sites, targets

RNG = np.random.default_rng(3)


def some(loss, seed=0, rows=14, padding=0):
    """An objective with weights and, where it takes one, an offset; its last rows are padding."""
    rng = np.random.default_rng(seed)
    X, offset = rng.normal(size=(rows, 4)), rng.normal(size=rows)
    y, weight = targets(loss, rng, 0.5 * X[:, 0], np.exp(offset)), rng.uniform(0.5, 2, rows)
    X[rows - padding :], y[rows - padding :], weight[rows - padding :], offset[rows - padding :] = 0, 0, 0, 0
    options = {"offset": offset} if loss in LOG_LINK else {}
    return LOSSES[loss].build(X, y, weight / weight.sum(), np.full(4, 0.1), **options), rng.normal(size=4)


@pytest.mark.parametrize("loss", NEW)
@pytest.mark.parametrize("seed", range(3))
def test_functions_agree_by_differences(loss, seed):
    f, w = some(loss, seed, padding=3)
    np.testing.assert_allclose(f.grad(w), approx_fprime(w, f.value), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(f.hessian(w), approx_fprime(w, f.grad), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(f.hessian_times(w)(w), f.hessian(w) @ w, rtol=1e-12)
    assert np.linalg.eigvalsh(f.hessian(w))[0] > 0
    check_objective(f, 4)


@pytest.mark.parametrize("loss", NEW)
def test_numpy_and_jax_give_the_same_numbers(loss):
    f, w = some(loss, padding=2)
    with jax.enable_x64(True):
        g, v = tree_map(jax.numpy.asarray, f), jax.numpy.asarray(w)
        for name in ("value", "grad", "hessian"):
            np.testing.assert_allclose(getattr(g, name)(v), getattr(f, name)(w), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(jax.grad(g.value)(v), f.grad(w), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(jax.jacobian(g.grad)(v), f.hessian(w), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(g.curvature, f.curvature, rtol=1e-13)
        for weight in (1e-3, 1.0, 1e3):
            np.testing.assert_allclose(g.prox(0 * v, weight, v), f.prox(0 * w, weight, w), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", NEW)
def test_far_out_all_numbers_are_finite_and_newton_comes_back(loss):
    f, w = some(loss)
    for far in (1e3 * w, -1e3 * w):
        assert np.isfinite(f.value(far))
        assert np.isfinite(f.grad(far)).all()
        assert np.isfinite(f.hessian(far)).all()
        np.testing.assert_allclose(f.prox(0 * w, 1e-3, far), f.prox(0 * w, 1e-3, 0 * w), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", COX)
def test_cox_is_its_formula_written_out(loss):
    """Event by event, tie by tie, with weights; the mean weight of the rows is 1 in the sums."""
    rng = np.random.default_rng(6)
    X, weight, w = rng.normal(size=(9, 2)), rng.uniform(0.5, 2, 9), np.array([0.7, -0.4])
    y = np.array([3.0, 3.0, -3.0, 5.0, 1.0, 1.0, 1.0, -4.0, 6.0])
    f = LOSSES[loss].build(X, y, weight / 9, np.zeros(2))
    time, eta = np.abs(y), X @ w
    e = weight / weight.mean() * np.exp(eta)
    total = 0.0
    for t in np.unique(time[y > 0]):
        tied = np.flatnonzero((time == t) & (y > 0))
        for k in range(len(tied)):
            part = k / len(tied) if loss == "cox" else 0.0
            total += weight[tied].mean() * np.log(e[time >= t].sum() - part * e[tied].sum())
        total -= weight[tied] @ eta[tied]
    assert f.value(w) == pytest.approx(total / 9, rel=1e-12)


@pytest.mark.parametrize("loss", COX)
def test_agents_without_events_or_with_one_row_give_nothing(loss):
    for y in (np.array([-1.0, -2.0, -2.0]), np.array([4.0])):
        f = LOSSES[loss].build(RNG.normal(size=(len(y), 2)), y, np.full(len(y), 1 / len(y)), np.zeros(2))
        w = RNG.normal(size=2)
        assert np.abs(f.grad(w)).max() < 1e-15
        assert np.abs(f.hessian(w)).max() < 1e-15
        assert f.curvature > 0
    sites = Sites(loss)
    sites.rows[2] = (sites.rows[2][0], -np.abs(sites.rows[2][1]))
    run = amble.simulate(amble.Relay(), sites.problem(), "ring", hops=80, progress=False)
    assert run.history["distance"][-1] < 1e-9


def test_a_loss_by_another_name():
    assert choose("squared", 0) == "least-squares"
    X, y = RNG.normal(size=(20, 2)), RNG.normal(size=20)
    problem = amble.Problem.from_arrays(X, y, agents=3, loss="squared")
    assert (problem.loss, problem.settings["loss"]) == ("least-squares", "least-squares")
    assert problem.digest == amble.Problem.from_arrays(X, y, agents=3).digest
    assert amble.Problem.from_arrays(X, y, agents=3).loss == "least-squares"


def test_few_whole_counts_are_no_labels_where_the_loss_is_of_counts():
    problem = amble.Problem.from_arrays(RNG.normal(size=(20, 2)), np.arange(20) % 4, agents=3, loss="poisson")
    assert problem.task == "regression"
    labels = amble.Problem.from_arrays(RNG.normal(size=(20, 2)), np.arange(20) % 4, agents=3, loss="softmax")
    assert labels.task == "classification"


X, COUNTS = RNG.normal(size=(12, 2)), RNG.poisson(3, 12) + 1.0
WRONG = {
    "negative counts": ({"y": -COUNTS, "loss": "poisson"}, "loss='poisson' needs counts of zero or more"),
    "no counts": ({"y": 0 * COUNTS, "loss": "poisson"}, "loss='poisson' needs counts, and all of them are zero"),
    "no amounts": ({"y": COUNTS - COUNTS.min(), "loss": "gamma"}, "loss='gamma' needs amounts above zero"),
    "no time": ({"y": COUNTS * (COUNTS > 3), "loss": "cox"}, "loss='cox' needs times above zero"),
    "no events": ({"y": -COUNTS, "loss": "cox"}, "every row is censored"),
    "an offset": ({"loss": "huber", "offset": COUNTS}, "given with loss='huber', which takes none"),
    "labels": ({"loss": "logistic", "y": COUNTS > 3, "exposure": COUNTS}, "was given with loss='log"),
    "too few offsets": ({"offset": COUNTS[:3]}, r"offset has shape \(3,\), and there are 12 rows; give one per row"),
    "negative exposure": ({"exposure": COUNTS - 9}, "an exposure is above zero"),
    "negative weights": ({"sample_weight": COUNTS - 9}, "a weight is zero or more"),
    "too many weights": ({"sample_weight": np.ones(13)}, r"sample_weight has shape \(13,\)"),
    "weights that are text": ({"sample_weight": ["a"] * 12}, "sample_weight must hold numbers"),
    "a weight that is not finite": ({"sample_weight": [np.inf] * 12}, "sample_weight has values that are not finite"),
    "an agent of no weight": ({"sample_weight": np.zeros(12)}, "all rows of agent 0 have the sample weight zero"),
    "an unknown loss": ({"loss": "poison"}, "poison"),
    "a task that does not fit": ({"task": "classification"}, "loss='poisson' was given for classification"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "sentence"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused_in_a_sentence(given, sentence):
    options = {"y": COUNTS, "loss": "poisson", "agents": 3, **given}
    with pytest.raises(AmbleError, match=sentence):
        amble.Problem.from_arrays(X, options.pop("y"), **options)


def test_lists_per_agent_have_one_per_agent():
    rows = [(X[:5], COUNTS[:5]), (X[5:], COUNTS[5:])]
    with pytest.raises(AmbleError, match="exposure was given for 1 agents, and there are 2"):
        amble.Problem.from_agents(rows, loss="poisson", exposure=[COUNTS])
    with pytest.raises(AmbleError, match="agent 1: sample_weight has shape"):
        amble.Problem.from_agents(rows, loss="poisson", sample_weight=[np.ones(5), np.ones(5)])


def test_an_offset_of_new_rows_is_checked():
    problem = amble.Problem.from_arrays(X, COUNTS, agents=3, task="regression")
    with pytest.raises(AmbleError, match="which takes none"):
        problem.predict(problem.optimum().w, X, exposure=COUNTS)
