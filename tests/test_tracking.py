"""Callbacks of runs, and trackers that send records to TensorBoard and MLflow: the real libraries write."""

import contextlib
import os
import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.cli import main
from amble.tracking.mlflow import RETRIES
from amble.tracking.record import COSTS
from event_files import scalars
from own_samples import Agent, Steps

PROBLEM = amble.split(amble.load("diabetes"), agents=8)
OPTIONS = {"hops": 300, "progress": False}


def rows(run):
    """The history, one dict per record, without what is not known."""
    rows = [dict(zip(run.history, row, strict=True)) for row in zip(*run.history.values(), strict=True)]
    return [{name: value for name, value in row.items() if not np.isnan(value)} for row in rows]


def check(records, run):
    """Records are the rows of the run's history, in order."""
    assert [(record.method, record.hop) for record in records] == [(run.label, hop) for hop in run.history["hop"]]
    for record, row in zip(records, rows(run), strict=True):
        assert (record.hop, record.time_s, record.comm_units, record.bytes) == tuple(row[name] for name in COSTS)
        assert dict(record.metrics) == pytest.approx({key: row[key] for key in row if key not in COSTS}, rel=1e-12)


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize(
    ("method", "options"),
    [
        (amble.Relay(), {}),
        (amble.IBCD(), {"penalised": True, "every": 70}),
        (amble.DADMM(), {}),
        (amble.Relay(), {"hops": 100_000, "tolerance": 1e-12}),  # in stages
        (amble.Relay(), {"time_s": 0.004, "hops": None}),
        (amble.WPG(), {"optimum": False}),
    ],
    ids=["visits", "penalised", "rounds", "tolerance", "time", "no optimum"],
)
def test_the_records_are_those_of_the_history(method, options, engine):
    records = []
    run = amble.simulate(method, PROBLEM, engine=engine, on_record=records.append, **OPTIONS | options)
    check(records, run)
    check(run.records(), run)
    assert records[0].about == run.settings
    assert records[0].about["data"] == "diabetes"


def test_a_record_is_told_as_soon_as_it_is_made():
    """After ten more visits, ten more were made, and not all forty."""
    visits, seen = [], []

    @amble.method
    class Counted:
        weigh: ClassVar[str] = "agents"
        work: ClassVar[dict[str, int]] = {"grad": 1}
        tokens: int = 1

        def agent(self, f, start):  # noqa: ARG002
            return Agent(start)

        def gift(self, f, agent, z):  # noqa: ARG002
            visits.append(z)
            return Agent(z), z - 0.1 * f.grad(z), np.asarray(0.0)

    def tell(record):
        seen.append((record.hop, len(visits)))

    amble.simulate(Counted(), PROBLEM, hops=40, every=10, progress=False, engine="plain", on_record=tell)
    assert [(hop, made - seen[0][1]) for hop, made in seen] == [(k, k) for k in (0, 10, 20, 30, 40)]


def test_a_comparison_numbers_its_runs_and_a_resumed_run_tells_what_is_new():
    records = []
    runs = amble.compare([amble.Relay(), amble.Relay()], PROBLEM, on_record=records.append, **OPTIONS)
    for k, run in enumerate(runs, 1):
        check([record for record in records if record.run == k], run)
    new = []
    longer = amble.resume(runs[0], PROBLEM, hops=400, progress=False, on_record=new.append)
    check([*records[: list(longer.history["hop"]).index(new[0].hop)], *new], longer)
    assert new[0].hop > 300 >= longer.history["hop"][-len(new) - 1]


@pytest.mark.parametrize("method", [amble.Relay(), Steps()], ids=["ours", "own"])
def test_an_exception_of_the_callback_ends_the_run_and_is_not_changed(method):
    hops = []

    def fail(record):
        hops.append(record.hop)
        if record.hop == 3:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        amble.simulate(method, PROBLEM, on_record=fail, **OPTIONS)
    assert hops == [0, 1, 2, 3]


def test_a_run_is_the_same_with_a_callback():
    plain = amble.simulate(amble.Relay(), PROBLEM, **OPTIONS)
    told = amble.simulate(amble.Relay(), PROBLEM, on_record=lambda _: None, **OPTIONS)
    for name, column in plain.history.items():
        assert np.array_equal(column, told.history[name]), name


@pytest.mark.parametrize(
    "run", [amble.simulate, lambda method, *given, **named: amble.compare([method], *given, **named)]
)
def test_what_is_no_callback_is_refused(run):
    with pytest.raises(AmbleError, match=r"on_record='curves' was given; give a function of one record, or a tracker"):
        run(amble.Relay(), PROBLEM, on_record="curves")


# --- TensorBoard ------------------------------------------------------------------------------------------------------


