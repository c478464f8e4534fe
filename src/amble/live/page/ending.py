"""What the page shows of a run that has ended: how good its model is, its table, and what can be opened."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from amble.errors import AmbleError, few
from amble.live.codec import msgspec
from amble.live.control import glance
from amble.live.page.opened import Opened
from amble.live.page.scene import missing
from amble.problem.prediction import METRICS
from amble.results import model_file
from amble.results.loading import load_run
from amble.results.model_reading import read
from amble.results.own_model import OWN
from amble.results.run import Run

SUMMARY_MAX = 50_000  # characters


class Ending(msgspec.Struct, frozen=True):
    lines: tuple[str, ...] = ()
    summary: str = ""  # a table as plain text
    model: bool = False  # whether there is one to download
    report: bool = False  # whether one can be made


def mark(opened: Opened) -> tuple[float, ...]:
    """It changes when there is more to show."""
    return tuple(path.stat().st_mtime if path and path.is_file() else 0.0 for path in (opened.model(), opened.run()))


def ending_of(opened: Opened) -> Ending:
    model, run = opened.model(), opened.run()
    lines = [] if run is None else list(_lines(load_run(run)))
    seen = glance.look(opened.folders)
    gone = {*missing(seen), *(name for name, agent in seen.agents.items() if agent.state == "left")}
    if lines and gone:
        lines.append(f"the optimum is that of all rows; the model does not have those of {few(sorted(gone))}")
    summary = ""
    if model is not None:
        try:
            summary = summary_of(model)
        except AmbleError as error:
            lines.append(f"the table of the model could not be made: {error}")
    return Ending(tuple(lines), summary, model is not None, run is not None)


def _lines(run: Run) -> Iterator[str]:
    metric, best = run.history["metric"][-1], run.problem["optimum_metric"]
    if np.isfinite(metric):
        whole = "" if best is None else f"; of the centralised optimum: {best:.4f}"
        yield f"test {METRICS.get(run.problem['task'], 'metric')} {metric:.4f}{whole}"
    if "distance" in run.history and np.isfinite(run.history["distance"][-1]):
        yield f"distance of the model to the centralised optimum: {run.history['distance'][-1]:.1e}"


def summary_of(path: Path) -> str:
    """The table of a model that has one: its coefficients need the sums of its agents."""
    if OWN in model_file.read(path)[0]:  # of a file of the user's own: it has no coefficients to show
        return ""
    model = read(path)
    if model.sums is None:
        return ""
    return str(model.summary("none" if any(model.penalty.values()) else "model"))[:SUMMARY_MAX]


def report_of(run: Path) -> bytes:
    """The page of amble report."""
    from amble.report.page import Page, page_text
    from amble.report.sections import group

    return page_text(Page("Report of a live run", group([load_run(run)]))).encode()
