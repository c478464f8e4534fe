"""amble agent --check, and what amble status says of an agent that did not start."""

import contextlib
import datetime
import hashlib
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

pytest.importorskip("zenoh")

import amble
from amble.errors import AmbleError
from amble.live import status
from amble.live.agent import agent
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.control import checking, glance
from amble.live.process import this_process
from amble.live.settings.agent_config import FILE, AgentConfig, Peer
from amble.live.trust import identity
from live_delay import Delay
from live_samples import HOST, free_port

pytestmark = pytest.mark.long


def run(*words):
    command = [sys.executable, "-m", "amble", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def make(folder, agents=3):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=agents, ridge=0.01, weights="agents")
    network = amble.networks.complete(agents)
    config = configure(problem, amble.Relay(tokens=2), network, {"hops": 10**9}, 0, {"pause_s": 0.02})
    return Cluster.create(folder, config, rows_of(problem, data.X, data.y))


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def lines(told):
    """The outcome of each thing that was checked, and its sentence."""
    found = [re.fullmatch(r"(ok|note|wrong) +([a-z]+(?: \w+)?): (.*)", line) for line in told.stdout.splitlines()]
    assert all(found), told.stdout + told.stderr
    return {match[2]: (match[1], match[3]) for match in found}


def contents(folder):
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def cluster(tmp_path):
    with make(tmp_path / "run") as cluster:
        yield cluster


def edit(folder, before, after):
    settings = folder / FILE
    assert before in settings.read_text()
    settings.write_text(settings.read_text().replace(before, after, 1))


# --- amble agent --check --------------------------------------------------------------------------------------------


def test_all_is_well_before_anybody_runs_and_nothing_is_written(cluster):
    before = contents(cluster.folder)
    told = run("agent", "--check", cluster.folder / "agent00")
    assert told.returncode == 0, told.stdout + told.stderr
    outcomes = {what: outcome for what, (outcome, _) in lines(told).items()}
    assert outcomes == {
        "settings": "ok", "certificate": "ok", "data": "ok", "journal": "ok", "port": "ok",
        "neighbour agent01": "note", "neighbour agent02": "note",
    }  # fmt: skip
    assert lines(told)["data"][1].startswith("148 rows, 10 columns")
    assert "not up yet" in lines(told)["neighbour agent01"][1]
    assert contents(cluster.folder) == before


def test_neighbours_that_run_are_reached_and_a_crashed_agents_journal_is_left_as_it_is(cluster):
    cluster.start_all()
    wait_for(lambda: all(cluster.status(name).state == "up" for name in cluster.config.agents))
    cluster.kill("agent00")
    before = contents(cluster.folder / "agent00")
    told = run("agent", "--check", cluster.folder / "agent00")
    found = lines(told)
    assert told.returncode == 0, told.stdout
    assert found["neighbour agent01"][0] == found["neighbour agent02"][0] == "ok"
    assert found["journal"][0] == "ok"
    assert re.search(r"it goes on after [\d,]+ visits", found["journal"][1])
    assert contents(cluster.folder / "agent00") == before
    beside = lines(run("agent", "--check", cluster.folder / "agent01"))
    assert (beside["port"][0], beside["journal"][0]) == ("note", "note")  # it runs
    cluster.start("agent00")
    wait_for(lambda: glance.look({"a": cluster.folder / "agent00"}).agents["a"].state == "up")
    assert sorted(cluster.running()) == list(cluster.config.agents)  # nobody was harmed by being dialled


def test_what_is_wrong_is_named_line_by_line(cluster, tmp_path):
    folder = cluster.folder / "agent00"
    other = make(tmp_path / "other")
    with other, socket.socket() as taken:
        config = AgentConfig.read(folder)
        there = {peer.name: peer.port for peer in AgentConfig.read(other.folder / "agent00").neighbours}
        peers = {peer.name: peer.port for peer in config.neighbours}
        edit(folder, f"port = {peers['agent01']}", f"port = {there['agent01']}")  # who is of another run
        edit(folder, f"port = {peers['agent02']}", f"port = {taken_port(taken)}")  # who is no agent
        other.start_all()
        wait_for(lambda: other.status("agent01").state == "up")
        (folder / "rows.npz").write_bytes(b"nothing")
        with socket.socket() as busy:
            busy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            busy.bind((config.host, config.port))
            busy.listen()
            told = run("agent", "--check", folder)
    found = lines(told)
    assert told.returncode == 1
    assert "is not a whole .npz file" in found["data"][1]
    assert "cannot listen on" in found["port"][1]
    assert "shows a wrong certificate" in found["neighbour agent01"][1]
    assert {what for what, (outcome, _) in found.items() if outcome == "wrong"} == {
        "data", "port", "neighbour agent01",
    }  # fmt: skip
    assert found["neighbour agent02"] == ("note", found["neighbour agent02"][1])  # it is there, and says nothing


