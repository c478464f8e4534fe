"""amble.Model: units, predictions, its file, and what others make of it."""

import io
import json
import sys
from dataclasses import replace

import joblib
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

import amble
from amble.arrays import leaves
from amble.cli import main
from amble.data.packed import arrays_of, npz_of
from amble.results import model_file
from amble.results.partial import TIES
from model_samples import NAMES, Sample

LOSSES = ["least-squares", "huber", "logistic", "softmax", "poisson", "gamma", "cox"]
EXPORTED = [loss for loss in LOSSES if loss != "cox"]


@pytest.fixture(scope="module", params=LOSSES)
def sample(request):
    return Sample(request.param)


@pytest.fixture(scope="module")
def run():
    problem = amble.split(amble.load("diabetes"), agents=5, ridge=0.0, weights="rows")
    return amble.simulate(amble.Relay(form="full"), problem, hops=30, progress=False), problem


def test_coefficients_are_in_the_units_of_the_data(sample):
    model = sample.model
    eta = sample.X @ np.atleast_2d(model.coef_).T + model.intercept_
    if sample.loss in TIES:
        eta = eta - eta.mean()
        decided = model.decision_function(sample.X)
        np.testing.assert_allclose(eta[:, 0], decided - decided.mean(), atol=1e-12)
        assert list(model.params) == list(NAMES)
        return
    decided = model.decision_function(sample.X)
    np.testing.assert_allclose(eta if eta.shape[1] > 1 else eta[:, 0], decided, rtol=1e-10, atol=1e-12)
    if sample.loss == "softmax":
        assert list(model.params) == list(sample.labels)
        assert model.params["good"]["age"] == model.coef_[2, 1]
    else:
        assert list(model.params) == ["intercept", *NAMES]
        assert model.params["age"] == np.ravel(model.coef_)[1]


def test_predictions_follow_from_the_linear_predictor(sample):
    model, eta = sample.model, sample.model.decision_function(sample.X)
    predicted = model.predict(sample.X)
    if sample.loss in ("poisson", "gamma"):
        np.testing.assert_allclose(predicted, np.exp(eta), rtol=1e-12)
        exposed = model.predict(sample.X, exposure=sample.exposure)
        np.testing.assert_allclose(exposed, sample.exposure * np.exp(eta), rtol=1e-12)
        np.testing.assert_allclose(model.decision_function(sample.X, exposure=sample.exposure), np.log(exposed))
        offset = np.log(sample.exposure)
        assert model.score(sample.X, sample.y, offset=offset) == model.score(sample.X, sample.y, None, sample.exposure)
        np.testing.assert_allclose(model.predict(sample.X, offset=np.log(sample.exposure)), exposed, rtol=1e-12)
    elif sample.labels:
        chances = model.predict_proba(sample.X)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(predicted, np.array(sample.labels)[chances.argmax(axis=1)])
    else:
        np.testing.assert_allclose(predicted, eta, rtol=1e-12)
    if not sample.labels:
        with pytest.raises(amble.AmbleError, match="has no labels; use predict"):
            model.predict_proba(sample.X)


def test_a_frame_is_taken_by_its_names(sample):
    frame = pd.DataFrame(sample.X, columns=NAMES)[list(NAMES[::-1])]
    np.testing.assert_array_equal(sample.model.predict(frame), sample.model.predict(sample.X))
    with pytest.raises(amble.AmbleError, match=r"have shape \(300, 2\); give \(rows, 3\)"):
        sample.model.decision_function(sample.X[:, :2])


def test_scores_are_those_of_scikit_learn(sample):
    model, X, y = sample.model, sample.X, sample.y
    weight = np.linspace(0.5, 2.0, len(y))
    if sample.labels:
        expected = accuracy_score(y, model.predict(X), sample_weight=weight)
    elif sample.loss in ("poisson", "gamma"):
        power = 1 if sample.loss == "poisson" else 2
        expected = d2_tweedie_score(y, model.predict(X), sample_weight=weight, power=power)
    elif sample.loss in TIES:
        right, pairs = 0.0, 0
        eta = model.predict(X)
        for i in np.flatnonzero(y > 0):
            later = np.abs(y) > y[i]
            pairs += later.sum()
            right += (eta[i] > eta[later]).sum()
        expected = right / pairs
    else:
        expected = r2_score(y, model.predict(X), sample_weight=weight)
    assert model.score(X, y, weight) == pytest.approx(expected, rel=1e-12)


