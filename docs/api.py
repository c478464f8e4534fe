"""The reference of the public face: a page says which names it has, and Sphinx reads their docstrings."""

import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

from amble.losses import LOSSES
from amble.methods import METHODS

DOCS = Path(__file__).parent
MARK = re.compile(r"<!-- api: ([\w. ]+) -->")


def reference(names: str) -> str:
    """Directives of autodoc for some names, within a page of Markdown."""
    return "```{eval-rst}\n" + "\n".join(map(directive, listed(names))) + "```"


def listed(names: str) -> list[str]:
    """Names as a page has them; METHODS and LOSSES stand for all that are registered."""
    registered = {"METHODS": METHODS, "LOSSES": LOSSES}
    return [
        each
        for name in names.split()
        for each in ([f"amble.{kind.__name__}" for kind in registered[name].values()] if name in registered else [name])
    ]


def directive(name: str) -> str:
    kind: Any = pkgutil.resolve_name(name)
    if inspect.ismodule(kind):
        return f".. automodule:: {name}\n   :no-members:\n"
    if inspect.isfunction(kind):
        return f".. autofunction:: {name}\n"
    if isinstance(kind, dict):
        return f".. autodata:: {name}\n   :no-value:\n"
    return f".. autoclass:: {name}\n{members(kind)}"


def members(kind: type) -> str:
    """A method's and a loss's functions are for engines, not for users: what they do is said once, for all of them."""
    home = kind.__module__.split(".")[1]
    if home == "losses" and hasattr(kind, "build"):
        return "   :members: build\n   :exclude-members: __new__, __init__\n"
    if home in ("methods", "losses"):
        return "   :no-members:\n"
    return "   :members:\n   :exclude-members: __new__, __init__\n"


def documented() -> set[str]:
    """Every name that is on a page."""
    return {name for page in DOCS.glob("*.md") for names in MARK.findall(page.read_text()) for name in listed(names)}


def summary() -> str:
    """One line per name: what it is, and the page that says more."""
    rows = []
    for page in sorted(DOCS.glob("api-*.md")):
        for name in (name for names in MARK.findall(page.read_text()) for name in listed(names)):
            told = inspect.getdoc(pkgutil.resolve_name(name)) or ""
            first = re.split(r"(?<=\.)\s|\n\n", told, maxsplit=1)[0].replace("\n", " ").replace("|", "\\|")
            rows.append(f"| [`{name.removeprefix('amble.')}`]({page.name}) | {first} |")
    return "\n".join(["| name | what it is |", "| --- | --- |", *rows])
