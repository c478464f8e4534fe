"""What `import amble` loads: next to nothing; and what an agent does."""

import subprocess
import sys

import pytest


def loaded(code, names):
    """Which of these modules a process has loaded after this code."""
    question = f"import sys\n{code}\nprint([name for name in {names} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True, timeout=600)
    return answer.stdout.strip()


def test_importing_amble_imports_nothing_heavy():
    heavy = ["jax", "matplotlib", "sklearn", "pandas", "torch", "scipy", "networkx"]
    assert loaded("import amble", heavy) == "[]"


def test_a_run_imports_nothing_that_it_does_not_need():
    """Of a second process of the same comparison, imports are most: what it compiled is kept."""
    code = """
import amble
problem = amble.split(amble.load("diabetes"), agents=20)
amble.simulate(amble.APIBCD(), problem, hops=100, progress=False)
"""
    heavy = ["jax.extend", "jax._src.pallas", "scipy", "networkx", "sklearn", "pandas", "rich", "typer"]
    assert loaded(code, [*heavy, "matplotlib", "amble.engines.lanes", "amble.simulation.tuning"]) == "[]"


def test_an_agent_keeps_nothing_in_memory_that_it_needs_only_once():
    pytest.importorskip("zenoh")
    assert loaded("import amble.live.agent.agent", ["cryptography", "numpy.random", "statistics"]) == "[]"


def test_what_is_found_apart_comes_back_and_its_libraries_do_not():
    pytest.importorskip("msgspec")
    code = """
from amble.live.process import apart
def heavy(word):
    import statistics
    return [word]
assert apart(heavy, "ends soon") == ["ends soon"]
"""
    assert loaded(code, ["statistics"]) == "[]"


def test_an_error_apart_is_raised_here():
    """In a program of its own: one that has loaded JAX, as this may have, is not to be forked."""
    pytest.importorskip("msgspec")
    code = """
from amble.live.process import apart
def fails():
    raise KeyError("the certificate has ended")
try:
    apart(fails)
except KeyError as error:
    assert "has ended" in str(error)
else:
    raise AssertionError("no error")
"""
    assert loaded(code, []) == "[]"


def test_a_child_that_hangs_is_ended_and_its_work_is_done_here():
    pytest.importorskip("msgspec")
    code = """
import os, time
from amble.live import process
process.APART_S, here = 0.2, os.getpid()
def hangs_elsewhere():
    if os.getpid() != here:
        time.sleep(600)
    return ["here"]
assert process.apart(hangs_elsewhere) == ["here"]
"""
    assert loaded(code, []) == "[]"
