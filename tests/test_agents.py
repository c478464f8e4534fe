"""Agents as real processes, over a long time and in bad times: clocks, restarts, records, lost journals, no token."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

import amble
from amble.errors import AmbleError
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.records import collect
from amble.live.settings.agent_config import FILE
from amble.results import model_file, model_reading
from live_nodes import Nodes

pytest.importorskip("zenoh")
ENDLESS = {"hops": 10**9}
NO_MODEL, INTERRUPTED, TERMINATED = 3, 130, 143


def make(folder, agents=3, method=None, stop=ENDLESS, **timing):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=agents, ridge=0.01, weights="agents")
    network, timing = amble.networks.complete(agents), {"patience_s": 1.0, "silence_s": 10.0, "pause_s": 0.005} | timing
    config = configure(problem, method or amble.Relay(tokens=2), network, stop, 0, timing)
    return Cluster.create(folder, config, rows_of(problem, data.X, data.y)), problem


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def visits(cluster, name):
    return cluster.status(name).visits


def stopped(cluster):
    return {cluster.status(name).stopped for name in cluster.config.agents}


def change(cluster, name, statement, *values):
    """In the journal of an agent that is not running."""
    with contextlib.closing(sqlite3.connect(cluster.folder / name / "journal.db")) as connection, connection:
        connection.execute(statement, values)


def log_of(cluster, name):
    return (cluster.folder / name / "log.txt").read_text()


# --- clocks ---------------------------------------------------------------------------------------------------------


def test_a_clock_that_is_a_day_ahead_ends_nobodys_run(tmp_path):
    """One agent's clock leaps while it is down, as that of a board without a battery does: its record is then of
    yesterday. An hour is not over for all that."""
    cluster, _ = make(tmp_path / "run", stop={"seconds": 3600.0})
    with cluster:
        cluster.start_all()
        wait_for(lambda: all(visits(cluster, name) > 20 for name in cluster.config.agents))
        cluster.kill("agent01")
        before = visits(cluster, "agent01")
        change(cluster, "agent01", "UPDATE visits SET time_s = time_s - 86400")
        cluster.start("agent01")
        wait_for(lambda: visits(cluster, "agent01") > before + 50 or any(stopped(cluster)))
        assert stopped(cluster) == {""}


def test_seconds_add_up_over_restarts(tmp_path):
    """What an agent has been in the run before counts, and a clock has no part in it."""
    cluster, _ = make(tmp_path / "run", stop={"seconds": 3600.0})
    with cluster:
        cluster.start_all()
        wait_for(lambda: all(visits(cluster, name) > 20 for name in cluster.config.agents))
        for name in cluster.config.agents:
            cluster.kill(name)
        change(cluster, "agent01", "UPDATE about SET value = '3599.9' WHERE key = 'elapsed_s'")
        change(cluster, "agent01", "UPDATE visits SET time_s = time_s + 86400")
        cluster.start_all()
        wait_for(lambda: not cluster.running())
        assert stopped(cluster) == {"3600 s are over"}
        assert cluster.failed() == {}


# --- the record -----------------------------------------------------------------------------------------------------


def test_how_much_of_its_record_an_agent_keeps_is_its_own_affair(tmp_path):
    """The run is the same run; that the record begins late is said as such."""
    cluster, _ = make(tmp_path / "run", stop={"hops": 900})
    settings = cluster.folder / "agent01" / FILE
    assert "visits_max = 1000000" in settings.read_text()
    settings.write_text(settings.read_text().replace("visits_max = 1000000", "visits_max = 50"))
    Nodes(cluster.folder, cluster.config.agents).wait()
    gathered = collect.collect(collect.agent_folders([cluster.folder]))
    assert 40 <= len(gathered.visits["agent01"]) <= 50
    assert list(gathered.dropped) == ["agent01"]
    first = gathered.dropped["agent01"]
    outcome = up.again(collect.agent_folders([cluster.folder]))
    assert not outcome.whole
    assert outcome.first == ""
    assert outcome.left == (
        f"the first {first:,} visits of agent01 were dropped (visits_max)",
        "later visits cannot be recomputed without them",
    )
    for command in (["collect", cluster.folder, "-o", tmp_path / "record"], ["replay", cluster.folder]):
        told = run_amble(*command)
        assert f"the first {first:,} visits of agent01 were dropped (visits_max)" in told.stdout.replace("\n", " ")
        assert told.stderr == ""


def run_amble(*words):
    command = [sys.executable, "-m", "amble", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_a_damaged_journal_can_be_deleted_as_its_sentence_says(tmp_path):
    """The agent begins as new, its data are counted once, and the model is the optimum of all data."""
    cluster, problem = make(tmp_path / "run", pause_s=0.002)
    best = problem.optimum().w

    def is_best(name):
        w = cluster.model(name)
        return w is not None and np.linalg.norm(w - best) <= 1e-6 * np.linalg.norm(best)

    with cluster:
        cluster.start_all()
        wait_for(lambda: all(map(is_best, cluster.config.agents)))
        cluster.kill("agent01")
        for name in ("journal.db", "journal.db-wal"):
            path = cluster.folder / "agent01" / name
            if path.exists():
                path.write_bytes(path.read_bytes()[:5000])
        cluster.start("agent01")
        wait_for(lambda: "agent01" not in cluster.running())
        assert "agent01" in cluster.failed()
        assert "delete journal.db and, if it exists, journal.db-wal, and start the agent again" in log_of(
            cluster, "agent01"
        )
        for path in (cluster.folder / "agent01").glob("journal.db*"):
            path.unlink()
        cluster.start("agent01")
        wait_for(lambda: visits(cluster, "agent01") > 20 and all(map(is_best, cluster.config.agents)))
        assert cluster.failed() == {}


# --- no token -------------------------------------------------------------------------------------------------------


def end(cluster, name, number=signal.SIGTERM):
    """As a person does; its exit code."""
    process = cluster.processes[name]
    process.send_signal(number)
    return process.wait(30)


@pytest.mark.parametrize(("name", "number", "code"), [
    ("agent00", signal.SIGTERM, TERMINATED), ("agent02", signal.SIGTERM, TERMINATED),
    ("agent02", signal.SIGINT, INTERRUPTED),
])  # fmt: skip
def test_an_agent_that_was_alone_has_no_model_and_is_stopped_as_any_other(tmp_path, name, number, code):
    """Neither one at which a token begins nor one that waits for the first. The code is not that of a run's end."""
    cluster, _ = make(tmp_path / "run")
    with cluster:
        cluster.start(name)
        wait_for(lambda: cluster.status(name).state != "unstarted")
        assert end(cluster, name, number) == code
        assert not list((cluster.folder / name).glob("model.np*"))
        assert cluster.status(name).model is False
        stopped, none = log_of(cluster, name).splitlines()[-2:]
        assert f"{name} was told to stop before the run ended; start it again, and it continues" in stopped
        assert f"{name} has no model yet and wrote none" in none
        with pytest.raises(AmbleError, match="there is no model"):
            model_reading.read(cluster.folder / name / model_file.FILE)


