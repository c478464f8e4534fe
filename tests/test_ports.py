"""A port that was chosen for a run is not given to another one before its agent listens."""

import subprocess
import sys

import pytest

from amble import AmbleError
from amble.live.cluster import ports

HOLD = """import sys
from amble.live.cluster.ports import reserve
print(reserve(int(sys.argv[1])), flush=True)
sys.stdin.read()"""


@pytest.fixture
def two(monkeypatch, tmp_path):
    """Two ports, which another process may choose from, too; the locks are in a file of this test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(ports.tempfile, "tempdir", None)
    ports._locks.cache_clear()
    first = next(k for k in range(31_000, 31_990) if free(k) and free(k + 1))
    monkeypatch.setattr(ports, "PORTS", range(first, first + 2))
    yield first, first + 1
    monkeypatch.undo()
    ports._locks.cache_clear()


def free(port):
    with ports.socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) != 0


def holder(port):
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_what_another_process_was_given_is_not_given_here_until_it_ends(two):
    pytest.importorskip("fcntl")
    taken, left = two
    with holder(taken) as other:
        assert other.stdout.readline() == "True\n"
        assert not ports.reserve(taken)
        assert ports.free_ports(1) == [left]
        with pytest.raises(AmbleError, match="2 free ports between"):
            ports.free_ports(2)
        other.stdin.close()
        other.wait()
    assert sorted(ports.free_ports(2)) == [taken, left]


@pytest.mark.usefixtures("two")
def test_what_was_given_here_is_not_given_to_another_process():
    pytest.importorskip("fcntl")
    (given,) = ports.free_ports(1)
    with holder(given) as other:
        assert other.stdout.readline() == "False\n"
        other.stdin.close()


def test_without_a_file_for_the_locks_ports_are_given_all_the_same(two, monkeypatch):
    monkeypatch.setattr(ports, "_locks", lambda: None)
    assert sorted(ports.free_ports(2)) == list(two)
