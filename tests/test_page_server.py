"""The server of the live page: who may ask, and what is answered."""

import http.client
import json
import re
import shutil
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("zenoh")
pytest.importorskip("uvicorn")

import amble
from amble.cli import main
from amble.live import process, status
from amble.live.page import pages
from amble.live.page.detail import LOG_BYTES, LOG_LINES, tail
from amble.live.page.ending import ending_of
from amble.live.page.guard import HEADERS, Guard
from amble.live.page.opened import open_live, open_page
from amble.live.page.server import Server
from amble.live.settings.agent_config import AgentConfig
from page_samples import Client, pretend, pretended

WEB = Path(pages.WEB)
KEPT = Path(__file__).parent / "formats"


@pytest.fixture
def bundle(tmp_path):
    return pretended(tmp_path / "run")


@pytest.fixture
def client(bundle):
    with Server(open_page([bundle])) as server:
        yield Client(server)


# --- who may ask ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "headers", "code"),
    [
        ("GET", "/s3/", {"host": "127.0.0.1:80"}, None),
        ("GET", "/s3/film", {"host": "localhost:80"}, None),
        ("GET", "/s3/film", {"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80"}, None),
        ("GET", "/s3/film", {"host": "127.0.0.1:80", "origin": "http://evil.example"}, 403),
        ("GET", "/s3/film", {"host": "127.0.0.1:80", "origin": "null"}, 403),  # as a sandboxed report has it
        ("GET", "/", {"host": "127.0.0.1:80"}, 403),
        ("GET", "/s/film", {"host": "127.0.0.1:80"}, 403),
        ("GET", "/s33/film", {"host": "127.0.0.1:80"}, 403),
        ("GET", "/film?key=s3", {"host": "127.0.0.1:80"}, 403),
        ("GET", "//s3/film", {"host": "127.0.0.1:80"}, 403),
        ("GET", "/\u00e9/", {"host": "127.0.0.1:80"}, 403),
        ("GET", "/s3/", {}, 421),
        ("GET", "/s3/", {"host": "127.0.0.1"}, 421),
        ("GET", "/s3/", {"host": "127.0.0.1:81"}, 421),
        ("GET", "/s3/", {"host": "evil.example:80"}, 421),  # a name of theirs that leads to 127.0.0.1
        ("POST", "/s3/stop", {"host": "127.0.0.1:80"}, 403),
        ("POST", "/s3/stop", {"host": "127.0.0.1:80", "origin": "http://evil.example"}, 403),
        ("POST", "/s3/stop", {"host": "127.0.0.1:80", "origin": "http://127.0.0.1:81"}, 403),
        ("POST", "/s3/stop", {"host": "127.0.0.1:80", "origin": "http://localhost:80"}, None),
        ("OPTIONS", "*", {"host": "127.0.0.1:80"}, 403),
        ("DELETE", "/s3/film", {"host": "127.0.0.1:80"}, 403),
    ],
)
def test_only_the_page_itself_is_answered(method, path, headers, code):
    assert Guard(None, "s3", 80).refusal(method, path, headers) == code


