"""Rewrites the tables of docs/theory.md on random convex problems from docs/convex.json: python docs/convex.py

A table is between the comments <!-- convex: NAME --> and <!-- end -->. benchmarks/convex.py measures.
"""

import json
import re
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parent
KEPT, PAGE = DOCS / "convex.json", DOCS / "theory.md"
BLOCK = re.compile(r"(<!-- convex: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
LAPS_MAX = {"random": 300, "several": 300, "gifts": 300, "ridges": 300, "unknowns": 40}
Rows = dict[str, list[int | None]]


def blocks(kept: dict[str, Rows]) -> dict[str, str]:
    return {part: _table(rows, LAPS_MAX[part]) for part, rows in kept.items()}


def rewritten(page: str, texts: dict[str, str]) -> str:
    return BLOCK.sub(lambda block: f"{block[1]}\n{texts[block[2]]}\n\n{block[3]}", page)


def _table(rows: Rows, most: int) -> str:
    lines = [["problems", "number", "laps, median (25 %, 75 %)", "most", f"not in {most} laps"], ["---"] * 5]
    for name, counts in rows.items():
        reached = [count for count in counts if count is not None]
        low, middle, high = np.percentile(reached, [25, 50, 75])
        spread = f"{middle:g} ({low:g}, {high:g})"
        lines.append([name, str(len(counts)), spread, str(max(reached)), str(len(counts) - len(reached))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(), blocks(json.loads(KEPT.read_text()))))
