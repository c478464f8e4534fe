"""The frame of the benchmarks: two things are timed in turn, and their ratio is a row of a table.

A benchmark is a file with a function that yields rows, and runs alone. `python benchmarks/all.py` runs them all, each
in a process of its own, and keeps the rows in docs/benchmarks.json.

    row = compare("a hop of I-BCD", clocked(ours), "bare NumPy", clocked(bare))
    table(rows())                 # prints them as they come, and writes them to the file after --json

A ratio is the cost here divided by the cost of the reference, so less is better. Both are timed again and again, in
turn, and each pair gives a ratio. The row has their median and their quartiles, which show how much others disturbed
the measurement. Seconds are CPU seconds of all threads of this process, unless `clocked` was given another clock.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amble.files import write_whole

REPEATS, PIECE_S = 11, 0.2

Work = Callable[[int], object]  # does something so many times
Timed = Callable[[int], float]  # does it so many times, and says how many seconds that took


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, against what, and the ratio of their costs."""

    what: str
    reference: str
    ratio: float | None  # the median; None: not measured, for the reason given
    low: float | None  # the quartiles
    high: float | None
    cost: float | None  # what it costs here, the median
    unit: str  # of this cost
    repeats: int  # 0: a count, which is the same in every run
    reason: str = ""


def clocked(work: Work, clock: Callable[[], float] = time.process_time) -> Timed:
    """Work with its seconds."""

    def timed(times: int) -> float:
        begin = clock()
        work(times)
        return clock() - begin

    return timed


def each(once: Callable[[], object]) -> Work:
    """What is done once, done so many times."""

    def work(times: int) -> None:
        for _ in range(times):
            once()

    return work


def times_for(timed: Timed, piece_s: float) -> int:
    """How many times fill about `piece_s` seconds, after a first call, which may compile."""
    timed(1)
    times = 1
    while (took_s := timed(times)) < piece_s / 10:
        times *= 2
    return max(1, round(times * piece_s / took_s))


def compare(
    what: str,
    own: Timed,
    reference: str,
    other: Timed,
    unit: str = "us",
    repeats: int = REPEATS,
    piece_s: float = PIECE_S,
    most: int | None = None,
) -> Row:
    """Time both in turn. Every other pair begins with the reference, so that neither always follows the other."""
    works = (own, other)
    times = [min(times_for(work, piece_s), most or 1 << 62) for work in works]
    pairs = []
    for k in range(repeats):
        seconds = [0.0, 0.0]
        for which in ((0, 1), (1, 0))[k % 2]:
            seconds[which] = works[which](times[which]) / times[which]
        pairs.append((seconds[0], seconds[1]))
    return ratio_of(what, reference, pairs, unit)


def check_equal(label: str, ours: Any, theirs: Any, apart_max: float = 1e-9) -> None:
    """Whether both computed the same models. If not, their ratio means nothing."""
    apart = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    if not apart <= apart_max:
        sys.exit(f"{label}: the models are {apart:.0e} of their largest number apart, so the two did not do the same.")


def ratio_of(what: str, reference: str, pairs: Sequence[tuple[float, float]], unit: str) -> Row:
    """A row of costs that were measured in pairs: here and of the reference, in seconds if the unit is one of time."""
    ratios = [own / other for own, other in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    cost = statistics.median(own for own, _ in pairs) * {"us": 1e6, "ms": 1e3}.get(unit, 1.0)
    return Row(what, reference, middle, low, high, cost, unit, len(ratios))


def count_of(what: str, reference: str, own: float, other: float, unit: str) -> Row:
    """A row of what is the same in every run, such as hops to an accuracy."""
    return Row(what, reference, own / other, own / other, own / other, own, unit, 0)


def missing(what: str, reference: str, reason: str) -> Row:
    """A row that says why there is no figure."""
    return Row(what, reference, None, None, None, None, "", 0, reason)


def ratio_text(ratio: float) -> str:
    """Two or three digits; far below one as a fraction, 1/850."""
    return f"1/{1 / ratio:,.0f}" if ratio < 0.1 else number_text(ratio)


def number_text(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def cells(row: Row) -> list[str]:
    """What a table shows of a row."""
    if row.ratio is None:
        return [row.what, row.reference, "-", row.reason, "-"]
    spread = {0: "exact", 1: "one run"}.get(row.repeats) or f"{ratio_text(row.low or 0)} to {ratio_text(row.high or 0)}"
    return [row.what, row.reference, ratio_text(row.ratio), spread, f"{number_text(row.cost or 0)} {row.unit}"]


HEADS = ["measured", "against", "ratio", "quartiles", "here"]


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The command line of a benchmark: its own options, and --json."""
    options = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file, too")
    return options


def table(rows: Iterable[Row], path: Path | None = None) -> list[Row]:
    """Print rows as they come, as a table in Markdown; then write them."""
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|", flush=True)
    done = []
    for row in rows:
        print(f"| {' | '.join(cells(row))} |", flush=True)
        done.append(row)
    if path:
        write_whole({path: json.dumps([asdict(row) for row in done]).encode()})
    return done
