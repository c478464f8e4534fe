"""Sums over rows: their derivatives, their adding up over agents, and what they say of rows that others judge too."""

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.metrics import log_loss, mean_poisson_deviance, roc_auc_score

from amble.arrays import leaves
from amble.results.partial import concordance, partial
from amble.results.sums import BINS, REACH, SQUARES_UP_TO, Sums, packed, sums_of, unpacked

CLASSES = {"least-squares": 0, "huber": 0, "logistic": 2, "softmax": 3, "poisson": 0, "gamma": 0, "cox": 0}
LOSSES = sorted(CLASSES)


def sample(loss, seed=0, d=60):
    """Rows, targets, weights, offsets and a model that is not the optimum."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(d, 3)), np.ones(d)])
    times = rng.integers(1, 15, d) * rng.choice([-1.0, 1.0, 1.0], d)  # with ties
    y = {
        "least-squares": rng.normal(size=d),
        "huber": 3 * rng.normal(size=d),
        "logistic": rng.integers(0, 2, d),
        "softmax": rng.integers(0, 3, d),
        "poisson": rng.poisson(2.0, d),
        "gamma": rng.gamma(2.0, size=d),
        "cox": times,
    }[loss]
    offset = rng.normal(size=d) / 3 if loss in ("poisson", "gamma") else None
    w = rng.normal(size=12 if loss == "softmax" else 4) / 3
    return w, X, y.astype(np.float64), rng.uniform(0.5, 2.0, d), offset


def part(sampled, rows):
    _, X, y, s, offset = sampled
    return X[rows], y[rows], s[rows], None if offset is None else offset[rows]


def differences(function, w, step=1e-5):
    return np.array([(function(w + step * e) - function(w - step * e)) / (2 * step) for e in np.eye(len(w))])


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_and_hessian_are_the_derivatives(loss):
    w, *rows = sample(loss)

    def at(v):
        return sums_of(loss, v, *rows, classes=CLASSES[loss])

    np.testing.assert_allclose(at(w).gradient, differences(lambda v: at(v).train.deviance, w), atol=1e-7)
    np.testing.assert_allclose(unpacked(at(w).hessian), differences(lambda v: at(v).gradient, w), atol=1e-7)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "cox"])  # whose agents are strata
def test_the_sums_of_agents_are_those_of_the_pooled_rows(loss):
    sampled = sample(loss)
    w, everything, classes = sampled[0], np.arange(60), CLASSES[loss]
    pooled = sums_of(loss, w, *part(sampled, everything), classes=classes, test=part(sampled, everything[:9]))
    held = [everything[:5], everything[5:9], everything[:0]]
    agents = [everything[:10], everything[10:50], everything[50:]]
    added = sum(
        sums_of(loss, w, *part(sampled, rows), classes=classes, test=part(sampled, test)).vector()
        for rows, test in zip(agents, held, strict=True)
    )
    total = Sums.of_vector(added, loss, 4, classes)
    assert total.agents == 3
    by_agent = sum(
        np.outer(g, g) for g in (sums_of(loss, w, *part(sampled, rows), classes=classes).gradient for rows in agents)
    )
    np.testing.assert_allclose(unpacked(total.by_agent), by_agent, atol=1e-10)

    def with_pairs(name):  # pairs are of rows of one agent
        found, all_rows = getattr(total, name), getattr(pooled, name)
        return found._replace(concordant=all_rows.concordant, pairs=all_rows.pairs)

    own = {"agents": pooled.agents, "by_agent": pooled.by_agent}
    alike = total._replace(**own, train=with_pairs("train"), test=with_pairs("test")).vector()
    np.testing.assert_allclose(alike, pooled.vector(), rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_vector_is_read_back_and_has_one_length(loss):
    sampled = sample(loss)
    sums = sums_of(loss, *sampled, classes=CLASSES[loss])
    back = Sums.of_vector(sums.vector(), loss, 4, CLASSES[loss])
    assert all(np.array_equal(a, b) for a, b in zip(leaves(sums), leaves(back), strict=True))
    assert len(sums.vector()) == len(Sums.zeros(loss, 4, CLASSES[loss]).vector())
    assert len(sums_of(loss, sampled[0], *part(sampled, [3]), classes=CLASSES[loss]).vector()) == len(sums.vector())
    with pytest.raises(ValueError, match="were given"):
        Sums.of_vector(sums.vector()[1:], loss, 4, CLASSES[loss])


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "cox"])  # where two deaths are a tie
def test_a_weight_of_two_is_the_row_twice(loss):
    w, X, y, _, offset = sample(loss)
    rows = np.repeat(np.arange(60), np.arange(60) % 3)
    repeated = sums_of(loss, w, X[rows], y[rows], None, None if offset is None else offset[rows], classes=CLASSES[loss])
    weighted = sums_of(loss, w, X, y, np.arange(60) % 3, offset, classes=CLASSES[loss])
    train = weighted.train._replace(rows=repeated.train.rows)
    np.testing.assert_allclose(weighted._replace(train=train).vector(), repeated.vector(), rtol=1e-11, atol=1e-10)


def test_scores_by_row_are_the_outer_products_of_single_rows_gradients():
    for loss in ("least-squares", "logistic", "softmax", "poisson", "gamma", "huber"):
        sampled = sample(loss)
        w, classes = sampled[0], CLASSES[loss]
        s = sampled[3]
        each = [sums_of(loss, w, *part(sampled, [k]), classes=classes).gradient / s[k] for k in range(60)]
        expected = sum(s[k] * np.outer(each[k], each[k]) for k in range(60))
        np.testing.assert_allclose(unpacked(sums_of(loss, *sampled, classes=classes).by_row), expected, atol=1e-10)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_scores_of_cox_add_up_to_its_gradient(ties):
    w, X, y, s, _ = sample("cox")
    found = partial(w, X, y, s, ties)
    np.testing.assert_allclose(s @ found.scores, found.gradient, atol=1e-12)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_partial_likelihood_by_its_definition(ties):
    w, X, y, s, _ = sample("cox", d=25)
    expected, times, eta = 0.0, np.abs(y), X @ w
    for time in np.unique(times[y > 0]):
        died = y == time
        risk, tied = (s * np.exp(eta))[times >= time].sum(), (s * np.exp(eta))[died].sum()
        for k in range(died.sum()):
            share = k / died.sum() if ties == "efron" else 0.0
            expected += s[died].mean() * np.log(risk - share * tied)
        expected -= (s * eta)[died].sum()
    assert partial(w, X, y, s, ties).loss == pytest.approx(expected, rel=1e-12)
    assert partial(w, X, -times, s, ties).loss == 0  # nobody died


def test_concordance_by_all_pairs():
    rng = np.random.default_rng(3)
    eta, y = rng.integers(0, 6, 80).astype(float), rng.integers(1, 12, 80) * rng.choice([-1.0, 1.0], 80)
    right = pairs = 0.0
    for i in range(80):
        for j in range(80):
            if y[i] > 0 and (abs(y[j]) > y[i] or y[j] == -y[i]):
                pairs += 1
                right += (eta[i] > eta[j]) + (eta[i] == eta[j]) / 2
    assert concordance(eta, y) == (right, pairs)


def test_held_out_rows_are_judged_as_scikit_learn_does():
    w, X, y, s, _ = sample("logistic", d=400)
    test = sums_of("logistic", w, X, y, classes=2, test=(X, y, s)).test
    chance = 1 / (1 + np.exp(-X @ w))
    assert test.deviance / test.weight == pytest.approx(log_loss(y, chance, sample_weight=s), rel=1e-12)
    assert test.correct == pytest.approx(s @ ((chance > 0.5) == y), rel=1e-12)
    bins = np.floor((X @ w + REACH) * BINS / (2 * REACH))
    below = np.cumsum(test.scores[0]) - test.scores[0] / 2
    auc = (test.scores[1] @ below) / (test.scores[0].sum() * test.scores[1].sum())
    assert auc == pytest.approx(roc_auc_score(y, bins, sample_weight=s), rel=1e-12)
    assert auc == pytest.approx(roc_auc_score(y, chance, sample_weight=s), abs=2e-3)
    assert test.concordant / test.pairs == pytest.approx(roc_auc_score(y, chance, sample_weight=s), rel=1e-12)
    w, X, y, s, offset = sample("poisson")
    test = sums_of("poisson", w, X, y, test=(X, y, s, offset)).test
    expected = mean_poisson_deviance(y, np.exp(X @ w + offset), sample_weight=s)
    assert 2 * test.deviance / test.weight == pytest.approx(expected, rel=1e-12)


def test_what_a_poisson_likelihood_needs_of_the_rows_alone():
    w, X, y, s, offset = sample("poisson")
    sums = sums_of("poisson", w, X, y, s, offset)
    eta = X @ w + offset
    expected = s @ (y * eta - np.exp(eta) - gammaln(y + 1))
    assert sums.saturated - sums.train.deviance == pytest.approx(expected, rel=1e-12)


def test_many_unknowns_have_no_matrices():
    columns = SQUARES_UP_TO + 1
    sums = sums_of("least-squares", np.zeros(columns), np.ones((2, columns)), np.ones(2))
    assert sums.hessian.size == sums.by_row.size == sums.by_agent.size == 0
    assert len(sums.vector()) < 2 * columns


def test_a_triangle_is_unpacked():
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    np.testing.assert_array_equal(unpacked(packed(matrix)), matrix)


def test_a_model_that_has_diverged_has_sums_that_are_not_finite():
    w, X, y, *_ = sample("poisson")
    assert not np.isfinite(sums_of("poisson", 1e6 * w, X, y).vector()).all()
