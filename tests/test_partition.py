"""Who holds which rows: sizes, labels, what is recorded, and the picture of it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import amble
from amble import AmbleError
from amble.data.partition import PARTITIONS, round_shares
from amble.problem import picture as pictures
from amble.simulation.experiment import Experiment

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2.0, -1.0] + RNG.normal(size=60)
LABELS = np.array(["a", "b", "c"])[np.arange(60) % 3]


def make(y=LABELS, **options):
    task = "classification" if y is LABELS else "regression"
    return amble.Problem.from_arrays(X, y, **{"agents": 4, "task": task, **options})


def sizes_of(problem):
    return [len(part) for part in problem.parts]


def refused(sentence):
    return pytest.raises(AmbleError, match=sentence)


@pytest.mark.parametrize("how", PARTITIONS)
@pytest.mark.parametrize("seed", range(3))
def test_every_row_has_one_holder_and_every_agent_a_row(how, seed):
    for agents in (1 if how != "by-label" else 3, 7, 30):
        problem = make(how=how, seed=seed, agents=agents)
        assert sorted(np.concatenate(problem.parts).tolist()) == list(range(60))
        assert min(sizes_of(problem)) >= 1
        assert make(how=how, seed=seed, agents=agents).digest == problem.digest


def test_sizes_as_rows_and_as_proportions():
    assert sizes_of(make(sizes=[30, 20, 9, 1])) == [30, 20, 9, 1]
    assert sizes_of(make(sizes=[1.0, 2.0, 0.5, 0.5])) == [15, 30, 8, 7]
    assert sizes_of(make(sizes=np.array([0.4, 0.3, 0.2, 0.1]))) == [24, 18, 12, 6]
    assert sizes_of(make(sizes=[1000.0, 1e-6, 1e-6, 1e-6])) == [57, 1, 1, 1]
    drawn = sizes_of(make(how="by-sizes", seed=1))
    assert sum(drawn) == 60
    assert len(set(drawn)) > 1


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=30), st.integers(0, 200))
def test_shares_round_to_the_rows_there_are(shares, more):
    rows = len(shares) + more
    counts = round_shares(np.array(shares), rows)
    assert counts.sum() == rows
    assert counts.min() >= 1
    wanted = rows * np.array(shares) / sum(shares)
    assert (counts[wanted >= 1] <= np.ceil(wanted[wanted >= 1]) + 1).all()


def test_rows_that_nobody_holds_are_no_part_of_the_training_data():
    """Neither of the scaling, nor of the labels, nor of the optimum."""
    problem = make(Y, sizes=[10, 5, 5, 4])
    held = np.concatenate(problem.parts)
    assert len(set(held.tolist())) == 24
    np.testing.assert_allclose(problem.scaling.X_mean, X[held].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(problem.scaling.y_std, Y[held].std(), rtol=1e-12)
    same = amble.Problem.from_agents([(X[part], Y[part]) for part in problem.parts])
    np.testing.assert_allclose(problem.optimum().w, same.optimum().w, rtol=1e-9, atol=1e-14)


def test_alpha_says_how_unlike_agents_are():
    """The mean share of an agent's commonest label: near 1 with a small alpha, near 1/3 with a large one."""

    def commonest(alpha):
        counts = np.array([make(how="dirichlet", alpha=alpha, seed=k).holdings["counts"] for k in range(20)])
        return (counts.max(axis=2) / counts.sum(axis=2)).mean()

    assert commonest(1e-300) > 0.8
    assert commonest(0.01) > 0.8
    assert commonest(100.0) < 0.45


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sizes": [30, 30]}, "2 sizes were given for 4 agents; give one per agent"),
        ({"sizes": [30, 30, 0, 0]}, "sizes=.* was given; give a list of numbers above zero"),
        ({"sizes": [0.5, -0.1, 0.3, 0.3]}, "give a list of numbers above zero"),
        ({"sizes": [0.5, np.nan, 0.3, 0.3]}, "give a list of numbers above zero"),
        ({"sizes": ["1", 1, 1, 1]}, "give a list of numbers above zero"),
        ({"sizes": "1111"}, "give a list of numbers above zero"),
        ({"sizes": [[1], [2, 3], 1, 1]}, "give a list of numbers above zero"),
        ({"sizes": []}, "give a list of numbers above zero"),
        ({"sizes": 15}, "give a list of numbers above zero"),
        ({"sizes": [20, 20, 20, 1]}, "the sizes sum to 61, and there are 60 training rows; give fewer, or proportions"),
        ({"sizes": [1, 1, 1, 1], "how": "sorted"}, "sizes were given with how='sorted'"),
        ({"alpha": 0.5}, "alpha=0.5 was given with how='even'; it is for how='dirichlet'"),
        ({"alpha": 0, "how": "dirichlet"}, "alpha=0 was given; it must be a number above zero"),
        ({"alpha": 1e300, "how": "dirichlet"}, "alpha=1e.300 was given"),
        ({"alpha": np.nan, "how": "dirichlet"}, "alpha=nan was given; it must be a number above zero"),
        ({"alpha": "big", "how": "dirichlet"}, "alpha='big' was given; it must be a number above zero"),
    ],
)
def test_sizes_and_alphas_that_make_no_sense(options, sentence):
    with refused(sentence):
        make(**options)


