"""The optimum: computed when it is asked for, verified before it is called one, and left out where it is not known."""

import csv
import signal
import warnings

import numpy as np
import pytest

import amble
from amble import networks
from amble.arrays import namespace
from amble.losses import LeastSquares, Logistic
from amble.problem.optimum import UNASKED_GRADIENTS, UNASKED_LAPS, UNASKED_UP_TO_OWN
from amble.report.export import write_report
from amble.report.page import Page
from amble.report.sections import columns, group

FROM_OPTIMUM = {"suboptimality", "distance", "distance_local"}
QUICK = {"hops": 30, "progress": False}
FREE = {"compute": 1e-6}  # the timing of losses whose work is not known


class Loss:
    """One agent's loss, of a user's own; gradients are counted."""

    def __init__(self, value, grad):
        self.of, self.slope, self.calls = value, grad, 0

    def value(self, w):
        return self.of(w)

    def grad(self, w):
        self.calls += 1
        return self.slope(w)


def own(value, grad, dimension, agents=3):
    return amble.Problem.from_objectives([Loss(value, grad) for _ in range(agents)], dimension)


def parabola(dimension, at=2.0):
    return own(lambda w: 0.5 * np.sum((w - at) ** 2), lambda w: w - at, dimension)


def well(at):
    """Two minima beside `at`, the lower one beyond it: Newton's method from zero ends in the other."""
    return own(
        lambda w: np.sum((w - at) ** 4 / 4 - (w - at) ** 2 / 2 - (w - at) / 10),
        lambda w: (w - at) ** 3 - (w - at) - 0.1,
        1,
    )


def rosenbrock(unit, at):
    """One minimum and a bent valley: not convex, so nothing here can verify that it is the lowest."""

    def value(w):
        x, y = w / unit - at
        return (1 - x) ** 2 + 100 * (y - x**2) ** 2

    def grad(w):
        x, y = w / unit - at
        return np.array([2 * (x - 1) - 400 * x * (y - x**2), 200 * (y - x**2)]) / unit

    return own(value, grad, 2)


NARROW = 1e-3  # of a bump that no probe but the curvature at its top shows
NO_OPTIMUM = {
    "falls forever, ever more slowly": (
        own(lambda w: np.exp(-w[0]), lambda w: -np.exp(-w), 1),
        "no minimiser, or none that could be located",
    ),
    "falls forever beside a valley": (
        own(lambda w: np.exp(-w[0]) + 50 * w[1] ** 2, lambda w: np.array([-np.exp(-w[0]), 100 * w[1]]), 2),
        "no minimiser, or none that could be located",
    ),
    "falls forever, straight": (own(lambda w: w.sum(), np.ones_like, 3), "no minimiser"),
    "a saddle at zero": (
        own(lambda w: w[0] ** 2 - w[1] ** 2 + w[1] ** 4, lambda w: np.array([2 * w[0], 4 * w[1] ** 3 - 2 * w[1]]), 2),
        "not convex",
    ),
    "a narrow top at zero": (
        own(
            lambda w: w @ w + 100 * NARROW**2 * np.exp(-w @ w / NARROW**2),
            lambda w: 2 * w - 200 * w * np.exp(-w @ w / NARROW**2),
            4,
        ),
        "they curve down",
    ),
    "falls faster and faster": (own(lambda w: -w @ w, lambda w: -2 * w, 3), "not convex"),
    "a third power": (own(lambda w: np.sum(w**3), lambda w: 3 * w**2, 1), "not convex"),
    "a gradient of another loss": (own(lambda w: np.sum((w - 1) ** 2), lambda w: 2 * w, 3), "is grad the gradient"),
    "a kink": (own(lambda w: np.abs(w - 1).sum(), lambda w: np.sign(w - 1), 3), "is grad the gradient of value"),
    "the higher of two wells, far out": (well(100), "not convex"),
    "the higher of two wells, nearer": (well(30), "not convex"),
    "the higher of two wells, very far out": (well(1000), "not convex"),
    "Rosenbrock's valley": (rosenbrock(1, 0), "not convex"),
    "Rosenbrock's valley in other units": (rosenbrock(100, 0), "not convex"),
    "Rosenbrock's valley elsewhere": (rosenbrock(1, -3), "not convex"),
    "a value that is no number": (own(lambda w: np.nan, lambda w: w, 2), "where their slope is zero, value is nan"),  # noqa: ARG005
    "no numbers at zero": (own(lambda w: -np.log(w).sum(), lambda w: -1 / w, 3), "at zero are not finite"),
}


