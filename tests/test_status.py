"""amble status and amble stop: what agents say of themselves, weighed against their processes and neighbours."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("zenoh")

import amble
from amble.live import process, status
from amble.live.agent import saying
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.control import glance, leaving, stopping, view
from amble.live.core.effects import Report, Visit
from amble.live.core.message import Epoch
from amble.live.journal.journal import Event
from amble.live.records import collect
from amble.live.settings.agent_config import FILE
from amble.live.status import Sight, Status, Wait
from amble.results import model_file, model_reading

pytestmark = pytest.mark.long

ENDLESS = {"hops": 10**9}
NOW_S = 1000.0
FOREIGN = process.Process(1, "", "another machine")
FIRST = {  # as amble 0.1 wrote it
    "name": "a", "time_s": NOW_S, "visits": 3, "bytes": 70, "up": ["b"], "down": ["c"], "doubts": {}, "stopped": "",
    "tokens": {"0": {"epoch": [1, 1], "hop": 7, "here": True, "waits": "for c"}}, "cause": "", "ended": False,
    "leaving": False, "left": "", "doubled": {"c": "two agents have the name c"}, "missing": [], "model": True,
}  # fmt: skip


def run(*words, timeout=60):
    command = [sys.executable, "-m", "amble", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def make(folder, agents=3, stop=ENDLESS, network=None, method=None, **timing):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=agents, ridge=0.01, weights="agents")
    network = network or amble.networks.complete(agents)
    config = configure(
        problem, method or amble.Relay(tokens=2), network, stop, 0, {"silence_s": 60.0, "pause_s": 0.01} | timing
    )
    return Cluster.create(folder, config, rows_of(problem, data.X, data.y))


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not (outcome := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return outcome


def all_joined(cluster):
    return all(cluster.status(name).state == "up" for name in cluster.config.agents)


def seen(*folders):
    told = run("status", *folders, "--json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def judged(said, age_s=0.0, linked=None):
    return glance.of_agent(said, Path("a"), said.time_s + age_s, linked)


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_status_is_read_as_it_was_written(tmp_path):
    said = Status(
        name="a", time_s=NOW_S, state="up", process=process.this_process(), visits=3, hops_per_s=1.5, bytes=70,
        up=("b",), down=("c",), tokens={0: Sight((1, 2), 7, True, "c", 1e-3)},
        waits=(Wait("down", NOW_S - 1, NOW_S + 1, ("c",), 0),), model=True,
    )  # fmt: skip
    status.write(tmp_path, said)
    assert status.read(tmp_path) == said
    assert json.loads((tmp_path / "status.json").read_text())["format"] == status.FORMAT


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, "up"),
        ({"leaving": True}, "leaving"),
        ({"leaving": True, "left": "all is out", "ended": True}, "left"),
        ({"stopped": "enough", "cause": "hops", "ended": True}, "ended"),
        ({"ended": True}, "stopped"),
    ],
)
def test_files_of_the_first_format_are_read(tmp_path, changed, state):
    (tmp_path / "status.json").write_text(json.dumps(FIRST | changed))
    said = status.read(tmp_path)
    assert (said.state, said.visits, said.bytes, said.model) == (state, 3, 70, True)
    assert said.tokens == {0: Sight((1, 1), 7, True)}


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", '{"format": 2, "visits": "many"}', "\xff"),
        *(f'{{"format": 2, "process": {{"pid": {pid}, "begun": "1", "machine": "x"}}}}' for pid in (2**70, 0, -1)),
        '{"format": 2, "more": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"format": 2, "state": "up"}' + " " * status.BYTES_MAX,
    ],
    ids=["empty", "cut", "list", "kind", "letters", "large pid", "pid 0", "pid -1", "deep", "long"],
)
def test_a_damaged_file_is_as_none(tmp_path, content):
    (tmp_path / "status.json").write_text(content, encoding="latin-1")
    assert status.read(tmp_path) == status.read(tmp_path / "nowhere") == Status()


# --- who is up ------------------------------------------------------------------------------------------------------


def test_a_process_that_is_gone_is_known_at_once():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mine = process.this_process()
    other = process.Process(child.pid, process._stat(child.pid)[1], mine.machine)
    assert process.condition(mine) == process.condition(other) == "runs"
    os.kill(child.pid, signal.SIGSTOP)
    wait_for(lambda: process.condition(other) == "frozen")
    child.kill()
    wait_for(lambda: process.condition(other) == "gone")  # though nobody has reaped it yet
    child.communicate()
    assert process.condition(other) == "gone"
    again = process.Process(mine.pid, "1", mine.machine)  # its number belongs to another process by now
    assert process.condition(again) == "gone"
    assert process.condition(FOREIGN) is process.condition(None) is None


def test_an_agent_is_weighed_against_its_process_its_neighbours_and_its_age():
    here = Status(name="a", time_s=NOW_S, state="up", process=process.this_process())
    away = Status(name="a", time_s=NOW_S, state="up", process=FOREIGN)
    gone = Status(name="a", time_s=NOW_S, state="up", process=process.Process(2**22 + 1, "1", here.process.machine))
    assert judged(here).state == judged(here, linked=False).state == judged(away).state == "up"
    assert (judged(gone).state, judged(gone).why) == ("down", "killed")
    assert (judged(away, 2.0, linked=False).state, judged(away, 2.0, linked=False).why) == ("down", "unlinked")
    assert judged(away, 2.0, linked=True).state == judged(away, 2.0).state == "up"
    assert (judged(away, 6.0).state, judged(away, 6.0).why) == ("down", "silent")
    busy = judged(here, 40.0)
    assert (busy.state, busy.why) == ("up", "")
    assert "has written no status for 40 s" in busy.words


def test_a_neighbour_whose_folder_is_elsewhere_is_as_its_neighbours_say():
    said = Status(name="a", time_s=NOW_S, state="up", process=FOREIGN, up=("b",), down=("c",))
    shown = glance.overview({"a": said}, {"a": Path("a")}, NOW_S)
    assert {name: agent.state for name, agent in shown.agents.items()} == {"a": "up", "b": "up", "c": "down"}
    ended = glance.overview({"a": said}, {"a": Path("a")}, NOW_S + 60)
    assert {name: agent.state for name, agent in ended.agents.items()} == {"a": "down"}  # it cannot know any more


@pytest.mark.parametrize("why", ["stopped", "killed", "silent"])
def test_whoever_is_down_is_to_be_started_again_unless_the_run_has_ended(why):
    down = {
        "stopped": Status(name="b", time_s=NOW_S, state="stopped"),
        "killed": Status(
            name="b", time_s=NOW_S, state="up", process=process.Process(2**22 + 1, "1", process.this_process().machine)
        ),
        "silent": Status(name="b", time_s=NOW_S - 60, state="up", process=FOREIGN),
    }[why]
    up = Status(name="a", time_s=NOW_S, state="up", process=FOREIGN)
    over = Status(name="a", time_s=NOW_S, state="ended", process=FOREIGN, cause="hops", stopped="9 hops were made")
    for other, advice in (
        (up, "start it again, and it goes on from its journal"),
        (over, "the run has ended without it"),
    ):
        shown = glance.overview({"a": other, "b": down}, {"a": Path("a"), "b": Path("b")}, NOW_S).agents["b"]
        assert (shown.state, shown.why) == ("down", why)
        assert shown.words.endswith(f"; {advice}")
        assert shown.words.count(";") == 1


def test_what_is_waited_for_is_said_with_its_bound():
    wait = Wait("down", NOW_S - 1.5, NOW_S + 2.5, ("c",), 0)
    said = Status(name="a", time_s=NOW_S, state="up", process=FOREIGN, up=("b",), down=("c",), waits=(wait,))
    shown = glance.overview({"a": said}, {"a": Path("a")}, NOW_S)
    sentence = "a waits for c to come back; it had token 0: for 1.5 s, 2.5 s more at most, then the token is reissued"
    assert sentence in view.sentences(shown)


def test_it_fits_80_columns():
    from rich.console import Console

    names = [f"{'x' * 20}{k:02d}" for k in range(12)]
    said = {
        name: Status(name=name, time_s=NOW_S, state="up", process=FOREIGN, visits=10**9, hops_per_s=12345.6,
                     bytes=10**12, up=tuple(names), tokens={0: Sight((17, 0), 10**10, True, names[0], 1.25e-11)})
        for name in names
    }  # fmt: skip
    screen = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    screen.print(view.tables(glance.overview(said, dict.fromkeys(names, Path("a")), NOW_S)))
    screen.file.close()
    lines = screen.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(line.startswith(f"{name}  up ") for line in lines) for name in names)


def test_who_is_missing_is_said_with_the_stage_that_lacks_it():
    """In a survey it is not the model that lacks somebody."""
    lacking = {
        "opening": ({"missing": ("c",)}, "the opening survey does not have the description of c"),
        "training": ({"missing": ("c",)}, "the model does not have the data of c"),
        "": ({"missing": ("c",)}, "the model does not have the data of c"),
        "closing": (
            {"silent": ("c",)}, "the model has the data, and the closing survey does not have the sums, of c",
        ),
    }  # fmt: skip
    for stage, (lacks, sentence) in lacking.items():
        said = Status(name="a", time_s=NOW_S, state="up", visits=3, stage=stage, **lacks)
        shown = glance.overview({"a": said}, {"a": Path("a")}, NOW_S)
        assert shown.agents["a"].stage == stage
        assert [words for words in view.sentences(shown) if words.endswith(" c")] == [sentence]


def test_every_field_of_the_json_is_described():
    page = (Path(__file__).parent.parent / "docs/live.md").read_text()
    kinds = (glance.Overview, glance.Agent, glance.Token, glance.Waiting)
    names = {name for kind in kinds for name in kind.__struct_fields__}
    assert {name for name in names if f"`{name}`" not in page} == set()


@pytest.mark.parametrize(("cause", "code"), [("hops", 0), ("asked", 0), ("diverged", 1), ("lost", 1)])
def test_the_watching_of_a_run_that_failed_does_not_exit_0(tmp_path, cause, code):
    cluster = make(tmp_path / "run")
    for name in cluster.config.agents:
        status.write(cluster.folder / name, Status(name=name, state="ended", stopped="it is over", cause=cause))
    told = run("status", "--watch", cluster.folder)
    assert (told.returncode, told.stdout.splitlines()[0]) == (
        code,
        "the run has ended: it is over; 0 visits, 0 B heard",
    )


def test_on_a_terminal_it_is_drawn(tmp_path):
    pty = pytest.importorskip("pty")
    cluster = make(tmp_path / "run")
    for name in cluster.config.agents:
        status.write(cluster.folder / name, Status(name=name, state="ended", stopped="it is over", cause="hops"))
    reading, writing = pty.openpty()
    command = [sys.executable, "-m", "amble", "status", "--watch", str(cluster.folder)]
    shown = subprocess.Popen(command, stdout=writing, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"})
    assert shown.wait(60) == 0
    os.close(writing)
    drawn = os.read(reading, 100_000).decode()
    os.close(reading)
    assert "the run has ended: it is over" in drawn
    assert "links up" in drawn


def test_only_changes_are_told_where_there_is_no_terminal():
    wait = Wait("down", NOW_S - 2, NOW_S + 2, ("b",), 0)
    before = Status(name="a", time_s=NOW_S, state="up", process=FOREIGN, up=("b",))
    looks = [
        glance.overview({"a": said}, {"a": Path("a")}, said.time_s)
        for said in (
            before,
            status.changed(before, time_s=NOW_S + 1, visits=9),
            status.changed(before, time_s=NOW_S + 2, up=(), down=("b",), waits=(wait,)),
            status.changed(before, time_s=NOW_S + 3, state="ended", stopped="it is over", cause="hops"),
        )
    ]
    assert view.changes(None, looks[0]) == ["running; 2 of 2 up, 0 visits, 0/s, 0 B heard", "a: up", "b: up"]
    assert view.changes(looks[0], looks[1]) == []
    down, waits = view.changes(looks[1], looks[2])
    assert (down, waits) == ("b: down: its neighbours have no link to it", view.waiting(looks[2].waits[0], NOW_S + 2))
    assert view.changes(looks[2], looks[3])[-1].startswith("the run has ended: it is over")


def test_what_others_say_does_not_move_the_cursor():
    from rich.console import Console

    said = Status(
        name="a", time_s=NOW_S, state="up", process=FOREIGN, up=("b\x1b[1A",), doubts={"b": "is\r\x1b[2Jgone"}
    )
    ended = status.changed(said, state="ended", stopped="it is\x1b[2Jover", cause="hops")
    looks = [glance.overview({"a\x07": each}, {"a\x07": Path("x")}, NOW_S) for each in (said, ended)]
    screen = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    for look in looks:
        screen.print(view.tables(look))
    screen.file.close()
    shown = [*screen.export_text().splitlines(), *view.changes(None, looks[0]), *view.changes(*looks)]
    assert [line for line in shown if not line.isprintable()] == []
    assert "it is [2Jover" in shown[-1]


def test_the_last_line_says_that_all_have_ended():
    """A run has ended as soon as one agent says so, and the others still tell their neighbours."""
    up = {name: Status(name=name, time_s=NOW_S, state="up", process=FOREIGN) for name in "ab"}
    over = {"stopped": "it is over", "cause": "hops"}
    first = {"a": status.changed(up["a"], state="ended", **over), "b": status.changed(up["b"], state="ending", **over)}
    last = {name: status.changed(said, state="ended", **over) for name, said in up.items()}
    looks = [glance.overview(said, dict.fromkeys("ab", Path("x")), NOW_S) for said in (up, first, last)]
    assert view.changes(looks[0], looks[1])[-1] == "the run has ended: it is over; 1 of 2 up, 0 visits, 0/s, 0 B heard"
    assert view.changes(looks[1], looks[2])[-1] == "the run has ended: it is over; 0 visits, 0 B heard"
    assert view.changes(looks[2], looks[2]) == []


# --- real agents ----------------------------------------------------------------------------------------------------


def test_a_killed_agent_is_down_at_the_next_look_and_neighbours_say_so_too(tmp_path):
    """Within the patience: here within what one look takes, and among the neighbours before a token is reissued."""
    cluster = make(tmp_path / "run", patience_s=300.0, stall_s=900.0, silence_s=900.0, pause_s=0.0)
    settings = cluster.folder / "agent01" / FILE
    slow = settings.read_text().replace("pause_s = 0.0", "pause_s = 1.0")  # so that tokens are mostly there
    settings.write_text(slow)
    with cluster:
        cluster.start_all()
        wait_for(lambda: all_joined(cluster))
        assert {agent.state for agent in look(cluster, *cluster.config.agents).values()} == {"up"}
        os.kill(cluster.processes["agent01"].pid, signal.SIGKILL)
        killed = wait_for(lambda: process.condition(cluster.status("agent01").process) == "gone")
        agent = look(cluster, *cluster.config.agents)["agent01"]
        assert (killed, agent.state, agent.why) == (True, "down", "killed")
        wait_for(lambda: look(cluster, "agent00")["agent01"].state == "down")
        away = look(cluster, "agent00")["agent01"]
        assert (away.why, away.folder) == ("unlinked", None)
        wait_for(
            lambda: any(wait.why == "down" for name in ("agent00", "agent02") for wait in cluster.status(name).waits)
        )
        lost = [wait for wait in seen(cluster.folder)["waits"] if wait["why"] == "down"]
        assert {tuple(wait["whom"]) for wait in lost} == {("agent01",)}
        assert [wait["until_s"] - wait["since_s"] for wait in lost] == pytest.approx([300.0] * len(lost))
        shown = run("status", cluster.folder).stdout
        assert re.search(r"^agent01 +down ", shown, re.MULTILINE)
        assert "waits for agent01 to come back" in " ".join(shown.split())


def look(cluster, *names):
    """The agents, as seen from these folders."""
    return glance.look({name: cluster.folder / name for name in names}).agents


def test_how_far_the_model_moves_is_over_a_lap_of_one_token():
    gauge = saying.Gauge(begun_s=0.0)
    for m, z in [(0, [3.0, 4.0]), (1, [30.0, 40.0]), (0, [3.0, 5.0]), (1, [0.0, 0.0])]:
        gauge.visited(m, np.array(z))
    assert [gauge.moved(m) for m in (0, 1, 2)] == [pytest.approx(1 / np.sqrt(34)), 50.0, None]


def test_the_rate_is_that_of_the_last_seconds():
    gauge = saying.Gauge(begun_s=0.0)
    rates = [gauge.pace(k / 2, 10 * min(k, 20)).hops_per_s for k in range(1, 41)]  # 20 hops/s for 10 s, then none
    assert rates[:20] == pytest.approx([20.0] * 20)
    assert rates[24] == pytest.approx(10.0)
    assert rates[-1] == 0.0


def test_how_long_visits_and_waits_take_is_a_mean_of_the_last_seconds():
    gauge = saying.Gauge(begun_s=0.0)
    assert gauge.pace(0.5, 0) == (0.0, None, None)
    paces = []
    for k in range(1, 21):  # for 10 s two visits per second, of 0.1 s after 0.2 s; then of 0.3 s after 0.4 s
        visit = Visit(0, Epoch(2, 0), k, "b", k, None, None)
        gauge.kept(visit, "c", 100.0 + k, *((0.2, 0.1) if k <= 10 else (0.4, 0.3)))
        paces.append(gauge.pace(0.5 + k / 2, k))
    assert paces[9] == pytest.approx((2.0, 0.1, 0.2))
    assert paces[14] == pytest.approx((2.0, 0.2, 0.3))
    assert paces[19] == pytest.approx((2.0, 0.3, 0.4))
    assert gauge.pace(30.0, 20) == (0.0, None, None)
    assert len(gauge.recent) == status.RECENT_MAX
    assert gauge.recent[-1] == status.Recent(120.0, 0, 2, 20, "b", "c")


def test_a_status_has_the_last_events_and_a_record_does_not():
    gauge = saying.Gauge(begun_s=0.0)
    for k in range(30):
        gauge.told(Event.of(Report("recount", 1, Epoch(k, 0), 7, "b", ("b",)), 10.0 + k))
    said = Status(name="a", events=tuple(gauge.events), recent=tuple(gauge.recent))
    assert len(said.events) == status.EVENTS_MAX
    assert said.events[-1] == status.Told("recount", 39.0, 1, 29, 7, "b", ("b",))
    assert not {"events", "recent", "process", "reason"} & status.as_record(said).keys()


def test_an_agent_tells_of_its_last_visits_and_of_each_of_its_starts(tmp_path):
    cluster = make(tmp_path / "run")
    with cluster:
        cluster.start_all()
        wait_for(lambda: cluster.status("agent01").visits > 2 * status.RECENT_MAX)
        said = cluster.status("agent01")
        assert len(said.recent) == status.RECENT_MAX
        assert {visit.token for visit in said.recent} == {0, 1}
        assert {visit.giver for visit in said.recent} | {visit.to for visit in said.recent} <= {
            *said.up,
            *said.down,
            "",
        }
        assert [event.kind for event in said.events] == ["start"]
        assert said.visit_s >= 0.01  # the pause
        cluster.kill("agent01")
        cluster.start("agent01")
        wait_for(lambda: len([event for event in cluster.status("agent01").events if event.kind == "start"]) == 2)
        assert run("stop", cluster.folder).returncode == 0
        wait_for(lambda: not cluster.running())
    gathered = collect.collect(collect.agent_folders([cluster.folder]))
    starts = {
        name: [event.time_s for event in events if event.kind == "start"] for name, events in gathered.events.items()
    }
    assert {name: len(times) for name, times in starts.items()} == {"agent00": 1, "agent01": 2, "agent02": 1}
    assert starts["agent01"] == sorted(starts["agent01"])
    assert cluster.status("agent01").events[0].time_s == starts["agent01"][0]


def test_the_status_of_a_run_has_its_rate_and_how_far_the_model_moves(tmp_path):
    cluster = make(tmp_path / "run", method=amble.Relay(tokens=2, form="scalar"), pause_s=0.02)
    with cluster:
        cluster.start_all()
        wait_for(lambda: all(change is not None and change < 1e-10 for change in moved(cluster)))
        shown = seen(cluster.folder)
        assert shown["state"] == "running"
        assert max(token["moved"] for token in shown["tokens"].values()) < 1e-8  # it falls, but not at every lap
        assert set(shown["tokens"]) == {"0", "1"}
        assert 0 < shown["hops_per_s"] == pytest.approx(sum(a["hops_per_s"] for a in shown["agents"].values()))
        assert shown["hops_per_s"] <= 3 / 0.02  # three agents, each busy for 20 ms with a visit


def moved(cluster):
    """How far each token's model moved over the last lap, as all agents have it; None where one has not seen a lap."""
    statuses = [cluster.status(name) for name in cluster.config.agents]
    return [said.tokens[m].moved if m in said.tokens else None for said in statuses for m in range(2)]


