"""The public face: what may stand for a network, a table of runs, predictions, what it took, tasks and column names."""

import re

import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse

import amble
from amble import AmbleError, networks

DATA = amble.load("diabetes")
PROBLEM = amble.split(DATA, agents=12)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X @ [1.0, 2.0, -1.0] + 0.1 * RNG.normal(size=30)


def go(method=None, network=None, **options):
    return amble.simulate(method or amble.Relay(), PROBLEM, network, **{"hops": 30, "progress": False, **options})


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("ring", networks.ring(12)),
        ("complete", networks.complete(12)),
        ("grid", networks.grid(3, 4)),
        ("random", networks.random(12, 0.7, seed=4)),
        (None, networks.random(12, 0.7, seed=4)),
        ("geometric", networks.geometric(12, seed=4)),
        (networkx.cycle_graph(12), networks.ring(12)),
        (networkx.Graph([(i, (i + 1) % 12) for i in (5, 3, 0, 1, 2, 4, 11, 10, 9, 8, 7, 6)]), networks.ring(12)),
    ],
    ids=str,
)
def test_a_name_or_a_graph_stands_for_a_network(given, same):
    """Nodes 0 to N - 1 are agents of these numbers, in whatever order the graph has them."""
    for run in (go(network=given, seed=4), amble.compare([amble.Relay()], PROBLEM, given, hops=5, seed=4)[0]):
        assert np.array_equal(run.network.edges, same.edges)


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        ("rign", "no network named 'rign'; did you mean 'ring'"),
        (
            networkx.DiGraph([(0, 1), (1, 2)]),
            r"the graph is directed, and links go both ways; give graph.to_undirected",
        ),
        (
            networkx.MultiGraph([(0, 1), (0, 1)]),
            "the graph is a multigraph, and two agents have one link at most; give",
        ),
        (networkx.empty_graph(12), "the network is not connected"),
        (networkx.cycle_graph(5), "the network has 5 agents and the problem 12; make them the same"),
        (networkx.Graph(), "a network needs at least one agent"),
        (np.eye(12), "a ndarray was given as the network; give a name"),
        (12, "12 was given as the network; give a name"),
        (PROBLEM, "a Problem was given as the network; give a name"),
    ],
    ids=str,
)
def test_what_is_no_network_is_refused(network, sentence):
    with pytest.raises(AmbleError, match=sentence):
        go(network=network)
    with pytest.raises(AmbleError, match=sentence):
        amble.compare([amble.IBCD()], PROBLEM, network, hops=5)


def test_a_link_to_oneself_means_nothing():
    graph = networkx.cycle_graph(12)
    graph.add_edge(3, 3)
    assert np.array_equal(networks.from_networkx(graph).edges, networks.ring(12).edges)


def test_a_comparison_is_a_table_for_people_and_one_for_pandas():
    runs = amble.compare(methods=[amble.IBCD(tau=2), amble.DGD()], problem=PROBLEM, hops=40, progress=False)
    lines = str(runs).splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in str(runs)
    assert sum("I-BCD" in line for line in lines) == sum("DGD" in line for line in lines) == 1
    assert repr(runs) == "Comparison(I-BCD (tau=2), DGD (alpha=0.1))"
    table = runs.to_pandas()
    assert list(table.columns) == ["run", "method", *runs[0].history]
    for run in runs:
        own = table[table["method"] == run.label]
        assert np.array_equal(own["metric"], run.history["metric"])
        assert np.array_equal(own["bytes"], run.history["bytes"])


