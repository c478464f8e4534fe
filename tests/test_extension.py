"""Adding a method, a loss, a network, a data set: which files that touches, and who picks it up."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


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