def test_a_run_is_watched_until_it_ends_and_stop_ends_it_everywhere(tmp_path):
    cluster = make(tmp_path / "run", network=amble.networks.ring(4), agents=4)
    with cluster:
        cluster.start_all()
        wait_for(lambda: all_joined(cluster))
        watching = subprocess.Popen(
            [sys.executable, "-m", "amble", "status", str(cluster.folder), "--watch"], stdout=subprocess.PIPE, text=True
        )
        assert watching.stdout.readline().startswith("running; 4 of 4 up")
        told = run("stop", cluster.folder / "agent02")
        assert (told.returncode, told.stdout) == (0, "the run has ended: it was asked to end, at agent02\n")
        lines, _ = watching.communicate(timeout=60)
        assert watching.returncode == 0
        last = lines.splitlines()[-1]
        assert re.fullmatch(
            r"the run has ended: it was asked to end, at agent02; [\d,]+ visits, [\d.]+ .?B heard", last
        )
        wait_for(lambda: not cluster.running())
        assert cluster.failed() == {}
    models = [model_reading.read(cluster.folder / name / model_file.FILE).w for name in cluster.config.agents]
    assert all(np.isfinite(w).all() for w in models)
    assert {(said := cluster.status(name)).state + said.cause for name in cluster.config.agents} == {"endedasked"}
    assert not list(cluster.folder.glob("*/stop"))
    again = run("stop", cluster.folder)
    assert again.returncode == 2
    assert "runs; the run has ended: it was asked to end, at agent02." in again.stderr


