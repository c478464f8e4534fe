"""Tables from sums over agents are those of statsmodels and lifelines on one table of all rows."""

import re
from dataclasses import replace

import lifelines
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import amble
from amble.cli.summary import text_of
from amble.results.summary import WIDTH
from amble.results.sums import SQUARES_UP_TO, Judged, Sums
from model_samples import NAMES, Sample

TIGHT = {"rtol": 1e-6, "atol": 1e-9}


def statsmodels_fit(sample, **fit):
    X, y = sm.add_constant(sample.X), sample.y
    if sample.loss == "least-squares":
        return sm.OLS(y, X).fit(**fit)
    if sample.loss == "logistic":
        return sm.Logit((y == sample.labels[1]).astype(float), X).fit(disp=0, tol=1e-12, method="newton", **fit)
    if sample.loss == "softmax":
        codes = np.array([sample.labels.index(label) for label in y])
        return sm.MNLogit(codes, X).fit(disp=0, tol=1e-12, method="newton", **fit)
    family = sm.families.Poisson() if sample.loss == "poisson" else sm.families.Gamma(sm.families.links.Log())
    weights = {"freq_weights": sample.weight} if (sample.weight != 1).any() else {}
    return sm.GLM(y, X, family=family, exposure=sample.exposure, **weights).fit(tol=1e-13, maxiter=200, **fit)


COVARIANCES = {"model": {}, "robust": {"cov_type": "HC0"}, "cluster": {"cov_type": "cluster"}}


