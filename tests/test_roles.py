"""Columns of a file with a role: the models are those of lifelines and statsmodels on the same file."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import CoxPHFitter
from typer.testing import CliRunner

import amble
from amble.cli import app
from amble.simulation.experiment import Experiment, read

FEATURES = ["age", "dose"]
EXACT = {"precision": 1e-14, "r_precision": 1e-15}


def frame(rows=240, seed=0):
    """Rows of three sites; some weigh nothing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 10, rows),
            "years": rng.uniform(0.5, 4.0, rows),
            "site": rng.choice(["north", "south", "east"], rows),
            "dose": rng.gamma(2.0, 1.0, rows),
            "w": rng.integers(0, 4, rows),
            "shift": rng.normal(0, 0.3, rows),
        }
    )
    eta = 0.03 * (table["age"] - 50) + 0.3 * table["dose"]
    table["seen"] = (rng.random(rows) < 0.7).astype(int)
    table["time"] = np.ceil(4 * rng.exponential(np.exp(-eta))) / 4  # with ties
    table["ill"] = np.where(rng.random(rows) < 1 / (1 + np.exp(-eta)), "yes", "no")
    table["claims"] = rng.poisson(table["years"] * np.exp(eta + table["shift"] - 0.5))
    return table


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    frame().to_csv(path, index=False)
    return path


def write(path, table, target, *others):
    """A file with the features, the target and these columns alone, in an order that helps nobody."""
    table[[*others[::-1], "dose", target, "age"]].to_csv(path, index=False)
    return path


def trained(data, **options):
    problem = amble.split(data, test=0, ridge=0.0, **options)
    run = amble.simulate(amble.Relay(form="full"), problem, hops=600, tolerance=1e-11, progress=False)
    return run.trained(problem)


def glm(table, target, family, **options):
    exog = sm.add_constant(table[FEATURES])
    return sm.GLM(table[target], exog, family=family, freq_weights=table["w"], **options).fit(tol=1e-14, maxiter=300)


def assert_same(model, fitted):
    ours = [model.params[name] for name in ("intercept", *FEATURES)]
    np.testing.assert_allclose(ours, fitted.params[["const", *FEATURES]], rtol=1e-7)


def test_poisson_with_exposure_offset_and_weight_is_that_of_statsmodels(tmp_path):
    table = frame()
    path = write(tmp_path / "claims.csv", table, "claims", "years", "shift", "w")
    data = amble.read_file(path, target="claims", task="regression", exposure="years", offset="shift", weight="w")
    assert data.columns == ("dose", "age")
    assert repr(data) == (
        "Dataset(claims: regression, 240 rows, 2 columns, target claims, offset shift, exposure years, weight w)"
    )
    model = trained(data, agents=4, loss="poisson")
    used = table[table["w"] > 0]
    offset = np.log(used["years"]) + used["shift"]
    fitted = glm(used, "claims", sm.families.Poisson(), offset=offset)
    assert_same(model, fitted)
    errors = dict(zip(model.summary().names, model.summary().std_err, strict=True))
    np.testing.assert_allclose([errors[name] for name in FEATURES], fitted.bse[FEATURES], rtol=1e-6)


def test_a_weighted_logistic_model_is_that_of_statsmodels(tmp_path):
    table = frame()
    data = amble.read_file(write(tmp_path / "ill.csv", table, "ill", "w"), target="ill", weight=0)
    model = trained(data, agents=5)
    yes = table.assign(ill=(table["ill"] == "yes").astype(float))
    assert_same(model, glm(yes, "ill", sm.families.Binomial()))


@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning", "ignore::DeprecationWarning")
def test_cox_is_that_of_lifelines(tmp_path):
    """Agents are strata. Without a target, the last column that has no role."""
    table = frame()
    used = table.loc[table["w"] > 0, [*FEATURES, "site", "time", "seen", "w"]]
    used.to_csv(tmp_path / "times.csv", index=False)
    data = amble.read_file(tmp_path / "times.csv", event="seen", weight=-1, by="site")
    assert (data.target, data.task, data.columns) == ("time", "regression", ("age", "dose"))
    assert (data.y[used["seen"] == 0] < 0).all()
    model = trained(data, loss="cox")
    fitted = CoxPHFitter().fit(used, "time", "seen", strata=["site"], weights_col="w", fit_options=EXACT)
    np.testing.assert_allclose([model.params[name] for name in FEATURES], fitted.params_[FEATURES], rtol=1e-7)


