"""l1, elastic net and non-negative coefficients at the token, against scikit-learn and the conditions of a minimum."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

import amble
from amble import AmbleError, methods
from amble.losses.penalty import Penalty
from amble.methods.boards import BoardRules
from amble.methods.gifts import GiftRules

TIGHT = {"tol": 1e-12, "max_iter": 1_000_000}
AGENTS = 20


def rows():
    X, y = load_diabetes(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


CENTRAL = {
    "lasso": ({"l1": 0.1, "ridge": 0.0}, Lasso(alpha=0.1, **TIGHT)),
    "elastic net": ({"l1": 0.06, "ridge": 0.14}, ElasticNet(alpha=0.2, l1_ratio=0.3, **TIGHT)),
    "positive": ({"l1": 0.01, "ridge": 0.0, "positive": True}, Lasso(alpha=0.01, positive=True, **TIGHT)),
    "only positive": ({"ridge": 0.1, "positive": True}, ElasticNet(alpha=0.1, l1_ratio=0.0, positive=True, **TIGHT)),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # scikit-learn's, of an l1_ratio of zero
@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("kind", CENTRAL)
def test_least_squares_is_scikit_learns_after_one_lap(kind, engine, tokens):
    """ "exact after one lap for least squares"; several tokens once all of their ledgers have met."""
    penalties, central = CENTRAL[kind]
    X, y = rows()
    problem = amble.Problem.from_arrays(X, y, task="regression", agents=AGENTS, scale=False, **penalties)
    central.fit(X, y)
    expected = np.append(central.coef_, central.intercept_)
    hops = AGENTS if tokens == 1 else 10 * AGENTS
    run = amble.simulate(amble.Relay(tokens=tokens), problem, "complete", hops=hops, engine=engine)
    assert run.settings_text.endswith("full")
    assert np.abs(run.model - expected).max() < 1e-8
    assert np.array_equal(run.model == 0, expected == 0)
    assert np.abs(problem.optimum().w - expected).max() < 1e-8
    assert abs(run.history["suboptimality"][-1]) < 1e-12
    assert run.history["distance"][-1] < 1e-12


def test_the_value_is_the_penalised_one():
    X, y = rows()
    problem = amble.Problem.from_arrays(X, y, task="regression", agents=7, scale=False, ridge=0.3, l1=0.2)
    w = np.random.default_rng(0).normal(size=X.shape[1] + 1)
    mean = np.mean((y - X @ w[:-1] - w[-1]) ** 2) / 2
    expected = 7 * (mean + 0.15 * w[:-1] @ w[:-1] + 0.2 * np.abs(w[:-1]).sum())
    assert problem.value(w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weights", ["rows", "agents"])
def test_uneven_agents_and_columns_without_a_penalty(weights):
    """The conditions of a minimiser, from the rows alone."""
    X, y = rows()
    sizes = [200, 100, 80, 40, 22]
    parts = np.split(np.arange(len(y)), np.cumsum(sizes)[:-1])
    problem = amble.Problem.from_agents(
        [(X[part], y[part]) for part in parts],
        scale=False, weights=weights, ridge=0.02, l1=0.05, unpenalised=[2, 8], positive=[1, 3],
    )  # fmt: skip
    run = amble.simulate(amble.Relay(), problem, "complete", hops=5)
    w, A = run.model, np.column_stack([X, np.ones(len(y))])
    weight = np.concatenate([np.full(d, 1 / len(y) if weights == "rows" else 1 / (5 * d)) for d in sizes])
    slope = A.T @ (weight * (A @ w - y))
    plain = np.isin(np.arange(11), [2, 8, 10])
    slope += np.where(plain, 0.0, 0.02) * w
    assert np.abs(slope[plain]).max() < 1e-12
    assert w[2] != 0
    assert w[8] != 0
    inside = ~plain & (w != 0)
    assert np.abs(slope[inside] + 0.05 * np.sign(w[inside])).max() < 1e-12
    assert w[1] == 0  # it would be negative
    assert w[3] > 0
    assert slope[1] > -0.05
    assert np.abs(slope[~plain & (w == 0) & (np.arange(11) != 1)]).max() <= 0.05


def logistic_rows():
    return make_classification(3000, 25, n_informative=8, n_redundant=0, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize(("how", "laps"), [("even", 5), ("sorted", 6)])
def test_logistic_lasso_of_thirty_agents(how, laps, tokens):
    """ "30 agents: 2e-13 from the pooled optimum with the same support after 4 laps (even) and 5 (sorted by label)"."""
    X, y = logistic_rows()
    problem = amble.Problem.from_arrays(X, y, agents=30, how=how, ridge=0.0, l1=0.02)
    run = amble.simulate(amble.Relay(tokens=tokens), problem, "complete", hops=30 * laps * tokens)
    w, A = run.model, np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(y))])
    slope = A.T @ (1 / (1 + np.exp(-A @ w)) - y) / len(y)
    inside = np.append(w[:-1] != 0, False)
    assert 3 <= inside.sum() <= 20
    assert abs(slope[-1]) < 1e-10
    assert np.abs(slope[inside] + 0.02 * np.sign(w[inside])).max() < 1e-10
    assert np.abs(slope[:-1][w[:-1] == 0]).max() <= 0.02
    central = LogisticRegression(C=1 / (0.02 * len(y)), l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000)
    central.fit(A[:, :-1], y)
    assert np.abs(w - np.append(central.coef_[0], central.intercept_)).max() < 1e-6
    assert np.array_equal(w[:-1] != 0, central.coef_[0] != 0)
    assert run.history["distance"][-1] < 1e-10


def test_softmax_lasso():
    X, y = load_iris(return_X_y=True)
    problem = amble.Problem.from_arrays(X, y, agents=6, ridge=0.0, l1=0.02)
    w = problem.optimum().w.reshape(3, 5)
    central = LogisticRegression(C=1 / (0.02 * len(y)), l1_ratio=1.0, solver="saga", tol=1e-12, max_iter=1_000_000)
    central.fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert np.abs(w[:, :-1] - central.coef_).max() < 1e-6
    run = amble.simulate(amble.Relay(), problem, "complete", hops=600)
    assert run.history["distance"][-1] < 1e-10
    assert np.array_equal(run.model == 0, problem.optimum().w == 0)


def test_both_engines_hop_by_hop():
    X, y = load_breast_cancer(return_X_y=True)
    problem = amble.Problem.from_arrays(X, y, agents=8, how="sorted", ridge=1e-3, l1=0.01, positive=[0, 1])
    runs = [
        amble.simulate(amble.Relay(tokens=2), problem, hops=60, every=1, engine=engine, optimum=False)
        for engine in ("plain", "compiled")
    ]
    for one, other in zip(runs[0].consensus, runs[1].consensus, strict=True):
        assert np.abs(one - other).max() < 1e-8 * (1 + np.abs(one).max())
    assert (runs[0].consensus[:, :2] >= 0).all()


def conditions(penalty, W, T, z):
    """How far z is from the conditions of a minimiser of 1/2 z'Wz - T'z and the penalty, relative to T."""
    slope = W @ z - T + penalty.ridge * z
    broken = np.where(z != 0, np.abs(slope + penalty.l1 * np.sign(z)), np.maximum(np.abs(slope) - penalty.l1, 0))
    one_sided = np.maximum(-slope - penalty.l1, 0)
    broken = np.where(penalty.positive & (z == 0), one_sided, broken)
    assert (z[penalty.positive] >= 0).all()
    return broken.max() / (np.abs(T).max() + np.abs(W).max() * np.abs(z).max())


@example(seed=73907, p=11, n=1, strength=1.0, spread=2.0, warm=True)  # one row, and columns of each kind
@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 12),
    n=st.integers(1, 30),
    strength=st.floats(0.001, 1.0),
    spread=st.floats(0, 3),
    warm=st.booleans(),
)
def test_the_minimiser_of_any_token(seed, p, n, strength, spread, warm):
    """Few rows make a singular weight, columns differ in their units, some are copies of others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * 10 ** rng.uniform(-spread, spread, p)
    if p > 2:
        X[:, 1] = X[:, 0]
    W, T = X.T @ X, X.T @ rng.normal(size=n)
    l1 = strength * np.abs(T).max() * (rng.random(p) < 0.8)
    penalty = Penalty(l1, np.zeros(p), rng.random(p) < 0.3)
    z = penalty.minimiser(T, W, np.zeros(p), rng.normal(size=p) if warm else None)
    scale = 1 / np.sqrt(np.diag(W))
    scaled = Penalty(scale * l1, np.zeros(p), penalty.positive)
    assert conditions(scaled, scale[:, None] * W * scale, scale * T, z / scale) < 1e-10


