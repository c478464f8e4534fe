"""The page's tables: the claims, and what each method needed and reached."""

from collections.abc import Mapping, Sequence

import numpy as np

from amble.report.claims import Claim, Verdict, by_claim
from amble.report.markup import Markup, join, tag
from amble.report.measures import costs_to_reach, ended
from amble.report.sections import BYTES, TIME, UNITS, Line, Section, best_metric, columns, lines, slugs
from amble.report.text import NONE, cell_text, ended_text, known, quantity, reach_text

WITHIN = {0.01: "to within 1 %", 0.001: "to within 0.1 %"}
COSTS = {TIME: "time", UNITS: "units", BYTES: "bytes"}
UNIT_WORD = {UNITS: " units"}  # where the number alone does not tell
STYLES = {Verdict.HELD: "held", Verdict.IN_PART: "part", Verdict.FAILED: "failed", Verdict.UNDECIDED: "undecided"}


def pairs(items: Mapping[str, str]) -> Markup:
    """Names and values, as a list."""
    return tag("dl", *(tag("div", tag("dt", key), tag("dd", value)) for key, value in items.items()))


def headings(*cells: object) -> Markup:
    return tag("tr", *(tag("th", cell, scope="col") for cell in cells))


def table(
    description: str, head: Sequence[Markup], rows: Sequence[Sequence[object]], caption: str = "", **attributes: object
) -> Markup:
    """A table whose first column names the rows. It scrolls by itself on a narrow screen, by the keyboard too."""
    body = [tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells)) for name, *cells in rows]
    parts = [tag("caption", caption)] if caption else []
    whole = tag("table", *parts, tag("thead", *head), tag("tbody", *body), **attributes)
    return tag("div", whole, class_="scroll", role="region", aria_label=description, tabindex=0)


def verdict_word(verdict: Verdict | None) -> Markup:
    return join(NONE) if verdict is None else tag("strong", verdict.value, class_=f"verdict {STYLES[verdict]}")


def summary_tables(sections: Sequence[Section]) -> Markup:
    """For each group of sections a table: claims down, sections across."""
    named = [(name, section) for name, section in zip(slugs(sections), sections, strict=True) if section.claims]
    tables = []
    for group in dict.fromkeys(section.group for _, section in named):
        own = [(name, section) for name, section in named if section.group == group]
        links = [tag("a", section.title, href=f"#{name}") for name, section in own]
        verdicts = by_claim([section.claims for _, section in own])
        rows = [[text, *map(verdict_word, each)] for text, each in verdicts.items()]
        caption = f"Which claims held on which data{f', {group}' if group else ''}."
        head = [headings("Claim", *links)]
        tables.append(table(f"Claims and verdicts {group}", head, rows, caption, class_="summary"))
    return join(*tables)


def claim_block(claim: Claim) -> Markup:
    """The verdict, the claim, and the table that decides it: methods down, levels across."""
    parts = [tag("p", verdict_word(claim.verdict), ": ", tag("b", claim.text))]
    if claim.rows:
        rows: list[Sequence[object]] = []
        for row in claim.rows:
            name = tag("b", row.name) if row.claimed else row.name
            rows.append([name, *(cell_text(cell, claim.measure) for cell in row.cells)])
        if claim.verdicts:
            blank = [""] * (len(claim.columns) - len(claim.verdicts))
            rows.append(["verdict", *blank, *map(verdict_word, claim.verdicts)])
        parts.append(table(f"Numbers behind: {claim.text}", [headings("", *claim.columns)], rows))
    if claim.left_out:
        note = f"{claim.left_out} others need as much or more at every level, or did not reach it."
        parts.append(tag("p", note, class_="note"))
    return tag("div", *parts, class_="claim")


def results_table(section: Section) -> Markup:
    """Costs to come near the optimum, and where each method ended."""
    shown, goal = columns(section), _goal(section)
    levels = WITHIN if goal else {}
    at_end = f"at {quantity(section.budgets[TIME], TIME)}" if TIME in section.budgets else "at the end"
    top = tag(
        "tr",
        tag("th", "method", rowspan=2, scope="col"),
        *(tag("th", heading, colspan=len(COSTS), scope="colgroup") for heading in levels.values()),
        tag("th", at_end, colspan=len(shown), scope="colgroup"),
    )
    ends = [heading if column != "distance" else column for column, heading in shown.items()]
    under = headings(*(heading for _ in levels for heading in COSTS.values()), *ends)
    rows = [
        [
            _method_head(line),
            *(reach_text(costs_to_reach(line, cost, within), cost) for within in levels for cost in COSTS),
            *(ended_text(ended(line, column), column) for column in shown),
        ]
        for line in lines(section)
    ]
    several = any(len(line.runs) > 1 for line in lines(section))
    whole = table(f"Results on {section.title}", [top, under], rows, "What each method needed", class_="results")
    return join(whole, tag("p", f"{_note(section, goal, shown, several)}.", class_="note"))


def _goal(section: Section) -> str:
    """What has to come near the optimum's: the metric, else the distance; empty where the optimum is not known."""
    if np.isfinite(best_metric(section)):
        return "metric"
    return "distance" if "distance" in columns(section) else ""


def _note(section: Section, goal: str, shown: dict[str, str], several: bool) -> str:
    """What the table's words mean; without its last full stop."""
    medians = "All are medians over the seeds"
    if not goal:
        why = next((about["why"] for run in section.runs if (about := run.problem.get("optimum")) and about["why"]), "")
        note = f"The optimum is not known, so neither is the distance of the methods to it. {why}".strip()
        return f"{note.rstrip('.')}. {medians}" if several else note.rstrip(".")
    what, best = "the optimum, in distance", ""
    if goal == "metric":
        what = f"the {shown['metric']} of the centralised optimum"
        best = f"The centralised optimum's {shown['metric']}: {known(best_metric(section))}. "
    until = "the end of the run"
    if section.budgets:
        limits = [f"{quantity(limit, cost)}{UNIT_WORD.get(cost, '')}" for cost, limit in section.budgets.items()]
        until = " and ".join(limits)
    note = f"{best}To within 1 % means: from there on to {until} within 1 % of {what}, or better."
    note += f" Distance: |w − w*| / |w*|. A dash ({NONE}): not reached by then"
    if several:
        note += f" in at least half of the seeds; (2 of 3) says in how many it was. {medians}"
    return note


def _method_head(line: Line) -> Markup:
    """The method's name, its settings in small below, and what went wrong if something did."""
    lost = sum(run.stopped == "diverged" for run in line.runs)
    cut = sum(run.stopped == "interrupted" for run in line.runs)
    notes = [tag("small", f"{note} ({count} of {len(line.runs)})", class_="warning")
             for note, count in (("diverged", lost), ("interrupted", cut)) if count]  # fmt: skip
    small = [tag("small", note) for note in line.details if note]
    return join(line.runs[0].method.label, *small, *notes)
