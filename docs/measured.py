"""Rewrites the tables of docs/benchmarks.md from docs/benchmarks.json, docs/gpu.json and benchmarks/history:
python docs/measured.py

A table is between the comments <!-- measured: NAME --> and <!-- end -->. `make bench` rewrites docs/benchmarks.json,
and `python benchmarks/gpu.py --write` docs/gpu.json.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "benchmarks"))

from measure import HEADS, Row, cells, ratio_text

GPU = DOCS / "gpu.json"
KEPT, PAGE, HISTORY = DOCS / "benchmarks.json", DOCS / "benchmarks.md", DOCS.parent / "benchmarks" / "history"
BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
CHANGED = 0.05  # a smaller change of a time is not called one


def blocks(kept: dict[str, Any], releases: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Every table by its name."""
    groups = kept["groups"]
    return {"ratios": _ratios(groups), "machine": _machine(groups), "release": _release(kept, releases), "gpu": _gpu()}


def rewritten(page: str, tables: dict[str, str]) -> str:
    return BLOCK.sub(lambda block: f"{block[1]}\n{tables[block[2]]}\n\n{block[3]}", page)


def releases_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The figures of each release, the newest first."""
    files = sorted(folder.glob("*.json"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.stem)])
    return {path.stem: json.loads(path.read_text()) for path in reversed(files)}


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows))


def _ratios(groups: dict[str, Any]) -> str:
    rows = []
    for group in groups.values():
        rows.append([f"**{group['title']}**", "", "", "", ""])
        rows += [cells(Row(**row)) for row in group["rows"]]
    return _table(HEADS, rows)


def _machine(groups: dict[str, Any]) -> str:
    """How each part was measured, and on what."""
    rows = [
        [group["title"], f"`{group['command']}`", group["date"], group["commit"], f"{group['took_s']:.0f} s",
         f"{group['others']:.0%}"]
        for group in groups.values()
    ]  # fmt: skip
    shown = [_table(["part", "command", "date", "commit", "took", "cores that others used"], rows)]
    machines: dict[str, list[str]] = {}
    for group in groups.values():
        facts = group["machine"]
        place = f"{facts['processor']}, {facts['cores']} cores, {facts['system']}"
        versions = ", ".join(f"{name} {facts[name]}" for name in facts if name not in ("processor", "cores", "system"))
        machines.setdefault(f"{place}; {versions}", []).append(group["title"])
    for place, titles in machines.items():
        shown.append(f"Measured on {place}." if len(machines) == 1 else f"{', '.join(titles)}: measured on {place}.")
    return "\n\n".join(shown)


def _gpu() -> str:
    """Hops per second on a GPU, and what they were measured on."""
    kept = json.loads(GPU.read_text())
    rows = []
    for method, p, lanes, engine, rate, state, _, copied_s, share, _ in kept["lines"]:
        rows.append([method, str(p), f"{lanes:,}", engine, f"{rate / 1e6:,.0f}", f"{state:,}", f"{share:.0%}"])
        copies = f"{copied_s / 1e12:.1f} TB/s"
    heads = ["method", "unknowns", "runs at once", "engine", "million hops/s", "bytes of state per hop", "of the bound"]
    versions = f"{kept['device']}; amble {kept['amble']}, NumPy {kept['numpy']}, Python {kept['python']}"
    agents = f"{kept['agents']} agents, {kept['tokens']} tokens, float64"
    return f"{_table(heads, rows)}\n\n{agents}. Measured on {kept['date']}: {versions}. A copy moves {copies}."


def _release(kept: dict[str, Any], releases: dict[str, dict[str, Any]]) -> str:
    """The ratios that the last release has too, and what has changed."""
    others = {name: release for name, release in releases.items() if release != kept}
    if not others:
        return "No release has other figures to compare with."
    name, release = next(iter(others.items()))
    then = {(key, row["what"], row["reference"]): Row(**row) for key, row in _rows(release)}
    rows = []
    for key, fields in _rows(kept):
        now, before = Row(**fields), then.get((key, fields["what"], fields["reference"]))
        if before and before.ratio and now.ratio:
            change = _change(before, now)
            rows.append([now.what, now.reference, ratio_text(before.ratio), ratio_text(now.ratio), change])
    return _table(["measured", "against", name, "now", "change"], rows)


def _rows(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(key, row) for key, group in figures["groups"].items() for row in group["rows"]]


def _change(before: Row, now: Row) -> str:
    """In percent, if it is beyond what the quartiles of both cover."""
    apart = (now.low or 0) > (before.high or 0) or (now.high or 0) < (before.low or 0)
    share = (now.ratio or 0) / (before.ratio or 1) - 1
    return f"{share:+.0%}" if apart and (abs(share) >= CHANGED or not now.repeats) else "none"


if __name__ == "__main__":
    tables = blocks(json.loads(KEPT.read_text()), releases_of(HISTORY))
    PAGE.write_text(rewritten(PAGE.read_text(), tables))
