"""The live page sends nothing of an agent's rows, gifts or duals: their files are never opened."""

import http.client
import re
import time
from pathlib import Path

import pytest

pytest.importorskip("zenoh")
pytest.importorskip("uvicorn")

import reads
from amble.live import status
from amble.live.journal import file as journal_file
from amble.live.page.opened import open_page
from amble.live.page.server import Server
from page_samples import Client, pretended

KEPT = Path(__file__).parent / "formats"
SECRET = "QUOTED"


@pytest.fixture
def bundle(tmp_path):
    return pretended(tmp_path / "run")


@pytest.fixture
def client(bundle):
    with Server(open_page([bundle])) as server:
        yield Client(server)


OF_AGENTS = {"agent.toml", "status.json", "log.txt", "certificate.pem"}


def test_no_rows_journal_or_key_is_ever_opened_for_a_page_of_a_run_that_goes_on(bundle):
    """What is never read cannot be sent."""
    with reads.below(bundle) as files, Server(open_page([bundle])) as server:
        client = Client(server)
        client.json("film")
        for name in ("agent00", "agent03"):
            assert client.json(f"agent/{name}")[0] == 200
        for path in ("end", "model.npz", "report", ""):
            client.ask(path)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", f"{client.root}frames?after=-1")
        connection.getresponse().readline()
        connection.close()
    assert {file.name for file in files} <= OF_AGENTS
    assert {"rows.npz", "key.pem"} <= {file.name for file in bundle.rglob("*")}


def test_of_a_finished_run_the_record_is_read_and_no_rows():
    """The journals of the kept run have its agents' states as well; their visits and events alone are read."""
    folder = KEPT / "live-4"
    tables = set()
    begin = journal_file.connect

    def watched(path, mode):
        connection = begin(path, mode)
        connection.set_trace_callback(lambda sql: tables.update(re.findall(r"FROM (\w+)", sql)))
        return connection

    with pytest.MonkeyPatch.context() as patch, reads.below(folder) as files:
        patch.setattr(journal_file, "connect", watched)
        agents = [path.parent for path in sorted(folder.glob("*/agent.toml"))]
        opened = open_page(agents) if agents else open_page([folder / "record.npz"])
        opened.film.whole()
    assert tables <= {"about", "visits", "events"}
    assert not {file.name for file in files} & {"rows.npz", "rows.csv", "key.pem"}


def test_what_an_agent_says_of_its_rows_is_not_sent(client, bundle):
    home = bundle / "agent00"
    (home / "log.txt").write_text(
        "2026-11-18 06:28:11,913 INFO agent00 listens\n"
        f"2026-11-18 06:28:12,118 PRIVATE the model is not tested on the held-out rows of agent00: {SECRET}\n"
        f"amble: row 3 has {SECRET} in place of a number.\n"
        "2026-11-18 06:28:13,118 WARNING agent01 is\x1b[2J down\n"
    )
    status.write(home, status.changed(status.read(home), reason=SECRET, likely_cause=SECRET, state="stopped"))
    time.sleep(1.2)  # two looks
    code, detail = client.json("agent/agent00")
    assert (code, detail["state"], detail["why"]) == (200, "down", "was ended early")
    assert detail["log"] == [
        "2026-11-18 06:28:11,913 INFO agent00 listens",
        "2026-11-18 06:28:13,118 WARNING agent01 is [2J down",
    ]
    assert detail["log_left_out"] == 2
    assert SECRET.encode() not in client.ask("film")[1]
