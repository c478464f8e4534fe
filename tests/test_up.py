"""amble up and what follows it, with real processes: train, status, collect, replay, predict."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from amble import WPG, Relay, load, load_run, resume, split
from amble.engines import engine_for
from amble.errors import AmbleError
from amble.live import status
from amble.live.cluster import up
from amble.live.formats.shape import Shape
from amble.live.journal import file as journal_file
from amble.live.journal.rows import Rows
from amble.live.records import collect, record, replay
from amble.live.settings.agent_config import AgentConfig
from amble.results import model_file, model_reading

pytestmark = pytest.mark.long

ENDLESS = ["--tolerance", "0", "--hops", "100000000", "--pause", "0.02"]  # few visits, as each is replayed in the end


def amble(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "amble", *map(str, words)], capture_output=True, text=True, timeout=120, **options
    )


def begin(folder, *words):
    command = [sys.executable, "-m", "amble", "up", "--data", "diabetes", "-n", "4", "-o", folder, *words]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def agents_of(folder):
    """Processes that have the folder among their words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{folder}/agent" in path.read_bytes().decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended meanwhile
    return found


def wait_for(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def visited(folder):
    return all(status.read(folder / f"agent0{k}").visits for k in range(4))


def ports(folder):
    return [AgentConfig.read(folder / f"agent0{k}").port for k in range(4)]


def is_free(port):
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return trial.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run, and what it said."""
    folder = tmp_path_factory.mktemp("up") / "run"
    told = amble("up", "--data", "diabetes", "-n", 4, "--ridge", 0.01, "--tolerance", 1e-9, "-o", folder)
    assert told.returncode == 0, told.stdout + told.stderr
    return folder, told.stdout


def test_the_model_is_the_optimum_of_all_rows(done):
    folder, said = done
    best = split(load("diabetes"), agents=4, ridge=0.01).optimum().w
    w = model_reading.read(folder / model_file.FILE).w
    assert np.linalg.norm(w - best) <= 1e-6 * np.linalg.norm(best)
    assert "the model has converged" in said
    assert "of the centralised optimum" in said


def test_every_agent_keeps_the_model_in_its_own_folder(done):
    folder, _ = done
    w = model_reading.read(folder / model_file.FILE).w
    for k in range(4):
        np.testing.assert_allclose(model_reading.read(folder / f"agent0{k}" / model_file.FILE).w, w, rtol=1e-6)


def test_every_digest_is_equal_when_replayed(done):
    folder, said = done
    told = amble("replay", folder)
    assert told.returncode == 0
    hops = record.load(folder / record.FILE).hops
    assert f"{2 * hops:,} of {2 * hops:,} digests are equal" in told.stdout
    assert f"{2 * hops:,} of {2 * hops:,} digests are equal" in said


def test_a_record_tells_nothing_of_an_agents_rows_or_machine(done, tmp_path):
    """Why an agent did not start may quote a cell of its data; its process is of its machine."""
    folder = tmp_path / "copy"
    shutil.copytree(done[0], folder)
    refused = status.changed(status.read(folder / "agent01"), reason="row 3 has 'aged 91'", likely_cause="column 'age'")
    status.write(folder / "agent01", refused)
    assert refused.process
    assert amble("collect", folder, "-o", tmp_path / "out").returncode == 0
    for said in record.load(tmp_path / "out" / record.FILE).status.values():
        assert said["visits"] > 0
        assert not {"reason", "likely_cause", "process"} & said.keys()


def test_a_run_of_an_earlier_arithmetic_is_not_called_damaged(done, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(done[0], folder)
    assert record.load(folder / record.FILE).arithmetic == journal_file.ARITHMETIC
    for path in folder.glob("*/journal.db"):
        with contextlib.closing(sqlite3.connect(path)) as journal, journal:
            journal.execute("DELETE FROM about WHERE key = 'arithmetic'")  # as 0.1 wrote it
    told = amble("replay", folder)
    assert told.returncode == 2
    assert told.stderr.startswith("amble: this run was computed by arithmetic 1 of another amble, and this one has ")
    assert "digests are equal" not in told.stdout


@pytest.mark.parametrize("method", [WPG(), Relay(form="scalar")], ids=repr)
def test_the_first_arithmetics_are_those_of_all_but_the_full_form(done, method):
    kept = collect.collect(collect.agent_folders([done[0]]))
    for earlier in (1, 2):
        replay.check_arithmetic(kept._replace(arithmetic=earlier), method)
        with pytest.raises(AmbleError, match=f"computed by arithmetic {earlier} of another amble"):
            replay.check_arithmetic(kept._replace(arithmetic=earlier), Relay(form="full"))
    with pytest.raises(AmbleError, match="computed by arithmetic 5 of another amble"):
        replay.check_arithmetic(kept._replace(arithmetic=5), method)


def test_a_visit_that_was_not_made_so_is_found(done):
    folder, _ = done
    folders = collect.agent_folders([folder])
    kept = collect.collect(folders)
    lines = list(kept.visits["agent02"])
    lines[-1] = lines[-1]._replace(after="0" * 16)
    configs = collect.read_configs(folders)
    objectives = {name: config.objective(*config.read_data(folders[name])) for name, config in configs.items()}
    changed = kept._replace(visits={**kept.visits, "agent02": tuple(lines)})
    outcome = replay.Replay(changed, configs["agent00"].visits(), objectives).run()
    assert outcome.equal == 2 * kept.hops - 1
    assert outcome.first.startswith(f"agent02, its visit {len(lines)}: ")
    assert not outcome.whole


def test_what_cannot_be_replayed_is_said(done):
    folder, _ = done
    outcome = up.again({name: folder / name for name in ("agent00", "agent01", "agent02")})
    assert not outcome.whole
    assert "the data of agent03 are missing here" in outcome.left
    assert any("cannot be made without agent03's token" in words for words in outcome.left)


def test_the_record_is_one_file_without_data(done, tmp_path):
    folder, _ = done
    told = amble("collect", *(folder / f"agent0{k}" for k in range(4)), "-o", tmp_path / "run")
    assert told.returncode == 0
    gathered = record.load(tmp_path / "run" / record.FILE)
    assert gathered == collect.collect(collect.agent_folders([folder]))
    assert gathered.counts() == {"start": 4, "stopped": 4}
    order = [(visit.token, visit.epoch, visit.hop) for _, visit in gathered.in_order()]
    assert order == sorted(order)
    with np.load(tmp_path / "run" / record.FILE) as held:
        kinds = {key: held[key].dtype.kind for key in held.files}
    assert {key for key, kind in kinds.items() if kind == "f"} == {"time_s", "waited_s", "compute_s"}


def test_status_says_how_agents_are(done):
    folder, _ = done
    told = amble("status", folder)
    assert told.returncode == 0
    assert told.stdout.startswith("the run has ended: the model has converged")
    assert all(re.search(rf"^agent0{k} +ended ", told.stdout, re.MULTILINE) for k in range(4))


def test_predict_on_files_with_and_without_the_target(done, tmp_path):
    folder, _ = done
    data = load("diabetes")
    table = np.column_stack([data.X, data.y])
    for name, columns in (("with", (*data.columns, data.target)), ("without", data.columns)):
        rows = table[:, : len(columns)]
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    np.savez(tmp_path / "rows.npz", X=data.X)
    told = amble("predict", folder / "model.npz", tmp_path / "with.csv", "-o", tmp_path / "out.csv")
    assert told.returncode == 0
    assert "NMSE 0.4" in told.stderr
    guess = np.loadtxt(tmp_path / "out.csv", skiprows=1)
    problem = split(data, agents=4, ridge=0.01)
    np.testing.assert_allclose(guess, problem.predict(model_reading.read(folder / "model.npz").w, data.X), rtol=1e-9)
    for name in ("without.csv", "rows.npz"):
        told = amble("predict", folder / "model.npz", tmp_path / name)
        assert told.stdout == (tmp_path / "out.csv").read_text()
        assert "NMSE" not in told.stderr


def test_a_model_for_other_columns_or_damaged_is_refused(done, tmp_path):
    folder, _ = done
    (tmp_path / "few.csv").write_text("1,2,3\n4,5,6\n")
    told = amble("predict", folder / "model.npz", tmp_path / "few.csv")
    assert told.returncode == 2
    assert "the model was trained on 10" in told.stderr
    whole = (folder / "model.npz").read_bytes()
    (tmp_path / "model.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AmbleError, match="damaged or cut short"):
        model_reading.read(tmp_path / "model.npz")
    with np.load(folder / "model.npz") as held:
        np.savez(tmp_path / "model.npz", about=held["about"], w=held["w"] + 1)
    with pytest.raises(AmbleError, match="damaged or cut short"):
        model_reading.read(tmp_path / "model.npz")
    with pytest.raises(AmbleError, match="is not a model file"):
        model_reading.read(folder / "record.npz")


@pytest.mark.parametrize("number", [1e298, np.inf, np.nan])
def test_a_model_of_a_diverged_run_is_refused(done, tmp_path, number):
    """As 0.1 wrote them."""
    folder, _ = done
    model = model_reading.read(folder / "model.npz")
    replace(model, w=np.full(11, number)).save(tmp_path / "model.npz")
    told = amble("predict", tmp_path / "model.npz", folder / "agent00" / "rows.npz")
    assert told.returncode == 2
    assert told.stdout == ""
    assert f"has numbers as large as {number:.1g}: its run diverged; train it again." in told.stderr


def test_ctrl_c_stops_all_and_keeps_what_there_is(tmp_path):
    folder = tmp_path / "run"
    process = begin(folder, *ENDLESS)
    wait_for(lambda: visited(folder))
    told = amble("collect", folder, "-o", tmp_path / "early")
    assert told.returncode == 2
    assert "in use by another process" in told.stderr
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the results so far were kept" in said
    assert not agents_of(folder)
    assert model_reading.read(folder / model_file.FILE).w.shape == (11,)
    assert amble("replay", folder).returncode == 0
    again = amble("up", "--data", "diabetes", "-n", 2, "--again", "-o", folder)
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(collect.agent_folders([folder])) == 2


def test_agents_end_when_amble_up_is_killed_and_one_that_is_killed_is_reported(tmp_path):
    folder = tmp_path / "run"
    process = begin(folder, *ENDLESS)
    try:
        wait_for(lambda: visited(folder))
        mine = status.read(folder / "agent03")
        assert mine.name == "agent03"
        chosen = [pid for pid in agents_of(folder) if f"{folder}/agent03" in Path(f"/proc/{pid}/cmdline").read_text()]
        os.kill(chosen[0], signal.SIGKILL)
        assert "agent03 has failed (killed by SIGKILL" in next(line for line in process.stderr if "failed" in line)
    finally:
        process.kill()
        process.communicate(timeout=30)
    wait_for(lambda: not agents_of(folder))
    assert all(is_free(port) for port in ports(folder))
    assert up.again(collect.agent_folders([folder])).whole


def test_an_agent_that_is_started_again_by_hand_has_not_failed(tmp_path):
    """As amble status advises: the model has its rows, and what is said of the run says so."""
    folder = tmp_path / "run"
    process = begin(folder, "--tolerance", "0", "--seconds", "12", "--pause", "0.02")
    wait_for(lambda: visited(folder))
    first = status.read(folder / "agent03").process.pid
    os.kill(first, signal.SIGKILL)
    words = [sys.executable, "-m", "amble", "agent", folder / "agent03"]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        said, errors = process.communicate(timeout=90)
        assert other.wait(timeout=30) == 0
    assert "agent03 is back" in errors
    assert "failed" not in said
    assert "all rows but" not in said
    assert "nan" not in said
    assert process.returncode == 0, said + errors


def test_bad_input_is_one_sentence_before_any_work(tmp_path, done):
    folder, _ = done
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("mine")
    mixed = tmp_path / "mixed"
    shutil.copytree(folder, mixed)
    (mixed / "thesis.txt").write_text("mine")
    for words, sentence in [
        (["--out", full], "is not empty, and amble up did not make it"),
        (["--out", full, "--again"], "amble up did not make it"),
        (["--out", folder], "holds an earlier run"),
        (["--out", mixed, "--again"], "holds thesis.txt, which amble up did not make"),
        (["--data", "nothing"], "there is no data set named 'nothing'"),
        (["--agents", 1], "a live run needs at least two"),
        (["--method", "DGD"], "it works in rounds and has no tokens"),
        (["--tolerance", 0], "the run would never end"),
        (["--tolerance", -1], "tolerance = -1.0 was given"),
        (["--hops", 0], "hops = 0 was given"),
        (["--seconds", 0], "seconds = 0.0 was given"),
        (["--out", folder, "--seconds", -1], "seconds = -1.0 was given"),
        (["--out", folder, "--data", "nothing"], "there is no data set named 'nothing'"),
        (["--out", folder, "--pause", 99], "pause_s = 99.0 was given"),
    ]:
        given = {"--data": "diabetes", "--out": tmp_path / "new"} | dict(zip(words[::2], words[1::2], strict=False))
        flags = [word for word in words if word == "--again"]
        told = amble("up", *(word for pair in given.items() if pair[0] not in flags for word in pair), *flags)
        assert (told.returncode, told.stdout) == (2, "")
        assert sentence in told.stderr
        assert len(told.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()
    assert (full / "thesis.txt").read_text() == (mixed / "thesis.txt").read_text() == "mine"
    for command in ("status", "collect", "replay"):
        told = amble(command, tmp_path / "nowhere")
        assert told.returncode == 2
        assert "there is no folder" in told.stderr


def test_a_report_can_be_made_of_it(done):
    folder, _ = done
    run = load_run(folder / "run")
    assert run.schedule.hops == record.load(folder / record.FILE).hops
    assert run.history["distance"][-1] <= 1e-6
    assert (np.diff(run.history["time_s"]) >= 0).all()
    assert run.stopped == "tolerance"
    with pytest.raises(AmbleError, match="other data or settings"):
        resume(run, split(load("diabetes"), agents=4, ridge=0.01, weights="agents"), hops=10**6)


@pytest.mark.parametrize("method", ["Relay:tokens=2", "WPG:alpha=0.1,tokens=2", "API-BCD:tokens=2,token_rule=tracked"])
def test_a_run_begins_where_another_one_ended(done, tmp_path, method):
    """Every token begins with the initial model, and every digest is equal when replayed."""
    folder, _ = done
    model, out = folder / "model.npz", tmp_path / "run"
    words = ["--data", "diabetes", "-n", 4, "--ridge", 0.01, "-m", method]
    told = amble("up", *words, "--start", model, "--tolerance", 1e-3, "-o", out)  # not before all are met
    assert told.returncode == 0, told.stdout + told.stderr
    assert "replayed:" in told.stdout
    run, w = load_run(out / "run"), model_reading.read(model).w
    np.testing.assert_array_equal(run.start, w)
    np.testing.assert_array_equal(run.consensus[0], w)
    np.testing.assert_allclose(run.consensus[1], w, rtol=1e-12)
    np.testing.assert_allclose(run.local[0], w, rtol=1e-12)
    assert run.history["distance"][0] < 1e-6
    assert run.stopped == "tolerance"
    assert amble("replay", out).returncode == 0


def test_an_initial_model_of_other_data_is_refused(done, tmp_path):
    folder, _ = done
    told = amble("up", "--data", "digits", "--start", folder / "model.npz", "-o", tmp_path / "run")
    assert told.returncode == 2
    assert "was trained with another task than [model] has" in told.stderr
    assert not (tmp_path / "run").exists()


def test_the_models_of_the_run_are_those_in_the_agents_journals(done):
    folder, _ = done
    run, problem = load_run(folder / "run"), split(load("diabetes"), agents=4, ridge=0.01, weights="agents")
    for k, x in enumerate(run.models):
        config = AgentConfig.read(folder / f"agent0{k}")
        objective = config.objective(*config.read_data(folder / f"agent0{k}"))
        shape = Shape(config.digest, config.agents, config.method.tokens, config.visits().parcel(0), config.room)
        rows = Rows.of(shape, config.visits(), objective)
        with contextlib.closing(sqlite3.connect(folder / f"agent0{k}" / "journal.db")) as journal:
            (body,) = journal.execute("SELECT body FROM rows WHERE name = 'holder'").fetchone()
        np.testing.assert_array_equal(x, rows.unpack("holder", body).agent.x)
    np.testing.assert_allclose(run.local[-1], run.models.mean(axis=0), rtol=1e-12)
    assert not np.array_equal(run.local, run.consensus)
    assert run.history["metric_local"].tolist() == problem.metrics(run.local).tolist()
    again = load_run(run.save(folder.parent / "saved"))
    np.testing.assert_array_equal(again.models, run.models)
    first = replace(run, state=engine_for("plain", run.method, problem, run.network).start())  # as 0.1 saved live runs
    first = load_run(first.save(folder.parent / "first" / "run"))
    with pytest.raises(AmbleError, match="the x_i of this live run are not known"):
        first.models  # noqa: B018
    assert not [key for key in first.history if key.endswith("_local")]
    assert "metric" in first.history
    told = amble("report", folder.parent / "first", "-o", folder.parent / "first" / "page.html")
    assert told.returncode == 0, told.stderr


def test_agents_import_nothing_heavy(done):
    folder, _ = done
    words = "import sys, amble.live.agent.agent, zenoh; print([m for m in sys.modules if m in %r])"
    heavy = ("jax", "matplotlib", "sklearn", "scipy", "pandas", "rich", "typer")
    told = subprocess.run([sys.executable, "-c", words % (heavy,)], capture_output=True, text=True, timeout=60)
    assert told.stdout == "[]\n"
    assert json.loads((folder / "up.json").read_text())["problem"] == "diabetes"