def test_an_experiment_file_and_the_command_line_name_them(tmp_path, monkeypatch):
    table = frame()
    write(tmp_path / "claims.csv", table, "claims", "years", "w")
    monkeypatch.chdir(tmp_path)
    settings = {"data": "claims.csv", "target": "claims", "loss": "poisson", "exposure": "years", "weight": "w"}
    more = {"ridge": 0.0, "test": 0.0, "agents": 4, "hops": 200, "seed": 1}
    lines = [f"{key} = {value!r}" for key, value in {**settings, **more}.items()]
    (tmp_path / "x.toml").write_text("\n".join([*lines, '[[methods]]\nname = "Relay"\n']).replace("'", '"'))
    run = Experiment().with_settings(read(tmp_path / "x.toml")).run(progress=False)[0]
    assert run.problem["table"] == {"exposure": "years", "weight": "w"}
    fitted = glm(table, "claims", sm.families.Poisson(), exposure=table["years"])
    assert_same(run.trained(), fitted)
    words = [f"--{key}={value}" for key, value in {**settings, **more}.items()]
    done = CliRunner().invoke(app, ["compare", "-m", "Relay", *words])
    assert done.exit_code == 0, done.output
    again = amble.load_model("amble-out")
    np.testing.assert_array_equal(again.w, run.model)
    assert again.about["table"] == {"exposure": "years", "weight": "w"}


def test_a_path_of_weighted_counts(tmp_path):
    """Without a penalty to speak of, the last model of the path is that of statsmodels."""
    table = frame()
    path = write(tmp_path / "claims.csv", table, "claims", "years", "w")
    words = ["--loss=poisson", "--exposure=years", "--weight=w", "--target=claims", "--lambdas=5", "--smallest=1e-9"]
    done = CliRunner().invoke(app, ["path", f"--data={path}", *words, "--agents=3", f"--out={tmp_path / 'out'}"])
    assert done.exit_code == 0, done.output
    last = pd.read_csv(tmp_path / "out" / "path.csv").iloc[-1]
    fitted = glm(table, "claims", sm.families.Poisson(), exposure=table["years"])
    np.testing.assert_allclose(last[["coef age", "coef dose"]].to_numpy(float), fitted.params[FEATURES], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"weight": "wight"}, r"there is no column of .* named 'wight'; choose one of age, claims, "),
        ({"weight": 99}, "weight=99 was given and .* has 10 columns; give a name, a number from 0 to 9"),
        ({"weight": "shift"}, r"line \d+, column shift is -0\.\d+; the weight must be zero or more"),
        ({"exposure": "w"}, "column w is 0; the exposure must be above zero"),
        ({"event": "w", "target": "time"}, r"column w is \d; the event must be 0 \(censored\) or 1"),
        ({"offset": "site"}, "column site holds '.*', which is not a number; the offset needs numbers"),
        ({"weight": "claims", "target": "claims"}, "column 'claims' of .* is both target and weight; name two columns"),
        ({"weight": "w", "exposure": "w"}, "column 'w' of .* is both exposure and weight; name two columns"),
        ({"event": "seen", "target": "claims"}, "column claims is 0; the time of an event, .* is above zero"),
        ({"event": "seen", "target": "time", "task": "classification"}, "event=seen and task='classification' were"),
    ],
)
def test_a_column_that_cannot_have_its_role_is_refused(file, options, sentence):
    with pytest.raises(amble.AmbleError, match=sentence):
        amble.read_file(file, categorical="one-hot", **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"exposure": "years", "target": "time"},
            "given with loss='least-squares', which takes none; it is for 'poisson'",
        ),
        ({"offset": "shift", "target": "ill"}, "offset or exposure was given with loss='logistic', which takes none"),
        (
            {"event": "seen", "target": "time"},
            "event='seen' was given with loss='least-squares', .* it is for 'cox' and",
        ),
        (
            {"event": "seen", "target": "time", "loss": "gamma"},
            "event='seen' was given with loss='gamma', which takes none; it is for 'cox' and 'cox-breslow'",
        ),
        ({"weight": "w", "data": "diabetes"}, "weight was given with data = 'diabetes'; it is for files of your own"),
    ],
)
def test_a_role_that_the_loss_cannot_take_is_refused(file, options, sentence):
    settings = {"data": str(file), "one_hot": "data" not in options, **options}
    with pytest.raises(amble.AmbleError, match=sentence):
        Experiment().with_settings(settings).build()


