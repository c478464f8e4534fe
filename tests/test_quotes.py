"""Tests quote the rule that they test. What the tests of live runs quote stands in the code or the pages beside it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIVE = sorted(
    path for path in Path(__file__).parent.glob("test_*.py")
    if re.search(r"\bamble\.live\b|\blinked_cores\b|\blive_samples\b|\bzenoh\b", path.read_text())
)  # fmt: skip
PAGES = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]


def plain(text):
    return " ".join(text.replace("`", "").replace("*", "").split()).lower()


def docstrings(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (words := ast.get_docstring(node)):
            yield words


def missing(words, here):
    """The parts of its quotations that stand nowhere here."""
    parts = [plain(part).strip(" .") for quoted in re.findall(r'"([^"]{12,})"', words) for part in quoted.split("...")]
    return [part for part in parts if part not in here]


@pytest.mark.parametrize("path", LIVE, ids=lambda path: path.stem)
def test_what_is_quoted_stands_here(path):
    here = plain(" ".join(path.read_text() for path in [*ROOT.glob("src/amble/live/**/*.py"), *PAGES]))
    assert [part for words in docstrings(path) for part in missing(words, here)] == []


def test_a_quotation_of_something_else_is_seen():
    assert missing(
        'It "waits for the dead" and "reads what nobody has written".', "waits for the dead, and says so"
    ) == ["reads what nobody has written"]


def test_tests_name_no_page_that_is_not_here():
    named = {page for path in Path(__file__).parent.glob("*.py") for words in docstrings(path)
             for page in re.findall(r"[\w-]+\.md\b", words)}  # fmt: skip
    assert named <= {page.name for page in PAGES}
