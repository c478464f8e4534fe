"""The initial model: every method begins with it, forgets it as it should, and goes on from it after a save."""

import numpy as np
import pytest

import amble
from amble import methods, networks
from amble.methods.rounding import lost
from amble.simulation.experiment import Experiment, read
from amble.testing.methods import leaves_of
from test_methods import ENGINES, EXACT, FORMS, NETWORK, PROBLEM, N, P, go, limits, relative

pytestmark = pytest.mark.long

START = np.array([3.0, -2.0, 0.5, 40.0])
all_forms = pytest.mark.parametrize("name", FORMS)
ADAM = [name for name in FORMS if "'adam'" in name]  # a step of Adam is as long however small the gradient is
PUBLISHED = [name for name in FORMS if name.endswith("published")]


def assert_close(one, other, tolerance):
    assert one.shape == other.shape
    assert np.abs(one - other).max() <= tolerance * np.abs(other).max()


@pytest.mark.parametrize("engine", ENGINES)
@all_forms
def test_every_model_is_the_initial_one_before_the_first_hop(name, engine):
    """Hop 0 of the record: the model, and the mean of the local models."""
    run = go(FORMS[name], 1, engine=engine, start=START)
    assert_close(run.consensus[0], START, 1e-15)
    assert_close(run.local[0], START, 1e-15)
    assert np.array_equal(run.start, START)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in FORMS if not methods.is_round(FORMS[name])])
def test_an_agent_that_is_not_yet_visited_has_the_initial_model(name, engine):
    run = go(FORMS[name], 1, engine=engine, start=START)
    visited = run.schedule.agent[0]
    assert np.array_equal(np.delete(run.models, visited, axis=0), np.tile(START, (N - 1, 1)))


@all_forms
def test_both_engines_agree_from_an_initial_model(name):
    runs = [go(FORMS[name], 90, engine=engine, start=START) for engine in ENGINES]
    assert_close(runs[0].consensus, runs[1].consensus, 1e-9)
    assert_close(runs[0].local, runs[1].local, 1e-9)


@all_forms
def test_zeros_are_the_initial_model_where_none_is_given(name):
    given, without = (go(FORMS[name], 40, **options) for options in ({"start": [0] * P}, {}))
    assert np.array_equal(given.consensus, without.consensus)
    assert without.start is None


@pytest.mark.parametrize("name", EXACT)
def test_the_initial_model_does_not_move_the_limit_of_exact_methods(name):
    run = go(EXACT[name], 4000, every=4000, start=START)
    assert relative(run.model, PROBLEM.optimum().w) < 1e-8


@pytest.mark.parametrize("name", [name for name in FORMS if name not in {*EXACT, *PUBLISHED, *ADAM}])
def test_the_initial_model_does_not_move_the_limit_of_penalty_methods(name):
    method = FORMS[name] if name != "PW-ADMM, own" else amble.PWADMM(beta=1.0, tokens=1, form="own")
    far, near = (go(method, 6000, every=6000, **options).model for options in ({"start": START}, {}))
    assert relative(far, near) < 1e-8 + 2 * lost(method)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_rule_is_pulled_to_its_initial_model(name):
    """Each increment reaches one token, so sum_m z_m - mean_i x_i stays what it was at first: (M - 1) start. At the
    fixed point grad f_i(x_i) + tau (M x_i - mean x - (M - 1) start) = 0: one linear system of N p unknowns."""
    method = FORMS[name]
    tau, M, A, b = method.tau, method.tokens, PROBLEM.stacked.A, PROBLEM.stacked.b
    whole = np.zeros((N, P, N, P))
    for i in range(N):
        whole[i, :, i, :] += A[i] + tau * M * np.eye(P)
        whole[i, :, :, :] -= tau / N * np.eye(P)[:, None, :]
    right = b + tau * (M - 1) * START
    limit = np.linalg.solve(whole.reshape(N * P, N * P), right.reshape(-1)).reshape(N, P)
    run = go(method, 6000, every=6000, start=START)
    assert relative(run.models, limit) < 1e-8


