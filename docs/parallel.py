"""Rewrites the tables of docs/relay.md on several tokens from docs/parallel.json: python docs/parallel.py

A table is between the comments <!-- parallel: NAME --> and <!-- end -->. benchmarks/parallel.py measures.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parent
KEPT, PAGE = DOCS / "parallel.json", DOCS / "relay.md"
BLOCK = re.compile(r"(<!-- parallel: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
OTHER = ("plan", "words")  # parts that are no data sets
SHARED = "10"  # tokens of the sentence on what they bring
Rows = dict[str, dict[str, Any]]


def blocks(kept: dict[str, Rows]) -> dict[str, str]:
    sets = {name: rows for name, rows in kept.items() if name not in OTHER}
    return {
        "plan": _plan(kept["plan"]),
        "sets": _sets(sets),
        "ratios": f"{ratios(sets)}.",
        "words": _words(kept["words"]),
    }


def rewritten(page: str, texts: dict[str, str]) -> str:
    return BLOCK.sub(lambda block: f"{block[1]}\n{texts[block[2]]}\n\n{block[3]}", page)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _plan(rows: Rows) -> str:
    """Hop times to the first meeting, and from one to the next."""
    tokens = next(iter(rows.values()))["first"]
    heads = ["network", "M = 1", *(f"M = {M}" for M in tokens), "radius"]
    return _table(
        heads,
        [
            [
                name,
                f"{row['alone']:g}",
                *(f"{row['first'][M]:g} ({row['again'][M]:g})" for M in tokens),
                f"{row['radius']:g}",
            ]
            for name, row in rows.items()
        ],
    )


def _sets(sets: dict[str, Rows]) -> str:
    """Medians of time and bytes by data set and number of tokens."""
    tokens = sorted({int(M) for rows in sets.values() for M in rows})
    lines = []
    for M in map(str, tokens):
        texts = []
        for rows in sets.values():
            row = rows.get(M)
            if row is None:
                texts.append("")
                continue
            middle, least, most = row["ms"]
            missed = f"; {row['missed']} of {row['runs']} not there" if row["missed"] else ""
            texts.append(f"{_number(middle)} ({_number(least)} to {_number(most)}), {_number(row['kB'][0])}{missed}")
        lines.append([M, *texts])
    return _table(["M", *(f"{name}: ms, kB" for name in sets)], lines)


def ratios(sets: dict[str, Rows]) -> str:
    """How many times as fast ten tokens are as one, and with how many times the bytes."""
    both = {name: (rows["1"], rows[SHARED]) for name, rows in sets.items() if {"1", SHARED} <= set(rows)}
    texts = [
        f"{one['ms'][0] / ten['ms'][0]:.1f} on {name} ({ten['kB'][0] / one['kB'][0]:.1f} times the bytes)"
        for name, (one, ten) in both.items()
    ]
    return f"So ten tokens are as many times as fast as one: {', '.join(texts)}"


def _words(rows: Rows) -> str:
    """By network and losses: how many tokens each word chooses, how many times as fast, how many times the bytes."""
    words = list(next(iter(rows.values())))
    lines = []
    for name, row in rows.items():
        network, losses = name.split("; ")
        texts = []
        for word in words:
            M, each = sorted(row[word]["tokens"]), row[word]
            count = f"{M[0]}" if M[0] == M[-1] else f"{M[0]} to {M[-1]}"
            missed = f"; {each['missed']} of {len(M)} not there" if each["missed"] else ""
            texts.append(f"{count}: {each['faster'][0]:.1f}, {each['bytes'][0]:.1f}{missed}")
        lines.append([network, losses, *texts])
    return _table(["network", "losses", *(f"`{word}`: M: faster, bytes" for word in words)], lines)


def slowest(rows: Rows) -> float:
    """The least gain in time of any run under any word."""
    return float(np.min([row[word]["faster"][1] for row in rows.values() for word in row]))


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(), blocks(json.loads(KEPT.read_text()))))