def test_stop_ends_amble_up_with_its_model_and_record(tmp_path):
    folder = tmp_path / "run"
    command = ["up", "--data", "diabetes", "-n", 3, "-o", folder, "--tolerance", 0, "--hops", 10**8, "--pause", 0.02]
    started = subprocess.Popen(
        [sys.executable, "-m", "amble", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_for(lambda: all(status.read(folder / f"agent0{k}").state == "up" for k in range(3)))
        told = run("stop", folder)
        assert told.returncode == 0, told.stdout + told.stderr
        shown, _ = started.communicate(timeout=60)
    finally:
        started.kill()
        started.communicate()
    assert started.returncode == 0
    assert re.search("ended: it was asked to end, at agent0[0-2]", shown)
    assert "replayed:" in shown
    assert model_reading.read(folder / model_file.FILE).w.shape == (11,)


def test_a_stop_that_was_left_behind_does_not_end_the_next_run(tmp_path):
    cluster = make(tmp_path / "run")
    (cluster.folder / "agent00" / "stop").write_bytes(process.as_bytes(FOREIGN))
    (cluster.folder / "agent01" / "stop").write_bytes(b"")
    with cluster:
        cluster.start_all()
        wait_for(lambda: all_joined(cluster) and not list(cluster.folder.glob("*/stop")))
        for name in ("agent00", "agent01"):
            wait_for(
                lambda name=name: (
                    "stop is a request to another process" in (cluster.folder / name / "log.txt").read_text()
                )
            )
        assert len(cluster.running()) == 3
        assert run("stop", cluster.folder).returncode == 0
        assert {cluster.status(name).cause for name in cluster.config.agents} == {"asked"}


def pretend(cluster, **fields):
    """That all agents run, in this process."""
    for name in cluster.config.agents:
        said = Status(name=name, time_s=time.time(), state="up", process=process.this_process())
        status.write(cluster.folder / name, status.changed(said, **fields))


def test_every_agent_that_runs_is_asked_to_stop(tmp_path):
    cluster = make(tmp_path / "run")
    pretend(cluster)
    asked = []

    def say(_sentence):
        asked.append([path.read_bytes() for path in cluster.folder.glob("*/stop")])

    _, late = stopping.stop([cluster.folder], 0.5, say)
    assert asked[0] == [process.as_bytes(process.this_process())] * 3
    assert late == list(cluster.config.agents)
    assert not list(cluster.folder.glob("*/stop"))


@pytest.mark.parametrize(("cause", "code"), [("hops", 0), ("asked", 0), ("diverged", 1), ("lost", 1)])
def test_the_stopping_of_a_run_that_failed_does_not_exit_0(tmp_path, cause, code):
    cluster = make(tmp_path / "run")
    pretend(cluster)
    command = [sys.executable, "-m", "amble", "stop", str(cluster.folder)]
    told = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: list(cluster.folder.glob("*/stop")))
    pretend(cluster, state="ended", stopped="it is over", cause=cause)
    shown, _ = told.communicate(timeout=60)
    assert (told.returncode, shown) == (code, "the run has ended: it is over\n")


def test_an_end_counts_though_nobody_has_a_word_for_it(tmp_path):
    """What people read decides nothing."""
    cluster = make(tmp_path / "run")
    pretend(cluster, state="ended", cause="hops")
    assert glance.look({name: cluster.folder / name for name in cluster.config.agents}).over
    folder = cluster.folder / "agent00"
    with pytest.raises(amble.AmbleError, match="there is nothing to leave"):
        leaving.ask(folder, 1.0)
    pretend(cluster, state="left", all_out=True)
    with pytest.raises(amble.AmbleError, match="agent00 has left already"):
        leaving.ask(folder, 1.0)
    assert leaving.follow(folder, 1.0, lambda _: None)[1]


def test_there_is_nothing_to_stop_where_nobody_runs(tmp_path):
    cluster = make(tmp_path / "run")
    told = run("stop", cluster.folder)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == (
        "amble: none of agent00, agent01, agent02 runs; start an agent, or give the folder of one that runs.\n"
    )
    assert not list(cluster.folder.glob("*/stop"))
    assert run("stop", cluster.folder, "--within", 0).returncode == 2
    told = run("status", cluster.folder)
    assert told.stdout.startswith("no agent has been started yet\n")


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (Status(name="a"), "no agent has been started yet"),
        (Status(name="a", state="stopped", visits=1), "no agent runs; 1 visit, 0 B heard"),
        (
            Status(name="a", state="up", process=FOREIGN, time_s=NOW_S, visits=1),
            "running; 1 of 1 up, 1 visit, 0/s, 0 B heard",
        ),
    ],
)
def test_the_headline_counts_what_there_is(said, line):
    assert view.headline(glance.overview({"a": said}, {"a": Path("a")}, NOW_S)) == line


