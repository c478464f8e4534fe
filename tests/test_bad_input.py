"""What cannot be used is refused before any work starts, in a sentence that says what was given and what to do."""

import itertools

import numpy as np
import pytest

import amble
from amble import AmbleError, methods, networks
from amble.schedule.timing import Timing
from amble.simulation.experiment import parse_slow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = X @ [1.0, 2.0, -1.0]
LABELS = np.where(Y > 0, "up", "down")
PROBLEM = amble.Problem.from_arrays(X, Y, agents=4)
RING = networks.ring(4)


def make(rows=X, y=Y, **options):
    return amble.Problem.from_arrays(rows, y, **{"agents": 4, **options})


def go(method=None, **options):
    return amble.simulate(method or amble.IBCD(), PROBLEM, options.pop("network", RING), **{"hops": 5, **options})


def with_value(array, place, value):
    copy = array.copy()
    copy[place] = value
    return copy


def refused(sentence):
    return pytest.raises(AmbleError, match=sentence)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_of_x_that_is_not_finite_is_named_by_row_and_column(value):
    with refused(
        rf"the data: X has 1 values that are not finite \(the first is {value} in row 7, column 2\).*fill or drop"
    ):
        make(with_value(X, (7, 2), value))
    with refused(r"the test data: X has .* in row 0, column 1"):
        make(X_test=with_value(X, (0, 1), value), y_test=Y)
    with refused(r"agent 2: X has .* in row 3, column 0"):
        rows = [(X[:6], Y[:6]), (X[6:12], Y[6:12]), (with_value(X[12:18], (3, 0), value), Y[12:18])]
        amble.Problem.from_agents(rows)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_of_y_that_is_not_finite_is_named_by_row(value):
    with refused(r"the data: y has values that are not finite \(the first in row 11\); fill or drop"):
        make(y=with_value(Y, 11, value))
    with refused(r"y has values that are not finite \(the first in row 11\)"):
        make(y=with_value((Y > 0).astype(float), 11, value), task="classification")


@pytest.mark.parametrize(
    ("rows", "y", "shapes"),
    [
        (X[:, 0], Y, r"X has shape \(24,\) and y \(24,\)"),
        (X, Y[:-1], r"X has shape \(24, 3\) and y \(23,\)"),
        (X, Y[:, None], r"X has shape \(24, 3\) and y \(24, 1\)"),
        (X[None], Y, r"X has shape \(1, 24, 3\)"),
    ],
)
def test_wrong_shapes_are_shown(rows, y, shapes):
    with refused(shapes + r".*give X as \(rows, columns\) and y as \(rows,\)"):
        make(rows, y)


def test_test_data_need_targets_and_the_same_columns():
    with refused(r"the test data: X has shape \(24, 3\) and y \(\)"):
        make(X_test=X)
    with refused("the test data have 2 columns and the training data 3"):
        make(X_test=X[:, :2], y_test=Y)


def test_agents_that_disagree_on_columns():
    with refused(r"agents disagree on the number of columns: \[2, 3\]; give all the same columns"):
        amble.Problem.from_agents([(X, Y), (X[:, :2], Y)])


def test_an_agent_with_no_rows_is_named():
    with refused("agent 1 has no rows; leave it out, or give it at least one"):
        amble.Problem.from_agents([(X, Y), (X[:0], Y[:0])])
    with refused("the data has no rows"):
        make(X[:0], Y[:0])
    with refused("24 training rows cannot give 25 agents a row each; use at most 24 agents"):
        make(agents=25)


def test_by_label_leaves_no_agent_without_rows():
    """Four agents for two labels: two of them would have to share the one row of the rarer label."""
    rare = np.array(["common"] * 23 + ["rare"])
    with refused("by-label"):
        make(y=rare, task="classification", how="by-label")


@pytest.mark.parametrize("agents", [0, -2])
def test_a_number_of_agents_that_is_not_positive(agents):
    with refused(f"agents={agents} was given; it must be a whole number, one or more"):
        make(agents=agents)


def test_no_agents_at_all():
    with refused("no agents were given; give at least one"):
        amble.Problem.from_agents([])
    with refused("no objectives were given; at least one agent is needed"):
        amble.Problem.from_objectives([], 3)


@pytest.mark.parametrize("ridge", [-1e-4, np.nan, np.inf])
def test_a_ridge_that_is_negative(ridge):
    with refused(f"ridge={ridge} was given; it must be a number, zero or more"):
        make(ridge=ridge)


