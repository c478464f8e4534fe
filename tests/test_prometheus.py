"""--prometheus: the metrics of agents, also as a real Prometheus gets them."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

pytest.importorskip("zenoh")
pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

import reads
from amble import AmbleError
from amble.live import status
from amble.live.cluster.ports import free_ports
from amble.live.prometheus.server import Exporter, parse
from amble.live.records import collect
from amble.live.trust.certificates import read_certificate
from page_samples import Up, pretend, pretended, until

SECRET = "QUOTED"
SIGHTS = {0: status.Sight((0, 0), 40, moved=0.25), 1: status.Sight((0, 0), 41)}


@pytest.fixture
def bundle(tmp_path):
    return pretended(tmp_path / "run")


def exported(folder):
    exporter = Exporter("0")
    exporter.folders = lambda: collect.folders_in(folder)
    return exporter


def ask(url, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30).read().decode()


def samples(text):
    """Each sample by its name and labels, the agent's first."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_metrics_are_what_the_status_says(bundle):
    pretend(
        bundle, visits=7, bytes=900, hops_per_s=3.5, visit_s=0.01, wait_s=0.02, up=("agent01",), down=("a", "b"),
        doubts={"agent01": SECRET}, tokens=SIGHTS, counts={"start": 2, "reissue": 1, "left": 1}, missing=("agent03",),
    )  # fmt: skip
    home = bundle / "agent00"
    status.write(bundle / "agent03", status.changed(status.read(bundle / "agent03"), state="stopped", reason=SECRET))
    (bundle / "agent02" / "status.json").unlink()
    (home / "journal.db").write_bytes(b"x" * 5000)
    (home / "journal.db-wal").write_bytes(b"x" * 70)
    with reads.below(bundle) as files, exported(bundle) as exporter:
        exporter.figures = lambda: {"NMSE": 0.5}
        text = ask(exporter.url)
    assert {file.name for file in files} <= {"status.json", "certificate.pem", "agent.toml"}  # no rows, no journal
    assert SECRET not in text
    found = samples(text)
    said = {name: value for (name, *labels), value in found.items() if labels == ["agent00"]}
    assert said == {
        "amble_visits_total": 7,
        "amble_heard_bytes_total": 900,
        "amble_hops_per_second": 3.5,
        "amble_visit_seconds": 0.01,
        "amble_wait_seconds": 0.02,
        "amble_neighbours_up": 1,
        "amble_neighbours_down": 2,
        "amble_neighbours_doubted": 1,
        "amble_missing_agents": 1,
        "amble_journal_bytes": 5070,
        "amble_certificate_expiry_timestamp_seconds": read_certificate(
            home / "certificate.pem"
        ).not_valid_after_utc.timestamp(),
        "amble_status_timestamp_seconds": status.read(home).time_s,
    }
    states = {labels[0]: labels[1] for (name, *labels), value in found.items() if name == "amble_state" and value == 1}
    assert states == {"agent00": "up", "agent01": "up", "agent02": "unstarted", "agent03": "down"}
    events = {labels[1]: value for (name, *labels), value in found.items() if name == "amble_events_total"
              and labels[0] == "agent00"}  # fmt: skip
    assert events == {"absorbed": 0, "doubt": 0, "left": 1, "recount": 0, "refused": 0, "reissue": 1, "start": 2}
    assert found["amble_token_hop", "agent00", "1"] == 41
    assert {key: value for key, value in found.items() if key[0] in ("amble_moved", "amble_model")} == {
        ("amble_moved", "agent00", "0"): 0.25,
        ("amble_moved", "agent01", "0"): 0.25,
        ("amble_moved", "agent03", "0"): 0.25,
        ("amble_model", "NMSE"): 0.5,
    }
    assert ("amble_hops_per_second", "agent03") in found  # zero, and no mean of long ago
    assert ("amble_visit_seconds", "agent03") not in found


