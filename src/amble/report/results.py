"""The page's tables: the claims, what each method took and reached, and how the runs were made."""

from collections.abc import Sequence

import numpy as np

from amble.report.claims import Cell, Claim, Verdict
from amble.report.markup import Markup, join, tag
from amble.report.sections import BYTES, TIME, UNITS, Line, Section, best_metric, columns, lines, slugs
from amble.report.table import BYTES as BYTE_UNITS
from amble.report.table import LARGE, in_units, known, percent
from amble.report.table import SECONDS as SECOND_UNITS
from amble.results.reaching import column_of, reach, records_within

WITHIN = (0.01, 0.001)
NONE = "–"
UNIT_WORD = {UNITS: " units"}  # where the number alone does not tell
VERDICTS = {
    Verdict.HELD: "held",
    Verdict.IN_PART: "part",
    Verdict.FAILED: "failed",
    Verdict.UNDECIDED: "undecided",
}  # the page's style classes


def scrolling(table: Markup, words: str) -> Markup:
    """A table that scrolls by itself on a narrow screen; the tabindex lets a keyboard do so."""
    return tag("div", table, class_="scroll", role="region", aria_label=words, tabindex=0)


def verdict_word(verdict: Verdict) -> Markup:
    return tag("strong", verdict.value, class_=f"verdict {VERDICTS[verdict]}")


def summary_tables(sections: Sequence[Section]) -> Markup:
    """For each group of sections a table: claims down, sections across."""
    named = [(name, section) for name, section in zip(slugs(sections), sections, strict=True) if section.claims]
    groups = dict.fromkeys(section.group for _, section in named)
    return join(*(_summary(group, [each for each in named if each[1].group == group]) for group in groups))


def _summary(group: str, named: Sequence[tuple[str, Section]]) -> Markup:
    texts = dict.fromkeys(claim.text for _, section in named for claim in section.claims)
    heads = [tag("th", tag("a", section.title, href=f"#{name}"), scope="col") for name, section in named]
    rows = []
    for text in texts:
        cells = []
        for _, section in named:
            words = [verdict_word(claim.verdict) for claim in section.claims if claim.text == text]
            cells.append(tag("td", *words) if words else tag("td", NONE))
        rows.append(tag("tr", tag("th", text, scope="row"), *cells))
    head = tag("thead", tag("tr", tag("th", "Claim", scope="col"), *heads))
    caption = tag("caption", f"Which claims held on which data{f', {group}' if group else ''}.")
    return scrolling(tag("table", caption, head, tag("tbody", *rows), class_="summary"), f"Claims and verdicts {group}")


def quantity(value: float, cost: str) -> str:
    """A cost with its unit, in three digits; also a "share", in per cent, and a plain "number"."""
    if cost == "share":
        return percent(value)
    if cost == "number":
        return f"{value:.3g}"
    if cost == UNITS or value == 0:
        return f"{value:,.0f}"
    units = SECOND_UNITS if cost == TIME else BYTE_UNITS
    return in_units(float(f"{value:.3g}"), units)  # rounded first: 999.9 kB is 1 MB


def cell_text(cell: Cell, measure: str) -> str:
    """A cell of a claim's table: "12 ms", "not within 0.28 s", or a dash where there is nothing to measure."""
    if np.isnan(cell.value):
        return NONE
    if np.isfinite(cell.value):
        return quantity(cell.value, measure)
    return f"not within {quantity(cell.limit, measure)}" if np.isfinite(cell.limit) else "not reached"


def claim_block(claim: Claim) -> Markup:
    """The verdict, the claim, and the table that decides it: methods down, levels across."""
    parts = [tag("p", verdict_word(claim.verdict), ": ", tag("b", claim.text))]
    if claim.rows:
        heads = [tag("th", words, scope="col") for words in ("", *claim.columns)]
        rows = []
        for row in claim.rows:
            cells = [tag("td", cell_text(cell, claim.measure)) for cell in row.cells]
            name = tag("b", row.name) if row.claimed else row.name
            rows.append(tag("tr", tag("th", name, scope="row"), *cells))
        if claim.verdicts:
            words = [tag("td")] * (len(claim.columns) - len(claim.verdicts))
            words += [tag("td", verdict_word(verdict)) for verdict in claim.verdicts]
            rows.append(tag("tr", tag("th", "verdict", scope="row"), *words))
        table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
        parts.append(scrolling(table, f"Numbers behind: {claim.text}"))
    if claim.left_out:
        note = f"{claim.left_out} others need as much or more at every level, or did not get there."
        parts.append(tag("p", note, class_="note"))
    return tag("div", *parts, class_="claim")