def test_an_agent_with_a_model_that_is_told_to_stop_says_so_by_the_same_code(tmp_path):
    cluster, _ = make(tmp_path / "run")
    with cluster:
        cluster.start_all()
        wait_for(lambda: all(visits(cluster, name) > 20 for name in cluster.config.agents))
        assert end(cluster, "agent01") == TERMINATED
        assert end(cluster, "agent02", signal.SIGINT) == INTERRUPTED
        assert (cluster.folder / "agent01" / model_file.FILE).is_file()
        before = visits(cluster, "agent01")
        cluster.start("agent01")
        wait_for(lambda: visits(cluster, "agent01") > before)


def test_an_agent_of_a_run_that_has_ended_says_so_at_once(tmp_path):
    """Its neighbours are not there, and nobody is told to look for them."""
    cluster, _ = make(tmp_path / "run")
    with cluster:
        cluster.start_all()
        wait_for(lambda: all(visits(cluster, name) > 20 for name in cluster.config.agents))
        assert run_amble("stop", cluster.folder).returncode == 0
        wait_for(lambda: not cluster.running())
        ended = cluster.status("agent01").stopped
        before = len(log_of(cluster, "agent01"))
        cluster.start("agent01")
        assert cluster.processes["agent01"].wait(60) == 0
        said = log_of(cluster, "agent01")[before:]
        assert f"the run has ended: {ended}; agent01 only tells the neighbours" in said.splitlines()[0]
        assert said.count("the run has ended") == 1
        assert "is not up; the agent waits" not in said


def test_an_agent_that_comes_after_the_end_has_no_model(tmp_path):
    cluster, _ = make(tmp_path / "run", method=amble.Relay(), stop={"hops": 40})
    with cluster:
        cluster.start("agent00")
        cluster.start("agent01")
        wait_for(lambda: not cluster.running())
        assert cluster.failed() == {}
        cluster.start("agent00")  # which tells it
        cluster.start("agent02")
        wait_for(lambda: not cluster.running())
        assert cluster.processes["agent02"].poll() == NO_MODEL
        assert cluster.failed() == {}  # it ended with its run
        assert log_of(cluster, "agent02").endswith("use the model of another agent\n")
        assert not list((cluster.folder / "agent02").glob("model.np*"))
        assert (cluster.folder / "agent00" / model_file.FILE).is_file()