def test_measures_over_agents_are_those_of_all_rows(sample):
    found, X, y = sample.model.measures(), sample.X, sample.y
    predicted = sample.model.predict(X, exposure=None if (sample.exposure == 1).all() else sample.exposure)
    assert found["rows"] == 300
    if sample.labels:
        assert found["accuracy"] == pytest.approx(np.mean(predicted == y))
    elif sample.loss not in TIES:
        assert found["RMSE"] == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)), rel=1e-10)
    if sample.loss in ("least-squares", "huber"):
        assert found["R2"] == pytest.approx(r2_score(y, predicted), rel=1e-10)
        assert found["NMSE"] == pytest.approx(1 - found["R2"], rel=1e-10)
    assert sample.model.measures(test=True) == {"rows": 0.0}


def test_a_file_gives_back_everything(sample, tmp_path):
    model = replace(sample.model, about={"run": "plant", "agents": ["north", "south"]}, penalty={"ridge": 0.5})
    model.save(tmp_path / "model.npz")
    back = amble.load_model(tmp_path / "model.npz")
    for key in ("task", "loss", "columns", "labels", "intercept", "target", "penalty", "about"):
        assert getattr(back, key) == getattr(model, key), key
    np.testing.assert_array_equal(back.w, model.w)
    assert all(np.array_equal(a, b) for a, b in zip(leaves(back.sums), leaves(model.sums), strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(back.scaling, model.scaling, strict=True))
    np.testing.assert_array_equal(back.predict(sample.X), model.predict(sample.X))
    assert str(back.summary("none")) == str(model.summary("none"))


def test_whatever_is_changed_in_a_file_is_noticed(sample, tmp_path):
    path = sample.model.save(tmp_path / "model.npz")
    arrays = arrays_of(path.read_bytes())
    for name in arrays:
        if name == "sha256":
            continue
        changed = np.array(str(arrays[name]).replace("outcome", "income")) if name == "about" else arrays[name] + 1
        path.write_bytes(npz_of({**arrays, name: changed}))
        with pytest.raises(amble.AmbleError, match="damaged or cut short"):
            amble.load_model(path)
    about = json.loads(str(arrays["about"]))
    path.write_bytes(npz_of({**arrays, "about": np.array(json.dumps({**about, "format": 9}))}))
    with pytest.raises(amble.AmbleError, match="a model of format 9, and this amble reads 1 and 2"):
        amble.load_model(path)


def test_a_run_says_where_its_model_comes_from(run, tmp_path):
    done, problem = run
    model = amble.load_model(done.trained(problem).save(tmp_path / "model.npz"))
    about = model.about
    assert about["digest"] == problem.digest
    assert about["agents"] == 5
    assert about["method"] == done.label
    assert set(about["versions"]) == {"amble", "numpy", "python"}
    np.testing.assert_array_equal(model.predict(amble.load("diabetes").X), done.predict(amble.load("diabetes").X))
    assert done.trained().sums is None
    other = amble.split(amble.load("diabetes"), agents=4)
    with pytest.raises(amble.AmbleError, match="another problem was given"):
        done.trained(other)


def test_a_saved_run_is_a_model_too(run, tmp_path):
    done, _ = run
    done.save(tmp_path / "relay")
    for path in (tmp_path, tmp_path / "relay.json", str(tmp_path / "relay.npz")):
        np.testing.assert_array_equal(amble.load_model(path).coef_, done.trained().coef_)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("poisson", {"exposure": True, "sample_weight": True}),
        ("gamma", {"exposure": True}),
        ("logistic", {"sample_weight": True}),
        ("cox", {}),
    ],
)
def test_a_simulated_run_of_any_loss_has_the_sums_of_its_rows(loss, options):
    sample = Sample(loss, weighted="sample_weight" in options)
    given = {"exposure": sample.exposure, "sample_weight": sample.weight}
    problem = amble.Problem.from_arrays(
        pd.DataFrame(sample.X, columns=NAMES),
        sample.y,
        task="classification" if sample.labels else "regression",
        groups=sample.group,
        loss=loss,
        ridge=0.0,
        **{name: given[name] for name in options},
    )
    model = amble.simulate(amble.Relay(form="full"), problem, hops=60, progress=False).trained(problem)
    np.testing.assert_allclose(model.coef_, sample.model.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.summary().std_err, sample.model.summary().std_err, rtol=1e-6)
    assert model.summary().measures == pytest.approx(sample.model.summary().measures, rel=1e-8)