def reach_words(found: Sequence[float], cost: str) -> str:
    """The median over the seeds, where one that never got there counts as infinite; and how many did."""
    reached = int(np.isfinite(found).sum())
    middle = float(np.median(np.where(np.isfinite(found), found, np.inf)))
    words = quantity(middle, cost) if np.isfinite(middle) else NONE
    return words if reached in (0, len(found)) else f"{words} ({reached} of {len(found)})"


def results_table(section: Section) -> Markup:
    """Costs to come near the optimum, and where each method ended."""
    shown = columns(section)
    goal = _goal(section)
    over = [tag("th", f"to within {_percent(within)}", colspan=3, scope="colgroup") for within in WITHIN if goal]
    ended = f"at {quantity(section.budgets[TIME], TIME)}" if TIME in section.budgets else "at the end"
    top = tag(
        "tr",
        tag("th", "method", rowspan=2, scope="col"),
        *over,
        tag("th", ended, colspan=len(shown), scope="colgroup"),
    )
    costs = [tag("th", words, scope="col") for _ in over for words in ("time", "units", "bytes")]
    heads = [words if key != "distance" else "distance" for key, words in shown.items()]
    under = tag("tr", *costs, *(tag("th", words, scope="col") for words in heads))
    rows = [tag("tr", _method_head(line), *map(_cell, _numbers(line, goal, list(shown)))) for line in lines(section)]
    several = any(len(line.runs) > 1 for line in lines(section))
    note = _note(section, goal, shown, several)
    head = tag("thead", top, under)
    table = tag("table", tag("caption", "What each method took"), head, tag("tbody", *rows), class_="results")
    return join(scrolling(table, f"Results on {section.title}"), tag("p", f"{note}.", class_="note"))


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
        note = f"The optimum is not known, so how near the methods came to it is not either. {why}".strip()
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


def _numbers(line: Line, goal: str, ends: Sequence[str]) -> list[str]:
    shown = []
    for within in WITHIN if goal else ():
        for cost in (TIME, UNITS, BYTES):
            column = f"metric{line.column_suffix}"
            budget = line.budgets.get(cost, np.inf)
            costs = [reach(run, column, cost, within, run.problem["optimum_metric"], budget) for run in line.runs]
            shown.append(reach_words(costs, cost))
    for column in ends:
        form = ".2g" if column == "distance" else ".4f"
        name = column if column == "objective" else column + line.column_suffix
        records = [records_within(run, TIME, line.budgets.get(TIME, np.inf)) for run in line.runs]
        last = [float(column_of(run, name)[k - 1]) for run, k in zip(line.runs, records, strict=True)]
        upward = column == "metric" and line.runs[0].problem["task"] == "classification"
        shown.append(_last(last, form, -np.inf if upward else np.inf))
    return shown


def _last(values: Sequence[float], form: str, worst: float) -> str:
    """The median of where the runs ended; one that diverged, or has nothing to compare with, counts as the worst."""
    middle = float(np.median(np.where(np.isnan(values), worst, values)))
    if not np.isfinite(middle):
        return NONE
    return format(middle, form if abs(middle) < LARGE else ".2g")


def _cell(words: str) -> Markup:
    return tag("td", words)


def _percent(within: float) -> str:
    return f"{100 * within:g} %"


def _method_head(line: Line) -> Markup:
    """The method's name, its settings in small below, and what went wrong if something did."""
    lost = sum(run.stopped == "diverged" for run in line.runs)
    cut = sum(run.stopped == "interrupted" for run in line.runs)
    notes = [tag("small", f"{words} ({count} of {len(line.runs)})", class_="warning")
             for words, count in (("diverged", lost), ("interrupted", cut)) if count]  # fmt: skip
    small = [tag("small", words) for words in line.details if words]
    return tag("th", line.runs[0].method.label, *small, *notes, scope="row")


def pairs(items: dict[str, str]) -> Markup:
    """Names and values, as a list."""
    return tag("dl", *(tag("div", tag("dt", key), tag("dd", value)) for key, value in items.items()))


def listing(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A plain table whose first column names the rows."""
    head = tag("thead", tag("tr", *(tag("th", words, scope="col") for words in heads)))
    body = [tag("tr", tag("th", row[0], scope="row"), *map(_cell, row[1:])) for row in rows]
    return scrolling(tag("table", tag("caption", caption), head, tag("tbody", *body)), caption)