@pytest.mark.parametrize("kind", NO_OPTIMUM)
def test_what_is_no_optimum_is_not_called_one(kind):
    problem, sentence = NO_OPTIMUM[kind]
    with pytest.raises(amble.AmbleError, match=sentence):
        problem.optimum()


def separable(agents=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return amble.Problem.from_arrays(X, X[:, 0] > 0, task="classification", agents=agents, ridge=0.0)


def test_separable_classes_as_losses_of_one_s_own_have_no_optimum():
    """Agents with unequal rows are not stacked: their losses are found as a user's own are."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(rows, 3)) for rows in (9, 12, 20)]
    losses = [Logistic.build(X, X[:, 0] > 0, np.full(len(X), 1 / len(X)), np.zeros(3)) for X in parts]
    with pytest.raises(amble.AmbleError, match="no minimiser"):
        amble.Problem.from_objectives(losses, 3).optimum()


def ill_conditioned(dimension, condition):
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(dimension, dimension)))
    A, at = Q * np.geomspace(1, condition, dimension) @ Q.T, rng.normal(size=dimension)
    return own(lambda w: 0.5 * (w - at) @ A @ (w - at), lambda w: A @ (w - at), dimension), at


@pytest.mark.parametrize(("dimension", "condition"), [(3, 10), (50, 1e6), (300, 1e3)])
def test_the_optimum_of_one_s_own_losses_is_as_exact_as_it_says(dimension, condition):
    problem, at = ill_conditioned(dimension, condition)
    assert np.linalg.norm(problem.optimum().w - at) <= 1e-6 * np.linalg.norm(at)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_of_the_unknowns_do_not_matter(unit):
    problem = own(lambda w: np.logaddexp(w / unit - 3, 3 - w / unit).sum(), lambda w: np.tanh(w / unit - 3) / unit, 4)
    np.testing.assert_allclose(problem.optimum().w, 3 * unit, rtol=1e-9)


def test_of_several_minimisers_the_shortest():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(5, 9)), rng.normal(size=5)
    loss = LeastSquares.build(X, y, np.ones(5), np.zeros(9))
    problem = own(loss.value, loss.grad, 9, agents=1)
    np.testing.assert_allclose(problem.optimum().w, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-6)


def without_optimum(problem, match, **options):
    with pytest.warns(UserWarning, match=match):
        run = amble.simulate(amble.WPG(alpha=0.1), problem, networks.ring(problem.agents), **QUICK, **options)
    assert not FROM_OPTIMUM & set(run.history)
    assert np.isfinite(run.history["objective"]).all()
    assert run.problem["optimum"]["known"] is False
    return run


def test_a_run_without_an_optimum_says_why(tmp_path):
    run = without_optimum(NO_OPTIMUM["a saddle at zero"][0], "not convex.*no suboptimality, distance", timing=FREE)
    assert "not convex" in run.problem["optimum"]["why"]
    assert run.problem["optimum_metric"] is None
    loaded = amble.load_run(run.save(tmp_path / "run"))
    assert loaded.history.keys() == run.history.keys()
    assert loaded.problem["optimum"] == run.problem["optimum"]


def test_many_unknowns_of_one_s_own_take_no_memory_and_no_gradients_unasked():
    """60,000 unknowns: a dense matrix of them would be 29 GB."""
    problem = parabola(60_000)
    run = without_optimum(problem, "computed only on request.*call problem.optimum", timing=FREE)
    assert "60,000 unknowns" in run.problem["optimum"]["why"]
    assert sum(loss.calls for loss in problem.own) <= 30 + problem.agents  # the run's, and the digest's
    assert np.allclose(problem.optimum().w, 2.0)
    run = amble.simulate(amble.WPG(), problem, networks.ring(3), timing=FREE, **QUICK)
    assert set(run.history) >= FROM_OPTIMUM
    assert run.problem["optimum"]["known"]


def test_the_optimum_is_lazy():
    """Nothing is computed for a run that does not want it, nor for the pilot runs of tuning; then once for all runs."""
    problem = parabola(4)
    free = {"timing": FREE, **QUICK}
    run = amble.simulate(amble.WPG(), problem, networks.ring(3), optimum=False, tune=True, **free)  # no warning
    assert problem.searched.result is None
    assert not FROM_OPTIMUM & set(run.history)
    again = amble.resume(run, problem, hops=60, progress=False)
    assert again.history.keys() == run.history.keys()
    amble.simulate(amble.WPG(), problem, networks.ring(3), **free)
    calls = sum(loss.calls for loss in problem.own)
    run = amble.simulate(amble.WPG(), problem, networks.ring(3), **free)
    assert sum(loss.calls for loss in problem.own) == calls + 30
    assert run.history["distance"][-1] < run.history["distance"][0] == 1


def test_why_there_is_no_optimum_is_looked_for_once():
    problem = NO_OPTIMUM["falls forever, straight"][0]
    for _ in range(2):
        with pytest.raises(amble.AmbleError, match="no minimiser"):
            problem.optimum()
        calls = [loss.calls for loss in problem.own]
    with pytest.raises(amble.AmbleError, match="no minimiser"):
        problem.optimum()
    assert calls == [loss.calls for loss in problem.own]


@pytest.mark.filterwarnings("ignore:there is no centralised optimum")
def test_everything_that_is_shown_copes_without_an_optimum(tmp_path):
    """The table, the figure, the page and the curves, of runs with and without test rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    tested = amble.Problem.from_arrays(
        X[:40], X[:40, 0] > 0, task="classification", agents=4, ridge=0.0, X_test=X[40:], y_test=X[40:, 0] > 0
    )
    for problem, shown in ((separable(), "objective"), (tested, "metric")):
        runs = amble.compare([amble.IBCD(), amble.Relay(form="scalar")], problem, networks.ring(4), **QUICK)
        assert not FROM_OPTIMUM & set(runs[0].history)
        assert runs.table().row_count == 2
        runs.plot(tmp_path / "figure.png")
        assert "distance" not in repr(runs[0])
        sections = group(runs)
        assert list(columns(sections[0])) == [shown]
        page, curves, *_ = write_report(tmp_path / "page.html", Page("None known", sections))
        assert "The optimum is not known" in page.read_text()
        with curves.open() as file:
            rows = list(csv.DictReader(file))
        assert {row["distance"] for row in rows} == {"nan"}
        assert len(rows) == sum(len(run.recorded) for run in runs)


def test_runs_with_and_without_an_optimum_are_shown_together(tmp_path):
    problem = amble.split(amble.load("diabetes"), agents=4)
    runs = [amble.simulate(amble.IBCD(tau=tau), problem, optimum=tau > 1, **QUICK) for tau in (1.0, 2.0)]
    write_report(tmp_path / "page.html", Page("Both", group(runs)))
    comparison = amble.Comparison(tuple(runs))
    assert comparison.table().row_count == 2
    comparison.plot(tmp_path / "figure.png")


def test_a_run_saved_with_unknown_distances_still_loads_and_reports(tmp_path):
    """Earlier versions wrote columns of nan, and no word on the optimum."""
    run = amble.simulate(amble.WPG(alpha=0.1), separable(), networks.ring(4), optimum=False, **QUICK)
    run.history.update({name: np.full(len(run.recorded), np.nan) for name in FROM_OPTIMUM})
    del run.problem["optimum"]
    loaded = amble.load_run(run.save(tmp_path / "old"))
    page, *_ = write_report(tmp_path / "page.html", Page("Old", group([loaded])))
    assert "The optimum is not known" in page.read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = amble.resume(loaded, separable(), hops=40, progress=False)
    assert not FROM_OPTIMUM & set(again.history)


class Huber:
    """The mean of Huber's loss over some rows with outliers."""

    def __init__(self, unknowns, seed, ask=None):
        rng = np.random.default_rng(seed)
        self.X, self.calls, self.ask = rng.normal(size=(60, unknowns)), 0, ask
        self.y = self.X.sum(axis=1) + rng.standard_cauchy(60)

    def value(self, w):
        r = np.abs(self.X @ w - self.y)
        return np.mean(np.where(r < 1, r * r / 2, r - 0.5))

    def grad(self, w):
        self.calls += 1
        if self.calls == self.ask:
            signal.raise_signal(signal.SIGINT)
        return self.X.T @ np.clip(self.X @ w - self.y, -1, 1) / len(self.y)


def huber(unknowns, ask=None):
    """Five agents' losses; the first sends Ctrl-C at its gradient number `ask`."""
    losses = [Huber(unknowns, seed, ask if seed == 0 else None) for seed in range(5)]
    return amble.Problem.from_objectives(losses, unknowns)


def test_the_unasked_search_is_bounded():
    """Its gradients are many where unknowns are many, and a short run has few: it is given up, once, with advice."""
    problem = huber(100)
    run = without_optimum(problem, "not found with 1,000 of their gradients; call problem.optimum", timing=FREE)
    assert "longer search" in run.problem["optimum"]["why"]
    most = problem.agents * (UNASKED_GRADIENTS + 10) + QUICK["hops"]
    assert sum(loss.calls for loss in problem.own) < most
    calls = sum(loss.calls for loss in problem.own)
    without_optimum(problem, "not found with 1,000", timing=FREE)
    assert sum(loss.calls for loss in problem.own) == calls + QUICK["hops"]


def test_a_long_run_has_a_long_search():
    problem = huber(40)
    without_optimum(problem, "not found with 1,000", timing=FREE)
    laps = 10 * UNASKED_GRADIENTS // UNASKED_LAPS
    run = amble.simulate(amble.DGD(alpha=0.1), problem, networks.ring(5), rounds=laps, timing=FREE, progress=False)
    assert run.problem["optimum"]["known"]


def test_ctrl_c_in_the_search_keeps_the_run():
    problem = huber(5, ask=150)
    run = without_optimum(problem, "the search for it was stopped; call problem.optimum", timing=FREE)
    assert run.stopped == "hops"
    assert run.schedule.hops == QUICK["hops"]
    assert problem.own[0].calls < 160
    assert np.isfinite(problem.optimum().value)


def test_ctrl_c_in_the_search_ends_a_comparison_with_the_run_that_was_done():
    with pytest.warns(UserWarning, match="was stopped"):
        runs = amble.compare([amble.WPG(), amble.DGD()], huber(5, ask=150), networks.ring(5), timing=FREE, **QUICK)
    assert [run.stopped for run in runs] == ["hops"]


def test_ctrl_c_in_the_search_of_a_built_in_loss_keeps_the_run(monkeypatch):
    """Newton's steps are short; the first gradient of the search sends it."""
    grad = Logistic.grad

    def asking(self, w):
        if self.X.ndim == 2 and namespace(w) is np:
            signal.raise_signal(signal.SIGINT)
        return grad(self, w)

    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    problem = amble.Problem.from_arrays(X, y, task="classification", agents=4)
    monkeypatch.setattr(Logistic, "grad", asking)
    with pytest.warns(UserWarning, match="was stopped"):
        run = amble.simulate(amble.WPG(), problem, networks.ring(4), engine="compiled", **QUICK)
    assert run.stopped == "hops"


def test_own_losses_up_to_a_bound_have_their_optimum_unasked():
    run = amble.simulate(amble.WPG(), parabola(UNASKED_UP_TO_OWN), networks.ring(3), timing=FREE, **QUICK)
    assert run.problem["optimum"]["known"]
