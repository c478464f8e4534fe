"""Real agents, real kills: what benchmarks/survive.py shows at length, in short."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "survive.py"
pytest.importorskip("zenoh")
pytestmark = pytest.mark.long


def namespaces_allowed():
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("ip"):
        return False
    name = f"amble-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


@pytest.mark.parametrize("scene", ["kill", "death", "tracked", "freeze", "cut", "logistic", "one-way"])
def test_every_living_agent_ends_with_the_optimum_of_the_data_that_was_there(scene):
    """`cut` is also two hosts with addresses of their own that train together."""
    if scene in ("cut", "one-way") and not namespaces_allowed():
        pytest.skip("this machine allows no network namespaces")
    pause = "0" if scene == "tracked" else "0.005"  # a penalty method needs more visits
    command = [sys.executable, SCRIPT, scene, "--seconds", "6", "--rest", "14", "--grey", "8", "--pause", pause]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(right)" in done.stdout