def test_a_single_class():
    with refused("all labels are up; classification needs at least two classes"):
        make(y=np.full(24, "up"), task="classification")


def test_partitions_by_label_need_labels():
    for how in ("by-label", "dirichlet"):
        with refused(f"how='{how}' needs labels and this is a regression; use how='even' or how='sorted'"):
            make(how=how)
    with refused("3 labels need at least 3 agents; 2 were given. Use more agents, or how='dirichlet'"):
        make(y=np.arange(24) % 3, task="classification", how="by-label", agents=2)


@pytest.mark.parametrize("test", [-0.1, 1.0, 3, np.nan])
def test_a_share_held_out_that_leaves_nothing(test):
    data = amble.Dataset("mine", "regression", X, Y)
    with refused(f"test={test} was given; it is the share of rows kept for testing"):
        amble.split(data, agents=2, test=test)


def test_separable_classes_without_a_ridge_have_no_optimum():
    problem = make(y=LABELS, task="classification", ridge=0.0)
    with refused(r"separable.*ridge= a value above"):
        problem.optimum()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: methods.from_settings("apibcdd", {}), "no method named 'apibcdd'; did you mean 'API-BCD'"),
        (lambda: methods.from_settings("ibdc", {}), "no method named 'ibdc'; did you mean 'I-BCD'"),
        (lambda: methods.from_settings("WPG", {"alpa": 1}), "no setting of WPG named 'alpa'; did you mean 'alpha'"),
        (lambda: amble.load("diabetis"), "no data set named 'diabetis'; did you mean 'diabetes'"),
        (lambda: go(walk="cylce"), "no walk named 'cylce'; did you mean 'cycle'"),
        (lambda: go(timing="papre"), "no timing named 'papre'; did you mean 'paper'"),
        (lambda: go(timing={"model": "walkmen"}), "no timing named 'walkmen'; did you mean 'walkman'"),
        (lambda: go(timing={"low": 1}), "no timing setting named 'low'; did you mean 'low_s'"),
        (lambda: go(timing={"compute": "modell"}), "no compute model named 'modell'; did you mean 'model'"),
        (lambda: make(task="regresion"), "no task named 'regresion'; did you mean 'regression'"),
        (lambda: make(how="evne"), "no partition named 'evne'; did you mean 'even'"),
        (lambda: make(weights="row"), "no weighting named 'row'; did you mean 'rows'"),
        (lambda: go(engine="complied"), "no engine named 'complied'; did you mean 'compiled'"),
        (
            lambda: go(amble.APIBCD(tokens=2, token_rule="track")),
            "no token_rule of API-BCD named 'track'; did you mean 'tracked'",
        ),
        (
            lambda: go(amble.GAPIBCD(tokens=2, token_rule="scale")),
            "no token_rule of gAPI-BCD named 'scale'; did you mean 'scaled'",
        ),
    ],
)
def test_an_unknown_name_suggests_the_nearest(wrong, sentence):
    with refused(sentence):
        wrong()


def test_a_name_like_no_other_lists_them_all():
    with refused(
        "no walk named 'xyzzy'; choose one of cycle, cycles, least-visited, meeting, metropolis, stretches, uniform"
    ):
        go(walk="xyzzy")


@pytest.mark.parametrize("value", [0, 0.0, -1.5, np.nan, np.inf, "1", None])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (amble.IBCD, "tau"),
        (amble.APIBCD, "tau"),
        (amble.GAPIBCD, "tau"),
        (amble.SyncWalks, "tau"),
        (amble.WPG, "alpha"),
    ],
)
def test_penalties_and_steps_must_be_above_zero(kind, name, value):
    with refused(f"{kind.label}: {name}={value!r} was given; it must be a number above zero"):
        go(kind(**{name: value}))


@pytest.mark.parametrize("tokens", [0, -1, 1.5, "2", None])
@pytest.mark.parametrize("kind", [amble.IBCD, amble.APIBCD, amble.SyncWalks])
def test_tokens_must_be_a_whole_number(kind, tokens):
    with refused(f"{kind.label}: tokens={tokens!r} was given; it must be a whole number, one or more"):
        go(kind(tokens=tokens))


@pytest.mark.parametrize("rho", [-1.0, np.nan, np.inf, "L"])
def test_rho_must_not_be_negative(rho):
    with refused(f"gAPI-BCD: rho={rho!r} was given; it must be zero or more, or left out for L"):
        go(amble.GAPIBCD(tokens=2, rho=rho))


