"""Calls with a value of the wrong type, or a file of the wrong kind: one sentence, never a raw Python error."""

import sys

import numpy as np
import pytest

import amble
from amble import AmbleError, networks
from amble.cli import main
from amble.live.model.model import Model

DATA = amble.load("diabetes")
X, Y = DATA.X, DATA.y
PROBLEM = amble.split(DATA, agents=5)
RUN = amble.simulate(amble.Relay(), PROBLEM, hops=10, progress=False)
RUNS = amble.compare([amble.Relay()], PROBLEM, hops=5, progress=False)
RELAY = amble.Relay()
ROWS = "give X as"

CALLS = {
    "a data set for a problem": (lambda: amble.simulate(RELAY, DATA), "divide it among agents first: amble.split"),
    "rows for a problem": (lambda: amble.simulate(RELAY, X), "a ndarray was given as the problem; give an amble.Prob"),
    "no problem": (lambda: amble.compare([RELAY], None), "None was given as the problem"),
    "arguments swapped": (lambda: amble.simulate(PROBLEM, RELAY), "a Relay was given as the problem"),
    "a method's name": (lambda: amble.simulate("Relay", PROBLEM), "'Relay' was given as a method"),
    "one method to compare": (lambda: amble.compare(RELAY, PROBLEM), "was given as methods; give a list of them"),
    "rows for a data set": (lambda: amble.split(X, Y), "a ndarray was given as the data; give an amble.Dataset"),
    "a name for a data set": (lambda: amble.split("diabetes"), "'diabetes' was given as the data"),
    "a share that is text": (lambda: amble.split(DATA, test="0.2"), "test=0.2 was given; it is the share"),
    "a truth value for agents": (lambda: amble.split(DATA, agents=True), "agents=True was given"),
    "text for a flag": (
        lambda: amble.split(DATA, intercept="no"),
        "intercept='no' was given; it must be True",
    ),
    "a data set of nothing": (lambda: amble.split(amble.Dataset("mine", "regression", None, None)), ROWS),
    "a path for a run": (lambda: amble.resume("run", PROBLEM), "'run' was given as the run; give an amble.Run"),
    "runs for a run": (lambda: amble.resume(RUNS, PROBLEM), "a Comparison was given as the run"),
    "a run for a path": (lambda: amble.load_run(RUN), "a Run was given as a saved run; give a path"),
    "a number for a path": (lambda: amble.read_file(5), "5 was given as a file of rows; give a path"),
    "nothing for a figure": (lambda: RUNS.plot(None), "None was given as the figure; give a path"),
    "nothing for a page": (lambda: RUNS.report(None), "None was given as the page; give a path"),
    "nothing to save to": (lambda: RUN.save(None), "None was given as a saved run; give a path"),
    "nowhere to save to": (lambda: RUN.save("/proc/nowhere/run"), "cannot be saved to /proc/nowhere/run"),
    "a list for a name": (lambda: amble.load(["diabetes"]), "no data set named"),
    "a run for a model": (lambda: PROBLEM.predict(RUN, X), "a Run was given as the model; .* use run.predict"),
    "a run for a model to judge": (lambda: PROBLEM.metric(RUN), "a Run was given as the model"),
    "a short model": (lambda: PROBLEM.predict(RUN.model[:3], X), "the model has 3 numbers and these rows 11 unknowns"),
    "a path to predict": (lambda: RUN.predict("rows.csv"), "the rows must hold numbers: 'rows.csv' was given"),
    "ragged rows to predict": (lambda: RUN.predict([[1, 2], [3]]), "the rows must hold numbers: setting an array"),
    "a run to predict": (lambda: RUN.predict(RUN), "the rows must hold numbers: a Run was given"),
    "one row to predict": (
        lambda: RUN.predict(X[0]),
        r"the rows have shape \(10,\); give \(rows, 10\), as",
    ),
    "gaps to predict": (lambda: RUN.predict(X * np.nan), "the rows hold values that are not finite"),
    "labels of two kinds": (
        lambda: amble.Problem.from_arrays(X[:4], np.array(["a", None, "a", 3], object), agents=2),
        "y holds labels of type NoneType, int, str; give all as text, or all as numbers",
    ),
    "complex rows": (lambda: amble.Problem.from_arrays(X * 1j, Y), "must hold numbers: not complex ones"),
    "complex targets": (lambda: amble.Problem.from_arrays(X, Y * 1j), "must hold numbers: not complex ones"),
    "ragged rows": (lambda: amble.Problem.from_arrays([[1, 2], [3]], [1.5, 2.5]), "X and y must hold numbers"),
    "no rows": (lambda: amble.Problem.from_arrays(None, Y), ROWS),
    "targets without rows": (lambda: amble.Problem.from_arrays(X, Y, y_test=Y), "y_test was given without X_test"),
    "rows not in pairs": (
        lambda: amble.Problem.from_agents((X, Y)),
        "a ndarray was given as agent 0's rows",
    ),
    "agents by name": (lambda: amble.Problem.from_agents({"north": (X, Y)}), "a dict was given as the agents' rows"),
    "no objectives": (lambda: amble.Problem.from_objectives(None, 3), "None was given as the objectives; give a list"),
    "agents that are text": (lambda: networks.ring("5"), "agents='5' was given; a network needs at least one agent"),
    "agents of a complete network": (lambda: networks.complete(None), "agents=None was given"),
    "a radius that is text": (lambda: networks.geometric(5, radius="x"), "radius='x' was given; it must be a number"),
    "links that are text": (lambda: networks.from_edges(3, "abc"), "'abc' was given as the links; give pairs"),
    "links of three": (lambda: networks.from_edges(3, [(0, 1, 2)]), "a list was given as the links; give pairs"),
    "half an agent": (lambda: networks.from_edges(3, [(0.5, 1)]), "a list was given as the links; give pairs"),
    "a list for a graph": (lambda: networks.from_networkx([(0, 1)]), "a list was given as a networkx graph"),
}


