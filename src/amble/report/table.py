"""Where each run of a comparison ended, as a table for the terminal."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from amble.report.claims import Verdict
from amble.report.sections import Section, best_metric, is_accuracy
from amble.results.run import Run

SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
COLOURS = {Verdict.HELD: "green", Verdict.FAILED: "red", Verdict.IN_PART: "yellow", Verdict.UNDECIDED: "dim"}
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
LARGE = 1e4  # beyond it a metric is a lost run's


def in_units(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """A value in the largest unit that leaves at least 1 before the point."""
    if value >= 1000 * units[0][0]:
        return f"{value / units[0][0]:,.0f} {units[0][1]}"
    for size, name in units:
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"0 {units[-1][1]}"


def known(value: float, form: str = ".4f") -> str:
    return "-" if value != value else format(value, form)  # nan: no test rows, or no optimum


def percent(share: float) -> str:
    """A share in four digits; what is only near 100 % does not read as 100 %."""
    return f"{100 * share if share >= 1 else min(100 * share, 99.99):.4g} %"


def count(value: int) -> str:
    """At most six characters, up to a billion."""
    if value < 100_000:
        return f"{value:,}"
    return f"{value / 1e3:.0f}k" if value < 1e6 else f"{value / 1e6:.4g}M"


def metric_text(value: float) -> str:
    """Four decimals, unless the run is lost."""
    return known(value) if not abs(value) >= LARGE else f"{value:.0e}"


def comparison_table(runs: Sequence[Run]) -> Table:
    """Fits 80 columns: settings go under the method's name, and the second reading of the model under the first."""
    section = Section("", tuple(runs))
    word = "accuracy" if is_accuracy(section) else "NMSE"
    best = best_metric(section)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.caption = (
        f"{word}: on test rows; (of the agents' mean x){'' if best != best else f'; optimum: {known(best)}'}.\n"
        "Idle: share of agents' seconds without computing.\nDistance: |w - w*| / |w*|."
    )
    for run in runs:
        if run.unvisited:
            missed = f"{len(run.unvisited)} of {run.network.agents} agents were not visited; more hops reach them"
            table.caption += f"\n{run.method.label}: {missed}."
    table.add_column("method", overflow="fold")
    for heading in ("hops", "virtual\ntime", "comm.\nunits", "bytes", "idle", f"{word}\n(mean x)", "distance"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in runs:
        last = {key: column[-1] for key, column in run.history.items()}
        colour = {"diverged": "red", "interrupted": "yellow"}.get(run.stopped)
        table.add_row(
            Text.assemble(
                run.method.label,
                (f"\n{run.stopped}" if colour else "", colour or ""),
                (f"\n{run.settings_text}", "dim"),
            ),
            count(last["hop"]),
            in_units(last["time_s"], SECONDS),
            count(last["comm_units"]),
            in_units(last["bytes"], BYTES),
            f"{int(100 * last['idle'])} %" if "idle" in last else "-",
            f"{metric_text(last['metric'])}\n({metric_text(last.get('metric_local', float('nan')))})",
            known(last.get("distance", float("nan")), ".1e"),
        )
    return table


def verdict_table(sections: Sequence[Any]) -> Table:
    """The claims of one group of sections: claims down, sections across."""
    title = f"Which claims held, {sections[0].group}" if sections[0].group else "Which claims held"
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title=title)
    table.add_column("claim", overflow="fold")
    for section in sections:
        table.add_column(section.title.replace(": ", "\n"))
    for text in dict.fromkeys(claim.text for section in sections for claim in section.claims):
        verdicts = [next((c.verdict for c in section.claims if c.text == text), None) for section in sections]
        table.add_row(text, *("-" if each is None else f"[{COLOURS[each]}]{each}[/]" for each in verdicts))
    return table


def studies_table(studies: Any) -> Table:
    """The other claims, each with its verdict."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title="Other claims")
    table.add_column("claim", overflow="fold")
    table.add_column("verdict")
    for study in studies:
        for claim in study.claims:
            table.add_row(claim.text, f"[{COLOURS[claim.verdict]}]{claim.verdict.value}[/]")
    return table