def taken_port(listening):
    """Where somebody listens and never answers."""
    port = free_port()
    listening.bind((HOST, port))
    listening.listen()
    return port


@pytest.mark.parametrize("wrong", ["expired", "swapped", "readable", "elsewhere"])
def test_a_wrong_certificate_is_found(cluster, wrong):
    folder = cluster.folder / "agent00"
    mine = {file: folder / file for file in (identity.CERTIFICATE, identity.KEY, identity.AUTHORITY)}
    if wrong in ("expired", "elsewhere"):
        for path in mine.values():
            path.unlink()
        begun = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=10 if wrong == "expired" else 0)
        host = "127.0.0.1" if wrong == "expired" else "10.0.0.1"
        identity.issue(cluster.folder / "authority", "agent00", [host], folder, 1, begun)
    elif wrong == "swapped":
        shutil.copyfile(cluster.folder / "agent01" / identity.KEY, mine[identity.KEY])
    else:
        mine[identity.KEY].chmod(0o644)
    told = run("agent", "--check", folder)
    assert told.returncode == 1
    sentence = {
        "expired": "ended on", "swapped": "does not belong to", "readable": "can be read or changed by others",
        "elsewhere": "is for 10.0.0.1, agent00, and neighbours dial 127.0.0.1",
    }[wrong]  # fmt: skip
    assert lines(told)["certificate"][0] == "wrong"
    assert sentence in lines(told)["certificate"][1]


def test_without_settings_nothing_else_is_checked(tmp_path):
    told = run("agent", "--check", tmp_path)
    assert told.returncode == 1
    assert list(lines(told)) == ["settings"]


def test_a_damaged_journal_and_another_ones_are_found(cluster):
    folder = cluster.folder / "agent00"
    (folder / "journal.db").write_bytes(b"SQLite format 3\0" + bytes(500))
    told = run("agent", "--check", folder)
    assert told.returncode == 1
    assert lines(told)["journal"][0] == "wrong"
    assert str(folder / "journal.db") in lines(told)["journal"][1]


# --- why one did not start ------------------------------------------------------------------------------------------


def test_a_start_that_comes_to_nothing_is_known_before(cluster):
    cluster.start_all()
    wait_for(lambda: all(cluster.status(name).state == "up" for name in cluster.config.agents))
    assert run("leave", cluster.folder / "agent00").returncode == 0
    wait_for(lambda: "agent00" not in cluster.running())
    left = run("agent", "--check", cluster.folder / "agent00")
    assert left.returncode == 1
    assert lines(left)["journal"][0] == "wrong"
    assert "agent00 has left this run (" in lines(left)["journal"][1]
    assert run("stop", cluster.folder).returncode == 0
    ended = run("agent", "--check", cluster.folder / "agent01")
    assert ended.returncode == 0
    assert lines(ended)["journal"][0] == "note"
    assert "the run has ended (it was asked to, at agent0" in lines(ended)["journal"][1]


def test_a_neighbour_that_refuses_our_certificate_is_found_over_a_slow_link(cluster, tmp_path):
    """In TLS 1.3 the refusal comes a round trip after our own end of the handshake."""
    folder, other = cluster.folder / "agent00", make(tmp_path / "other")
    for file in (identity.CERTIFICATE, identity.KEY):
        shutil.copy(other.folder / "agent00" / file, folder / file)
    port = next(peer.port for peer in AgentConfig.read(folder).neighbours if peer.name == "agent01")
    cluster.start("agent01")
    wait_for(lambda: cluster.status("agent01").state == "joining")
    line = Delay(port, 0.4)
    try:
        outcome, sentence = checking._dial(folder, Peer("agent01", HOST, line.port))
    finally:
        line.close()
    assert (outcome, "refuses the handshake" in sentence) == ("wrong", True), sentence


