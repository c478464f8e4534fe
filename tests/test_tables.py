"""Predictions on a table as the user has it: a DataFrame, a mapping, or a file, with text and missing cells."""

import sys

import joblib
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer

import amble
from amble import networks
from amble.cli import main
from amble.data.files import read_table
from amble.live.cluster.cluster import configure
from amble.live.settings.agent_config import AgentConfig
from amble.live.settings.surveyed import model_of
from survey_samples import agreed, frames, pooled, tables_of

COLUMNS = ("age", "town", "income", "bmi")
KINDS = {
    "cost": {},
    "died": {"loss": "logistic"},
    "visits": {"loss": "poisson", "exposure": "years"},
    "kind": {"loss": "softmax"},
}


def trained(agreement):
    """A model under the agreement; any numbers will do."""
    model = model_of(agreement, None)
    w = 0.3 * np.random.default_rng(0).normal(size=model.dimension)
    return model.trained(w, {"survey": agreement.to_json()})


def with_kind(data):
    rng = np.random.default_rng(1)
    return {site: frame.assign(kind=rng.choice(["x", "y", "z"], len(frame))) for site, frame in data.items()}


@pytest.fixture(params=KINDS)
def surveyed(request, tmp_path):
    """A model, its rows in its own columns, and the same rows as users have them: more columns, in another order."""
    data = with_kind(frames(gaps=0.1))
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target=request.param, missing="mean", columns=COLUMNS, **KINDS[request.param])
    X = np.concatenate([agreement.encode(tables[site], site) for site in sorted(tables)])
    rows = pooled(data).assign(day=pd.Timestamp("2024-01-01"), note=[[1, 2]] * len(X))
    return trained(agreement), X, rows[list(rows.columns[::-1])]


def test_a_frame_is_encoded_as_in_training(surveyed):
    model, X, rows = surveyed
    offset = None if model.loss != "poisson" else np.log(rows["years"].to_numpy())
    np.testing.assert_array_equal(model.predict(rows), model.predict(X, offset))
    np.testing.assert_array_equal(model.decision_function(rows), model.decision_function(X, offset))
    if model.labels:
        np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(X))
    y = rows[model.target].to_numpy()
    exposure = rows["years"].to_numpy() if model.loss == "poisson" else None
    assert model.score(rows, y) == model.score(X, y, exposure=exposure)
    mapping = {name: rows[name].tolist() for name in rows}
    np.testing.assert_array_equal(model.predict(mapping), model.predict(rows))


def test_columns_that_are_encoded_already_are_taken_too(surveyed):
    model, X, _ = surveyed
    encoded = pd.DataFrame(X, columns=model.columns).assign(more="text")
    offset = np.zeros(len(X)) if model.loss == "poisson" else None
    np.testing.assert_array_equal(model.decision_function(encoded, offset), model.decision_function(X))


def test_the_pipeline_of_scikit_learn_takes_the_same_frame(surveyed, tmp_path):
    model, X, rows = surveyed
    pipeline = model.to_sklearn()
    assert isinstance(pipeline[0], ColumnTransformer)
    np.testing.assert_allclose(pipeline[0].transform(rows), X, rtol=1e-12)
    expected = model.predict(X)
    check = np.testing.assert_array_equal if model.labels else np.testing.assert_allclose
    check(pipeline.predict(rows), expected)
    joblib.dump(pipeline, tmp_path / "model.joblib")
    check(joblib.load(tmp_path / "model.joblib").predict(rows), expected)
    kept = skops.io.dumps(pipeline)
    check(skops.io.loads(kept, trusted=skops.io.get_untrusted_types(data=kept)).predict(rows), expected)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_pipeline_leaves_out_the_levels_that_the_model_does(tmp_path, intercept):
    data = {site: frame.assign(land="D", sex=np.where(frame["age"] > 50, "f", "m")) for site, frame in frames().items()}
    tables = tables_of(tmp_path, data)
    model = trained(agreed(tables, target="cost", columns=("sex", "land", "age", "town"), intercept=intercept))
    assert ("land=D" in model.columns) is not intercept
    rows = pooled(data)
    np.testing.assert_allclose(model.to_sklearn().predict(rows), model.predict(rows), rtol=1e-12)
    if intercept:
        other = {"reference": ("town=Ulm",), "columns": ("sex", "land", "age", "town")}
        compared = trained(agreed(tables, target="cost", **other))
        assert "town=Ulm" not in compared.columns
        np.testing.assert_allclose(compared.to_sklearn().predict(rows), compared.predict(rows), rtol=1e-12)
    with pytest.raises(ValueError, match="Found unknown categories"):
        model.to_sklearn().predict(rows.assign(town="Paris"))