@pytest.mark.parametrize("cov", COVARIANCES)
@pytest.mark.parametrize("loss", ["least-squares", "logistic", "softmax", "poisson", "gamma"])
def test_coefficients_errors_and_tests_are_those_of_statsmodels(loss, cov):
    sample = Sample(loss, sizes=(40, 50, 60, 70, 80))
    options = dict(COVARIANCES[cov])
    if cov == "cluster":
        options["cov_kwds"] = {"groups": sample.group}
    theirs, ours = statsmodels_fit(sample, **options), sample.model.summary(cov)
    column = np.ravel(np.asarray(theirs.params).T if loss == "softmax" else theirs.params)
    errors = np.ravel(np.asarray(theirs.bse).T if loss == "softmax" else theirs.bse)
    p_values = np.ravel(np.asarray(theirs.pvalues).T if loss == "softmax" else theirs.pvalues)
    limits = np.asarray(theirs.conf_int()).reshape(-1, 2)
    np.testing.assert_allclose(ours.coef, column, **TIGHT)
    np.testing.assert_allclose(ours.std_err, errors, **TIGHT)
    np.testing.assert_allclose(ours.p_value, p_values, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(np.column_stack([ours.low, ours.high]), limits, **TIGHT)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-5, atol=1e-9)
    assert ours.kind == ("t" if loss == "least-squares" and cov == "model" else "z")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_errors_by_agent_do_not_depend_on_the_units_of_columns(loss):
    """statsmodels on the same columns is up to 3e-6 away from itself on centred ones, which have the same slopes."""
    generator = np.random.default_rng(4)
    Z, agent = generator.normal(size=(600, 4)), np.repeat([0, 1, 2], 200)
    y = Z @ [0.5, -0.4, 0.3, 0.2] + 0.5 * np.array([-1, 0, 1])[agent] + generator.logistic(size=600)
    X = Z * [1, 1e3, 1e-3, 1e5] + [1e3, 5e6, 0.1, 3e8]
    options = {"cov_type": "cluster", "cov_kwds": {"groups": agent}}
    scaled = sm.add_constant((X - X.mean(axis=0)) / X.std(axis=0))
    if loss == "squared":
        model, theirs = amble.Regressor(alpha=0.0), sm.OLS(y, scaled).fit(**options)
    else:
        y = (y > 0).astype(int)
        model, theirs = amble.Classifier(alpha=0.0), sm.Logit(y, scaled).fit(disp=0, method="newton", **options)
    ours = model.fit(X, y, agents=agent).model_.summary("cluster")
    np.testing.assert_allclose(ours.std_err[1:], theirs.bse[1:] / X.std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("loss", ["least-squares", "logistic", "softmax", "poisson", "gamma"])
def test_the_fit_is_that_of_statsmodels(loss):
    sample = Sample(loss)
    theirs, found = statsmodels_fit(sample), sample.model.summary().measures
    assert found["log-likelihood"] == pytest.approx(theirs.llf, rel=1e-9)
    assert found["AIC"] == pytest.approx(theirs.aic, rel=1e-9)
    bic = theirs.bic_llf if loss in ("poisson", "gamma") else theirs.bic
    assert found["BIC"] == pytest.approx(bic, rel=1e-9)
    assert found["df residuals"] == theirs.df_resid
    assert found["rows"] == 300
    assert found["agents"] == 3
    if loss == "least-squares":
        assert found["R2"] == pytest.approx(theirs.rsquared, rel=1e-9)
        assert found["adjusted R2"] == pytest.approx(theirs.rsquared_adj, rel=1e-9)
        assert found["dispersion"] == pytest.approx(theirs.scale, rel=1e-9)
        assert found["deviance"] == pytest.approx(theirs.ssr, rel=1e-9)
        assert found["null deviance"] == pytest.approx(theirs.centered_tss, rel=1e-9)
    elif loss in ("poisson", "gamma"):
        assert found["deviance"] == pytest.approx(theirs.deviance, rel=1e-9)
        assert found["null deviance"] == pytest.approx(theirs.null_deviance, rel=1e-7)
        chi2 = found["Pearson chi2"] if loss == "poisson" else found["dispersion"] * theirs.df_resid
        assert chi2 == pytest.approx(theirs.pearson_chi2, rel=1e-9)
    else:
        assert found["null log-likelihood"] == pytest.approx(theirs.llnull, rel=1e-9)
        assert found["pseudo R2"] == pytest.approx(theirs.prsquared, rel=1e-8)


def test_weights_count_rows():
    sample = Sample("poisson", weighted=True)
    theirs, ours = statsmodels_fit(sample), sample.model.summary()
    np.testing.assert_allclose(ours.std_err, theirs.bse, **TIGHT)
    assert ours.measures["log-likelihood"] == pytest.approx(theirs.llf, rel=1e-9)
    assert ours.measures["df residuals"] == theirs.df_resid
    assert ours.measures["sum of weights"] == sample.weight.sum()


def test_without_an_intercept():
    sample = Sample("least-squares", intercept=False)
    theirs, ours = sm.OLS(sample.y, sample.X).fit(), sample.model.summary()
    np.testing.assert_allclose(ours.std_err, theirs.bse, **TIGHT)
    assert ours.measures["R2"] == pytest.approx(theirs.rsquared, rel=1e-9)
    assert ours.measures["adjusted R2"] == pytest.approx(theirs.rsquared_adj, rel=1e-9)
    assert "Without an intercept." in str(ours)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:lifelines")
@pytest.mark.filterwarnings("ignore:Starting with pandas")
@pytest.mark.parametrize("loss", ["cox", "cox-breslow"])
def test_cox_is_that_of_lifelines_and_statsmodels_stratified_by_agent(loss):
    sample = Sample(loss)
    table = pd.DataFrame(sample.X, columns=NAMES).assign(time=np.abs(sample.y), died=sample.y > 0, site=sample.group)
    ours = sample.model.summary()
    ties = "efron" if loss == "cox" else "breslow"
    theirs = sm.PHReg(table["time"], sample.X, status=table["died"], strata=table["site"], ties=ties).fit(tol=1e-12)
    np.testing.assert_allclose(ours.coef, theirs.params, rtol=1e-6)
    np.testing.assert_allclose(ours.std_err, theirs.bse, rtol=1e-6)
    assert ours.measures["log-likelihood"] == pytest.approx(theirs.llf, rel=1e-9)
    if loss == "cox":
        fitter = lifelines.CoxPHFitter()
        fitter.fit(table, "time", "died", strata=["site"], fit_options={"precision": 1e-12})
        np.testing.assert_allclose(ours.coef, fitter.params_, rtol=1e-6)
        np.testing.assert_allclose(ours.std_err, fitter.standard_errors_, rtol=1e-6)
        robust = lifelines.CoxPHFitter()
        robust.fit(table, "time", "died", strata=["site"], robust=True, fit_options={"precision": 1e-12})
        np.testing.assert_allclose(sample.model.summary("robust").std_err, robust.standard_errors_, rtol=1e-6)
        assert ours.measures["AIC"] == pytest.approx(fitter.AIC_partial_, rel=1e-9)


def test_huber_has_robust_errors_only():
    sample = Sample("huber")
    with pytest.raises(amble.AmbleError, match=r"huber is no likelihood, .* give cov='robust'"):
        sample.model.summary()
    ours = sample.model.summary("robust")
    off = (sample.X @ sample.model.coef_ + sample.model.intercept_ - sample.y) / sample.scaling.y_std
    X, delta = sm.add_constant(sample.X), 1.35
    bread = np.linalg.inv((X * (np.abs(off) <= delta)[:, None]).T @ X)
    meat = (X * (np.clip(off, -delta, delta) ** 2)[:, None]).T @ X
    expected = np.sqrt(np.diagonal(bread @ meat @ bread)) * sample.scaling.y_std
    np.testing.assert_allclose(ours.std_err, expected, rtol=1e-8)
    assert "log-likelihood" not in ours.measures


def test_a_simulated_run_has_the_table_of_its_pooled_rows():
    data = amble.load("diabetes")
    problem = amble.split(data, agents=7, how="sorted", test=0, ridge=0.0, weights="rows")
    model = amble.simulate(amble.Relay(form="full"), problem, hops=30, progress=False).trained(problem)
    theirs = sm.OLS(data.y, sm.add_constant(data.X)).fit()
    np.testing.assert_allclose(model.summary().std_err, theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(model.summary().coef, theirs.params, rtol=1e-6)
    assert list(model.params) == ["intercept", *data.columns]


def test_the_table_is_80_columns_wide_and_has_every_form():
    for loss in ("least-squares", "softmax", "cox", "poisson"):
        table = Sample(loss).model.summary()
        lines = str(table).splitlines()
        assert max(map(len, lines)) == WIDTH
        assert all(name in str(table) for name in NAMES)
        assert repr(table) == str(table)
        frame = table.to_pandas()
        np.testing.assert_array_equal(frame["std_err"], table.std_err)
        assert table.to_latex().count("\\\\") == len(table.coef) + 1
    table = Sample("softmax").model.summary()
    assert table.to_pandas().loc[("good", "dose"), "coef"] == table.coef[5]
    assert "Each label against bad." in str(table)
    assert "town=Ulm" in table.to_latex()


def refused(sentence):
    return pytest.raises(amble.AmbleError, match=sentence)


def test_with_a_penalty_there_are_no_standard_errors():
    problem = amble.split(amble.load("diabetes"), agents=5, weights="rows")
    model = amble.simulate(amble.Relay(form="full"), problem, hops=20, progress=False).trained(problem)
    with refused(r"trained with a penalty \(ridge=0.0001\), .* train it with ridge=0, or use cov='none'"):
        model.summary()
    table = model.summary("none")
    assert np.isnan(table.std_err).all()
    np.testing.assert_allclose(table.coef[1:], model.coef_, rtol=1e-12)
    assert "std err" not in str(table)
    assert "no standard errors" in str(table)
    assert max(map(len, str(table).splitlines())) == WIDTH


def test_a_model_that_is_no_optimum_of_the_rows_is_refused():
    problem = amble.split(amble.load("diabetes"), agents=5, ridge=0.0, weights="rows")
    model = amble.simulate(amble.Relay(), problem, hops=2, progress=False).trained(problem)
    with refused("standard errors from the optimum of all rows, .* train it longer, with weights='rows'"):
        model.summary()
    with refused("no sums over its agents' rows"):
        amble.simulate(amble.Relay(), problem, hops=2, progress=False).trained().summary()


def test_columns_that_depend_on_each_other_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 2] = X[:, 0] * 2
    problem = amble.Problem.from_arrays(X, X @ [1.0, 2, 3] + rng.normal(size=50), agents=2, ridge=0.0, weights="rows")
    model = amble.simulate(amble.Relay(form="full"), problem, hops=8, progress=False).trained(problem)
    with refused("the rows do not determine the coefficients of x1, x3: a column is constant, or a combination"):
        model.summary()
    assert len(model.summary("none").coef) == 4
    assert "No standard errors: the rows do not determine the coefficients of x1, x3" in text_of(model)


def test_the_command_shows_the_errors_that_there_are():
    """A finished run always has its table: with the errors that its model has, or why it has none."""
    model = Sample("huber").model
    assert text_of(model) == str(model.summary("robust"))
    problem = amble.split(amble.load("diabetes"), agents=5, ridge=0.0, weights="rows")
    early = amble.simulate(amble.Relay(), problem, hops=2, progress=False).trained(problem)
    table = text_of(early)
    assert table.startswith(str(early.summary("none")))
    assert "No standard errors: the model is" in table
    assert "cov=" not in table
    with refused("train it longer"):
        text_of(early, "model")


def test_a_line_per_agent_has_what_its_rows_tell():
    model = Sample("least-squares").model
    zero = dict.fromkeys(Judged._fields[:-1], 0.0)
    one = zero | {"rows": 1.0, "weight": 1.0, "y": 2.0, "yy": 4.0, "squared": 1.0}
    about = {"agents": ["north", "east"], "judged": {"north": {"train": one, "test": zero}}}
    north, east = text_of(replace(model, about=about)).splitlines()[-2:]
    assert re.fullmatch(r"north: 1 row, NMSE [\d.]+, RMSE [\d.]+", north)  # one row has no R2
    assert east == "east: its rows are not in these figures"


def test_what_cannot_be_asked_is_refused():
    model = Sample("least-squares").model
    with refused("there is no covariance named 'clusters'; did you mean 'cluster'"):
        model.summary("clusters")
    with refused("level=95 was given"):
        model.summary(level=95)
    with refused("cov='cluster' was given for 1 agent"):
        Sample("least-squares", sizes=(50,)).model.summary("cluster")


def test_many_unknowns_have_a_table_without_errors():
    columns = SQUARES_UP_TO + 1
    scaling = amble.problem.assemble.Scaling(np.zeros(columns), np.ones(columns), 0.0, 1.0)
    sums = Sums.zeros("least-squares", columns)
    train = sums.train._replace(rows=np.asarray(9.0), weight=np.asarray(9.0), yy=np.asarray(2.0))
    zero = np.zeros(columns)
    model = amble.Model(
        "regression", "least-squares", columns, (), False, zero, scaling, sums=sums._replace(train=train)
    )
    with refused("more than 500 unknowns has no standard errors here"):
        model.summary()
    assert len(model.summary("none").coef) == columns


def test_signs_that_are_held_are_a_penalty():
    """Errors of the likelihood are not those of coefficients that may not be below zero."""
    problem = amble.split(amble.load("diabetes"), agents=4, ridge=0.0, positive=True)
    model = amble.simulate(amble.Relay(), problem, hops=8, progress=False).trained(problem)
    with pytest.raises(amble.AmbleError, match="positive"):
        model.summary()
    assert "positive" in str(model.summary("none"))


def test_errors_by_few_agents_and_labels_told_apart_are_remarked():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    problem = amble.Problem.from_arrays(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int), agents=3, ridge=0.0)
    model = amble.simulate(amble.Relay(form="full"), problem, hops=60, progress=False).trained(problem)
    assert "too few for errors by agent" in str(model.summary("cluster"))
    assert "too few" not in str(model.summary())
    labels = np.arange(60) % 2
    apart = amble.Problem.from_arrays((2 * labels - 1 + 0.1 * X[:, 0])[:, None], labels, agents=3, ridge=1e-9)
    model = amble.simulate(amble.Relay(form="full"), apart, hops=300, optimum=False, progress=False).trained(apart)
    assert "tell all labels apart" in str(model.summary("none"))