def test_tensorboard_s_files_have_every_record(tmp_path):
    for again in ("", "-2"):  # a second comparison goes beside the first
        with amble.to_tensorboard(tmp_path) as tracker:
            runs = amble.compare([amble.Relay(), amble.DADMM()], PROBLEM, on_record=tracker, **OPTIONS)
        for name, run in zip(["1-relay-full", "2-d-admm-rho-0-1"], runs, strict=True):
            curves = scalars(tmp_path / f"{name}{again}")
            assert {*curves} == {*run.history, *(f"cost/{name}" for name in COSTS[1:])} - {*COSTS}
            for tag, curve in curves.items():
                steps, values = zip(*curve, strict=True)
                assert list(steps) == run.history["hop"].tolist()
                np.testing.assert_allclose(values, run.history[tag.removeprefix("cost/")], rtol=1e-6, atol=1e-12)
            assert b"| data | diabetes |" in next((tmp_path / f"{name}{again}").iterdir()).read_bytes()


@pytest.mark.long
def test_amble_compare_writes_for_tensorboard(tmp_path, monkeypatch):
    words = ["compare", "-m", "Relay", "-m", "WPG", "--hops", "50", "--agents", "5", "-o", f"{tmp_path}/out"]
    monkeypatch.setattr("sys.argv", ["amble", *words, "--tensorboard", f"{tmp_path}/curves"])
    with contextlib.suppress(SystemExit):
        main()
    for name, file in (("1-relay-full", "1-relay"), ("2-wpg-alpha-0-5", "2-wpg")):
        run = amble.load_run(tmp_path / "out" / file)
        steps, values = zip(*scalars(tmp_path / "curves" / name)["metric"], strict=True)
        assert list(steps) == run.history["hop"].tolist()
        np.testing.assert_allclose(values, run.history["metric"], rtol=1e-6)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(AmbleError, match=r"file/curves cannot be made \(Not a directory\); give another"):
        amble.to_tensorboard(tmp_path / "file/curves")


def test_a_tracker_that_fails_says_so_once_and_the_run_goes_on(tmp_path):
    with warnings.catch_warnings(record=True) as caught, amble.to_tensorboard(tmp_path / "curves") as tracker:
        warnings.simplefilter("always")
        (tmp_path / "curves").rmdir()
        (tmp_path / "curves").touch()  # nothing can be written into it
        runs = amble.compare([amble.Relay(), amble.WPG()], PROBLEM, on_record=tracker, **OPTIONS)
    assert [run.stopped for run in runs] == ["hops", "hops"]
    (said,) = {str(each.message) for each in caught}
    assert said.startswith("TensorBoard failed (")
    assert said.endswith("; the run goes on, and is not tracked from here on.")


# --- MLflow -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def client(tmp_path, monkeypatch):
    """MLflow that keeps its runs in files, which it does on request only."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")  # pyproject.toml says on which versions of Python it is there
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return mlflow.MlflowClient(f"file://{tmp_path}/mlruns")


def kept(client, name="amble"):
    """The runs of an experiment, in the order of their numbers."""
    (experiment,) = [each for each in client.search_experiments() if each.name == name]
    return sorted(client.search_runs([experiment.experiment_id]), key=lambda run: run.data.tags["amble.run"])


@pytest.mark.long
def test_mlflow_has_every_record_and_the_settings(client):
    runs = amble.compare([amble.Relay(), amble.WPG(alpha=0.25)], PROBLEM, hops=5, engine="plain", progress=False)
    for k, run in enumerate(runs, 1):  # the experiment is made once
        with amble.to_mlflow(client.tracking_uri) as tracker:
            for record in run.records():
                tracker(replace(record, run=k))
    for run, found in zip(runs, kept(client), strict=True):
        assert (found.info.run_name, found.info.status) == (run.label, "FINISHED")
        assert found.data.params == {key: str(value) for key, value in run.settings.items()}
        assert {*found.data.metrics} == {*run.history} - {"hop"}
        for name in found.data.metrics:
            curve = client.get_metric_history(found.info.run_id, name)
            assert [point.step for point in curve] == run.history["hop"].tolist()
            assert [point.value for point in curve] == run.history[name].tolist()


@pytest.mark.long
def test_a_run_that_ends_with_an_exception_is_a_failed_one(client):
    def fail(record):
        tracker(record)
        assert record.hop < 3

    tracker = amble.to_mlflow(client.tracking_uri, experiment="mine")
    with pytest.raises(AssertionError), tracker:
        amble.simulate(amble.Relay(), PROBLEM, on_record=fail, **OPTIONS)
    (found,) = kept(client, "mine")
    assert found.info.status == "FAILED"
    assert len(client.get_metric_history(found.info.run_id, "distance")) == 4


@pytest.mark.long
def test_a_server_that_is_not_there_is_refused_at_once(client):  # noqa: ARG001 - which needs mlflow
    with pytest.raises(
        AmbleError, match=r"MLflow cannot be used at http://127.0.0.1:1 \(Connection refused\); start its"
    ):
        amble.to_mlflow("http://127.0.0.1:1")
    assert RETRIES not in os.environ