def test_holdings_count_labels_and_say_how_targets_spread():
    problem = make(sizes=[30, 20, 5, 5])
    assert problem.holdings["labels"] == ["a", "b", "c"]
    for part, counts in zip(problem.parts, problem.holdings["counts"], strict=True):
        assert counts == [int(np.sum(LABELS[part] == label)) for label in "abc"]
    problem = make(Y, sizes=[30, 10, 5, 5])
    assert problem.holdings["rows"] == [30, 10, 5, 5]
    for part, spread in zip(problem.parts, problem.holdings["target"], strict=True):
        np.testing.assert_allclose(spread, np.percentile(Y[part], [0, 25, 50, 75, 100]), rtol=1e-12)
    assert amble.Problem.from_objectives([problem.objective(0)], problem.dimension).holdings is None
    wide = amble.Problem.from_arrays(np.tile(X, (20, 1)), np.tile(Y, 20), agents=1001)
    assert wide.holdings is None


def test_a_saved_run_says_all_that_a_model_needs(tmp_path):
    data = amble.Dataset("mine", "classification", X, LABELS, columns=("u", "v", "w"))
    problem = amble.split(data, agents=4, how="dirichlet", alpha=0.3)
    amble.simulate(amble.IBCD(), problem, hops=8).save(tmp_path / "run")
    about = json.loads((tmp_path / "run.json").read_text())["problem"]
    assert about == amble.load_run(tmp_path / "run").problem
    assert (about["settings"]["how"], about["settings"]["alpha"]) == ("dirichlet", 0.3)
    assert (about["labels"], about["columns"], about["intercept"]) == (["a", "b", "c"], ["u", "v", "w"], True)
    assert about["holdings"] == problem.holdings
    assert about["scaling"]["X_mean"] == problem.scaling.X_mean.tolist()
    assert about["scaling"]["X_std"] == problem.scaling.X_std.tolist()
    assert (about["scaling"]["y_mean"], about["scaling"]["y_std"]) == (0.0, 1.0)
    for sizes in ([30, 10, 5, 5], np.array([30, 10, 5, 5])):
        settings = json.loads(json.dumps(make(sizes=sizes).settings))
        assert (settings["how"], settings["sizes"]) == ("by-sizes", [30, 10, 5, 5])
    assert "alpha" not in make().settings
    assert make(how="dirichlet").settings["alpha"] == 0.5


def test_test_labels_that_training_has_not_are_named():
    for y_test, shown in ((["a", "d"], "'d'"), (["e", "d"], "'d', 'e'")):
        with refused(rf"the test rows have labels that no training row has: {shown}; training has 'a', 'b', 'c'"):
            make(X_test=X[:2], y_test=np.array(y_test))
    with refused("labels that no training row has: 1, 2"):
        make(X_test=X[:2], y_test=np.array([1, 2]))
    with refused("labels that no training row has: '0', '1'"):
        amble.Problem.from_arrays(
            X, np.arange(60) % 2, task="classification", agents=2, X_test=X[:2], y_test=np.array(["0", "1"])
        )
    whole = np.arange(60) % 2
    problem = amble.Problem.from_arrays(
        X, whole, task="classification", agents=2, X_test=X[:2], y_test=whole[:2].astype(float)
    )
    assert problem.heldout is not None