def test_a_dataset_is_one_line():
    assert repr(DATA) == "Dataset(diabetes: regression, 442 rows, 10 columns, target progression)"
    mine = amble.Dataset("mine", "classification", X, np.where(Y > 0, "up", "down"), X[:4], np.full(4, "up"))
    assert repr(mine) == "Dataset(mine: classification of 2 classes, 30 rows, 4 test rows, 3 columns)"
    single = amble.Dataset("one", "classification", X[:1, :1], ["up"], X[:1, :1], ["up"])
    assert repr(single) == "Dataset(one: classification of 1 class, 1 row, 1 test row, 1 column)"


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer", "digits"])
def test_a_run_predicts_as_its_problem_does_also_when_loaded(name, tmp_path):
    data = amble.load(name)
    problem = amble.split(data, agents=5, ridge=1e-2)
    run = amble.simulate(amble.Relay(form="scalar"), problem, hops=20, progress=False)
    expected = problem.predict(run.model, data.X)
    assert np.array_equal(run.predict(data.X), expected)
    run.save(tmp_path / "run")
    assert np.array_equal(amble.load_run(tmp_path / "run").predict(data.X.tolist()), expected)


def test_a_run_without_test_rows_shows_no_metric():
    run = amble.simulate(amble.Relay(), amble.Problem.from_arrays(X, Y, agents=5), hops=20, progress=False)
    assert re.fullmatch(r"Run\(Relay \(full\) on data, 20 hops, distance \S+, stopped: hops\)", repr(run))


def test_predictions_are_in_the_units_of_training():
    """Least squares of all rows with an intercept, written out."""
    problem = amble.Problem.from_arrays(X, Y, agents=5, ridge=0.0, weights="rows")
    run = amble.simulate(amble.Relay(), problem, hops=20, progress=False)
    rows = np.column_stack([X, np.ones(len(X))])
    fitted = rows @ np.linalg.lstsq(rows, Y, rcond=None)[0]
    np.testing.assert_allclose(run.predict(X), fitted, rtol=1e-9)


def test_a_frame_s_columns_are_kept_and_taken_by_name():
    frame = pandas.DataFrame(X, columns=["age", "size", "weight"])
    problem = amble.Problem.from_arrays(
        frame, pandas.Series(Y), agents=3, X_test=frame[["weight", "age", "size"]], y_test=Y
    )
    assert problem.columns == ("age", "size", "weight")
    run = amble.simulate(amble.Relay(), problem, hops=6, progress=False)
    plain = run.predict(X)
    assert np.array_equal(run.predict(frame[["size", "weight", "age"]]), plain)
    assert np.array_equal(problem.predict(run.model, frame), plain)
    residual, spread = plain - Y, Y - Y.mean()
    assert run.history["metric"][-1] == pytest.approx(residual @ residual / (spread @ spread))
    with pytest.raises(AmbleError, match="column 'age' of the training rows is not in the table; add it"):
        run.predict(frame.rename(columns={"age": "years"}))
    parts = [(frame[:15], Y[:15]), (frame[["weight", "size", "age"]][15:], Y[15:])]
    apart = amble.Problem.from_agents(parts)
    assert apart.columns == problem.columns
    whole = amble.Problem.from_agents([(X[:15], Y[:15]), (X[15:], Y[15:])])
    assert np.array_equal(apart.stacked.A, whole.stacked.A)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (Y, "regression"),
        (np.arange(30), "regression"),
        (np.arange(30) % 20, "classification"),
        ((Y > 0).astype(float), "classification"),
        (Y > 0, "classification"),
        (np.where(Y > 0, "up", "down"), "classification"),
        (pandas.Series(np.where(Y > 0, "up", "down"), dtype="category"), "classification"),
        ((Y > 0).tolist(), "classification"),
    ],
)
def test_the_task_follows_from_the_targets_as_in_files(y, task):
    problem = amble.Problem.from_arrays(X, y, agents=3)
    assert problem.task == task
    assert amble.Problem.from_agents([(X[:20], y[:20]), (X[20:], y[20:])]).task == task
    assert amble.Problem.from_arrays(X, np.arange(30) % 4, task="regression", agents=3).task == "regression"


def test_whole_numbers_are_labels_up_to_as_many_values_as_in_a_file(tmp_path):
    for values in (20, 21):
        y = np.arange(42) % values
        (tmp_path / "rows.csv").write_text("\n".join(f"{k / 7},{label}" for k, label in enumerate(y)))
        data = amble.read_file(tmp_path / "rows.csv")
        assert amble.Problem.from_arrays(data.X, y, agents=3).task == data.task


