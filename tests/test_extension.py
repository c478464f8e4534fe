"""CONTRIBUTING adds a method, a loss, a network, a data set, a transport: tests apply its diffs to a copy."""

import ast
import gzip
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks import blocks_of

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
# a section of CONTRIBUTING: the files that its diff touches, and what it adds to the one with the registry
TOUCHED = {
    "A new method": {"src/amble/methods/incremental.py": "new", "src/amble/methods/registry.py": 1},
    "A new loss": {"src/amble/losses/log_cosh.py": "new", "src/amble/losses/registry.py": 1},
    "A new network": {"src/amble/networks/kinds.py": 17},
    "A new data set": {"src/amble/data/known.py": 16},
    "A new transport": {"src/amble/live/transport/metered/__init__.py": "new"},
}


def diff_of(title):
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    (block,) = [block for block in blocks_of("CONTRIBUTING.md", section) if block.language == "diff"]
    return block.text


@pytest.fixture
def copy(tmp_path):
    """A copy of src, docs and tests, in which amble is changed and run."""
    for folder in ("src", "docs", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def add(title, copy):
    applied = subprocess.run(["git", "apply"], input=diff_of(title), cwd=copy, text=True, capture_output=True)
    assert applied.returncode == 0, applied.stderr


def run(copy, *words, **settings):
    """A command in the copy, with the copy's amble."""
    paths = os.pathsep.join([str(copy / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200", "JAX_PLATFORMS": "cpu", **settings}
    done = subprocess.run([sys.executable, *words], cwd=copy, env=env, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def amble(copy, *words, **settings):
    return run(copy, "-m", "amble", *words, **settings)


def python(copy, code):
    return run(copy, "-c", f"import amble\n{code}")


@pytest.mark.parametrize("title", TOUCHED)
def test_the_diff_touches_what_it_should_and_no_more(title, copy):
    before = {path: path.read_text() for path in (copy / "src").rglob("*.py")}
    add(title, copy)
    after = {path: path.read_text() for path in (copy / "src").rglob("*.py")}
    changed = {path for path, text in after.items() if before.get(path) != text}
    lines = {path: len(after[path].splitlines()) - len(before.get(path, "").splitlines()) for path in changed}
    assert {str(path.relative_to(copy)): "new" if path not in before else lines[path] for path in changed} == TOUCHED[
        title
    ]
    for path in changed:
        ast.parse(after[path])
    run(copy, "-m", "ruff", "check", *map(str, changed))
    run(copy, "-m", "ruff", "format", "--check", *map(str, changed))


def test_a_new_method_is_picked_up_everywhere(copy):
    add("A new method", copy)
    assert "Incremental: alpha=0.1, tokens=1" in amble(copy, "compare", "--help")
    assert "Incremental" in amble(copy, "compare", "-m", "Incremental:alpha=0.05", "-n", "4", "--hops", "40")
    assert python(copy, "print(amble.Incremental(), 'Incremental' in dir(amble))").split() == [
        "Incremental(alpha=0.1,",
        "tokens=1)",
        "True",
    ]
    planned = "from amble.paper import plan\nprint({job.method.label for job in plan.jobs()})"
    assert "Incremental" not in python(copy, planned)  # the paper's runs are a list of their own
    run(copy, "docs/lists.py")
    assert re.search(
        r"^\| Incremental \| walks \| alpha=0.1, tokens=1 \|", (copy / "docs/methods.md").read_text(), re.M
    )
    contract = run(copy, "-m", "pytest", "tests/test_methods.py", "-n", "0", "--collect-only", "-k", "Incremental")
    assert "test_the_contract" in contract


def test_a_new_method_keeps_the_contract(copy):
    add("A new method", copy)
    python(copy, "from amble.testing import check_method\ncheck_method(amble.Incremental())")


def test_a_new_loss_is_picked_up_everywhere(copy):
    add("A new loss", copy)
    assert "log-cosh" in amble(copy, "compare", "--help")
    amble(copy, "compare", "--loss", "log-cosh", "-m", "Relay", "-n", "4", "--hops", "40", "-o", "runs")
    code = "print(amble.load_run('runs/1-relay').problem['settings']['loss'], amble.LogCosh.__name__)"
    assert python(copy, code).split() == ["log-cosh", "LogCosh"]
    default = "print(type(amble.split(amble.load('diabetes')).objective(0)).__name__)"
    assert python(copy, default).split() == ["LeastSquares"]
    run(copy, "docs/lists.py")
    assert re.search(r"^\| `log-cosh` \| regression \|", (copy / "docs/data.md").read_text(), re.M)
    contract = run(copy, "-m", "pytest", "tests/test_objectives.py", "-n", "0", "-k", "every_named_loss and log-cosh")
    assert "1 passed" in contract


def test_a_new_network_is_picked_up_everywhere(copy):
    add("A new network", copy)
    for command in ("compare", "up"):
        assert "random, ring, complete, grid, geometric, star" in amble(copy, command, "--help")
    (copy / "star.toml").write_text('network = "star"\nagents = 5\nhops = 40\nmethods = [{name = "I-BCD"}]\n')
    amble(copy, "compare", "star.toml", "-o", "runs")
    assert python(copy, "print(amble.load_run('runs/1-i-bcd').network)").strip() == "Network(star: 5 agents, 4 links)"
    live = (
        "from amble.live.settings.links import make_network\nprint(make_network({'network': {'kind': 'star'}}, 'abc'))"
    )
    assert python(copy, live).strip() == "Network(star: 3 agents, 2 links)"
    run(copy, "docs/lists.py")
    assert re.search(r"^\| `star` \|", (copy / "docs/methods.md").read_text(), re.M)


def test_a_new_data_set_is_picked_up_everywhere(copy):
    """The file is one that comes with plotly: what the web address in the diff gives, too."""
    add("A new data set", copy)
    shipped = Path(importlib.util.find_spec("plotly").origin).parent / "package_data" / "datasets" / "tips.csv.gz"
    (copy / "tips.csv").write_bytes(gzip.decompress(shipped.read_bytes()))  # unpacked: the values count, not the bytes
    here = {"AMBLE_DATA": str(copy)}
    assert re.search(rf"^tips +regression +244 +12 .*{re.escape(copy.name)}", amble(copy, "data", **here), re.M)
    assert "tips" in run(copy, "-c", "import amble; print(amble.load('tips'))", **here)
    amble(copy, "compare", "--data", "tips", "-m", "Relay", "-n", "4", "--hops", "40", **here)
    run(copy, "docs/lists.py")
    assert "| tips | regression | 244 | 12 | a file |" in (copy / "docs/data.md").read_text()


def test_a_new_transport_passes_the_checks_of_all(copy):
    """The same checks as of the transport in memory, which it wraps here."""
    add("A new transport", copy)
    checks = (copy / "tests" / "test_transport_contract.py").read_text()
    assert checks.count("else memory.open\n") == 1
    wrapped = checks.replace("else memory.open\n", "else metered(memory.open, SENT)\n").replace(
        "\nclass Party",
        "\nfrom collections import Counter\nfrom amble.live.transport.metered import metered\nSENT = Counter()"
        "\n\nclass Party",
        1,
    )
    counted = "\n\ndef test_bytes_are_counted():\n    assert SENT['b'] > 2**20\n"
    (copy / "tests" / "test_metered.py").write_text(wrapped + counted)
    done = run(copy, "-m", "pytest", "tests/test_metered.py", "-n", "0", "-k", "memory or counted")
    assert re.search(r"[1-9]\d passed", done)


def lists():
    spec = importlib.util.spec_from_file_location("lists", ROOT / "docs" / "lists.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["methods.md", "data.md"])
def test_the_lists_of_the_docs_are_those_of_the_registries(page):
    text = (ROOT / "docs" / page).read_text()
    assert "<!-- list: " in text
    assert lists().rewritten(text) == text, "run python docs/lists.py"