def test_two_classes_of_softmax_are_one_logistic_model():
    logistic, both = Sample("logistic"), Sample("softmax", labels=("bad", "fair", "good"))
    W = np.concatenate([-logistic.model.w / 2, logistic.model.w / 2])
    pair = replace(logistic.model, loss="softmax", w=W, sums=None)
    np.testing.assert_allclose(pair.coef_, logistic.model.coef_, rtol=1e-12)
    np.testing.assert_allclose(pair.predict_proba(logistic.X), logistic.model.predict_proba(logistic.X), rtol=1e-12)
    assert both.model.coef_.shape == (3, 3)


# --- exports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", EXPORTED)
def test_scikit_learn_predicts_the_same(loss, tmp_path):
    sample = Sample(loss)
    frame = pd.DataFrame(sample.X, columns=NAMES)
    pipeline = sample.model.to_sklearn()
    joblib.dump(pipeline, tmp_path / "model.joblib")
    skops.io.dump(pipeline, tmp_path / "model.skops")
    unknown = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("sklearn.") for name in unknown)
    loaded = joblib.load(tmp_path / "model.joblib"), skops.io.load(tmp_path / "model.skops", trusted=unknown)
    for each in (pipeline, *loaded):
        predicted = each.predict(frame)
        if sample.labels:
            np.testing.assert_array_equal(predicted, sample.model.predict(sample.X))
            np.testing.assert_allclose(each.predict_proba(frame), sample.model.predict_proba(sample.X), rtol=1e-11)
        else:
            np.testing.assert_allclose(predicted, sample.model.predict(sample.X), rtol=1e-12)
    np.testing.assert_array_equal(pipeline.feature_names_in_, NAMES)


def test_an_exported_pipeline_is_the_estimator_that_scikit_learn_fits():
    data = amble.load("diabetes")
    problem = amble.split(data, agents=5, ridge=0.0, test=0)
    model = amble.simulate(amble.Relay(form="full"), problem, hops=30, progress=False).trained()
    fitted = LinearRegression().fit(data.X, data.y)
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-8)
    assert isinstance(model.to_sklearn()[-1], LinearRegression)
    frame = pd.DataFrame(data.X, columns=data.columns)
    assert model.to_sklearn().score(frame, data.y) == pytest.approx(fitted.score(data.X, data.y), rel=1e-10)


@pytest.mark.parametrize("loss", EXPORTED)
def test_onnx_predicts_the_same(loss, tmp_path):
    sample = Sample(loss)
    session = onnxruntime.InferenceSession(sample.model.to_onnx(tmp_path / "model.onnx"))
    outputs = dict(zip([each.name for each in session.get_outputs()], session.run(None, {"X": sample.X}), strict=True))
    if sample.labels:
        np.testing.assert_array_equal(outputs["prediction"], sample.model.predict(sample.X))
        np.testing.assert_allclose(outputs["probabilities"], sample.model.predict_proba(sample.X), rtol=1e-11)
    else:
        np.testing.assert_allclose(outputs["prediction"], sample.model.predict(sample.X), rtol=1e-11)


def test_labels_that_are_numbers_are_exported_as_numbers(tmp_path):
    sample = Sample("logistic", labels=(3, 7))
    session = onnxruntime.InferenceSession(sample.model.to_onnx(tmp_path / "model.onnx"))
    np.testing.assert_array_equal(session.run(["prediction"], {"X": sample.X})[0], sample.model.predict(sample.X))
    assert sample.model.to_sklearn().classes_.tolist() == [3, 7]