def test_an_empty_token_is_the_initial_model():
    penalty, start = Penalty(np.ones(3), np.zeros(3), np.zeros(3, bool)), np.array([1.0, -2.0, 3.0])
    rule = GiftRules(amble.Relay(form="full"), start, penalty)
    assert np.array_equal(rule.estimate(rule.token(start, 5, 0)), start)


def test_the_strength_follows_the_shares_inside():
    """Whoever reads a token adds as much of the penalty as the agents inside have shares: the model is their lasso."""
    X, y = rows()
    problem = amble.Problem.from_arrays(X, y, task="regression", agents=10, scale=False, ridge=0.0, l1=0.1)
    method, zero = amble.Relay(form="full", tokens=2), np.zeros(problem.dimension)
    rule = BoardRules(method, zero, problem.penalty)
    token = rule.token(zero, 10, 0)
    for i in range(4):
        f = problem.objective(i)
        _, _, token = rule.visit(f, rule.agent(f, zero), rule.slot(zero), token)
    z = rule.estimate(token)
    inside = np.concatenate(problem.parts[:4])
    central = Lasso(alpha=0.1, **TIGHT).fit(X[inside], y[inside])
    assert np.abs(z - np.append(central.coef_, central.intercept_)).max() < 1e-8


@pytest.mark.parametrize("label", [label for label in methods.METHODS if label != "Relay"])
def test_other_methods_refuse(label):
    X, y = rows()
    problem = amble.Problem.from_arrays(X, y, task="regression", agents=4, l1=0.1)
    with pytest.raises(AmbleError, match=f"^{label} cannot take l1= or positive="):
        amble.simulate(methods.from_settings(label, {}), problem, hops=4)
    with pytest.raises(AmbleError, match=f"^{label} cannot take"):
        amble.compare([amble.Relay(), methods.from_settings(label, {})], problem, hops=4)


