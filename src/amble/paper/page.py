"""What `amble reproduce` shows: the paper's figures 3 to 6 with a verdict on each claim, as a page and pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amble.paper.figure_claims import text_claims
from amble.paper.numbers import write_numbers
from amble.paper.other_claims import Study
from amble.paper.plan import ASSUMPTIONS, DENSITY, TOKENS, Figure, Job
from amble.paper.verdicts import paper_claims
from amble.report.export import write_report
from amble.report.markup import Markup, picture, tag
from amble.report.page import Page
from amble.report.page_tables import claim_block
from amble.report.sections import TIME, UNITS, Section
from amble.report.text import quantity
from amble.results.pictures import timeline_figure
from amble.results.run import Run

PAPER = "Asynchronous Parallel Incremental Block-Coordinate Descent for Decentralized Machine Learning"
CAPTIONS, TUNED = "at the captions' settings", "tuned"  # the groups of claims


def sections_of(figure: Figure, made: Mapping[Job, Sequence[Run]]) -> list[Section]:
    """One figure of the paper: its own methods, and then, if they were run, all tuned ones; Relay in both."""
    budgets = {TIME: figure.time_s, UNITS: float(figure.comm_units)}
    title = f"Figure {figure.number}: {figure.data}"
    spent = f"Every run has {quantity(figure.time_s, TIME)} of virtual time and {figure.comm_units:,} units."
    about = (
        f"The paper's figure {figure.number}: N = {figure.agents}, zeta = {DENSITY}, {TOKENS} walks, "
        f"alpha = {figure.alpha:g} (WPG), tau = {figure.tau_is:g} (I-BCD), tau = {figure.tau_api:g} (API-BCD). {spent}"
    )
    own = {job: runs for job, runs in made.items() if not job.tuned}
    sections = [_section(title, own, about, CAPTIONS, budgets)]
    if any(job.tuned for job in made):
        about = (
            f"Every method with its step or penalty chosen by the same search, beside Relay, which has none. {spent}"
        )
        tuned = {job: runs for job, runs in made.items() if job.tuned or job.method.label == "Relay"}
        sections.append(_section(f"{title}, tuned", tuned, about, TUNED, budgets))
    return sections


def _section(
    title: str, made: Mapping[Job, Sequence[Run]], about: str, group: str, budgets: Mapping[str, float]
) -> Section:
    def find(label: str, reading: str | None = None, **settings: Any) -> Sequence[Run]:
        for job, runs in made.items():
            same = job.method.label == label and job.reading == reading
            if same and all(getattr(job.method, key) == value for key, value in settings.items()):
                return runs
        return ()

    runs = tuple(run for each in made.values() for run in each)
    claims = paper_claims(find, budgets, group == TUNED) + text_claims(find, budgets, group == TUNED)
    return Section(title, runs, about, claims, group, budgets, pictures=group == CAPTIONS)


def studies_section(studies: Sequence[Study], note: str = "") -> Markup:
    """The page's section of other claims: each study with its claims, and the worked example's time line."""
    parts = [tag("h2", "Other claims"), *([tag("p", note)] if note else [])]
    for study in studies:
        parts += [tag("h3", study.title), tag("p", study.about), *(claim_block(claim) for claim in study.claims)]
        if study.drawn is not None:
            description = f"{study.title}: which agent updates which copy when"
            parts.append(picture(timeline_figure(study.drawn, first=1), "time-line", description, class_="wide"))
    return tag("section", *parts, id="other-claims")


def write_all(
    folder: Path, sections: Sequence[Section], studies: Sequence[Study], machine: Mapping[str, str], quick: bool
) -> list[Path]:
    """report.html, curves.csv, each section's figure as PNG and SVG, and paper.json with the numbers of the tables."""
    intro = (
        f"The numerical section of “{PAPER}”, run again. Each claim below is tested on the runs: how much virtual "
        "time, or how many communication units, a method needs to close 50, 90 and 99 % of the gap between the test "
        "metric that it begins with and that of the centralised optimum, and to keep it closed (medians over the "
        "seeds). Every method has the same virtual time and the same communication. “Not within 300 ms” says what was "
        "not reached within that time; where a run ended before a level could be judged, the verdict is “undecided”. "
        "The captions' settings are compared with one another, and tuned methods with tuned methods."
    )
    if quick:
        intro += "\n\nThis is the quick version: one seed, a quarter of the time and communication, no tuned methods."
    title = "The paper's figures 3 to 6, and which of its claims held"
    note = "The small version: up to 100 agents, three kinds of network, one seed, nothing tuned." if quick else ""
    more = [studies_section(studies, note)] if studies else []
    written = write_report(folder / "report.html", Page(title, sections, intro, ASSUMPTIONS, machine, more))
    return [*written, write_numbers(folder, sections, studies, machine)]
