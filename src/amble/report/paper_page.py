"""What `amble reproduce` shows: the paper's figures 3 to 6 with a verdict on each claim, as a page and pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amble.report.export import write_curves
from amble.report.page import write_page
from amble.report.paper_figure import section_figure
from amble.report.sections import Section
from amble.report.verdicts import paper_claims
from amble.reproduction import ASSUMPTIONS, DENSITY, TOKENS, Figure, Job
from amble.run import Run

PAPER = "Asynchronous Parallel Incremental Block-Coordinate Descent for Decentralized Machine Learning"


def section_of(figure: Figure, made: Mapping[Job, Sequence[Run]]) -> Section:
    """One figure of the paper with all its runs."""

    def find(label: str, tuned: bool = False, **settings: Any) -> Sequence[Run]:
        for job, runs in made.items():
            same = job.method.label == label and job.tuned == tuned
            if same and all(getattr(job.method, key) == value for key, value in settings.items()):
                return runs
        return ()

    about = (
        f"The paper's figure {figure.number}: N = {figure.agents}, zeta = {DENSITY}, {TOKENS} walks, "
        f"alpha = {figure.alpha:g} (WPG), tau = {figure.tau_is:g} (I-BCD), tau = {figure.tau_api:g} (API-BCD). "
        f"Visits: {' or '.join(f'{hops:,}' for hops in sorted({job.hops for job in made}))} for each method."
    )
    runs = tuple(run for group in made.values() for run in group)
    return Section(f"Figure {figure.number}: {figure.data}", runs, about, paper_claims(find))


def write_all(folder: Path, sections: Sequence[Section], machine: Mapping[str, str], quick: bool) -> list[Path]:
    """report.html, curves.csv, and each figure as figure-3.png and .svg."""
    intro = (
        f"The numerical section of “{PAPER}”, run again. Each claim below is put to the runs: how much virtual time, "
        "or how many communication units, a method needs to close 50, 90 and 99 % of the gap between the test metric "
        "that it begins with and that of the centralised optimum, for good (medians over the seeds)."
    )
    if quick:
        intro += "\n\nThis is the quick version: one seed, a quarter of the visits, no tuned methods."
    title = "The paper's figures 3 to 6, and which of its claims held"
    written = [
        write_page(folder / "report.html", sections, title=title, intro=intro, assumptions=ASSUMPTIONS, machine=machine)
    ]
    written.append(write_curves(folder / "curves.csv", sections))
    for section in sections:
        number = section.title.partition(":")[0].split()[-1]
        written += [section_figure(section, folder / f"figure-{number}{ending}") for ending in (".png", ".svg")]
    return written
