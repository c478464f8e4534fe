"""Rewrites the lists of methods, losses, networks and data sets from their registries: python docs/lists.py

A list is between the comments <!-- list: NAME --> and <!-- end -->.
"""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from amble.data.known import SETS
from amble.losses import LOSSES
from amble.methods import METHODS, is_pair, is_round
from amble.networks import KINDS

DOCS = Path(__file__).parent
PAGES = (DOCS / "methods.md", DOCS / "data.md")
BLOCK = re.compile(r"(<!-- list: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def first_sentence(described: Any) -> str:
    return re.split(r"\.(?:\s|$)", str(described.__doc__), maxsplit=1)[0].replace("\n", " ").replace("|", "\\|")


def table(*rows: tuple[str, ...]) -> str:
    lines = [" | ".join(row) for row in (rows[0], ("---",) * len(rows[0]), *rows[1:])]
    return "\n".join(f"| {line} |" for line in lines)


def methods() -> str:
    """Each method: what drives it, its settings, its file, and the first line of its description."""
    rows = [
        (
            label,
            "rounds" if is_round(kind) else "pairs" if is_pair(kind) else "walks",
            ", ".join(
                field.name if field.default is None else f"{field.name}={field.default}" for field in fields(kind)
            ),
            f"`{kind.__module__.rpartition('.')[2]}.py`",
            first_sentence(kind),
        )
        for label, kind in METHODS.items()
    ]
    return table(("method", "by", "settings and defaults", "file", "in one line"), *rows)


def losses() -> str:
    """Each loss, and what it fits."""

    def task(kind: Any) -> str:
        return "regression" if kind.fits(0) else "two or more classes" if kind.fits(3) else "two classes"

    rows = [(f"`{name}`", task(kind), first_sentence(kind)) for name, kind in LOSSES.items()]
    return table(("loss", "for", "what it is"), *rows)


def networks() -> str:
    rows = [(f"`{name}`", ", ".join(kind.takes), first_sentence(kind.build)) for name, kind in KINDS.items()]
    return table(("network", "settings", "what it is"), *rows)


def sets() -> str:
    """Each data set: its task, its size, and where it comes from."""
    rows = []
    for name, known in SETS.items():
        task = f"{known.classes} classes" if known.classes else known.task
        count = " and ".join(f"{part.rows:,}" for part in known.parts) + " to test" * (len(known.parts) > 1)
        where = ("with scikit-learn", "a file", "two files")[len(known.parts)]
        rows.append((name, task, count or f"{known.rows:,}", str(known.columns), where))
    return table(("name", "task", "rows", "columns", "where"), *rows)


LISTS = {each.__name__: each for each in (methods, losses, networks, sets)}


def rewritten(page: str) -> str:
    return BLOCK.sub(lambda block: f"{block[1]}\n{LISTS[block[2]]()}\n\n{block[3]}", page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(rewritten(path.read_text()))
