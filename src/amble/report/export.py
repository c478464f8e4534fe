"""Everything of a report beside its page: the curves as CSV, a figure a section; and finding the saved runs."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amble.errors import AmbleError
from amble.files import ending, write_whole
from amble.report.figures import section_figure
from amble.report.looks import looks
from amble.report.page import write_page
from amble.report.sections import Section, slugs
from amble.results.loading import load_run
from amble.results.reaching import column_of
from amble.results.run import Run
from amble.results.saved import base_path

COLUMNS = ("hop", "time_s", "comm_units", "bytes", "idle", "objective", "suboptimality",
           "distance", "distance_local", "metric", "metric_local")  # fmt: skip
PENALISED = "penalised"  # a column where a run has it
FIGURES = (".png", ".svg")
CURVES = "curves.csv"
AGENT_FILE, RECORD_FILE = "agent.toml", "record.npz"  # of live runs: settings.agent_config, records.record


def write_curves(path: Path, sections: Sequence[Section]) -> Path:
    """Every record of every run as a line of a CSV file; numbers in full, so that they read back the same."""
    held = io.StringIO()
    rows = csv.writer(held, lineterminator="\n")
    penalised = any(PENALISED in run.history for section in sections for run in section.runs)
    columns = (*COLUMNS, PENALISED) if penalised else COLUMNS
    rows.writerow(["section", "data", "method", "seed", *columns])
    for section in sections:
        for run in section.runs:
            about = [section.title, run.problem["name"], run.label, run.seed]
            history = [column_of(run, name).tolist() for name in columns]
            rows.writerows([*about, *record] for record in zip(*history, strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole({path: held.getvalue().encode()})
    return path


def write_report(path: Path, sections: Sequence[Section], **page: Any) -> list[Path]:
    """The page, and beside it curves.csv and each section's figure; takes the options of `write_page`."""
    with TemporaryDirectory() as folder:  # all is made before any of it is put in its place
        made = [write_page(Path(folder) / path.name, sections, **page), write_curves(Path(folder) / CURVES, sections)]
        for name, section, own in zip(slugs(sections), sections, looks(sections), strict=True):
            made += [section_figure(section, Path(folder) / f"{name}{end}", own) for end in FIGURES]
        whole = {path.parent / file.name: file.read_bytes() for file in made}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(whole)
    except OSError as error:
        raise AmbleError(f"the report cannot be written to {path.parent}/; give a folder of yours.") from error
    return list(whole)


def find_runs(paths: Iterable[Path]) -> list[Run]:
    """The saved runs that the paths name; a folder stands for all runs in it and in the folders below."""
    bases: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            found = [base_path(each) for each in path.rglob("*.json") if ending(base_path(each), ".npz").is_file()]
            if not found:
                raise AmbleError(no_run_in(path))
            bases |= {each.resolve(): each for each in sorted(found, key=_natural)}
        else:
            bases.setdefault(base_path(path).resolve(), path)
    if not bases:
        raise AmbleError("no saved run was given; give the paths of some, or of folders that hold them.")
    return [load_run(base) for base in bases.values()]


def no_run_in(folder: Path) -> str:
    """What a folder holds in place of saved runs, and which command is for that."""
    if next(folder.rglob(AGENT_FILE), None) is not None:
        return (
            f"{folder} holds agents of a live run and no saved run, which amble up writes; use amble replay {folder}."
        )
    if next(folder.rglob(RECORD_FILE), None) is not None:
        use = "use amble replay with the agents' folders"
        return f"{folder} holds the record of a live run and no saved run, which amble up writes; {use}."
    return f"there is no saved run in the folder {folder}; give one that amble compare or amble up wrote to."


def _natural(path: Path) -> list[Any]:
    """Sorts 9-extra before 10-central."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(path))]