def test_sparse_rows_are_refused_with_what_to_give():
    for make in (scipy.sparse.csr_matrix, scipy.sparse.coo_array):
        with pytest.raises(AmbleError, match=r"the data: X is sparse .* give X.toarray\(\) \(0.00072 MB\)"):
            amble.Problem.from_arrays(make(X), Y, agents=3)
        with pytest.raises(AmbleError, match="X is sparse"):
            amble.Problem.from_agents([(make(X), Y)])
        with pytest.raises(AmbleError, match="X is sparse"):
            amble.simulate(amble.Relay(), amble.Problem.from_arrays(X, Y, agents=3), hops=3).predict(make(X))


def test_time_to_is_where_the_run_stays():
    """Against every record, one by one, from the end."""
    run = go(amble.WPG(alpha=0.5), hops=400, every=1)
    bound = float(np.median(run.history["metric"]))
    last_miss = max(k for k, value in enumerate(run.history["metric"]) if value > bound)
    for cost in ("time_s", "comm_units", "bytes", "hop"):
        assert run.time_to(metric=bound, cost=cost) == run.history[cost][last_miss + 1]
    best = PROBLEM.metric(PROBLEM.optimum().w)
    share = 0.05
    last_miss = max(k for k, value in enumerate(run.history["metric_local"]) if value > best * (1 + share))
    assert run.time_to(within=share, local=True) == run.history["time_s"][last_miss + 1]
    assert np.isnan(run.time_to(metric=best / 2))
    assert run.time_to(metric=1e9) == 0.0


def test_time_to_an_accuracy_is_from_below():
    problem = amble.split(amble.load("breast_cancer"), agents=5)
    run = amble.simulate(amble.WPG(alpha=0.5), problem, hops=100, every=1, progress=False)
    wanted = run.history["metric"][-1]
    last_miss = max(k for k, value in enumerate(run.history["metric"]) if value < wanted)
    assert run.time_to(metric=wanted, cost="hop") == last_miss + 1
    assert np.isnan(run.time_to(metric=1.5))


def test_time_to_without_test_rows_is_by_the_distance():
    problem = amble.split(DATA, agents=5, test=0)
    run = amble.simulate(amble.Relay(), problem, hops=20, every=1, progress=False)
    assert run.time_to(within=1e-6, cost="hop") == 5
    with pytest.raises(AmbleError, match=r"this run has no test rows, so it is not known when it reached metric=0.5"):
        run.time_to(metric=0.5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "nothing was given to reach; give metric=0.5 or within=0.01"),
        ({"metric": 0.5, "within": 0.1}, "metric and within was given"),
        ({"metric": "0.5"}, "metric='0.5' was given; it must be a number"),
        ({"within": -1}, "within=-1 was given; it must be a number, zero or more"),
        ({"within": 0.1, "cost": "time"}, "no cost named 'time'; did you mean 'time_s'"),
    ],
)
def test_time_to_what_makes_no_sense(options, sentence):
    with pytest.raises(AmbleError, match=sentence):
        go().time_to(**options)


def test_two_runs_with_one_label_can_be_told_apart_in_the_table():
    table = amble.compare([amble.Relay(), amble.Relay()], PROBLEM, hops=12, progress=False).to_pandas()
    assert table.groupby("run")["hop"].max().to_dict() == {1: 12, 2: 12}
    assert table["method"].nunique() == 1


def test_time_to_without_an_optimum_says_that_it_was_not_computed():
    """A run with test rows and optimum=False has a metric to reach, and no optimum to be within 1 % of."""
    run = go(optimum=False)
    assert run.time_to(metric=1e9) == 0.0
    with pytest.raises(AmbleError, match=r"within=0.01 .*the optimum was not computed \(optimum=False\); give metric="):
        run.time_to(within=0.01)
