"""amble report."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, say_written

REPORT_HELP = """Make one web page from saved runs, which opens without internet access: plots, tables, settings.

Runs of the same data and network are shown together, and runs that differ only in their seed become one line with a
band. Beside the page are written curves.csv (every record) and a figure for each data set, as PNG and SVG.

**Examples**

`amble report amble-out` - all runs in a folder, and in the folders below it

`amble report seed-0 seed-1 seed-2 -o page/report.html`

`amble report amble-out/1-i-bcd amble-out/2-api-bcd.json`
"""


@app.command(help=REPORT_HELP, short_help="Make a web page from saved runs.")
def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Saved runs (.json, .npz or their common path), or folders of them.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; the other files go beside it.")] = Path(
        "report.html"
    ),
    again: Annotated[bool, typer.Option("--again", help="Replace an existing page.")] = False,
    title: Annotated[str, typer.Option(help="The page's heading.")] = "Report of runs",
) -> None:
    from amble.errors import AmbleError
    from amble.report.export import find_runs, write_report
    from amble.report.page import Page
    from amble.report.sections import group
    from amble.simulation.experiment import make_folder

    if out.suffix.lower() not in (".html", ".htm") or out.is_dir():
        raise AmbleError(f"{str(out)!r} was given for the page; give a file that ends in .html.")
    if out.exists() and not again:
        raise AmbleError(f"{out} exists already; give another page with --out, or --again to replace it.")
    sections = group(find_runs(runs or ()))
    make_folder(out.parent)
    written = write_report(out, Page(title, sections))
    say_written(out.parent, [path.name for path in written])
