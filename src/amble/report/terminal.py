"""Tables for the terminal: where each run of a comparison ended, and which claims held."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from amble.report.claims import Claim, Verdict, by_claim
from amble.report.sections import Section, best_metric, metric_word
from amble.report.text import BYTE_UNITS, SECOND_UNITS, count, in_units, known, metric_text
from amble.results.run import Run

COLOURS = {Verdict.HELD: "green", Verdict.FAILED: "red", Verdict.IN_PART: "yellow", Verdict.UNDECIDED: "dim"}


def comparison_table(runs: Sequence[Run]) -> Table:
    """Fits 80 columns: settings go under the method's name, and the second reading of the model under the first."""
    section = Section("", tuple(runs))
    word = metric_word(section)
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
            in_units(last["time_s"], SECOND_UNITS),
            count(last["comm_units"]),
            in_units(last["bytes"], BYTE_UNITS),
            f"{int(100 * last['idle'])} %" if "idle" in last else "-",
            f"{metric_text(last['metric'])}\n({metric_text(last.get('metric_local', float('nan')))})",
            known(last.get("distance", float("nan")), ".1e"),
        )
    return table


def verdict_table(title: str, columns: Mapping[str, Sequence[Claim]]) -> Table:
    """Claims down, and across what they were tested on."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title=title)
    table.add_column("claim", overflow="fold")
    for heading in columns:
        table.add_column(heading)
    for text, verdicts in by_claim(list(columns.values())).items():
        table.add_row(text, *("-" if each is None else f"[{COLOURS[each]}]{each.value}[/]" for each in verdicts))
    return table
