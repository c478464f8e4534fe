"""The optimum of a problem whose rows lie with many agents is that of statsmodels, lifelines or SciPy on all rows."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import CoxPHFitter
from scipy.optimize import minimize
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import accuracy_score, r2_score

import amble
from amble.errors import AmbleError
from loss_samples import COX, LOG_LINK, NEW, Sites, in_own_units

FAMILIES = {"poisson": sm.families.Poisson, "gamma": lambda: sm.families.Gamma(sm.families.links.Log())}


@pytest.mark.parametrize("loss", LOG_LINK)
@pytest.mark.parametrize("seed", [0, 1])
def test_counts_and_amounts_are_those_of_a_glm(loss, seed):
    """With exposure and weights, uneven agents, no penalty."""
    sites = Sites(loss, seed)
    X, y, weight, exposure, _ = sites.pooled()
    with_one = sm.add_constant(X, prepend=False)
    glm = sm.GLM(y, with_one, family=FAMILIES[loss](), offset=np.log(exposure), freq_weights=weight)
    fitted = glm.fit(tol=1e-14, maxiter=300)
    problem = sites.problem()
    np.testing.assert_allclose(in_own_units(problem, problem.optimum().w), fitted.params, rtol=1e-8, atol=1e-9)
    means = problem.predict(problem.optimum().w, X, exposure=exposure)
    np.testing.assert_allclose(means, fitted.fittedvalues, rtol=1e-8)
    np.testing.assert_allclose(problem.predict(problem.optimum().w, X, offset=np.log(exposure)), means, rtol=1e-12)
    assert 2 * problem.optimum().value * weight.sum() / 8 == pytest.approx(fitted.deviance, rel=1e-9)


def test_counts_with_a_ridge_are_those_of_scikit_learn():
    """Its objective is the mean half deviance of the rates by their exposure as weights, and alpha/2 |w|^2."""
    sites = Sites("poisson", 2)
    X, y, weight, exposure, _ = sites.pooled()
    problem = sites.problem(ridge=0.3)
    s = problem.scaling
    alpha = 0.3 * weight.sum() / (weight * exposure).sum()
    fit = PoissonRegressor(alpha=alpha, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    fit.fit((X - s.X_mean) / s.X_std, y / exposure, sample_weight=weight * exposure)
    w = problem.optimum().w
    np.testing.assert_allclose(w, np.append(fit.coef_, fit.intercept_ - s.y_mean), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", [0, 1])
def test_huber_is_the_minimiser_that_scipy_finds(seed):
    sites = Sites("huber", seed)
    X, y, weight, _, _ = sites.pooled()
    problem = sites.problem()
    s = problem.scaling
    A, b = np.column_stack([(X - s.X_mean) / s.X_std, np.ones(len(y))]), (y - s.y_mean) / s.y_std

    def value(w):
        r = np.abs(A @ w - b)
        return weight @ np.where(r <= 1.35, r**2 / 2, 1.35 * r - 1.35**2 / 2) / weight.sum()

    found = minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-10})
    w = problem.optimum().w
    assert value(w) <= found.fun + 1e-15
    np.testing.assert_allclose(w, found.x, atol=1e-6)
    # where no residual changes sides, the minimiser solves a linear system
    r = A @ w - b
    inside = np.abs(r) <= 1.35
    pull = 1.35 * (weight * np.sign(r) * ~inside) @ A
    exact = np.linalg.solve((A[inside] * weight[inside, None]).T @ A[inside], (weight * b * inside) @ A - pull)
    np.testing.assert_allclose(w, exact, rtol=1e-9, atol=1e-11)


def frame(sites):
    X, y, weight, _, site = sites.pooled()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    return table.assign(time=np.abs(y), event=(y > 0).astype(int), site=site, weight=weight)


@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("seed", [0, 1])
def test_cox_is_that_of_lifelines_stratified_by_agent(seed):
    """Efron's ties, with weights that are whole numbers: for those lifelines has a likelihood."""
    sites = Sites("cox", seed)
    exact = {"precision": 1e-14, "r_precision": 1e-15}
    fit = CoxPHFitter().fit(frame(sites), "time", "event", strata=["site"], weights_col="weight", fit_options=exact)
    problem = sites.problem()
    assert problem.dimension == 3
    np.testing.assert_allclose(in_own_units(problem, problem.optimum().w), fit.params_, rtol=1e-8)
    hazards = problem.predict(problem.optimum().w, sites.pooled()[0])
    np.testing.assert_allclose(
        np.diff(hazards), np.diff(sites.pooled()[0] @ fit.params_.to_numpy()), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("loss", COX)
@pytest.mark.parametrize("seed", [0, 1])
def test_both_kinds_of_ties_are_those_of_statsmodels(loss, seed):
    sites = Sites(loss, seed)
    X, y, _, _, site = sites.pooled()
    model = sm.PHReg(np.abs(y), X, status=y > 0, strata=site, ties="efron" if loss == "cox" else "breslow")
    problem = sites.problem(weighted=False)
    w = problem.optimum().w
    fitted = model.fit()
    np.testing.assert_allclose(in_own_units(problem, w), fitted.params, rtol=1e-8)
    assert problem.optimum().value * len(y) / 8 == pytest.approx(-fitted.llf, rel=1e-10)
    at = np.array([0.3, -0.1, 0.7])
    scaled = at * problem.scaling.X_std
    assert problem.value(scaled) * len(y) / 8 == pytest.approx(-model.loglike(at), rel=1e-10)
    np.testing.assert_allclose(problem.grad(scaled) * len(y) / 8, -model.score(at) / problem.scaling.X_std, rtol=1e-8)
    H = problem.total.hessian(scaled) * len(y) / 8
    np.testing.assert_allclose(H, -model.hessian(at) / np.outer(*[problem.scaling.X_std] * 2), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("loss", ["least-squares", "huber", "poisson", "gamma"])
def test_a_weight_of_two_is_a_row_that_is_there_twice(loss):
    sites = Sites("huber" if loss == "least-squares" else loss)
    sites.loss = loss
    twice = [tuple(np.repeat(side, weight.astype(int), axis=0) for side in pair)
             for pair, weight in zip(sites.rows, sites.weight, strict=True)]  # fmt: skip
    times = [np.repeat(each, weight.astype(int)) for each, weight in zip(sites.exposure, sites.weight, strict=True)]
    options = {"exposure": times} if loss in LOG_LINK else {}
    repeated = amble.Problem.from_agents(twice, loss=loss, ridge=0.1, **options)
    weighted = sites.problem(ridge=0.1)
    np.testing.assert_allclose(weighted.scaling.X_std, repeated.scaling.X_std, rtol=1e-12)
    np.testing.assert_allclose(weighted.optimum().w, repeated.optimum().w, rtol=1e-8, atol=1e-12)
    w = np.random.default_rng(0).normal(size=weighted.dimension)
    for i in range(weighted.agents):
        one, other = weighted.objective(i), repeated.objective(i)
        assert one.value(w) == pytest.approx(float(other.value(w)), rel=1e-10)


@pytest.mark.parametrize("loss", NEW)
def test_a_row_of_weight_zero_is_as_good_as_absent(loss):
    sites = Sites(loss)
    for weight in sites.weight:
        weight[::3] = 0.0
    kept = [weight > 0 for weight in sites.weight]
    fewer = Sites(loss)
    for name in ("weight", "exposure"):
        setattr(fewer, name, [each[keep] for each, keep in zip(getattr(sites, name), kept, strict=True)])
    fewer.rows = [(X[keep], y[keep]) for (X, y), keep in zip(sites.rows, kept, strict=True)]
    one, other = sites.problem(ridge=1e-3), fewer.problem(ridge=1e-3)
    assert one.digest == other.digest
    assert np.array_equal(one.optimum().w, other.optimum().w)


@pytest.mark.parametrize("loss", NEW)
def test_rows_that_are_dealt_out_have_the_pooled_optimum_too(loss):
    """from_arrays and split deal weights and offsets out with their rows; cox is another model where strata differ."""
    sites = Sites(loss)
    X, y, weight, exposure, site = sites.pooled()
    more = {"exposure": exposure} if loss in LOG_LINK else {}
    best = sites.problem().optimum().w
    groups = amble.Problem.from_arrays(X, y, loss=loss, ridge=0.0, groups=site, sample_weight=weight, **more)
    np.testing.assert_allclose(groups.optimum().w, best, rtol=1e-8, atol=1e-10)
    data = amble.Dataset("sites", "regression", X, y, groups=site, sample_weight=weight, **more)
    np.testing.assert_allclose(amble.split(data, loss=loss, ridge=0.0, test=0).optimum().w, best, rtol=1e-8, atol=1e-10)
    if loss not in COX:
        dealt = amble.Problem.from_arrays(X, y, loss=loss, ridge=0.0, agents=5, sample_weight=weight, **more)
        np.testing.assert_allclose(dealt.optimum().w, best, rtol=1e-8, atol=1e-10)


def test_held_out_rows_keep_their_exposure():
    """The NMSE of the means by the rows' weights, against the exposure's own rows."""
    sites = Sites("poisson", sizes=(40, 30, 50))
    X, y, weight, exposure, _ = sites.pooled()
    data = amble.Dataset("sites", "regression", X, y, sample_weight=weight, exposure=exposure)
    problem = amble.split(data, agents=4, loss="poisson", test=0.25)
    w = problem.optimum().w
    held = problem.heldout
    mine = np.array([np.flatnonzero((np.abs(X - row) < 1e-9).all(axis=1))[0]
                     for row in held.X[:, :-1] * problem.scaling.X_std + problem.scaling.X_mean])  # fmt: skip
    assert np.array_equal(held.y, y[mine])
    means = problem.predict(w, X[mine], exposure=exposure[mine])
    expected = weight[mine] @ (means - y[mine]) ** 2 / (weight[mine] @ (y[mine] - held.y_mean_train) ** 2)
    assert problem.metric(w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_held_out_rows_keep_their_weights(task):
    """A weight of k is the row k times, in the metric of the held-out rows too; as scikit-learn has it."""
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(90, 2)), rng.integers(1, 5, 90).astype(float)
    weight[:3] = 0.0
    amounts = X @ [1.0, -2.0] + rng.standard_normal(90) * np.sqrt(1 + 3 * (weight > 2))
    y = amounts if task == "regression" else np.where(amounts > 0, "high", "low")
    data = amble.Dataset("weighted", task, X, y, sample_weight=weight)
    problem = amble.split(data, agents=3, test=0.3, ridge=0.0)
    model = problem.optimum().w
    held, s = problem.heldout, problem.heldout.weight
    mine = [np.flatnonzero((np.abs(X - row) < 1e-9).all(axis=1))[0]
            for row in held.X[:, :-1] * problem.scaling.X_std + problem.scaling.X_mean]  # fmt: skip
    assert np.array_equal(s, weight[mine])
    assert (s > 0).all()
    predicted, rest = problem.predict(model, X[mine]), np.setdiff1d(np.arange(90), mine)
    measures = amble.simulate(amble.Relay(), problem, hops=60).trained(problem).measures(test=True)
    if task == "regression":
        mean = np.average(y[rest], weights=weight[rest])
        expected = s @ (y[mine] - predicted) ** 2 / (s @ (y[mine] - mean) ** 2)
        plain = ((y[mine] - predicted) ** 2).sum() / ((y[mine] - mean) ** 2).sum()
        assert measures["NMSE"] == pytest.approx(expected, rel=1e-9)
        assert measures["R2"] == pytest.approx(r2_score(y[mine], predicted, sample_weight=s), rel=1e-9)
    else:
        expected, plain = (accuracy_score(y[mine], predicted, sample_weight=each) for each in (s, None))
        assert measures["accuracy"] == pytest.approx(expected, rel=1e-12)
    assert abs(expected - plain) > 1e-3
    assert problem.metric(model) == pytest.approx(expected, rel=1e-9)


def test_test_rows_that_all_weigh_nothing_are_refused():
    X, y = np.arange(8.0)[:, None], np.arange(8.0) ** 2
    with pytest.raises(AmbleError, match="all test rows have the sample weight zero; give others, or none"):
        amble.Problem.from_arrays(X, y, task="regression", agents=2, X_test=X, y_test=y, sample_weight_test=0 * y)
