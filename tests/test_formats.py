"""Files that earlier versions wrote are read: docs/formats.md says which, and tests/formats has one of each.

tests/formats/live-N is a real run with journals of format N: three agents, two tokens, one agent killed on the way.
tests/formats/run-1 are simulated runs, saved by the first version that could tune.
tests/formats/model-2 are models with sums over their agents' rows; those of format 1 are in the live runs.
"""

import json
import re
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import amble
from amble.cli import app
from amble.live import status
from amble.live.agent import described
from amble.live.agent.agent import course_of
from amble.live.agent.node import Node
from amble.live.control import glance
from amble.live.formats import shape
from amble.live.journal import file as journal_file
from amble.live.records import record
from amble.live.settings import agent_config
from amble.results import model_file, model_reading
from amble.results.saved import FORMAT as RUN_FORMAT
from doc_blocks import ROOT

KEPT = ROOT / "tests/formats"
LIVE = sorted(path.name for path in KEPT.glob("live-*"))
DEAD, LEFT = "agent01", {"agent00", "agent02"}


@pytest.fixture
def folder(request, tmp_path):
    """A copy: to read a journal may upgrade it."""
    return Path(shutil.copytree(KEPT / request.param, tmp_path / request.param))


def run_command(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def journal_format(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.mark.parametrize("file", sorted(KEPT.glob("run-1/*.json")), ids=lambda file: file.stem)
def test_a_saved_run_is_read_and_drawn(file, tmp_path):
    run = amble.load_run(file)
    assert run.method.label.lower() == file.stem
    problem = amble.split(amble.load("diabetes"), agents=4, seed=0, weights="agents")
    whole = amble.simulate(run.method, problem, run.network, walk=run.walk, hops=20, progress=False)
    np.testing.assert_allclose(run.model, whole.model, rtol=1e-9)
    np.testing.assert_allclose(run.models, whole.models, rtol=1e-9)
    np.testing.assert_allclose(run.history["metric"], whole.history["metric"], rtol=1e-9)
    run_command("report", file, "--out", tmp_path / "page.html")
    assert run.method.label in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("folder", LIVE, indirect=True)
def test_a_live_run_is_read_with_its_model_record_and_status(folder):
    run = amble.load_run(folder / "run")
    assert run.walk == "live"
    model = model_reading.read(folder / model_file.FILE)
    np.testing.assert_array_equal(model.w, run.model)
    kept = record.load(folder / record.FILE)
    assert kept.hops == run.schedule.hops > 60
    buried = {name for events in kept.events.values() for event in events for name in event.buried}
    assert buried == {DEAD}
    assert "reissue" in kept.counts()
    said = {name: status.read(folder / name) for name in kept.agents}
    assert {name for name in said if said[name].state == "ended"} == LEFT
    assert all(said[name].visits == len(kept.visits[name]) for name in LEFT)


@pytest.mark.parametrize("folder", LIVE, indirect=True)
def test_journals_are_collected_to_the_record_that_their_run_kept(folder):
    assert {journal_format(path) for path in folder.glob("*/journal.db")} == {int(folder.name.removeprefix("live-"))}
    run_command("collect", folder, "--out", folder / "gathered")
    gathered, kept = record.load(folder / "gathered" / record.FILE), record.load(folder / record.FILE)
    assert gathered._replace(status={}) == kept._replace(status={})
    overview = json.loads(run_command("status", folder, "--json"))
    assert overview["visits"] == sum(status.read(folder / name).visits for name in kept.agents)


@pytest.mark.parametrize("folder", ["live-3", "live-4"], indirect=True)
def test_an_agent_does_not_go_on_from_a_journal_whose_method_keeps_other_numbers(folder):
    """These are of full Relay with its first guard, which kept how far the model had moved, and not the step."""
    home = folder / "agent00"
    config, before = agent_config.AgentConfig.read(home), (home / "journal.db").read_bytes()
    with pytest.raises(amble.AmbleError, match="keeps other numbers for this run; finish the run with the amble that"):
        Node(config, home, course_of(config, home), threading.Event())
    assert (home / "journal.db").read_bytes() == before


@pytest.mark.parametrize("folder", ["live-2"], indirect=True)
def test_an_agent_does_not_go_on_from_a_journal_of_format_2(folder):
    home = shutil.copytree(KEPT / "live-3/agent00", folder / "again", ignore=shutil.ignore_patterns("journal.db"))
    shutil.copy(folder / "agent00/journal.db", home)
    config = agent_config.AgentConfig.read(home)
    with pytest.raises(amble.AmbleError, match="its record is read, but a run goes on in format 4 only"):
        Node(config, home, course_of(config, home), threading.Event())


@pytest.mark.parametrize("folder", LIVE, indirect=True)
def test_a_model_of_format_1_is_read_and_shown(folder):
    model = amble.load_model(folder)
    assert json.loads(str(np.load(folder / model_file.FILE)["about"]))["format"] == 1
    assert (model.loss, model.sums, model.penalty) == ("least-squares", None, {"ridge": 1e-4})
    np.testing.assert_array_equal(model.predict(amble.load("diabetes").X), amble.load_run(folder / "run").predict(
        amble.load("diabetes").X))  # fmt: skip
    assert "intercept" in run_command("summary", folder)


@pytest.mark.parametrize("file", sorted(KEPT.glob("model-2/*.npz")), ids=lambda file: file.stem)
def test_a_model_of_format_2_is_read_with_its_sums(file):
    assert json.loads(str(np.load(file)["about"]))["format"] == 2
    model = amble.load_model(file)
    assert model.about["versions"]["amble"] == "0.1.0"
    gradient = model.sums.gradient
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6 * model.sums.train.rows)
    assert model.loss in run_command("summary", file)


WRITTEN = {
    "saved run": RUN_FORMAT,
    "model": model_file.FORMAT,
    "record": record.FORMAT,
    "journal": journal_file.FORMAT,
    "agent's settings": agent_config.FORMAT,
    "agent's status": status.FORMAT,
    "overview": glance.FORMAT,
    "message": shape.VERSION,
    "the sites' descriptions": described.FORMAT,
}


def test_the_page_has_the_format_that_each_file_is_written_in():
    page = (ROOT / "docs/formats.md").read_text()
    written = dict(re.findall(r"^\| ([a-z' ]+?)(?:,? `[^|]*)? \| (\d+) \|", page, re.M))
    assert {name: int(number) for name, number in written.items()} == WRITTEN


def test_a_file_is_kept_of_the_format_that_is_written_now():
    """Who changes a format keeps a file of the new one, before there is a next."""
    assert f"live-{journal_file.FORMAT}" in LIVE
    assert (KEPT / f"run-{RUN_FORMAT}").is_dir()
    assert (KEPT / f"model-{model_file.FORMAT}").is_dir()