def test_relay_takes_its_full_form_or_refuses():
    rng = np.random.default_rng(0)
    problem = amble.Problem.from_arrays(rng.normal(size=(50, 300)), rng.normal(size=50), agents=2, positive=True)
    assert methods.check(amble.Relay(), problem).form == "full"
    with pytest.raises(AmbleError, match=r"^Relay in its scalar form cannot take"):
        methods.check(amble.Relay(form="scalar"), problem)
    wide = amble.Problem.from_arrays(rng.normal(size=(5, 1100)), rng.normal(size=5), agents=2, l1=0.1)
    with pytest.raises(AmbleError, match=r"1,101 unknowns are messages of 4\.85 MB"):
        methods.check(amble.Relay(), wide)
    assert methods.check(amble.Relay(form="full"), wide).form == "full"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l1": -1}, "l1=-1 was given"),
        ({"l1": True}, "l1=True was given"),
        ({"positive": "age"}, "give a list of columns"),
        ({"positive": [10]}, "numbers from 0 to 9"),
        ({"unpenalised": ["agee"]}, "there is no column in unpenalised named 'agee'; did you mean 'age'"),
        ({"unpenalised": [1.5]}, "unpenalised has 1.5"),
    ],
)
def test_bad_penalties(options, message):
    with pytest.raises(AmbleError, match=message):
        amble.split(amble.load("diabetes"), agents=4, **options)


def test_columns_by_name_are_saved_by_number():
    problem = amble.split(amble.load("diabetes"), agents=4, l1=0.1, positive=["bmi", "age"], unpenalised=["bp"])
    assert problem.settings["positive"] == [0, 2]
    assert problem.settings["unpenalised"] == [3]
    assert problem.penalty.l1[3] == 0
    assert problem.digest != amble.split(amble.load("diabetes"), agents=4, unpenalised=["bp"]).digest


def test_a_start_below_zero_is_refused():
    problem = amble.split(amble.load("diabetes"), agents=4, positive=["bmi"])
    start = np.zeros(problem.dimension)
    start[2] = -1
    with pytest.raises(AmbleError, match="below zero"):
        amble.simulate(amble.Relay(), problem, hops=4, start=start)


def test_a_run_under_a_penalty_is_resumed(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    problem = amble.Problem.from_arrays(X, y, agents=5, l1=0.02)
    whole = amble.simulate(amble.Relay(), problem, hops=40)
    amble.simulate(amble.Relay(), problem, hops=15).save(tmp_path / "run")
    again = amble.resume(amble.load_run(tmp_path / "run"), problem, hops=40)
    assert np.array_equal(whole.model, again.model)
    other = amble.Problem.from_arrays(X, y, agents=5, l1=0.03)
    with pytest.raises(AmbleError, match="other data or settings"):
        amble.resume(again, other, hops=50)


def test_an_optimum_that_is_zero_and_one_that_is_not_there():
    X, y = rows()
    nothing = amble.Problem.from_arrays(X, y, task="regression", agents=4, l1=10.0)
    assert not nothing.optimum().w.any() or np.abs(nothing.optimum().w).max() < 1e-15
    apart = amble.Problem.from_arrays(
        [[-2.0, 0.1], [-1.0, 0.3], [1.0, 0.2], [2.0, 0.4]], [0, 0, 1, 1], agents=2, l1=0.1, ridge=0.0, unpenalised=[0]
    )
    with pytest.raises(AmbleError, match="no centralised optimum under this penalty"):
        apart.optimum()