def drawn(monkeypatch):
    caught = []
    monkeypatch.setattr(pictures, "save", lambda figure, path: caught.append(figure) or path)
    return caught


def test_the_picture_shows_the_rows_of_each_label(monkeypatch):
    caught = drawn(monkeypatch)
    problem = make(sizes=[30, 20, 5, 5])
    problem.plot_partition("x.png")
    bars = caught[0].axes[0].containers
    assert [bar.get_label() for bar in bars] == ["a", "b", "c"]
    widths = np.array([[patch.get_width() for patch in bar] for bar in bars])
    assert np.array_equal(widths.T, problem.holdings["counts"])


def test_the_picture_of_many_labels_puts_the_rarest_together(monkeypatch):
    caught = drawn(monkeypatch)
    counts = np.arange(1, 31)[None] * np.ones((3, 1), int)
    pictures.partition_picture("x.png", "many", {"labels": list(range(30)), "counts": counts.tolist()}, {})
    bars = caught[0].axes[0].containers
    assert [bar.get_label() for bar in bars] == [*map(str, range(11, 30)), "others"]
    assert sum(bar[0].get_width() for bar in bars) == counts[0].sum()


def test_the_picture_of_a_regression_shows_rows_and_targets(monkeypatch):
    caught = drawn(monkeypatch)
    problem = make(Y, how="sorted")
    problem.plot_partition("x.png")
    left, right = caught[0].axes
    assert [patch.get_width() for patch in left.containers[0]] == problem.holdings["rows"]
    quarters = np.array([[bar.get_x(), bar.get_x() + bar.get_width()] for bar in right.containers[0]])
    np.testing.assert_allclose(quarters, np.array(problem.holdings["target"])[:, [1, 3]])


def test_a_problem_without_rows_has_no_picture(tmp_path):
    alone = amble.Problem.from_objectives([make(Y).objective(0)], 4)
    with refused("it is not known which agent holds which rows"):
        alone.plot_partition(tmp_path / "x.png")


def test_compare_on_a_file_of_your_own(tmp_path):
    """Text columns, a target in the middle, a partition with an alpha; the picture is drawn, the run says it all."""
    lines = [f"{a:.6f},{label},{'xy'[k % 2]}" for k, (a, label) in enumerate(zip(X[:, 0], LABELS, strict=True))]
    (tmp_path / "rows.csv").write_text("size,kind,colour\n" + "\n".join(lines) + "\n")
    words = "--data rows.csv --target kind --one-hot --how dirichlet --alpha 0.2 -n 4 --hops 20 -m I-BCD -o out"
    command = [sys.executable, "-m", "amble", "compare", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "partition.png").read_bytes().startswith(b"\x89PNG")
    about = amble.load_run(tmp_path / "out" / "1-i-bcd").problem
    assert (about["name"], about["task"], about["labels"]) == ("rows", "classification", ["a", "b", "c"])
    assert about["columns"] == ["size", "colour=x", "colour=y"]
    assert about["settings"]["alpha"] == 0.2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"data": "."},
            r"\. is a folder, which only amble up and amble survey take, with a table per site; give one file",
        ),
        ({"data": "nothere.csv"}, "no data set named 'nothere.csv'.*; nor is there a file nothere.csv"),
        ({"data": "diabetes", "target": "x"}, "target was given with data = 'diabetes'; it is for files of your own"),
        ({"data": "diabetes", "one_hot": True}, "one_hot was given with data = 'diabetes'"),
        ({"sizes": [1, 2]}, "2 sizes were given for 20 agents"),
        ({"alpha": 0.5}, "alpha=0.5 was given with how='even'"),
    ],
)
def test_experiments_that_make_no_sense(given, sentence):
    with refused(sentence):
        Experiment().with_settings(given).build()


def test_kinds_of_the_new_settings():
    for key, value, words in (
        ("target", 3, "text"),
        ("alpha", "0.5", "a number"),
        ("sizes", 3, "a list"),
        ("one_hot", 1, "true or false"),
        ("header", "yes", "true or false"),
    ):
        with refused(f"{key} = {value!r} was given; it must be {words}"):
            Experiment().with_settings({key: value})