def test_onnx_takes_the_raw_table(surveyed, tmp_path):
    """One input per column of the table; missing cells are filled as in training, and an unknown level is refused."""
    model, _, rows = surveyed
    session = onnxruntime.InferenceSession(model.to_onnx(tmp_path / "model.onnx"))
    assert {each.name for each in session.get_inputs()} == set(COLUMNS)
    texts = [each.name for each in session.get_inputs() if each.type == "tensor(string)"]
    cells = {name: rows[[name]].fillna("").to_numpy(object) if name in texts else rows[[name]].to_numpy(float)
             for name in COLUMNS}  # fmt: skip
    assert texts
    assert any(np.isnan(values).any() for name, values in cells.items() if name not in texts)
    predicted = session.run(["prediction"], cells)[0]
    if model.labels:
        np.testing.assert_array_equal(predicted, model.predict(rows))
    else:
        ones = np.ones(len(rows)) if model.loss == "poisson" else None
        np.testing.assert_allclose(predicted, model.predict(rows, exposure=ones), rtol=1e-11)
    strange = cells | {texts[0]: np.full((len(rows), 1), "Atlantis", object)}
    with pytest.raises(Exception, match="indices element out of data bounds"):
        session.run(["prediction"], strange)


def test_cells_may_have_any_type_of_pandas(surveyed):
    model, X, rows = surveyed
    expected = model.decision_function(X, np.log(rows["years"]) if model.loss == "poisson" else None)
    ages = rows["age"].astype("Int64")
    other = rows.assign(
        age=ages, town=rows["town"].astype("category"), bmi=[None if np.isnan(v) else str(v) for v in rows["bmi"]]
    )
    assert other["age"].isna().any()
    np.testing.assert_array_equal(model.decision_function(other), expected)
    plain = rows.assign(town=np.array([None if t is np.nan else t for t in rows["town"].astype(object)], object))
    np.testing.assert_array_equal(model.decision_function(plain), expected)
    words = rows.assign(town=rows["town"].astype("string[python]"))
    np.testing.assert_array_equal(model.decision_function(words), expected)


@pytest.mark.parametrize(("yes", "no"), [("TRUE", "FALSE"), ("True", "False"), ("true", "false"), ("z", "1")])
def test_truth_values_and_numbers_are_levels_as_in_the_file(tmp_path, yes, no):
    """pandas reads TRUE as a truth value; rows without the words of a column may have numbers alone."""
    smoker = np.arange(30) % 3 > 0
    lines = [f"{k},{yes if smoker[k] else no},{k * 1.5}" for k in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["x,smoker,y", *lines]))
    model = trained(agreed({"a": read_table(tmp_path / "a.csv", None, None)}, target="y"))
    assert model.columns == ("x", f"smoker={yes}")
    frame = pd.read_csv(tmp_path / "a.csv")
    expected = model.predict(np.column_stack([frame["x"], smoker]))
    np.testing.assert_array_equal(model.predict(frame), expected)
    frame[~smoker].to_csv(tmp_path / "b.csv", index=False)
    np.testing.assert_array_equal(model.predict(pd.read_csv(tmp_path / "b.csv")), expected[~smoker])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows.drop(columns="bmi"), "column 'bmi' of the training rows is not in the table; add it"),
        (
            lambda rows: rows.assign(age=[np.nan, *rows["age"][1:]]),
            "the table has 1 missing cell in 'age'; fill them, or",
        ),
        (
            lambda rows: rows.assign(town="Paris"),
            "the table, row 1, column town holds 'Paris', a level that no site had",
        ),
        (lambda rows: rows.assign(bmi="high"), "the table, column 'bmi' holds text, and the sites agreed on numbers"),
        (
            lambda rows: rows.assign(bmi=pd.Timestamp("2024-01-01")),
            "the table: column 'bmi' holds datetime64.* values; give",
        ),
        (
            lambda rows: {**rows, "bmi": [1.0]},
            "the table: column 'age' has 148 values and 'bmi' 1; give as many in each",
        ),
        (lambda rows: {**rows, "bmi": 21.5}, r"the table: column 'bmi' holds an array of shape \(\); give a list"),
        (
            lambda rows: pd.concat([rows, rows[["age"]]], axis=1),
            "the table: two columns are named 'age'; give each its own",
        ),
        (lambda rows: rows.drop(columns="years"), "column 'years' of the training rows is not in the table; add it"),
        (lambda rows: rows.assign(years=0.0), "the table, row 1, column years is 0; the exposure must be above zero"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, change, sentence):
    data = frames()
    agreement = agreed(tables_of(tmp_path, data), target="visits", columns=COLUMNS, **KINDS["visits"])
    rows = pooled(data)
    model = trained(agreement)
    assert (model.predict(rows) > 0).all()
    with pytest.raises(amble.AmbleError, match=sentence):
        model.predict(change(rows))