def test_the_server_listens_on_this_machine_only_and_refuses_strangers(client):
    assert client.server._socket.getsockname()[0] == "127.0.0.1"
    assert client.server.url == f"http://127.0.0.1:{client.server.port}/{client.server.secret}/"
    assert len(client.server.secret) >= 22  # 128 bits
    for sent, code in (
        ({}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": None}, 400),  # uvicorn's own
        ({"whole": "/"}, 403),
        ({"whole": "/film"}, 403),
        ({"Origin": "http://evil.example"}, 403),
    ):
        answer, content = client.ask(**sent)
        assert answer.status == code
        assert code in (200, 400) or content == b""


def test_two_servers_have_two_secrets(bundle):
    servers = [Server(open_page([bundle])) for _ in range(2)]
    assert servers[0].secret != servers[1].secret
    for server in servers:
        server._socket.close()


def test_every_answer_has_the_policy_also_where_it_is_an_error(client):
    for path, code in (("", 200), ("page.js", 200), ("film", 200), ("nothing", 404), ("agent/nobody", 409)):
        answer, _ = client.ask(path)
        assert answer.status == code
        assert {key: answer.getheader(key) for key in HEADERS} == HEADERS
        assert answer.getheader("Server") is None
    assert client.ask(whole="/wrong/")[0].getheader("Content-Security-Policy").startswith("default-src 'none'")
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_nothing_of_the_page_is_inline_or_from_elsewhere():
    page = (WEB / "page.html").read_text()
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="page.js">']
    assert not re.search(r"\son\w+=|\sstyle=|<style", page)
    for file in WEB.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*|\s// .*|/\*.*?\*/", "", text, flags=re.M), file  # no address
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|eval\(|document\.write", text), file
        assert len(text.splitlines()) < 400
    named = set(re.findall(r'(?:src|href)="([\w.]+)"|from "\./([\w.]+)"', page + "".join(
        file.read_text() for file in WEB.glob("*.js"))))  # fmt: skip
    assert {a or b for a, b in named} == {file.name for file in WEB.iterdir()} - {"page.html"} | {"base.css"}


# --- what is answered -----------------------------------------------------------------------------------------------


def test_the_page_and_its_parts_are_served(client):
    for name, kind in (("", "text/html"), ("page.js", "text/javascript"), ("base.css", "text/css")):
        answer, content = client.ask(name)
        assert answer.getheader("Content-Type").startswith(kind)
        assert content


def test_the_film_and_then_its_frames(client):
    code, film = client.json("film")
    assert code == 200
    assert film["about"]["agents"] == ["agent00", "agent01", "agent02", "agent03"]
    n = film["frames"][-1]["n"] if film["frames"] else -1
    connection = http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=30)
    connection.request("GET", f"{client.root}frames?after={n}")
    answer = connection.getresponse()
    assert answer.getheader("Content-Type").startswith("text/event-stream")
    numbers = []
    while len(numbers) < 3:
        line = answer.readline()
        if line.startswith(b"data: "):
            numbers.append(json.loads(line[6:])["frame"]["n"])
    assert numbers == [n + 1, n + 2, n + 3]
    connection.close()


def test_a_page_that_was_away_too_long_is_told_to_load_again(client, monkeypatch):
    film = client.server.opened.film
    monkeypatch.setattr(film, "after", lambda n: None if n < 5 else [])
    _, content = client.ask("frames?after=3")
    assert content == b"event: again\ndata: {}\n\n"
    _, content = client.ask("frames", **{"Last-Event-ID": "4"})  # as a browser sends it when it connects again
    assert content == b"event: again\ndata: {}\n\n"
    for wrong in ("frames", "frames?after=x", "frames?after=", "frames?after=--1", "frames?after=%C2%B2"):
        assert client.ask(wrong)[0].status == 400


def test_only_so_many_pages_are_open_at_once(client, monkeypatch):
    monkeypatch.setattr(pages, "STREAMS_MAX", 2)
    open_ = [http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=30) for _ in range(2)]
    for connection in open_:
        connection.request("GET", f"{client.root}frames?after=-1")
        connection.getresponse().readline()
    assert client.ask("frames?after=-1")[0].status == 503
    for connection in open_:
        connection.close()


def test_the_end_of_the_server_is_told_to_open_pages(bundle):
    pretend(bundle, state="ended", cause="hops", stopped="enough")
    lines = []
    with Server(open_live_of(bundle)) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", f"/{server.secret}/frames?after=-1")
        answer = connection.getresponse()
        lines.append(answer.readline())
        reader = threading.Thread(target=lambda: lines.extend(answer.read().splitlines()))
        reader.start()
    reader.join()
    connection.close()
    assert lines[-3:] == [b"event: closed", b"data: {}", b""]
    assert b'data: {"lines":[],"summary":"","model":false,"report":false}' in lines


def open_live_of(folder):
    from amble.live.page.opened import open_live

    return open_live(folder, "mine", dict)