@pytest.mark.parametrize(("call", "sentence"), CALLS.values(), ids=CALLS)
def test_a_clumsy_call_is_answered_in_a_sentence(call, sentence):
    with pytest.raises(AmbleError, match=sentence):
        call()


def test_lists_make_a_data_set_too():
    data = amble.Dataset("mine", "regression", X.tolist(), Y.tolist())
    assert np.array_equal(amble.split(data, agents=5).stacked.A, PROBLEM.stacked.A)


def predict(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["amble", "predict", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("name", ["rows.csv", "model.npy", "empty.npz"])
def test_what_is_no_model_file_is_called_so(monkeypatch, capsys, tmp_path, name):
    np.save(tmp_path / "model.npy", RUN.model)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.npz").write_bytes(b"")
    code, said = predict(monkeypatch, capsys, tmp_path / name, tmp_path / "rows.csv")
    assert code == 2
    assert f"{name} is not a model file; give the model.npz that amble up or an agent wrote" in said


@pytest.mark.parametrize("content", ["a,b,y\n1,2,3.5\n", "1,2,3.5\n"])
def test_a_file_of_one_row_cannot_be_split_and_says_so(monkeypatch, capsys, tmp_path, content):
    (tmp_path / "one.csv").write_text(content)
    data = amble.read_file(tmp_path / "one.csv")
    assert data.X.shape == (1, 2)
    with pytest.raises(AmbleError, match="one has 1 row, and a share of the rows is kept for testing; give more"):
        amble.split(data, agents=1)
    monkeypatch.setattr(
        sys, "argv", ["amble", "compare", "--data", str(tmp_path / "one.csv"), "-o", str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "1 row" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "on"), [(1, "1 row"), (3, "3 rows")])
def test_targets_that_do_not_differ_have_no_nmse(monkeypatch, capsys, tmp_path, rows, on):
    RUN.save(tmp_path / "run")
    table = [",".join((*DATA.columns, DATA.target)), *(",".join(map(repr, [*row, 150.0])) for row in X[:rows].tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(table) + "\n")
    monkeypatch.setattr(sys, "argv", ["amble", "predict", str(tmp_path / "run.npz"), str(tmp_path / "rows.csv")])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 0
    np.testing.assert_allclose(list(map(float, shown.out.split()[1:])), RUN.predict(X[:rows]), rtol=1e-12)
    assert shown.err == f"no NMSE on {on}: it needs targets that differ\n"


def rows_file(folder):
    """Ten rows of the data with their names, and what the run predicts for them."""
    lines = [",".join(DATA.columns), *(",".join(map(repr, row)) for row in X[:10].tolist())]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return folder / "rows.csv", RUN.predict(X[:10])


@pytest.mark.parametrize("name", ["out/run.npz", "out/run.json", "out/run", "out"])
def test_a_saved_run_predicts_too(monkeypatch, capsys, tmp_path, name):
    RUN.save(tmp_path / "out" / "run")
    rows, expected = rows_file(tmp_path)
    monkeypatch.setattr(sys, "argv", ["amble", "predict", str(tmp_path / name), str(rows)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "progression"  # the target's name
    np.testing.assert_allclose([float(line) for line in lines], expected, rtol=1e-12)


def test_a_run_of_classes_predicts_labels(monkeypatch, capsys, tmp_path):
    data = amble.load("breast_cancer")
    run = amble.simulate(amble.Relay(), amble.split(data, agents=5), hops=50, progress=False)
    run.save(tmp_path / "run")
    np.savez(tmp_path / "rows.npz", X=data.X, y=data.y)
    monkeypatch.setattr(sys, "argv", ["amble", "predict", str(tmp_path / "run.npz"), str(tmp_path / "rows.npz")])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == 0
    assert [int(line) for line in out.splitlines()[1:]] == run.predict(data.X).tolist()
    assert f"accuracy {np.mean(run.predict(data.X) == data.y):.4f} on 569 rows" in err


def test_a_folder_without_one_model_is_a_sentence(monkeypatch, capsys, tmp_path):
    rows, _ = rows_file(tmp_path)
    code, said = predict(monkeypatch, capsys, tmp_path, rows)
    assert code == 2
    assert f"the folder {tmp_path} has no model.npz and no saved run; give a file, or a folder with one." in said
    for agent in ("south", "north"):
        (tmp_path / "live" / agent).mkdir(parents=True)
        (tmp_path / "live" / agent / "model.npz").touch()
    _, said = predict(monkeypatch, capsys, tmp_path / "live", rows)
    assert f"no saved run; give an agent's, such as {tmp_path / 'live' / 'north' / 'model.npz'}." in said
    RUN.save(tmp_path / "1-relay")
    RUN.save(tmp_path / "2-relay")
    code, said = predict(monkeypatch, capsys, tmp_path, rows)
    assert code == 2
    assert f"has 2 saved runs; give one of them, such as {tmp_path / '1-relay'}.npz" in said


def test_text_where_a_model_has_numbers_is_answered_with_what_works_there(monkeypatch, capsys, tmp_path):
    (tmp_path / "towns.csv").write_text("rooms,town,price\n3,Ulm,310.5\n2,Bonn,295\n")
    model = Model("regression", columns=2)
    with pytest.raises(AmbleError) as refused:
        model.read(tmp_path / "towns.csv")
    assert "line 2, column town holds 'Ulm', which is not a number; write numbers there, or name all" in str(
        refused.value
    )
    assert "one-hot" not in str(refused.value)
    model.trained(np.zeros(3)).save(tmp_path / "model.npz")
    code, said = predict(monkeypatch, capsys, tmp_path / "model.npz", tmp_path / "towns.csv")
    assert code == 2
    assert "'Ulm', which is not a number; the model was trained on numbers: write numbers there." in said


def test_options_of_tables_are_refused_where_the_rows_are_arrays(monkeypatch, capsys, tmp_path):
    Model("regression", columns=2).trained(np.zeros(3)).save(tmp_path / "model.npz")
    np.savez(tmp_path / "rows.npz", X=np.zeros((4, 2)))
    for options, sentence in (
        (["--header"], "header=True was given for"),
        (["--target", "price"], "target='price' was given for"),
    ):
        code, said = predict(monkeypatch, capsys, tmp_path / "model.npz", tmp_path / "rows.npz", *options)
        assert code == 2
        assert sentence in said


def test_the_target_that_nobody_named_is_said(monkeypatch, capsys, tmp_path):
    lines = ["a,b,price", *(f"{k},{k * k % 7},{1.5 * k}" for k in range(60))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    assert repr(amble.read_file("rows.csv")) == "Dataset(rows: regression, 60 rows, 2 columns, target price)"
    words = ["amble", "compare", "--data", "rows.csv", "-n", "4", "-m", "Relay", "--hops", "8"]
    said = {}
    for name, more in {"last": [], "named": ["--target", "a"]}.items():
        monkeypatch.setattr(sys, "argv", [*words, *more, "-o", name])
        with pytest.raises(SystemExit):
            main()
        said[name] = capsys.readouterr().out
    assert "note: the target is price, the last column of rows.csv; --target names another." in said["last"]
    assert "the target is" not in said["named"]