def test_why_an_agent_did_not_start_is_in_the_status(cluster):
    folder = cluster.folder / "agent01"
    (folder / "rows.npz").write_bytes(b"nothing")
    told = run("agent", folder)
    assert told.returncode == 2
    said = status.read(folder)
    assert (said.state, said.name) == ("refused", "agent01")
    assert told.stderr.strip().endswith(said.reason)
    shown = " ".join(run("status", cluster.folder).stdout.split())
    assert "agent01 refused" in shown
    assert f"agent01: did not start: {' '.join(said.reason.split())[:60]}" in shown


def test_a_reason_is_shown_whole_whatever_brackets_it_has(cluster):
    folder = cluster.folder / "agent01"
    edit(folder, "ridge = 0.01", 'ridge = "little"')
    assert run("agent", folder).returncode == 2
    reason = status.read(folder).reason
    assert "[model]" in reason
    assert json.loads(run("status", "--json", cluster.folder).stdout)["agents"]["agent01"]["words"] == reason
    assert "[model]" in run("status", cluster.folder).stdout
    assert "[model]" in lines(run("agent", "--check", folder))["settings"][1]


def test_settings_that_cannot_be_read_are_shown_too(cluster):
    folder = cluster.folder / "agent01"
    edit(folder, "port =", "prt =")
    assert run("agent", folder).returncode == 2
    assert status.read(folder).state == "refused"
    told = run("status", cluster.folder)
    assert told.returncode == 0
    assert re.search(r"^agent01 +refused", told.stdout, re.MULTILINE)


def test_a_taken_port_is_the_reason_and_a_second_start_does_not_hide_the_first(cluster):
    name = "agent01"
    port = AgentConfig.read(cluster.folder / name).port
    with socket.socket() as busy:
        busy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        busy.bind(("127.0.0.1", port))
        busy.listen()
        assert run("agent", cluster.folder / name).returncode == 2
    assert cluster.status(name).state == "refused"
    assert cluster.status(name).reason == (
        f"cannot listen on 127.0.0.1 port {port} (Address already in use); another program listens there, or this "
        "agent runs from a copy of its folder: end that one first."
    )
    cluster.start_all()
    wait_for(lambda: all(cluster.status(each).state == "up" for each in cluster.config.agents))
    again = run("agent", cluster.folder / name)
    assert again.returncode == 2
    pid = cluster.processes[name].pid
    assert again.stderr.splitlines()[-1] == (
        f"amble: {name} is already running, as process {pid}; see amble status {cluster.folder / name}, or end that "
        f"process (kill {pid}) before you start it again."
    )
    assert cluster.status(name).state == "up"
    assert cluster.status(name).reason == ""


def test_a_journal_that_an_unknown_process_holds_is_not_used(cluster):
    """As when the agent runs in a container, whose processes have other numbers."""
    folder = cluster.folder / "agent01"
    cluster.start("agent01")
    wait_for(lambda: cluster.status("agent01").state == "joining")
    cluster.kill("agent01")
    with contextlib.closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as held:
        held.execute("PRAGMA locking_mode = EXCLUSIVE")
        held.execute("BEGIN IMMEDIATE")
        told = run("agent", folder)
    assert told.returncode == 2
    assert told.stderr == (
        f"amble: agent01 is already running, or another process uses {folder / 'journal.db'}; end that one first.\n"
    )


def test_why_one_that_ran_has_failed_is_said_too_and_one_that_has_left_stays_so(cluster):
    folder = cluster.folder / "agent01"
    status.write(folder, status.Status(name="agent01", state="stopped", process=this_process(), visits=7))
    agent._say_why(folder, "the journal is damaged.")
    seen = glance.look({"agent01": folder}).agents["agent01"]
    assert (seen.state, seen.why, seen.words, seen.visits) == ("down", "stopped", "the journal is damaged.", 7)
    status.write(folder, status.Status(name="agent01", state="left", left="all is out"))
    agent._say_why(folder, "it has left.")
    assert status.read(folder).state == "left"


def test_nothing_is_written_where_no_agent_is(tmp_path):
    with pytest.raises(AmbleError):
        agent.run_agent(tmp_path)
    assert os.listdir(tmp_path) == []
