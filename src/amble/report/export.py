"""Everything of a report besides its page: the curves as CSV, one figure per section; and finding the saved runs."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from amble.drawing import rendered
from amble.errors import AmbleError
from amble.files import ending, write_whole
from amble.report.figures import section_figure
from amble.report.looks import looks
from amble.report.page import Page, page_text
from amble.report.sections import Section, slugs
from amble.results.loading import load_run
from amble.results.reaching import column_of
from amble.results.run import Run
from amble.results.saved import base_path

COLUMNS = ("hop", "time_s", "comm_units", "bytes", "idle", "objective", "suboptimality",
           "distance", "distance_local", "metric", "metric_local")  # fmt: skip
PENALISED = "penalised"  # a column where a run has it
FIGURES = ("png", "svg")
CURVES = "curves.csv"
AGENT_FILE, RECORD_FILE = "agent.toml", "record.npz"  # of live runs: settings.agent_config, records.record


def curves_text(sections: Sequence[Section]) -> str:
    """Every record of every run as a line of a CSV file; numbers in full, so that they read back the same."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    penalised = any(PENALISED in run.history for section in sections for run in section.runs)
    columns = (*COLUMNS, PENALISED) if penalised else COLUMNS
    rows.writerow(["section", "data", "method", "seed", *columns])
    for section in sections:
        for run in section.runs:
            about = [section.title, run.problem["name"], run.label, run.seed]
            history = [column_of(run, name).tolist() for name in columns]
            rows.writerows([*about, *record] for record in zip(*history, strict=True))
    return text.getvalue()


def write_page(path: Path, page: Page, beside: Mapping[Path, bytes] | None = None) -> list[Path]:
    """Write the page, and the files `beside` it, whole or not at all."""
    whole = {path: page_text(page).encode(), **(beside or {})}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(whole)
    except OSError as error:
        raise AmbleError(
            f"the report cannot be written to {path.parent}/; give a folder that you can write to."
        ) from error
    return list(whole)


def write_report(path: Path, page: Page) -> list[Path]:
    """The page, and beside it curves.csv and each section's figure."""
    beside = {path.with_name(CURVES): curves_text(page.sections).encode()}
    for name, section, own in zip(slugs(page.sections), page.sections, looks(page.sections), strict=True):
        figure = section_figure(section, own)
        beside |= {path.with_name(f"{name}.{ending}"): rendered(figure, ending) for ending in FIGURES}
    return write_page(path, page, beside)


def find_runs(paths: Iterable[Path]) -> list[Run]:
    """The saved runs that the paths name; a folder stands for all runs in it and in the folders below."""
    bases: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            bases_here = [base_path(each) for each in path.rglob("*.json") if ending(base_path(each), ".npz").is_file()]
            if not bases_here:
                raise AmbleError(no_run_in(path))
            bases |= {each.resolve(): each for each in sorted(bases_here, key=_natural)}
        else:
            bases.setdefault(base_path(path).resolve(), path)
    if not bases:
        raise AmbleError("no saved run was given; give the paths of some, or of folders that hold them.")
    return [load_run(base) for base in bases.values()]


def no_run_in(folder: Path) -> str:
    """Says what a folder has instead of saved runs, and which command reads that."""
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
