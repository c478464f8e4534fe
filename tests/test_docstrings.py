"""Examples in docstrings of the public face are run, and every public function has one."""

import doctest
import importlib
import inspect

import pytest

import amble
from amble import testing

MODULES = sorted({*amble._HOMES, "amble.network", "amble.testing.methods", "amble.testing.objectives"})
PUBLIC = [
    amble.compare,
    amble.load,
    amble.load_run,
    amble.method,
    amble.read_file,
    amble.resume,
    amble.simulate,
    amble.split,
    amble.Problem.from_agents,
    amble.Problem.from_arrays,
    amble.Problem.from_objectives,
    amble.Run.predict,
    amble.Run.time_to,
    amble.networks.from_networkx,
    testing.check_method,
    testing.check_objective,
    amble.networks.make,
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(name), extraglobs={"folder": tmp_path})
    assert found.failed == 0


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_every_option_is_spelled_out_and_said(function):
    """Parameters, returns and an example in each docstring; no **options."""
    page = inspect.getdoc(function)
    signature = inspect.signature(function)
    assert "Example" in page
    assert ">>> " in page
    assert all(each.kind is not each.VAR_KEYWORD for each in signature.parameters.values())
    for name in signature.parameters:
        assert name in page or name in ("self", "kind"), name


def test_compare_has_the_options_of_simulate():
    ours, theirs = (inspect.signature(function).parameters for function in (amble.compare, amble.simulate))
    assert [name for name in ours if name not in ("methods", "keep", "again")] == list(theirs)[1:]
    assert all(ours[name].default == theirs[name].default for name in list(theirs)[1:])
