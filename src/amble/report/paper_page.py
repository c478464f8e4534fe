"""What `amble reproduce` shows: the paper's figures 3 to 6 with a verdict on each claim, as a page and pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amble.report.export import write_report
from amble.report.sections import Section
from amble.report.verdicts import paper_claims
from amble.reproduction import ASSUMPTIONS, DENSITY, TOKENS, Figure, Job
from amble.run import Run

PAPER = "Asynchronous Parallel Incremental Block-Coordinate Descent for Decentralized Machine Learning"


def sections_of(figure: Figure, made: Mapping[Job, Sequence[Run]]) -> list[Section]:
    """One figure of the paper: its own methods, and then, if they were run, all tuned ones; Relay in both."""

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
    title = f"Figure {figure.number}: {figure.data}"
    own = tuple(run for job, runs in made.items() for run in runs if not job.tuned)
    found = [Section(title, own, about, paper_claims(find))]
    tuned = tuple(run for job, runs in made.items() for run in runs if job.tuned or job.method.label == "Relay")
    if any(job.tuned for job in made):
        words = "Every method with its step or penalty chosen by the same search, beside Relay, which has none."
        found.append(Section(f"{title}, tuned", tuned, words, pictures=False))
    return found


def write_all(folder: Path, sections: Sequence[Section], machine: Mapping[str, str], quick: bool) -> list[Path]:
    """report.html, curves.csv, and each section's figure as PNG and SVG."""
    intro = (
        f"The numerical section of “{PAPER}”, run again. Each claim below is put to the runs: how much virtual time, "
        "or how many communication units, a method needs to close 50, 90 and 99 % of the gap between the test metric "
        "that it begins with and that of the centralised optimum, for good (medians over the seeds)."
    )
    if quick:
        intro += "\n\nThis is the quick version: one seed, a quarter of the visits, no tuned methods."
    title = "The paper's figures 3 to 6, and which of its claims held"
    page = {"title": title, "intro": intro, "assumptions": ASSUMPTIONS, "machine": machine}
    return write_report(folder / "report.html", sections, **page)