@pytest.mark.parametrize("terminal", [False, True])
def test_watching_while_no_agent_runs_says_so_and_how_to_end_it(tmp_path, terminal):
    pty = pytest.importorskip("pty")
    cluster = make(tmp_path / "run")
    reading, writing = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-m", "amble", "status", "--watch", str(cluster.folder)]
    watching = subprocess.Popen(command, stdout=writing, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"})
    os.close(writing)
    shown = b""
    while b"Ctrl-C ends this" not in shown:
        shown += (more := os.read(reading, 100_000))
        assert more, shown
    watching.send_signal(signal.SIGINT)
    assert watching.wait(60) == 130
    os.close(reading)
    assert b"no agent has been started yet" in shown
    assert b"waiting for an agent to be started (amble agent FOLDER); Ctrl-C ends this" in shown


def test_that_nobody_runs_is_told_again_when_the_last_one_has_gone(tmp_path, capsys):
    status.write(tmp_path, Status(name="a", time_s=time.time(), state="up", process=process.this_process()))
    looks = iter(
        [Status(name="a", state="stopped"), Status(name="a", state="ended", stopped="it is over", cause="hops")]
    )

    def halt(_):
        status.write(tmp_path, next(looks))

    view.watch({"a": tmp_path}, halt, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("running; 1 of 1 up")
    assert [line for line in lines if "Ctrl-C" in line] == [view.hint(glance.overview(
        {"a": Status(name="a", state="stopped")}, {"a": tmp_path}, NOW_S))]  # fmt: skip
    assert lines[-1].startswith("the run has ended: it is over")


def test_ctrl_c_ends_the_watching_and_not_the_run(tmp_path):
    cluster = make(tmp_path / "run")
    with cluster:
        cluster.start_all()
        wait_for(lambda: all_joined(cluster))
        watching = subprocess.Popen(
            [sys.executable, "-m", "amble", "status", str(cluster.folder), "--watch", "--json"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        looks = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
        assert watching.returncode == 130
        assert looks[1]["time_s"] > looks[0]["time_s"]
        assert len(cluster.running()) == 3


SIGNALLED_WAITS = """
import signal
from amble.progress import Flag

def ask(*_):
    flag.set()

flag = Flag()
signal.signal(signal.SIGALRM, ask)
for k in range(3000):
    flag = Flag()
    signal.setitimer(signal.ITIMER_REAL, 1e-4 + k * 1e-8)
    while not flag.is_set():
        flag.wait(1e-6)
"""


def test_a_signal_that_comes_while_it_is_waited_for_does_not_hang():
    assert subprocess.run([sys.executable, "-c", SIGNALLED_WAITS], timeout=60).returncode == 0
