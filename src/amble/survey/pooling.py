"""The summary of all sites' cells of one column, from the sites' own summaries.

    s = sum s_i        mean = sum s_i mean_i / s        M2 = sum M2_i + s_i (mean_i - mean)^2

Sums are exact before they are rounded once (fsum), so the order of sites makes no difference.
"""

import math
from collections.abc import Sequence

from amble.survey.cells import EMPTY
from amble.survey.summary import Level, Summary, Tally


def pool(summaries: Sequence[Summary]) -> Summary:
    """One summary of all; the sites must agree what kind of column it is (or have no cell of it)."""
    name, missing = summaries[0].name, sum(summary.missing for summary in summaries)
    parts = [summary for summary in summaries if summary.kind != EMPTY]
    if not parts:
        return Summary(name, EMPTY, 0, missing)
    weight = math.fsum(part.weight for part in parts)
    low, high = min(part.min for part in parts), max(part.max for part in parts)
    mean = min(max(math.fsum(part.weight * part.mean for part in parts) / weight, low), high)
    M2 = math.fsum(term for part in parts for term in (part.M2, part.weight * (part.mean - mean) ** 2))
    tallies: dict[Level, list[Tally]] = {}
    for tally in (tally for part in parts for tally in part.levels or ()):
        tallies.setdefault(tally.level, []).append(tally)
    known = all(part.levels is not None for part in parts)
    levels = [
        Tally(level, sum(each.cells for each in same), math.fsum(each.weight for each in same))
        for level, same in sorted(tallies.items(), key=lambda item: item[0])
    ]
    return Summary(
        name=name,
        kind=parts[0].kind,
        count=sum(part.count for part in parts),
        missing=missing,
        weight=weight,
        mean=mean,
        M2=M2,
        min=low,
        max=high,
        whole=all(part.whole for part in parts),
        distinct=len(levels) if known else max(part.distinct for part in parts),
        levels=tuple(levels) if known else None,
    )