SITES = np.array(["north", "south", "east"] * 20)[: len(LABELS)]


def test_groups_are_agents_with_names():
    problem = amble.Problem.from_arrays(X, LABELS, groups=SITES)
    assert problem.names == ("east", "north", "south")
    for name, part in zip(problem.names, problem.parts, strict=True):
        assert part.tolist() == np.flatnonzero(name == SITES).tolist()
    run = amble.simulate(amble.Relay(), problem, hops=3)
    assert (run.problem["names"], run.problem["settings"]["how"]) == (["east", "north", "south"], "by-group")


@pytest.mark.parametrize("seed", range(5))
def test_every_group_keeps_a_row_to_train_on(seed):
    groups = np.arange(len(LABELS)) // 2  # two rows each: a plain share would hold out both of some
    data = amble.Dataset("pairs", "classification", X, LABELS, groups=groups)
    problem = amble.split(data, test=0.3, seed=seed)
    assert problem.agents == len(problem.names) == len(set(groups.tolist()))
    assert {len(part) for part in problem.parts} == {1, 2}
    assert len(problem.heldout.y) + sum(map(len, problem.parts)) == len(LABELS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"groups": SITES, "agents": 5}, "agents=5 was given with 3 groups, one agent each; leave agents out"),
        ({"groups": SITES, "how": "sorted"}, "how='sorted' was given with groups"),
        ({"groups": SITES, "sizes": [1, 2, 3]}, "sizes was given with groups"),
        ({"groups": SITES[:4]}, r"groups has shape \(4,\), and there are"),
        ({"groups": [None] * len(LABELS)}, "groups holds values that are neither text nor finite numbers"),
        ({"how": "by-group"}, "how='by-group' was given without groups"),
    ],
)
def test_groups_that_make_no_sense(options, sentence):
    with pytest.raises(amble.AmbleError, match=sentence):
        amble.Problem.from_arrays(X, LABELS, **options)


def test_groups_of_one_row_each_leave_nothing_to_hold_out():
    data = amble.Dataset("ones", "classification", X, LABELS, groups=np.arange(len(LABELS)))
    with pytest.raises(amble.AmbleError, match="too few rows per group to keep some for testing"):
        amble.split(data)
    assert amble.split(data, test=0).agents == len(LABELS)


def test_compare_by_a_column_of_a_file(tmp_path):
    rng = np.random.default_rng(0)
    sites = ["north", "south", "east", "west"]
    lines = [f"{a:.6f},{sites[k % 4]},{b:.6f},{a - b:.6f}" for k, (a, b) in enumerate(rng.normal(size=(80, 2)))]
    (tmp_path / "rows.csv").write_text("\n".join(["a,site,b,price", *lines]) + "\n")
    data = amble.read_file(tmp_path / "rows.csv", by="site")
    assert (data.columns, data.target, data.groups[:4].tolist()) == (("a", "b"), "price", sites)
    settings = {"data": str(tmp_path / "rows.csv"), "by": "site", "hops": 40, "methods": [{"name": "Relay"}]}
    (run,) = Experiment().with_settings(settings).run(progress=False)
    assert run.problem["names"] == sorted(sites)
    assert run.network.agents == 4
    assert run.problem["holdings"]["agents"] == sorted(sites)
    with pytest.raises(amble.AmbleError, match="each value of the column is an agent, so leave agents out"):
        Experiment().with_settings({**settings, "agents": 3})
    with pytest.raises(amble.AmbleError, match=r"no column of .* named 'sit'; did you mean 'site'"):
        amble.read_file(tmp_path / "rows.csv", by="sit")
    with pytest.raises(amble.AmbleError, match=r"column 'site' of .* is both target and by; name two columns"):
        amble.read_file(tmp_path / "rows.csv", by="site", target="site")
    np.savez(tmp_path / "rows.npz", X=data.X, y=data.y)
    with pytest.raises(amble.AmbleError, match=r"has no named columns; give groups= to amble.split"):
        amble.read_file(tmp_path / "rows.npz", by="site")