def test_a_network_of_another_size():
    with refused("the network has 5 agents and the problem 4; make them the same"):
        go(network=networks.ring(5))


def test_a_disconnected_network():
    with refused("not connected: from agent 0 only 2 of 4 agents can be reached; add links until all are"):
        go(network=networks.from_edges(4, [(0, 1), (2, 3)]))


@pytest.mark.parametrize("density", [-0.1, 1.1, np.nan])
def test_a_density_that_is_no_share(density):
    with refused(f"density={density} was given; it must be between 0 and 1"):
        networks.random(5, density)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *itertools.product(("hops", "rounds", "time_s", "comm_units"), (0, -3, float("nan"))),
        ("tolerance", -3),
        ("tolerance", float("nan")),
    ],
)
def test_limits_must_be_above_zero(name, value):
    method = amble.SyncWalks() if name == "rounds" else amble.IBCD()
    with refused(f"{name}={value} was given; it must be above zero"):
        amble.simulate(method, PROBLEM, RING, **{name: value})
    run = amble.simulate(method, PROBLEM, RING, hops=4)
    with refused(f"{name}={value} was given; it must be above zero"):
        amble.resume(run, PROBLEM, **{name: value})


def test_a_tolerance_of_zero_is_none():
    """As in live runs: the model of Relay stands still after two laps, and the run goes on."""
    for tolerance in (0, 0.0):
        run = amble.simulate(amble.Relay(), PROBLEM, RING, hops=400, tolerance=tolerance)
        assert (run.stopped, run.schedule.hops) == ("hops", 400)
        run = amble.resume(run, PROBLEM, hops=500, tolerance=tolerance)
        assert (run.stopped, run.schedule.hops) == ("hops", 500)
    assert amble.simulate(amble.Relay(), PROBLEM, RING, tolerance=0).schedule.hops == 10_000  # as without one
    assert amble.simulate(amble.Relay(), PROBLEM, RING, hops=400, tolerance=1e-6).stopped == "tolerance"


@pytest.mark.parametrize("value", [10.5, "10", float("inf")])
@pytest.mark.parametrize("name", ["hops", "rounds", "comm_units"])
def test_counts_must_be_whole_numbers(name, value):
    method = amble.SyncWalks() if name == "rounds" else amble.IBCD()
    beside = {"time_s": 1e-3}  # so that no count, however large, makes a long run
    with refused(f"{name}={value!r} was given"):
        amble.simulate(method, PROBLEM, RING, **{name: value}, **beside)


@pytest.mark.parametrize("every", [0, -1])
def test_records_are_at_least_one_hop_apart(every):
    with refused(f"every={every} was given"):
        go(every=every)


@pytest.mark.parametrize("every", [5.5, "3"])
def test_records_are_whole_hops_apart(every):
    with refused(f"every={every!r} was given"):
        go(every=every)


def test_rounds_of_a_method_that_has_none():
    with refused("I-BCD has no rounds; give hops=20 for as many visits"):
        amble.simulate(amble.IBCD(), PROBLEM, RING, rounds=5)


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, 2**64])
@pytest.mark.parametrize("network", [None, RING], ids=["default network", "ring"])
def test_a_seed_is_a_whole_number_of_64_bits(seed, network):
    with refused(f"seed={seed!r} was given; it must be a whole number"):
        go(seed=seed, network=network)


@pytest.mark.parametrize(
    "make_with",
    [
        lambda seed: networks.random(5, 0.7, seed),
        lambda seed: networks.geometric(5, seed=seed),
        lambda seed: make(seed=seed),
        lambda seed: amble.split(amble.Dataset("mine", "regression", X, Y), agents=2, seed=seed),
    ],
    ids=["random", "geometric", "from_arrays", "split"],
)
def test_a_negative_seed_is_refused_everywhere(make_with):
    with refused("seed=-1 was given; it must be a whole number"):
        make_with(-1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"low_s": -1.0}, "timing: low_s=-1.0 was given; seconds must be zero or more"),
        ({"high_s": np.inf}, "timing: high_s=inf was given; seconds must be zero or more"),
        ({"mean_s": np.nan}, "timing: mean_s=nan was given"),
        ({"low_s": 1.0, "high_s": 0.5}, "high_s=0.5 is below low_s=1.0; give low_s <= high_s"),
        ({"bytes_per_s": 0.0}, "bytes_per_s=0.0 was given; it must be above zero"),
        ({"compute": -1e-3}, "compute=-0.001 was given; seconds must be zero or more"),
        ({"slowdown": {1: 0.0}}, "agent 1's slowdown is 0.0; it must be above zero"),
        ({"slowdown": {4: 2.0}}, "timing slows agent 4 down; agents are numbered 0 to 3"),
        ({"slowdown": {-1: 2.0}}, "timing slows agent -1 down; agents are numbered 0 to 3"),
    ],
)
def test_timings_that_make_no_sense(given, sentence):
    with refused(sentence):
        go(timing=given)
    with refused(sentence):
        go(timing=Timing(**given))


