"""Relay's inexact form: cheap visits, against scikit-learn, the exact prox and the exact fixed point."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import amble
from amble import AmbleError
from amble.losses import newton
from amble.methods import relay_dual

RIDGE = 1e-2
NETWORK = amble.networks.random(10, 0.7, seed=0)


def digits(how="even"):
    return amble.split(amble.load("digits"), agents=10, ridge=RIDGE, test=0, how=how)


def run(problem, method, laps, **options):
    return amble.simulate(method, problem, NETWORK, hops=10 * laps, every=10, progress=False, **options)


@pytest.mark.parametrize("how", ["even", "by-label"])
@pytest.mark.parametrize("tokens", [1, 10])
def test_the_inexact_form_ends_at_the_optimum_that_scikit_learn_finds(how, tokens):
    """digits, 650 unknowns, rows dealt out evenly and one label per agent."""
    problem = digits(how)
    found = run(problem, amble.Relay(tokens=tokens, form="inexact"), 80, engine="plain")

    X, y = amble.load("digits").X, amble.load("digits").y
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    best = LogisticRegression(C=1 / (RIDGE * len(X)), tol=1e-10, max_iter=10_000).fit(X, y)
    model = found.model.reshape(10, -1)
    assert np.abs(model[:, :-1] - best.coef_).max() < 2e-2 * np.abs(best.coef_).max()
    assert (problem.predict(found.model, amble.load("digits").X) == best.predict(X)).mean() > 0.995


def test_a_visit_is_the_exact_prox_to_second_order():
    """An over-relaxed step whose Newton step is as good as exact where the start is near."""
    f = digits().objective(0)
    rng = np.random.default_rng(0)
    center = 0.01 * rng.normal(size=650)
    weight = float(f.curvature)
    exact = newton.minimise(f, center, weight, center)
    far = [
        np.linalg.norm(newton.approach(f, center, weight, exact + step * center, 1, 200) - exact)
        for step in (1e-1, 1e-3)
    ]
    assert far[1] < 1e-2 * np.linalg.norm(1e-3 * center)
    assert far[1] < far[0] / 50


def test_nothing_moves_at_the_fixed_point():
    """x = z and y = grad f(z): the visit gives what it gave before, whatever beta is."""
    problem = digits("by-label")
    f, z = problem.objective(3), problem.optimum().w
    zero = np.zeros(())
    for beta in (0.01, 0.3):
        agent = relay_dual.Dual(z, f.grad(z), zero + beta, z, zero + 5)
        after, v, w = relay_dual.inexact(f, agent, z)
        assert np.linalg.norm(after.x - z) < 1e-12 * np.linalg.norm(z)
        assert np.linalg.norm(v - (beta * z - f.grad(z))) < 1e-10
        assert w == beta


def test_the_first_gift_does_not_depend_on_the_token():
    """So the first lap of a token through agents with one label each is as good as any other."""
    f, method = digits("by-label").objective(0), amble.Relay(form="inexact")
    agent = method.agent(f, np.zeros(650))
    one, other = (method.gift(f, agent, z)[1] for z in (np.zeros(650), np.full(650, 3.0)))
    assert np.array_equal(one, other)


def test_it_needs_a_loss_of_bounded_curvature():
    """An error says what was given, what was expected and what to do."""
    rng = np.random.default_rng(1)
    rows = [(rng.normal(size=(20, 3)), rng.poisson(1.0, 20).astype(float)) for _ in range(10)]
    problem = amble.Problem.from_agents(rows, loss="poisson")
    with pytest.raises(AmbleError, match=r'inexact.*logistic.*"poisson".*form="scalar"'):
        run(problem, amble.Relay(form="inexact"), 2)


@pytest.mark.parametrize("seed", range(8))
def test_random_problems_converge(seed):
    """Softmax, agents of uneven sizes, rows in order of their labels or at random, columns of two scales."""
    rng = np.random.default_rng([seed, 31])
    classes, p, d = 3 + seed % 4, 6, 240
    X = rng.normal(size=(d, p)) * np.where(rng.random(p) < 0.5, 1.0, 0.3)
    y = (X @ rng.normal(size=(p, classes)) + rng.gumbel(size=(d, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    order = np.argsort(y, kind="stable") if seed % 2 else rng.permutation(d)
    ends = np.sort(rng.choice(np.arange(5, d - 5), 9, replace=False))
    parts = [(X[part], y[part]) for part in np.split(order, ends)]
    problem = amble.Problem.from_agents(parts, loss="softmax", ridge=1e-2, scale=False)
    for tokens in (1, 10):
        found = run(problem, amble.Relay(form="inexact", tokens=tokens), 150, engine="plain")
        assert found.history["distance"][-1] < 1e-3


def test_auto_does_not_take_it_as_nothing_guards_its_step():
    problem = amble.split(amble.load("digits"), agents=10)
    assert amble.Relay().for_problem(problem).form == "scalar"
