"""amble survey."""

from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app, say


@app.command(short_help="Describe the columns of all sites, without pooling their rows.")
def survey(
    folder: Annotated[
        Path, typer.Argument(help="A folder with a table per site; or that of a run or an agent that had a survey.")
    ],
    target: Annotated[str | None, typer.Option(help="The target column, by name or number.")] = None,
    header: Annotated[bool | None, typer.Option(help="Whether the first row of a table names the columns.")] = None,
    sites: Annotated[bool, typer.Option("--sites", help="A column per site, too.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this file as well.")] = None,
) -> None:
    """Show a table one: count, mean, deviation, minimum, maximum and missing cells per column, over all sites.

    With a folder of tables, one real agent per site describes its own table, a token adds the descriptions up, and no
    row leaves its agent. All agents see each site's description (docs/survey.md).

    **Examples**

    `amble survey hospitals --target died`

    `amble survey amble-up --sites --csv table-one.csv`
    """
    import csv as csvs
    import io
    import sys
    import tempfile

    from amble.errors import AmbleError
    from amble.files import write_whole
    from amble.live.agent import described
    from amble.survey.table_one import KEYS, as_text, table_one

    if not folder.is_dir():
        raise AmbleError(f"there is no folder {folder}; give one with a table per site, or that of a run.")
    kept = [path for path in (folder / described.FILE, *sorted(folder.glob(f"*/{described.FILE}"))) if path.is_file()]
    if kept:
        documents = described.read(kept[0])
    else:
        with tempfile.TemporaryDirectory() as aside:
            documents = run(folder, Path(aside) / "survey", target, header)
    sys.stdout.write(as_text(documents, sites) + "\n")
    if csv is not None:
        lines = io.StringIO()
        writer = csvs.DictWriter(lines, KEYS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table_one(documents, sites))
        write_whole({csv: lines.getvalue().encode()})
        say(f"written to {csv}")


def run(folder: Path, out: Path, target: str | None, header: bool | None) -> dict[str, Any]:
    """A survey of the tables in a folder, by agents on this machine."""
    import sys

    from amble.errors import AmbleError, need

    need("cryptography", "live")
    need("zenoh", "live")
    from amble.live.agent import described
    from amble.live.cluster import sites as live
    from amble.progress import interruptible

    with interruptible(patient=True) as asked:
        model = {key: value for key, value in (("target", target), ("header", header)) if value is not None}
        survey = {"missing": "mean", "train": False}
        stop = {"tolerance": 1e-6}
        plan = live.prepare(
            folder, out, False, method={"name": "Relay"}, model=model, survey=survey, stop=stop, network="complete"
        )
        sys.stderr.write(f"sites: {', '.join(plan.sites)}\n")
        with live.start(plan) as cluster:
            lost = live.watch(cluster, f"{folder}: {len(plan.sites)} sites; Ctrl-C stops", asked.is_set)
            if asked.is_set():
                raise typer.Exit(asked.code)
            found = [path for name in plan.sites if (path := plan.folder / name / described.FILE).is_file()]
            if not found:
                others = "; ".join(f"{name}: {words}" for name, words in lost.items()) or "no agent has finished it"
                reasons = live.reasons(cluster) or others
                raise AmbleError(f"the survey of {folder} has come to nothing: {reasons}.")
            return described.read(found[0])
