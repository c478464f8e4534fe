"""Types as a user meets them: the stub names what `amble` has, a typed script checks, and mistakes are found."""

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import amble
from amble.losses import LOSSES
from amble.methods import METHODS

pytestmark = pytest.mark.long  # not because it takes long: mypy checks for the oldest version of Python

ROOT = Path(__file__).parent.parent
STUB = ROOT / "src" / "amble" / "__init__.pyi"
SCRIPTS = ROOT / "tests" / "typing"


def stubbed():
    """Every name of the stub, with the module that it comes from."""
    names = {}
    for line in ast.parse(STUB.read_text()).body:
        if isinstance(line, ast.ImportFrom):
            module = vars(importlib.import_module(line.module))
            registered = [name for name, kind in module.items() if isinstance(kind, type)]
            plain = [each.asname for each in line.names if each.asname == each.name]
            names |= dict.fromkeys(registered if line.names[0].name == "*" else plain, line.module)
        else:
            assert isinstance(line, ast.AnnAssign)
            names[line.target.id] = None
    return names


def test_the_stub_and_the_package_name_the_same_things():
    assert (
        set(stubbed())
        == set(dir(amble))
        == {*amble.__all__, *(kind.__name__ for kind in (*METHODS.values(), *LOSSES.values()))}
    )


@pytest.mark.parametrize(("name", "module"), [(name, home) for name, home in stubbed().items() if home], ids=str)
def test_a_name_of_the_stub_is_what_the_package_gives(name, module):
    assert getattr(importlib.import_module(module), name) is getattr(amble, name)


def mypy(*files):
    return subprocess.run([sys.executable, "-m", "mypy", *map(str, files)], cwd=ROOT, capture_output=True, text=True)


def test_a_typed_script_checks():
    done = mypy(SCRIPTS / "checks.py")
    assert done.returncode == 0, done.stdout


def test_a_typed_script_runs(tmp_path):
    spec = importlib.util.spec_from_file_location("checks", SCRIPTS / "checks.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)


def test_each_mistake_is_found_and_nothing_else():
    script = SCRIPTS / "mistakes.py"
    expected = {
        (number, code)
        for number, line in enumerate(script.read_text().splitlines(), 1)
        for code in re.findall(r"# expect: ([\w-]+)$", line)
    }
    done = mypy(script)
    lines = re.findall(r"mistakes\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M)
    assert {(int(number), code) for number, code in lines} == expected, done.stdout
    assert len(expected) > 10