def test_onnx_of_categories_without_a_survey(tmp_path):
    """As amble.read_file encodes them: a column per level, and no cell may be missing."""
    table = pd.DataFrame({"town": ["Ulm", "Bonn", "Rom"] * 8, "prediction": np.arange(24.0), "y": np.arange(24.0) ** 2})
    table.to_csv(tmp_path / "rows.csv", index=False)
    data = amble.read_file(tmp_path / "rows.csv", task="regression", categorical="one-hot")
    model = amble.simulate(amble.Relay(), amble.split(data, agents=2, test=0), hops=8, progress=False).trained()
    with pytest.raises(amble.AmbleError, match="the column 'prediction' has the name of an output; rename it"):
        model.to_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
    table.rename(columns={"prediction": "size"}).to_csv(tmp_path / "rows.csv", index=False)
    data = amble.read_file(tmp_path / "rows.csv", task="regression", categorical="one-hot")
    model = amble.simulate(amble.Relay(), amble.split(data, agents=2, test=0), hops=8, progress=False).trained()
    session = onnxruntime.InferenceSession(model.to_onnx(tmp_path / "model.onnx"))
    cells = {"town": np.array([["Rom"], ["Ulm"]], object), "size": np.array([[1.5], [4.0]])}
    expected = model.predict({"town": ["Rom", "Ulm"], "size": [1.5, 4.0]})
    np.testing.assert_allclose(session.run(None, cells)[0], expected, rtol=1e-12)
    names = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    assert tuple(names) == model.columns == ("town=Bonn", "town=Rom", "town=Ulm", "size")


def test_cox_has_no_counterpart_in_scikit_learn(tmp_path):
    model = Sample("cox").model
    with pytest.raises(amble.AmbleError, match="scikit-learn has no estimator of loss cox"):
        model.to_sklearn()
    with pytest.raises(amble.AmbleError, match="cox model has no ONNX form"):
        model.to_onnx(tmp_path / "model.onnx")


# --- the command ------------------------------------------------------------------------------------------------------


def command(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["amble", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def test_the_command_shows_the_table(run, tmp_path, monkeypatch, capsys):
    done, problem = run
    model = done.trained(problem)
    path = model.save(tmp_path / model_file.FILE)
    for cov in ("model", "robust", "cluster", "none"):
        code, out, _ = command(monkeypatch, capsys, "summary", path, "--cov", cov)
        assert (code, out) == (0, f"{model.summary(cov)}\n")
    code, out, _ = command(monkeypatch, capsys, "summary", tmp_path, "--latex", "--level", "0.9")
    assert (code, out) == (0, model.summary(level=0.9).to_latex() + "\n")
    code, _, err = command(monkeypatch, capsys, "summary", path, "--cov", "robst")
    assert (code, err) == (2, "amble: there is no covariance named 'robst'; did you mean 'robust'? "
                              "There are cluster, model, none, robust.\n")  # fmt: skip
    ridged = replace(model, penalty={"ridge": 1e-4}).save(tmp_path / "ridged.npz")
    code, out, _ = command(monkeypatch, capsys, "summary", ridged)
    assert code == 0
    assert "Trained with a penalty (ridge=0.0001): no standard errors." in out
    code, _, err = command(monkeypatch, capsys, "summary", ridged, "--cov", "robust")
    assert code == 2
    assert "train it with ridge=0" in err


def test_a_saved_run_shows_its_coefficients(run, tmp_path, monkeypatch, capsys):
    done, _ = run
    done.save(tmp_path / "relay")
    code, out, err = command(monkeypatch, capsys, "summary", tmp_path)
    assert code == 0
    frame = pd.read_csv(io.StringIO(out), sep=r"\s+", header=None, index_col=0)
    np.testing.assert_allclose(frame[1], list(done.trained().params.values()), atol=1e-4)
    assert "no sums over its rows" in err