def noiseless(rows):
    """Agents whose losses are all least at the same model, which is the optimum then."""
    rng = np.random.default_rng(4)
    best = rng.normal(size=P)
    parts = [(X, X @ best) for X in rng.normal(size=(N, rows, P))]
    return amble.Problem.from_agents(parts, ridge=0.0, intercept=False, scale=False), best


@pytest.mark.parametrize("rows", [9, 2], ids=["many rows", "fewer rows than unknowns"])
@all_forms
def test_agents_who_agree_on_the_initial_model_stay_there(name, rows):
    """grad f_i(start) = 0 for every agent: no step, prox or gift has any cause to leave it.

    DATOS finds its step by values of the loss. They tell models apart only down to the root of their rounding, and here
    nothing else says how long a step may be. Adam divides a gradient by its own size, and so does that of rounding.
    """
    if name in ADAM:
        return
    problem, best = noiseless(rows)
    run = go(FORMS[name], 90, problem, start=best)
    near = (1e-7 if name == "DATOS" else 1e-9) + lost(FORMS[name]) * np.abs(best).max()
    assert np.abs(run.consensus - best).max() < near
    assert np.abs(run.models - best).max() < near
    assert np.abs(go(FORMS[name], 90, problem).consensus - best).max() > 0.1  # and from zero they have a way to go


def test_a_full_token_keeps_the_initial_model_where_no_data_has_spoken():
    """Each agent has one row, of one column: after k agents k unknowns are fitted, and the others are as at first."""
    problem = amble.Problem.from_agents(
        [(row[None], [7.0]) for row in np.eye(N)], task="regression", ridge=0.0, intercept=False, scale=False
    )
    start = np.arange(1.0, N + 1)
    run = amble.simulate(amble.Relay(form="full"), problem, networks.ring(N), hops=5, every=1, start=start)
    for k in range(6):
        seen = np.isin(np.arange(N), run.schedule.agent[:k])
        assert_close(run.consensus[k], np.where(seen, 7.0, start), 1e-15)


@all_forms
def test_a_saved_run_goes_on_from_its_initial_model_to_the_bit(name, tmp_path):
    method = FORMS[name]
    whole, begun = (go(method, hops, start=START) for hops in (90, 3))
    begun.save(tmp_path / "run")
    run = amble.resume(amble.load_run(tmp_path / "run"), PROBLEM, progress=False, **limits(method, 90))
    assert np.array_equal(run.start, START)
    assert np.array_equal(run.consensus, whole.consensus)
    mine, yours = leaves_of(run.state), leaves_of(whole.state)
    assert all(np.array_equal(mine[key], yours[key]) for key in mine)


def test_tuning_begins_where_the_run_does():
    far, near = (go(amble.WPG(), tune=True, **options).tuning for options in ({"start": START}, {}))
    assert far["tried"] != near["tried"]


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (np.zeros(P + 1), r"start has shape \(5,\).*needs \(4,\)"),
        (np.zeros((1, P)), r"start has shape \(1, 4\)"),
        (1.0, r"start has shape \(\)"),
        ([0.0, np.nan, 0.0, 0.0], "start has numbers that are not finite"),
        (["a", "b", "c", "d"], "must be 4 real numbers"),
        (np.full(4, 1 + 2j), "must be 4 real numbers"),
        ("zeros", "must be 4 real numbers"),
        ([[1.0], [2.0, 3.0]], "must be 4 real numbers"),
    ],
)
def test_what_is_not_an_initial_model(start, sentence):
    with pytest.raises(amble.AmbleError, match=sentence):
        go(amble.IBCD(), start=start)


def test_a_comparison_and_an_experiment_take_an_initial_model(tmp_path):
    runs = amble.compare([amble.IBCD(), amble.WPG()], PROBLEM, NETWORK, hops=5, start=START, progress=False)
    assert all(np.allclose(run.consensus[0], START) for run in runs)
    file = tmp_path / "experiment.toml"
    file.write_text('agents = 4\nhops = 5\nstart = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0.5]\n[[methods]]\nname = "Relay"\n')
    run = Experiment().with_settings(read(file)).run(progress=False)[0]
    assert run.consensus[0].tolist() == [*range(1, 11), 0.5]
    with pytest.raises(amble.AmbleError, match=r"start has shape \(2,\)"):
        Experiment().with_settings({"start": [1, 2]}).build()
