"""amble data: the named data sets, where they are, and how to get them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import Commands, app, console, say

DATA_HELP = """The named data sets, and where each is.

**Examples**

`amble data` - a table of all

`amble data get cpusmall cadata` - download some to the cache folder

`amble data get all`

amble looks for files in the folder that the environment variable AMBLE_DATA names, then in the cache folder. A file of
your own needs no name here: `amble compare --data rows.csv`.
"""

data = typer.Typer(cls=Commands, help=DATA_HELP, rich_markup_mode="markdown")
app.add_typer(data, name="data", short_help="List the named data sets, and download them.")


@data.callback(invoke_without_command=True)
def table(context: typer.Context) -> None:
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from amble.data.cache import cache_folder
    from amble.data.known import SETS

    shown = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("name", "task", "rows", "test", "columns", "size"):
        shown.add_column(title, justify="left" if title in ("name", "task") else "right", no_wrap=True)
    shown.add_column("where", overflow="fold")
    for name, known in SETS.items():
        rows = [f"{part.rows:,}" for part in known.parts] or [f"{known.rows:,}"]
        size = sum(part.size_bytes for part in known.parts)
        shown.add_row(
            name,
            f"{known.classes} classes" if known.classes else known.task,
            rows[0],
            rows[1] if len(rows) > 1 else "",
            str(known.columns),
            f"{size / 1e6:.1f} MB" if size else "",
            where(name, known),
        )
    console().print(shown)
    say(f"cache folder: {cache_folder()}")


def where(name: str, known: Any) -> str:
    """The folder of a set's files, or how to get them."""
    from amble.data.cache import find

    paths = [find(part) for part in known.parts]
    if not paths:
        return "embedded"
    if None in paths:
        return f"not here: amble data get {name}"
    return ", ".join(dict.fromkeys(short(path.parent) for path in paths if path is not None))


def short(folder: Path) -> str:
    """A folder with the home folder as ~."""
    return f"~/{folder.relative_to(Path.home())}" if folder.is_relative_to(Path.home()) else str(folder)


@data.command(short_help="Download data sets to the cache folder.")
def get(
    names: Annotated[list[str], typer.Argument(help="Names of data sets, or all.", metavar="NAME...")],
) -> None:
    """Download data sets to the cache folder. Each file is checked, and kept only if it is complete and correct.

    **Example**

    `amble data get cpusmall cadata`
    """
    from amble.data import cache
    from amble.data.known import SETS
    from amble.errors import unknown

    for name in names:
        if name not in SETS and name != "all":
            raise unknown("data set", name, (*SETS, "all"))
    for name in SETS if "all" in names else dict.fromkeys(names):
        if not SETS[name].parts:
            say(f"{name} is embedded: it comes with scikit-learn, and there is nothing to download.")
        for path, fetched in cache.get(name):
            said = "was downloaded to" if fetched else "is already here:"
            say(f"{name} {said} {path}")