def test_offsets_that_are_given_are_the_only_ones(tmp_path):
    data = frames()
    model = trained(agreed(tables_of(tmp_path, data), target="visits", columns=COLUMNS, **KINDS["visits"]))
    rows = pooled(data)
    rates = model.predict(rows, exposure=np.ones(len(rows)))
    np.testing.assert_allclose(rates, np.exp(model.decision_function(rows, exposure=np.ones(len(rows)))), rtol=1e-12)
    np.testing.assert_allclose(model.predict(rows), rates * rows["years"], rtol=1e-12)
    np.testing.assert_array_equal(model.predict(rows.drop(columns="years"), offset=np.zeros(len(rows))), rates)


# --- without a survey -------------------------------------------------------------------------------------------------


@pytest.fixture
def flats(tmp_path):
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "rooms": rng.integers(1, 6, 60),
            "town": rng.choice(["Ulm", "Bonn", "Köln"], 60),
            "years": rng.uniform(1, 3, 60),
            "kind": rng.choice(["a=b", "c"], 60),
        }
    )
    table["calls"] = rng.poisson(table["years"] * table["rooms"])
    table.to_csv(tmp_path / "flats.csv", index=False)
    return tmp_path / "flats.csv", table


def test_a_one_hot_model_takes_the_raw_table(flats, tmp_path):
    path, table = flats
    options = {"target": "calls", "task": "regression", "exposure": "years"}
    data = amble.read_file(path, categorical="one-hot", **options)
    assert data.table == {"exposure": "years", "categories": ["town", "kind"]}
    problem = amble.split(data, agents=4, loss="poisson", test=0)
    run = amble.simulate(amble.Relay(), problem, hops=60, progress=False)
    expected = run.predict(data.X, exposure=data.exposure)
    shuffled = table.assign(more="x")[["more", "town", "years", "kind", "rooms"]]
    run.save(tmp_path / "run")
    run.trained(problem).save(tmp_path / "model.npz")
    for model in (run, run.trained(), amble.load_model(tmp_path / "run"), amble.load_model(tmp_path / "model.npz")):
        np.testing.assert_array_equal(model.predict(shuffled), expected)
        np.testing.assert_array_equal(model.predict(dict(shuffled)), expected)
    rates = run.predict(data.X)
    np.testing.assert_array_equal(problem.predict(run.model, shuffled), rates)
    np.testing.assert_allclose(run.trained().to_sklearn().predict(shuffled), rates, rtol=1e-12)
    with pytest.raises(
        amble.AmbleError, match="row 1, column town holds 'Paris', a category that the columns given have"
    ):
        run.predict(shuffled.assign(town="Paris"))
    with pytest.raises(amble.AmbleError, match="row 1, column town is empty"):
        run.predict(shuffled.assign(town=None))
    with pytest.raises(amble.AmbleError, match="column 'kind' of the training rows is not in the table; add it"):
        run.predict(shuffled.drop(columns="kind"))


def test_a_live_agents_own_model_takes_the_raw_table(flats, tmp_path):
    """Also while it runs: its settings say which columns of the file had a role."""
    path, table = flats
    data = amble.read_file(path, categorical="one-hot", target="calls", task="regression", exposure="years")
    problem = amble.split(data, agents=2, loss="poisson", test=0)
    settings = configure(problem, amble.Relay(form="full"), networks.ring(2), {"hops": 10}, 0, {})
    settings.agent("agent01").write(tmp_path)
    read = AgentConfig.read(tmp_path)
    assert read.digest == settings.agent("agent01").digest
    np.save(tmp_path / "model.npy", problem.optimum().w)
    model = amble.load_model(tmp_path)
    assert (model.target, model.about["table"]) == ("calls", {"exposure": "years", "categories": ["town", "kind"]})
    expected = problem.predict(problem.optimum().w, data.X, exposure=data.exposure)
    np.testing.assert_array_equal(model.predict(table), expected)
    rates = model.to_sklearn().predict(table[["kind", "town", "rooms"]])
    np.testing.assert_allclose(rates * table["years"], expected, rtol=1e-12)