def test_only_this_machine_is_answered_and_under_its_own_name(bundle):
    with exported(bundle) as exporter:
        assert exporter.server.socket.getsockname()[0] == "127.0.0.1"
        assert "amble_visits_total" in ask(exporter.url.replace("127.0.0.1", "localhost"))
        with pytest.raises(urllib.error.HTTPError, match="421"):
            ask(exporter.url, Host="evil.example")  # a name of theirs that leads here
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(urllib.request.Request(exporter.url, method="POST"), timeout=30)
    with Exporter("0.0.0.0:0") as everywhere:
        assert everywhere.server.socket.getsockname()[0] == "0.0.0.0"
        assert ask(everywhere.url, Host="north.example:9464") == ask(everywhere.url)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:80", ("[::1]", 80)),
        ("north:1", ("north", 1)),
    ],
)
def test_a_port_or_an_address(given, address):
    assert parse(given) == address


@pytest.mark.parametrize("given", ["x", "70000", "127.0.0.1", "127.0.0.1:", ":80", "::1:80", "-1"])
def test_what_is_no_address_is_refused(given):
    with pytest.raises(AmbleError, match=rf"--prometheus {given} was given; give a port, such as 9464, or an address"):
        parse(given)


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AmbleError, match=r"cannot be used \(Address already in use\); give another port"):
            Exporter(str(taken.getsockname()[1]))


# --- a real Prometheus ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def prometheus(folder, **targets):
    """Prometheus itself, which asks each target four times a second; what it answers to a query."""
    program = shutil.which("prometheus")
    assert program, "there is no Prometheus; apt-get install --no-install-recommends prometheus"
    jobs = [{"job_name": name, "static_configs": [{"targets": [target]}]} for name, target in targets.items()]
    (folder / "prometheus.yml").write_text(json.dumps({"global": {"scrape_interval": "250ms"}, "scrape_configs": jobs}))
    (port,) = free_ports(1)
    command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
               f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def query(text):
        url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': text})}"
        try:
            result = json.loads(ask(url))["data"]["result"]
        except OSError:  # it is not up yet
            return {}
        named = {each["metric"].get("agent", each["metric"].get("job")): float(each["value"][1]) for each in result}
        assert len(named) == len(result), "several series of one agent"
        return named

    try:
        yield query
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_prometheus_sees_visits_grow_and_an_agent_die(tmp_path):
    """Of a run of amble up on one port, and of an agent on its own, which waits for its neighbours."""
    alone, folder = pretended(tmp_path / "bundle"), tmp_path / "run"
    for path in alone.glob("*/status.json"):
        path.unlink()
    words = ("--tolerance", 0, "--hops", 10**8, "--pause", 0.02, "--prometheus", 0, "-o", folder)
    with (
        Up("up", "--data", "diabetes", "-n", 3, "--network", "complete", *words) as up,
        Up("agent", alone / "agent00", "--prometheus", "127.0.0.1:0") as agent,
    ):
        pattern = r"127\.0\.0\.1:\d+(?=/metrics)"
        with prometheus(tmp_path, up=up.wait(pattern), agent=agent.wait(pattern)) as query:
            until(lambda: query("up") == {"up": 1, "agent": 1})
            names = {"agent00", "agent01", "agent02"}
            until(
                lambda: (
                    {name for name, rate in query('rate(amble_visits_total{job="up"}[5s])').items() if rate > 0}
                    == names
                )
            )
            until(lambda: query('amble_state{job="agent", state="joining"}') == {"agent00": 1})
            until(lambda: query('amble_neighbours_down{job="agent"}') == {"agent00": 2})
            assert query('amble_events_total{job="up", kind="start"}') == dict.fromkeys(names, 1)
            left = query('amble_certificate_expiry_timestamp_seconds{job="up"} - time()')
            assert all(364 * 86400 < seconds < 366 * 86400 for seconds in left.values())
            seen = query('amble_visits_total{job="up"}')
            assert all(seen[name] <= status.read(folder / name).visits for name in names)
            os.kill(status.read(folder / "agent01").process.pid, signal.SIGKILL)
            until(lambda: query('amble_state{job="up", state="down"}') == {"agent00": 0, "agent01": 1, "agent02": 0})
            until(lambda: query('sum by (job) (amble_events_total{kind=~"recount|reissue"}) > 0').keys() == {"up"})
        assert agent.interrupt() == 130
        up.interrupt()
