"""The public face: parameters, returns and an example in each docstring, and the examples are run."""

import doctest
import importlib
import inspect
from dataclasses import fields, is_dataclass

import pytest

import amble
from amble import methods, testing
from amble.losses import LOSSES, JaxLoss

NAMES = [name for name in amble.__all__ if name not in ("__version__", "networks")]
EXPORTED = [
    *(getattr(amble, name) for name in NAMES),
    *LOSSES.values(),
    *(getattr(amble.networks, name) for name in amble.networks.__all__),
]
EXPORTED += [getattr(testing, name) for name in testing.__all__]
CLASSES = list(dict.fromkeys(each for each in EXPORTED if inspect.isclass(each)))
CONSTRUCTED = [amble.Classifier, amble.Dataset, amble.Regressor, amble.Timing, JaxLoss, *methods.METHODS.values()]
MADE = {
    amble.Comparison: "compare",
    amble.Model: "load_model",
    amble.Network: "networks",
    amble.PenaltyPath: "amble.path",
    amble.Problem: "split",
    amble.Record: "on_record",
    amble.Run: "simulate",
    amble.Sweep: "amble.sweep",
    amble.Tracker: "to_tensorboard",
}


def public_methods(kind):
    names = [name for name in vars(kind) if not name.startswith("_")]
    if kind in LOSSES.values():  # the table of amble.losses says what the others do
        names = ["build"]
    found = [getattr(kind, name) for name in names]
    return [each for each in found if inspect.isfunction(each) and each.__module__.startswith("amble")]


FUNCTIONS = [each for each in EXPORTED if inspect.isfunction(each)]
FUNCTIONS += [method for kind in CLASSES if kind.__module__.startswith("amble") for method in public_methods(kind)]
MODULES = sorted({each.__module__ for each in [*FUNCTIONS, *CLASSES, *CONSTRUCTED]})


def check_sections(page, parameters, returns):
    head = "Parameters\n----------\n"
    assert (head in page) == bool(parameters)
    section = page.partition(head)[2].partition("\n\n")[0]
    names = [name for line in section.splitlines() for name in line.partition(" : ")[0].replace(",", " ").split()]
    assert [name for name in parameters if name not in names] == []
    assert ("Returns\n-------\n" in page) == returns
    assert ">>> " in page.partition("Example\n-------\n")[2]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(name), extraglobs={"folder": tmp_path})
    assert results.failed == 0


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_a_function_says_what_it_takes_and_returns(function):
    signature = inspect.signature(function)
    assert all(each.kind is not each.VAR_KEYWORD for each in signature.parameters.values())  # every option by its name
    parameters = [name for name in signature.parameters if name != "self"]
    check_sections(inspect.getdoc(function), parameters, returns=signature.return_annotation is not None)


@pytest.mark.parametrize("kind", CONSTRUCTED, ids=lambda kind: kind.__name__)
def test_a_class_that_users_construct_says_its_settings(kind):
    settings = [field.name for field in fields(kind)] if is_dataclass(kind) else [*inspect.signature(kind).parameters]
    check_sections(inspect.getdoc(kind), settings, returns=False)


def test_a_class_that_functions_make_names_them():
    assert {*CLASSES} == {*MADE, *LOSSES.values(), amble.AmbleError, *CONSTRUCTED[:4]}
    for kind, maker in MADE.items():
        assert maker in inspect.getdoc(kind).partition("\n\n")[0], kind


def test_compare_has_the_options_of_simulate():
    ours, theirs = (inspect.signature(function).parameters for function in (amble.compare, amble.simulate))
    assert [name for name in ours if name not in ("methods", "keep", "again")] == list(theirs)[1:]
    assert all(ours[name].default == theirs[name].default for name in list(theirs)[1:])