def test_one_agent_never_communicates():
    alone = make(agents=1)
    with refused("one agent never communicates, so comm_units cannot be reached; stop by hops or time_s"):
        amble.simulate(amble.IBCD(), alone, networks.ring(1), comm_units=5)


def test_an_amble_error_is_a_value_error():
    """So that callers who catch ValueError, as scikit-learn's do, catch ours."""
    assert issubclass(AmbleError, ValueError)


def test_test_targets_that_are_all_the_training_mean():
    """NMSE divides by their spread around it. Any other constant is a fair test."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.array([1.0, -1.0] * 20)
    with pytest.raises(AmbleError, match="every test target is the mean of the training targets"):
        amble.Problem.from_arrays(X, y, task="regression", agents=4, X_test=X[:5], y_test=np.zeros(5))
    problem = amble.Problem.from_arrays(X, y, task="regression", agents=4, X_test=X[:5], y_test=np.ones(5))
    assert np.isfinite(problem.metric(problem.optimum().w))


@pytest.mark.parametrize("name", ["optimum", "tune", "penalised", "progress"])
@pytest.mark.parametrize(("value", "text"), [("no", "'no'"), (1, "1"), (None, "None")])
def test_what_is_neither_true_nor_false(name, value, text):
    for call in (amble.simulate, lambda method, *rest, **options: amble.compare([method], *rest, **options)):
        with refused(f"{name}={text} was given; it must be True or False"):
            call(amble.IBCD(), make(), RING, hops=5, **{"progress": False, name: value})


def test_a_folder_for_the_runs_that_is_no_path():
    with refused("5 was given as the folder for the runs; give a path"):
        amble.compare([amble.IBCD()], make(), RING, hops=5, keep=5, progress=False)
    with refused("5 was given as the folder for the runs; give a path"):
        amble.compare([amble.IBCD()], make(), RING, hops=5, progress=False).save(5)


def test_an_agent_that_is_slow_twice():
    with refused("--slow 3=10,3=5 was given, which names an agent twice; give each agent one factor"):
        parse_slow("3=10,3=5")


class Bowl:
    """A loss of a user's own, right in all that a run asks for."""

    def value(self, w):
        return np.sum(w**2) / 2

    def grad(self, w):
        return w


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"value": None}, r"has no value\(w\), from which the curves of a run are computed"),
        ({"value": lambda _, w: w**2}, r"has a value\(w\) that has shape \(3,\); it must have \(\)"),
        ({"value": lambda _, w: str(w)}, r"has a value\(w\) that is a str; it must be one number"),
        ({"grad": lambda _, w: w[:2]}, r"has a grad\(w\) that has shape \(2,\); it must have \(3,\)"),
        ({"grad": lambda _, w: list(w)}, r"has a grad\(w\) that is a list; it must be an array of shape \(3,\)"),
    ],
    ids=["no value", "value an array", "value a text", "grad too short", "grad a list"],
)
def test_a_loss_of_one_s_own_that_no_run_could_use(parts, sentence):
    problem = amble.Problem.from_objectives([Bowl(), type("Broken", (Bowl,), parts)()], 3)
    with refused(f"the objective of agent 1, of class Broken, {sentence}"):
        amble.simulate(amble.WPG(), problem, networks.ring(2), hops=5, progress=False)
    with refused(f"the objective of agent 1, of class Broken, {sentence}"):
        amble.compare([amble.WPG()], problem, networks.ring(2), hops=5, progress=False)


def test_a_class_in_place_of_a_loss():
    with refused("the objective of agent 0 is the class Bowl; give an object of that class"):
        amble.simulate(amble.WPG(), amble.Problem.from_objectives([Bowl, Bowl], 3), networks.ring(2), hops=5)
