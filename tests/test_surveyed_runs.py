"""Runs whose agents agree on their model by a survey: whole agents, with links in memory."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import amble
from live_nodes import Nodes
from site_samples import make_bundle, tables


def pooled(frames):
    return pd.concat(frames.values(), ignore_index=True)


def assert_like(model, fitted, exact=1e-6):
    """Coefficients and standard errors of a model are those of statsmodels on the pooled rows."""
    table = model.summary().to_pandas()
    names = {"intercept": "Intercept", "group=b": "group[T.b]", "group=c": "group[T.c]"}
    for name in table.index:
        reference = names.get(name, name)
        np.testing.assert_allclose(table.loc[name, "coef"], fitted.params[reference], rtol=exact)
        np.testing.assert_allclose(table.loc[name, "std_err"], fitted.bse[reference], rtol=exact)


def fit(loss, rows):
    if loss == "least-squares":
        return smf.ols("y ~ age + dose + group", rows).fit()
    if loss == "logistic":
        return smf.logit("won ~ age + dose + group", rows.assign(won=(rows.y == "yes") * 1.0)).fit(disp=0, tol=1e-12)
    return smf.poisson("y ~ age + dose + group", rows).fit(disp=0, tol=1e-12)


@pytest.mark.parametrize("loss", ["least-squares", "logistic", "poisson"])
def test_the_model_and_its_errors_are_those_of_the_pooled_rows(tmp_path, loss):
    frames = tables(loss)
    make_bundle(tmp_path / "bundle", frames, loss=loss)
    nodes = Nodes(tmp_path / "bundle", frames)
    nodes.wait()
    models = [amble.load_model(tmp_path / "bundle" / name / "model.npz") for name in frames]
    for model in models:
        assert np.array_equal(model.w, models[0].w)
        assert model.sums.train.rows == sum(map(len, frames.values()))
    assert_like(models[0], fit(loss, pooled(frames)))
