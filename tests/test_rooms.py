"""Rooms: data flows one way. The layers are in pyproject.toml, and CONTRIBUTING's map is drawn from them."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # not because it takes long: it does not depend on the version of Python

ROOT = Path(__file__).parent.parent
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def lint(folder):
    return subprocess.run([sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True)


def test_every_room_imports_only_from_those_below_it():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


def test_an_import_from_above_is_found(tmp_path):
    """The contracts can fail: a copy in which a loss imports the command line is refused."""
    copy = tmp_path / "src" / "amble"
    for file in (ROOT / "src" / "amble").rglob("*.py"):
        to = copy / file.relative_to(ROOT / "src" / "amble")
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(file.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (copy / "losses" / "newton.py").write_text("import amble.cli.app\n")
    (copy / "live" / "core" / "doubts.py").write_text("import time\n")
    (copy / "live" / "agent" / "node.py").write_text("import amble.live.transport.zenoh.transport\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'src')!r}); {LINT}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "amble.losses.newton -> amble.cli.app" in done.stdout
    assert "amble.live.core.doubts -> time" in done.stdout
    assert "amble.live.agent.node -> amble.live.transport.zenoh.transport" in done.stdout


def rooms():
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_map_of_contributing_is_the_one_that_is_checked():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert f"<!-- rooms -->\n\n{rooms().blocks()}\n\n<!-- end -->" in page, "run python docs/rooms.py"


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_every_file_of_ours_that_a_page_names_is_there(page):
    text = (ROOT / page).read_text()
    for name in re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+\.\w+)`", text):
        assert (ROOT / name).is_file(), name
