"""amble.Regressor and amble.Classifier: the coefficients of scikit-learn's own, and a place in its tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse
import scipy.special
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import amble
from amble.errors import AmbleError
from amble.estimators import fitting

D, C = 240, 2.0
RNG = np.random.default_rng(0)
X = RNG.normal(size=(D, 5)) * [1, 30, 0.05, 1, 4] + [0, 1000, 3, 0, 1]  # columns of unlike units
ETA = (X - X.mean(axis=0)) @ [1.0, 0.03, -10.0, 0.0, 0.1]
AMOUNTS = 70 + 5 * ETA + RNG.normal(size=D)
COUNTS = RNG.poisson(np.exp(ETA / 3))
COSTS = np.exp(ETA / 3) * RNG.gamma(2.0, size=D)
LABELS = np.where(ETA + RNG.logistic(size=D) > 0, "sick", "healthy")
CLASSES = np.array(["low", "mid", "high"])[np.digitize(ETA + RNG.logistic(size=D), [-1, 1])]
FRAME = pd.DataFrame(X, columns=["age", "income", "dose", "score", "visits"])
WEIGHT = RNG.integers(0, 4, D)
SITES = np.repeat(["north", "south", "east"], [D // 2, D // 3, D - D // 2 - D // 3])

EXACT = {"tol": 1e-13, "max_iter": 100_000}
NEWTON = {"tol": 1e-12, "max_iter": 1000, "solver": "newton-cholesky"}


def scikit(name, intercept, d=D):
    """amble's estimator, scikit-learn's with the same penalty on d rows, and targets."""
    both = {"fit_intercept": intercept}
    return {
        "Ridge": (amble.Regressor(alpha=0.1, **both), Ridge(alpha=0.1 * d, **both), AMOUNTS),
        "Lasso": (amble.Regressor(alpha=0.1, l1_ratio=1.0, **both), Lasso(alpha=0.1, **EXACT, **both), AMOUNTS),
        "non-negative": (
            amble.Regressor(alpha=0.1, l1_ratio=1.0, positive=True, **both),
            Lasso(alpha=0.1, positive=True, **EXACT, **both),
            AMOUNTS,
        ),
        "ElasticNet": (
            amble.Regressor(alpha=0.2, l1_ratio=0.3, **both),
            ElasticNet(alpha=0.2, l1_ratio=0.3, **EXACT, **both),
            AMOUNTS,
        ),
        "Poisson": (
            amble.Regressor("poisson", alpha=0.1, **both),
            PoissonRegressor(alpha=0.1, **NEWTON, **both),
            COUNTS,
        ),
        "Gamma": (amble.Regressor("gamma", alpha=0.1, **both), GammaRegressor(alpha=0.1, **NEWTON, **both), COSTS),
        "Logistic": (amble.Classifier(alpha=1 / (C * d), **both), LogisticRegression(C=C, **NEWTON, **both), LABELS),
        "Softmax": (amble.Classifier(alpha=1 / (C * d), **both), LogisticRegression(C=C, **NEWTON, **both), CLASSES),
    }[name]


NAMES = ["Ridge", "Lasso", "non-negative", "ElasticNet", "Poisson", "Gamma", "Logistic", "Softmax"]


def same_model(ours, theirs):
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-6)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-6)
    assert np.shape(ours.coef_) == np.shape(theirs.coef_)
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_coefficients_are_those_of_scikit_learn(name, intercept):
    ours, theirs, y = scikit(name, intercept)
    same_model(ours.fit(X, y), theirs.fit(X, y))
    assert_allclose(ours.score(X, y), theirs.score(X, y), rtol=1e-9)
    assert (ours.predict(X) == theirs.predict(X)).all() or ours.predict(X) == pytest.approx(theirs.predict(X), rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_so_with_weights_whoever_holds_which_rows(name):
    ours, theirs, y = scikit(name, True, d=WEIGHT.sum())
    theirs.fit(X, y, sample_weight=WEIGHT)
    same_model(ours.fit(X, y, sample_weight=WEIGHT, agents=SITES), theirs)
    same_model(clone(ours).fit(X.repeat(WEIGHT, axis=0), y.repeat(WEIGHT)), theirs)


@pytest.mark.parametrize("agents", [1, 2, 7, D])
def test_any_number_of_agents_gives_the_same_model(agents):
    ours, theirs, y = scikit("Logistic", True)
    same_model(ours.set_params(agents=agents).fit(X, y), theirs.fit(X, y))
    assert ours.model_.about["agents"] == agents


def test_logistic_lasso():
    Z = StandardScaler().fit_transform(X)
    ours = amble.Classifier(alpha=0.05, l1_ratio=1.0).fit(Z, LABELS)
    theirs = LogisticRegression(C=1 / (0.05 * D), l1_ratio=1.0, solver="saga", **EXACT).fit(Z, LABELS)
    same_model(ours, theirs)
    assert (ours.coef_ == 0).any()


def test_few_rows_that_agents_can_each_tell_apart():
    """Each agent alone would walk to infinity, and so did a token that believed the first of them."""
    for seed in range(12):
        generator = np.random.default_rng(seed)
        few, y = generator.normal(size=(12, 4)), generator.permutation(np.repeat([0, 1, 2], 4)) % (2 + seed % 2)
        ours = amble.Classifier(alpha=1e-3, agents=3, tokens=1 + seed % 3).fit(few, y)
        same_model(ours, LogisticRegression(C=1 / (1e-3 * 12), **NEWTON).fit(few, y))


def test_softmax_of_two_labels():
    """Half the difference of two rows of coefficients: the penalty is halved for both."""
    ours = amble.Classifier("softmax", alpha=0.1).fit(X, LABELS)
    same_model(ours, amble.Classifier("logistic", alpha=0.05).fit(X, LABELS))


def test_huber():
    """Residuals in standard deviations of the target; the penalty in the units of the data."""
    y = np.where(np.arange(D) % 20 == 0, AMOUNTS + 100, AMOUNTS)
    Z = StandardScaler().fit_transform(X)

    def value(w):
        residuals = y - Z @ w[:-1] - w[-1]
        return y.std() ** 2 * scipy.special.huber(1.35, residuals / y.std()).mean() + 0.1 / 2 * w[:-1] @ w[:-1]

    best = scipy.optimize.minimize(value, np.zeros(6), tol=1e-12)
    ours = amble.Regressor("huber", alpha=0.1).fit(Z, y)
    assert value(np.append(ours.coef_, ours.intercept_)) <= best.fun + 1e-12
    assert_allclose(np.append(ours.coef_, ours.intercept_), best.x, atol=1e-4)
    units = [amble.Regressor("huber", alpha=0.1).fit(X, scale * y).coef_ / scale for scale in (1.0, 1000.0)]
    assert_allclose(units[1], units[0], rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows(rows):
    model = amble.Regressor(alpha=0.5).fit(X[:rows], AMOUNTS[:rows])
    same_model(model, Ridge(alpha=0.5 * rows).fit(X[:rows], AMOUNTS[:rows]))


@pytest.mark.parametrize("method", ["Relay", amble.Relay(form="scalar"), amble.EXTRA(alpha=0.5), amble.Relay(tokens=3)])
def test_other_methods(method):
    Z = StandardScaler().fit_transform(X)
    ours = amble.Regressor(alpha=0.1, method=method, network="ring", max_iter=20_000).fit(Z, AMOUNTS)
    same_model(ours, Ridge(alpha=0.1 * D).fit(Z, AMOUNTS))


def test_tokens():
    ours, theirs, y = scikit("Poisson", True)
    same_model(ours.set_params(tokens=3).fit(X, y), theirs.fit(X, y))
    assert ours.model_.about["method"] == "Relay (tokens=3, full)"


def test_more_unknowns_than_a_live_message_has_room_for():
    generator = np.random.default_rng(1)
    wide = generator.normal(size=(400, 200))
    y = wide @ generator.normal(size=200) + generator.normal(size=400)
    same_model(amble.Regressor(alpha=0.1).fit(wide, y), Ridge(alpha=40.0).fit(wide, y))


def test_attributes():
    model = amble.Classifier(alpha=0.01, agents=6).fit(FRAME, CLASSES)
    assert model.classes_.tolist() == ["high", "low", "mid"] == list(model.model_.labels)
    assert model.feature_names_in_.tolist() == FRAME.columns.tolist() == list(model.model_.names)
    assert model.n_features_in_ == 5
    assert model.history_["hop"].tolist() == [6 * lap for lap in range(model.n_iter_ + 1)]
    assert model.decision_function(FRAME).shape == model.predict_proba(FRAME).shape == (D, 3)
    assert_allclose(model.predict_proba(FRAME).sum(axis=1), 1)
    assert_allclose(model.model_.score(FRAME, CLASSES), model.score(FRAME, CLASSES))


def test_statistics_without_a_penalty():
    table = amble.Regressor(alpha=0.0).fit(FRAME, AMOUNTS).model_.summary().to_pandas()
    A = np.column_stack([np.ones(D), X])
    w, residual, *_ = np.linalg.lstsq(A, AMOUNTS)
    errors = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * residual / (D - 6))
    assert_allclose(table["coef"], w, rtol=1e-6)
    assert_allclose(table["std_err"], errors, rtol=1e-6)


@pytest.mark.parametrize("labels", [np.array([3, -1]), np.array([True, False]), np.array(["b", "a"], dtype=object)])
def test_any_type_of_label(labels):
    y = labels[(LABELS == "sick").astype(int)]
    model = amble.Classifier().fit(X, y)
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.7
    first = model.predict_proba(X)[:, 0] > 0.5
    assert (model.predict(X) == np.where(first, model.classes_[0], model.classes_[1])).all()


def test_sparse_rows():
    sparse = scipy.sparse.random(D, 5, 0.3, "csc", rng=0)
    for kind, y in ((amble.Regressor, AMOUNTS), (amble.Classifier, LABELS)):
        ours, dense = kind().fit(sparse, y), kind().fit(sparse.toarray(), y)
        assert_allclose(ours.coef_, dense.coef_)
        assert (ours.predict(sparse) == dense.predict(sparse.toarray())).all()


def test_d2_of_counts():
    model = amble.Regressor("poisson").fit(X, COUNTS)
    expected = d2_tweedie_score(COUNTS, model.predict(X), power=1, sample_weight=WEIGHT)
    assert model.score(X, COUNTS, WEIGHT) == pytest.approx(expected)


def test_clone_and_pickle():
    model = amble.Classifier(method=amble.Relay(tokens=2), network=amble.networks.ring(10), alpha=0.01)
    twin = clone(model)
    assert twin.get_params()["method"] == model.method
    fitted = pickle.loads(pickle.dumps(twin.fit(FRAME, LABELS)))
    assert (fitted.predict_proba(FRAME) == twin.predict_proba(FRAME)).all()
    assert fitted.history_["objective"].tolist() == twin.history_["objective"].tolist()


def test_pipeline_with_tables():
    rows = FRAME.assign(town=np.array(["Ulm", "Bonn", "Wien"])[WEIGHT % 3])
    encoder = sklearn.compose.make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town"]), remainder=StandardScaler()
    )
    model = make_pipeline(encoder, amble.Regressor(alpha=0.1)).set_output(transform="pandas")
    model.fit(rows, pd.Series(AMOUNTS))
    assert "onehotencoder__town_Ulm" in model[-1].feature_names_in_
    encoded = encoder.fit_transform(rows)
    assert_allclose(model.predict(rows), Ridge(alpha=0.1 * D).fit(encoded, AMOUNTS).predict(encoded))


def test_grid_search_finds_what_scikit_learn_finds():
    alphas = [1e-4, 1e-2, 1.0, 100.0]
    ours = GridSearchCV(amble.Regressor(), {"alpha": alphas}, cv=4).fit(X, AMOUNTS)
    theirs = GridSearchCV(Ridge(), {"alpha": [alpha * D * 3 / 4 for alpha in alphas]}, cv=4).fit(X, AMOUNTS)
    assert ours.best_index_ == theirs.best_index_
    assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.best_estimator_.predict(X).shape == (D,)


def test_who_holds_which_rows_is_metadata():
    with sklearn.config_context(enable_metadata_routing=True):
        model = amble.Classifier(alpha=0.01).set_fit_request(agents=True, sample_weight=True)
        routed = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        routed.fit(X, LABELS, agents=SITES, sample_weight=WEIGHT)
        assert routed[-1].model_.about["agents"] == 3
        scores = cross_val_score(model, X, LABELS, cv=3, params={"agents": SITES, "sample_weight": None})
        sites = cross_val_score(model, X, LABELS, cv=GroupKFold(3), params={"agents": SITES, "groups": SITES})
    assert scores.min() > 0.6
    assert sites.shape == (3,)


def test_a_model_that_has_not_converged_says_so():
    with pytest.warns(ConvergenceWarning, match="not converged within max_iter=1 laps") as caught:
        model = amble.Classifier(max_iter=1).fit(X, LABELS)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "hinge"),
        ({"loss": "logistic"}, "choose one of least-squares, poisson, gamma, huber"),
        ({"alpha": -1.0}, "alpha=-1.0 was given"),
        ({"l1_ratio": 1.5}, "from 0 to 1"),
        ({"agents": 0}, "agents=0 was given; it must be a whole number"),
        ({"agents": SITES}, r"Labels of rows are given to fit"),
        ({"max_iter": 0}, "max_iter=0 was given"),
        ({"method": "Relai"}, "did you mean 'Relay'"),
        ({"method": "WPG", "l1_ratio": 1.0}, "WPG"),
        ({"network": amble.networks.ring(4)}, "4 agents and the problem 10"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(AmbleError, match=message):
        amble.Regressor(**settings).fit(X, AMOUNTS)


def test_wrong_rows():
    with pytest.raises(AmbleError, match="one class, 'sick'"):
        amble.Classifier().fit(X, np.full(D, "sick"))
    with pytest.raises(AmbleError, match="3 classes; give loss='softmax'"):
        amble.Classifier("logistic").fit(X, CLASSES)
    with pytest.raises(AmbleError, match="sample_weight has -1"):
        amble.Regressor().fit(X, AMOUNTS, sample_weight=np.full(D, -1.0))
    with pytest.raises(ValueError, match="zero"):
        amble.Regressor().fit(X, AMOUNTS, sample_weight=np.zeros(D))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        amble.Regressor().fit(X, AMOUNTS, agents=SITES[:-1])
    with pytest.raises(AmbleError, match="poisson"):
        amble.Regressor("poisson").fit(X, AMOUNTS - 100)


def test_both_engines_train_the_same_model(monkeypatch):
    ours = amble.Classifier(alpha=0.01).fit(X, LABELS)
    monkeypatch.setattr(fitting, "PLAIN_UP_TO", 0)
    assert_allclose(amble.Classifier(alpha=0.01).fit(X, LABELS).coef_, ours.coef_, rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_scaling_inside_changes_no_model(intercept):
    def coefficients(scale):
        options = {"ridge": 0.1, "l1": 0.05, "intercept": intercept, "scale": scale, "loss": "poisson"}
        problem = amble.Problem.from_arrays(X, COUNTS, agents=4, task="regression", **options)
        model = amble.simulate(amble.Relay(), problem, tolerance=1e-12, optimum=False, engine="plain").trained()
        return np.append(model.coef_, model.intercept_)

    assert_allclose(coefficients("inside"), coefficients(False), rtol=1e-6, atol=1e-9)
    with pytest.raises(AmbleError, match="scale='outside' was given; it must be True, False or 'inside'"):
        coefficients("outside")
    with pytest.raises(AmbleError, match="the penalties of a path"):
        amble.path(amble.Dataset("own", "regression", X, AMOUNTS), scale="inside", progress=False)