def test_columns_are_needed_besides_those_with_a_role(tmp_path):
    (tmp_path / "a.csv").write_text("y,w\n1.5,2\n2.5,1\n")
    with pytest.raises(amble.AmbleError, match=r"a.csv has no column besides w, y; a model needs one more"):
        amble.read_file(tmp_path / "a.csv", weight="w")
    with pytest.raises(
        amble.AmbleError, match=r"every column of .* has a role \(exposure: y, weight: w\); a target is"
    ):
        amble.read_file(tmp_path / "a.csv", weight="w", exposure="y")


def test_other_files_have_no_named_columns(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3), y=[0.5, 1.5, 2.5], sample_weight=[1, 2, 3], exposure=[2.0, 2.0, 4.0])
    with pytest.raises(amble.AmbleError, match=r"weight='w' was given for .*a.npz, which has no named columns"):
        amble.read_file(tmp_path / "a.npz", weight="w")
    data = amble.read_file(tmp_path / "a.npz")
    assert data.sample_weight.tolist() == [1, 2, 3]
    assert data.exposure.tolist() == [2, 2, 4]
    np.savez(tmp_path / "b.npz", X=np.eye(3), y=[0.5, 1.5, 2.5], sample_weight=[1, -2, 3])
    with pytest.raises(amble.AmbleError, match="b: sample_weight has -2; a weight is zero or more"):
        amble.split(amble.read_file(tmp_path / "b.npz"), agents=1)


# --- live -------------------------------------------------------------------------------------------------------------


def up(folder, *words):
    command = [sys.executable, "-m", "amble", "up", "--agents", "3", "--tolerance", "1e-10", "-m", "Relay"]
    return subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, timeout=120)


def test_live_agents_train_with_exposures_and_weights(tmp_path):
    table = frame()
    write(tmp_path / "claims.csv", table, "claims", "years", "shift", "w")
    roles = ["--exposure", "years", "--offset", "shift", "--weight", "w"]
    words = ["--data", "claims.csv", "--target", "claims", "--loss", "poisson", *roles]
    done = up(tmp_path, *words, "--ridge", "0", "--test", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    offset = np.log(table["years"]) + table["shift"]
    model = amble.load_model(tmp_path / "amble-up")
    assert_same(model, glm(table, "claims", sm.families.Poisson(), offset=offset))
    assert model.about["table"] == {"offset": "shift", "exposure": "years", "weight": "w"}
    own = amble.load_model(tmp_path / "amble-up" / "agent01")
    assert (own.about["table"], own.target) == (model.about["table"], "claims")
    np.testing.assert_allclose(own.predict(table), model.predict(table), rtol=1e-7)


@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning", "ignore::DeprecationWarning")
def test_live_agents_train_a_cox_model_with_weights(tmp_path):
    """Each agent is a stratum; its file says which rows it has, without those that weigh nothing."""
    write(tmp_path / "times.csv", frame(), "time", "seen", "w")
    words = ["--data", "times.csv", "--target", "time", "--loss", "cox", "--event", "seen", "--weight", "w"]
    done = up(tmp_path, *words, "--ridge", "0", "--test", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    parts = []
    for k in range(3):
        rows = amble.read_file(tmp_path / "amble-up" / f"agent0{k}" / "rows.npz", task="regression")
        part = pd.DataFrame(rows.X, columns=["dose", "age"]).assign(time=np.abs(rows.y), seen=rows.y > 0, site=k)
        parts.append(part.assign(w=rows.sample_weight))
    pooled = pd.concat(parts)
    assert len(pooled) == (frame()["w"] > 0).sum()
    fitted = CoxPHFitter().fit(pooled, "time", "seen", strata=["site"], weights_col="w", fit_options=EXACT)
    model = amble.load_model(tmp_path / "amble-up")
    np.testing.assert_allclose([model.params[name] for name in FEATURES], fitted.params_[FEATURES], rtol=1e-7)


def test_what_a_live_run_of_one_file_cannot_use_is_refused(tmp_path):
    write(tmp_path / "times.csv", frame(), "time", "seen")
    done = up(tmp_path, "--data", "times.csv", "--target", "time", "--event", "seen")
    assert done.returncode == 2
    assert "event='seen' was given with loss='least-squares', which takes none" in done.stderr
    done = up(tmp_path, "--data", "times.csv", "--target", "time", "--missing", "mean")
    assert done.returncode == 2
    assert "--missing mean was given with one file" in done.stderr
    assert not (tmp_path / "amble-up").exists()
