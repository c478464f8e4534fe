"""The page: one HTML file that contains everything it shows and loads nothing from a network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

from amble.errors import AmbleError, need
from amble.look import css
from amble.problem.picture import holdings_figure
from amble.report.curves import section_curves
from amble.report.headline import headline
from amble.report.looks import looks
from amble.report.machine import this_machine
from amble.report.made import made
from amble.report.markup import Markup, join, picture, tag
from amble.report.page_tables import claim_block, pairs, results_table, summary_tables
from amble.report.sections import BYTES, TIME, UNITS, Section, columns, cost_names, lines, slugs
from amble.results.pictures import network_figure
from amble.results.run import Run

LINKS_MAX = 5000  # more make one grey disc and a heavy page
HOW_MADE = (
    "Made by amble from saved runs: amble report RUN... -o report.html. The numbers are computed from what the runs "
    "recorded; lines are drawn on a logarithmic grid of costs, with the value of the last record at or before each."
)


@dataclass(frozen=True)
class Page:
    title: str
    sections: Sequence[Section]
    intro: str = ""
    assumptions: Sequence[str] = ()
    machine: Mapping[str, str] | None = None  # by default the one that this runs on
    more: Sequence[Markup] = ()  # sections that have no curves, to be shown after the others


def page_text(page: Page) -> str:
    """The whole HTML file."""
    sections = page.sections
    if not sections or not all(section.runs for section in sections):
        raise AmbleError("a page needs runs; give at least one section, and at least one run in each.")
    plotly = need("plotly.offline", "sim").get_plotlyjs()
    names = slugs(sections)
    body = [tag("h1", page.title), *(tag("p", paragraph) for paragraph in page.intro.split("\n\n") if paragraph)]
    if any(section.claims for section in sections):
        body.append(summary_tables(sections))
    if len(sections) > 1 and not all(section.claims for section in sections):  # else the table links to them
        links = [tag("li", tag("a", each.title, href=f"#{name}")) for name, each in zip(names, sections, strict=True)]
        body.append(tag("nav", tag("ul", *links), aria_label="Sections"))
    body += [_section(name, section) for name, section in zip(names, sections, strict=True)]
    body += [*page.more, _foot(page)]
    painted = zip(names, sections, looks(sections), strict=True)
    curves = json.dumps({name: section_curves(section, own) for name, section, own in painted})
    home = files("amble.report")
    return Template(home.joinpath("page.html").read_text("utf-8")).substitute(
        title=join(page.title),
        style="\n".join([css(), *(home.joinpath(name).read_text("utf-8") for name in ("base.css", "page.css"))]),
        body="\n".join(body),
        curves=curves.replace("<", "\\u003c"),  # no text of a run may end the script
        plotly=plotly,
        script=home.joinpath("page.js").read_text("utf-8"),
    )


def _section(name: str, section: Section) -> Markup:
    shown = [
        tag("h2", section.title),
        tag("p", headline(section), class_="headline"),
        tag("p", _what_is_shown(section)),
    ]
    if section.about:
        shown.append(tag("p", section.about))
    shown += [_figure(name, section), *(claim_block(claim) for claim in section.claims), results_table(section)]
    first = section.runs[0]
    details = [tag("summary", "Settings, data and network" if section.pictures else "Settings"), made(section)]
    if section.pictures:
        details.append(tag("div", *pictures(name, first), class_="pictures"))
        details.append(tag("p", f"Drawn for seed {first.seed}.", class_="note"))
    return tag("section", *shown, tag("details", *details), id=name)


def pictures(name: str, run: Run) -> list[Markup]:
    """Which agent holds which rows, if the run says so, and the network."""
    about, shown = run.problem, []
    if about.get("holdings"):
        figure = holdings_figure(about["name"], about["holdings"], about["settings"])
        shown.append(picture(figure, f"{name}-holdings", f"{about['name']}: the rows that each agent holds"))
    network = f"{run.network.name}: {run.network.agents} agents, {len(run.network.edges):,} links"
    if len(run.network.edges) > LINKS_MAX:
        return [*shown, tag("p", f"The network, {network}, has too many links to draw.")]
    return [*shown, picture(network_figure(run), f"{name}-network", network)]


def _what_is_shown(section: Section) -> str:
    drawn = lines(section)
    methods = sum(not line.column_suffix for line in drawn)
    counts = {len(line.runs) for line in drawn}
    seeds = f"{'up to ' if len(counts) > 1 else ''}{max(counts)} seeds"
    what = next(iter(columns(section).values()))
    many = f"{methods} methods" if methods > 1 else "one method"
    caption = f"{what[0].upper()}{what[1:]} of {many} against {cost_names(section)[TIME]} and communication"
    caption += f"; lines are medians over {seeds}, bands go from the lowest to the highest." if max(counts) > 1 else "."
    if methods < len(drawn):
        caption += (
            " Dotted: the mean of the agents' own models x, where it differs from the model (the mean of the tokens)."
        )
    return caption


def _figure(name: str, section: Section) -> Markup:
    """Where the script draws: choices, two plots and their legend."""
    shown = columns(section)
    choices = [_choice(f"{name}-y", "Show", shown)] if len(shown) > 1 else []
    choices.append(_choice(f"{name}-x", "Communication in", {UNITS: "units", BYTES: "bytes"}))
    plots = [tag("div", class_="plot", role="img", aria_label=f"{section.title}: plot against {cost}")
             for cost in (cost_names(section)[TIME], "communication")]  # fmt: skip
    return tag(
        "div",
        tag("div", *choices, class_="choices"),
        tag("div", *plots, class_="plots"),
        tag("div", class_="legend", role="group", aria_label="Methods: press to hide or show"),
        tag("noscript", tag("p", "The plots need JavaScript; the table below does not.")),
        class_="curves",
        data_curves=name,
    )


def _choice(name: str, legend: str, options: Mapping[str, str]) -> Markup:
    labels = []
    for k, (key, label) in enumerate(options.items()):
        attributes: dict[str, object] = {"type": "radio", "name": name, "value": key}
        button = tag("input", **attributes, **({"checked": ""} if k == 0 else {}))
        labels.append(tag("label", button, tag("span", label)))
    return tag("fieldset", tag("legend", legend), *labels)


def _foot(page: Page) -> Markup:
    parts = []
    if page.assumptions:
        parts += [tag("h2", "Assumptions"), tag("ul", *(tag("li", assumption) for assumption in page.assumptions))]
    seeds = sorted({run.seed for section in page.sections for run in section.runs})
    about = {**(this_machine() if page.machine is None else page.machine), "seeds": ", ".join(map(str, seeds))}
    return tag("footer", *parts, tag("h2", "How this was made"), pairs(about), tag("p", HOW_MADE, class_="note"))