def test_a_path_takes_the_raw_table_too(flats):
    path, table = flats
    data = amble.read_file(path, categorical="one-hot", target="rooms", task="regression")
    made = amble.path(data, agents=3, lambdas=5)
    np.testing.assert_array_equal(made.predict(table), made.predict(data.X))


def test_names_alone_are_put_in_order():
    data = amble.load("diabetes")
    model = amble.simulate(amble.Relay(), amble.split(data), hops=20, progress=False).trained()
    frame = pd.DataFrame(data.X, columns=data.columns).assign(note="text")
    expected = model.predict(data.X)
    np.testing.assert_array_equal(model.predict(frame[list(frame.columns[::-1])]), expected)
    np.testing.assert_array_equal(model.predict({name: frame[name].to_numpy() for name in frame}), expected)
    np.testing.assert_array_equal(model.to_sklearn().predict(frame[list(data.columns)]).round(6), expected.round(6))
    with pytest.raises(amble.AmbleError, match="column 'bmi' of the training rows is not in the table; add it"):
        model.score(frame.drop(columns="bmi"), data.y)
    with pytest.raises(amble.AmbleError, match=r"the table, row 3, column bmi is nan \(1 such in that column\); fill"):
        model.predict(frame.assign(bmi=[0.1, 0.1, np.nan, *[0.2] * (len(frame) - 3)]))
    bare = amble.simulate(amble.Relay(), amble.Problem.from_arrays(data.X, data.y), hops=20, progress=False).trained()
    np.testing.assert_array_equal(bare.predict(frame[list(data.columns)]), bare.predict(data.X))
    with pytest.raises(
        amble.AmbleError, match="the table has names, and the columns of training have none; give an array"
    ):
        bare.predict(dict(frame))


# --- amble predict ----------------------------------------------------------------------------------------------------


def predict(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["amble", "predict", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def numbers(out):
    return np.array([float(line) for line in out.splitlines()[1:]])


def test_the_command_predicts_what_python_does(surveyed, tmp_path, monkeypatch, capsys):
    model, _, rows = surveyed
    model.save(tmp_path / "model.npz")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    code, out, err = predict(monkeypatch, capsys, tmp_path / "model.npz", tmp_path / "rows.csv")
    assert code == 0, err
    assert f"on {len(rows)} rows" in err
    expected = model.predict(rows)
    if model.loss == "softmax":
        assert out.split()[1:] == expected.tolist()
    else:
        np.testing.assert_allclose(numbers(out), expected, rtol=1e-12)


def test_the_command_ignores_other_columns_of_a_one_hot_model(flats, tmp_path, monkeypatch, capsys):
    path, table = flats
    data = amble.read_file(path, categorical="one-hot", target="calls", task="regression", exposure="years")
    problem = amble.split(data, agents=4, loss="poisson", test=0)
    run = amble.simulate(amble.Relay(), problem, hops=60, progress=False)
    run.trained().save(tmp_path / "model.npz")
    one = table[table["town"] == "Ulm"].assign(id="x", day="today")
    one[["id", "kind", "years", "town", "rooms", "day"]].to_csv(tmp_path / "new.csv", index=False)
    code, out, err = predict(monkeypatch, capsys, tmp_path / "model.npz", tmp_path / "new.csv")
    assert (code, err) == (0, "")
    np.testing.assert_allclose(numbers(out), run.predict(one), rtol=1e-12)
    one[["rooms", "town", "kind", "years", "id"]].to_csv(tmp_path / "new.csv", index=False)  # id is no target
    code, _, err = predict(monkeypatch, capsys, tmp_path / "model.npz", tmp_path / "new.csv")
    assert (code, err) == (0, "")
    code, out, err = predict(monkeypatch, capsys, tmp_path / "model.npz", path)
    assert (code, err.split()[0]) == (0, "NMSE")
    table.drop(columns="years").to_csv(tmp_path / "new.csv", index=False)
    code, _, err = predict(monkeypatch, capsys, tmp_path / "model.npz", tmp_path / "new.csv")
    assert code == 2
    assert "column 'years' of the training rows is not in" in err
    np.savez(tmp_path / "new.npz", X=data.X, exposure=data.exposure)
    code, out, err = predict(monkeypatch, capsys, tmp_path / "model.npz", tmp_path / "new.npz")
    assert code == 0, err
    np.testing.assert_allclose(numbers(out), run.predict(table), rtol=1e-12)