def test_an_agent_leaves_and_a_run_stops_when_the_page_asks(client, bundle):
    code, said = client.json("leave/agent01", "POST", Origin=client.origin)
    assert (code, (bundle / "agent01" / "leave").read_text()) == (200, "30\n")
    assert said["said"].startswith("agent01 was asked to leave")
    assert client.json("leave/nobody", "POST", Origin=client.origin) == (
        409,
        {"said": "the folder of nobody is not here."},
    )
    assert client.ask("leave/agent02", "POST")[0].status == 403
    assert not (bundle / "agent02" / "leave").exists()
    assert client.ask("stop")[0].status == 405

    asked = []
    stopping = threading.Thread(target=lambda: asked.append(client.json("stop", "POST", Origin=client.origin)))
    stopping.start()
    deadline = time.monotonic() + 30
    while len(list(bundle.glob("*/stop"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    pretend(bundle, state="ended", cause="asked", stopped="it was asked to end")
    stopping.join()
    assert asked == [(200, {"said": "the run has ended: it was asked to end"})]


def test_a_finished_run_is_not_stopped():
    with Server(open_page([KEPT / "live-4" / "record.npz"])) as server:
        client = Client(server)
        for path in ("stop", "leave/a"):
            code, said = client.json(path, "POST", Origin=client.origin)
            assert (code, said) == (409, {"said": "the run has ended already."})
        assert client.json("film")[1]["about"]["live"] is False


def test_results_say_whose_data_the_model_lacks(bundle):
    """An agent that died, and one that has left: the optimum beside the model still has their rows."""
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=4, X_test=data.X[:50], y_test=data.y[:50])
    amble.simulate(amble.Relay(), problem, amble.networks.ring(4), hops=9, progress=False).save(bundle / "run")
    ended = {"state": "ended", "cause": "hops", "stopped": "enough", "visits": 3}
    pretend(bundle, **ended)
    whole = ending_of(open_live(bundle, "t", dict)).lines
    pretend(bundle, **ended, missing=("agent03",))
    status.write(bundle / "agent01", status.Status(name="agent01", time_s=time.time(), state="left", visits=3))
    lines = ending_of(open_live(bundle, "t", dict)).lines
    assert lines == (*whole, "the optimum is that of all rows; the model does not have those of agent01, agent03")
    assert [line.split()[0] for line in whole] == ["test", "distance"]


def test_what_is_not_there_is_said(client):
    for path in ("model.npz", "report"):
        code, said = client.json(path)
        assert code == 409
        assert said["said"].startswith(f"there is no {path.removesuffix('.npz')}")
    assert client.ask("../../etc/passwd")[0].status == 404
    assert client.ask("agent/..%2f..%2fauthority")[0].status in (404, 409)


def test_a_detail_has_the_journals_size_and_the_certificates_end(client, bundle):
    home = bundle / "agent02"
    for name, size in (("journal.db", 1000), ("journal.db-wal", 200), ("opening.db", 30)):
        (home / name).write_bytes(b"x" * size)
    visit = status.Recent(time.time(), 1, 0, 7, "agent01", "agent03")
    status.write(home, status.changed(status.read(home), up=("agent01",), down=("agent03",), recent=(visit,)))
    _, detail = client.json("agent/agent02")
    assert detail["journal_bytes"] == 1230
    assert 364 < (detail["certificate_until_s"] - time.time()) / 86_400 < 366
    assert (detail["up"], detail["down"], detail["visit"][1:]) == (
        ["agent01"],
        ["agent03"],
        [1, 0, 7, "agent01", "agent03"],
    )
    assert detail["process"] == process.this_process().pid
    assert (detail["log"], detail["log_there"]) == ([], False)


def test_the_end_of_a_long_log_is_bounded(tmp_path):
    path = tmp_path / "log.txt"
    line = "2026-11-18 06:28:11,913 INFO " + "x" * 1000
    path.write_text("\n".join([f"{line} {k}" for k in range(1000)]) + "\n")
    lines, _ = tail(path)
    assert len(lines) <= min(LOG_LINES, LOG_BYTES // 1000)
    assert max(map(len, lines)) <= 400
    assert tail(tmp_path / "none") == ((), 0)


def test_the_page_of_many_agents_is_small():
    """50 agents and 10 tokens: 1,500 frames must not take the browser long to load."""
    from amble.live.codec import msgspec
    from amble.live.page.film import Agent, Frame, Token

    stops = tuple((1234.567, 12) for _ in range(8))
    full = Frame(1499, 1234.567, "running", (Agent(2, 123_456, 123.4, 10**9, 0.001234, 0.001234),) * 50,
                 (Token(12, 13, True, 3, 123_456, 1.234e-5, stops),) * 10)  # fmt: skip
    assert len(msgspec.json.encode(full)) * 1500 < 8e6


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (["nowhere"], "there is no folder"),
        (["empty"], "neither .*empty nor a folder in it has agent.toml"),
        (["notes.txt"], "the record .*notes.txt is damaged or cut short"),
        (["notes.txt", "empty"], "notes.txt is a record, and other paths were given"),
    ],
)
def test_what_no_page_can_be_opened_on_is_said(tmp_path, monkeypatch, capsys, paths, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    monkeypatch.setattr("sys.argv", ["amble", "page", *paths])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert re.search(sentence, capsys.readouterr().err)


def test_a_port_that_cannot_be_used_is_said(client, bundle):
    with pytest.raises(amble.AmbleError, match=r"port \d+ cannot be used"):
        Server(open_page([bundle]), client.server.port)
    for port in (-1, 65536):
        with pytest.raises(amble.AmbleError, match=f"--port {port} was given; give 1 to 65535"):
            Server(open_page([bundle]), port)


def test_a_run_is_named_by_what_it_is_of(bundle, tmp_path):
    assert open_page([bundle]).film.about.title == "up"  # the run's own name
    (bundle / "up.json").write_text(json.dumps({"format": 1, "problem": "diabetes", "method": "Relay"}))
    assert open_page([bundle]).film.about.title == "diabetes"
    copy = tmp_path / "other"
    shutil.copytree(KEPT / "live-4", copy)
    assert open_page([copy / "record.npz"]).film.about.agents


def test_settings_that_cannot_be_read_do_not_end_the_page(bundle):
    (bundle / "agent01" / "agent.toml").write_text("name = ")
    about = open_page([bundle]).film.about
    assert about.agents == ("agent00", "agent01", "agent02", "agent03")
    assert AgentConfig.read(bundle / "agent00").agents == about.agents
