"""Docstrings as Sphinx reads them: prose, formulas in the paper's notation, and sections of one-line entries."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import groupby
from textwrap import dedent, indent
from typing import Any

from comments import comments
from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

from amble.methods import Method

SECTION = re.compile(r"(?P<title>[A-Z][a-z]+)\n-{3,}\n(?P<entries>.*)", re.S)
ENTRY = re.compile(r"(?P<names>[\w*.,\s]+?) : (?P<text>.*)", re.S)
COLUMNS = re.compile(r"(?P<names>[^\s=](?:[^=]{0,35}?\S)?) {2,}(?P<text>\S.*)")  # a term, and what it means
ALIASES = {name: stringify_annotation(union, "smart") for name, union in (("ArrayLike", ArrayLike), ("Method", Method))}


def process(app: Any, what: str, name: str, kind: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Sphinx calls this for each docstring; what it leaves in `lines` is the page."""
    text = inspect.cleandoc("\n".join(lines))
    lines[:] = as_rst(text).splitlines()
    if what == "class":
        lines += attributes(kind, text).splitlines()


def skip(app: Any, what: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:  # noqa: ARG001
    """Functions that scikit-learn adds to its estimators are described there."""
    return True if str(getattr(member, "__module__", "amble")).startswith("sklearn") else None


def signature(app: Any, what: str, name: str, kind: Any, options: Any, given: str | None, returned: str | None) -> Any:  # noqa: ARG001
    """Unions that have a name by that name; nothing for a class that users do not construct."""
    if given is None:
        return None
    if what == "class" and "Parameters\n---" not in (inspect.getdoc(kind) or ""):
        return "", None
    for alias, union in ALIASES.items():
        given, returned = given.replace(union, alias), returned and returned.replace(union, alias)
    return given.replace("=<factory>", " = ...").replace("~typing.", ""), returned


def as_rst(text: str) -> str:
    body, _, example = text.partition("Example\n-------\n")
    blocks = [_block(block) for block in re.split(r"\n\s*\n", body.strip()) if block]
    if example:
        blocks += [".. rubric:: Example", example.rstrip()]
    return "\n\n".join(blocks) + "\n"


def attributes(kind: type, text: str) -> str:
    """The fields of a class that it makes itself, with the comments beside them."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else getattr(kind, "_fields", ())
    told = comments(kind) if names else {}
    shown = [(name, told[name]) for name in names if name in told and f"{name} : " not in text and name[0] != "_"]
    return f"\n.. rubric:: Fields\n\n{_definitions(shown)}\n" if shown else ""


def _block(block: str) -> str:
    if section := SECTION.match(block):
        return f".. rubric:: {section['title']}\n\n{_definitions(_entries(section['entries']))}"
    parts = []
    for literal, group in groupby(block.splitlines(), key=lambda line: line[0] == " " or bool(COLUMNS.fullmatch(line))):
        lines = dedent("\n".join(group))
        parts.append(_laid_out(lines) if literal else inline(lines))
    return "\n\n".join(parts)


def _laid_out(text: str) -> str:
    """Terms and what they mean, in columns, as a list; any other layout, such as of formulas, as it is."""
    whole: list[str] = []
    for line in text.splitlines():
        if line[0] == " " and whole:
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    terms = [COLUMNS.fullmatch(each) for each in whole]
    if all(terms):
        return _definitions((term["names"], term["text"]) for term in terms if term)
    return f"::\n\n{indent(text, '    ')}"


def _entries(section: str) -> Iterator[tuple[str, str]]:
    """Names and what they are; a long list of names, or a long text, goes on in the next line."""
    whole: list[str] = []
    for line in section.splitlines():
        if whole and (line.startswith(" ") or " : " not in whole[-1]):
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    for each in whole:
        entry = ENTRY.fullmatch(each)
        yield (entry["names"], entry["text"]) if entry else ("", each)


def _definitions(entries: Any) -> str:
    return "\n\n".join(f"``{names}``\n    {inline(text)}" if names else inline(text) for names, text in entries)


def inline(text: str) -> str:
    """Prose with `code` in it: nothing else in it is markup."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(f"``{part}``" if k % 2 else re.sub(r"([\\*|_`])", r"\\\1", part) for k, part in enumerate(parts))
