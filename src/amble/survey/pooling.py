"""The summary of all sites' cells of one column, from the sites' own summaries.

    n = sum n_i        mean = sum n_i mean_i / n        M2 = sum M2_i + n_i (mean_i - mean)^2

Sums are exact before they are rounded once (fsum), so the order of sites makes no difference.
"""

import math
from collections import Counter
from collections.abc import Sequence

from amble.survey.cells import EMPTY
from amble.survey.document import Level, Summary


def pool(summaries: Sequence[Summary]) -> Summary:
    """One summary of all; the sites must agree what kind of column it is (or have no cell of it)."""
    name, missing = summaries[0].name, sum(summary.missing for summary in summaries)
    parts = [summary for summary in summaries if summary.kind != EMPTY]
    if not parts:
        return Summary(name, EMPTY, 0, missing)
    count = sum(part.count for part in parts)
    low, high = min(part.min for part in parts), max(part.max for part in parts)
    mean = min(max(math.fsum(part.count * part.mean for part in parts) / count, low), high)
    M2 = math.fsum(term for part in parts for term in (part.M2, part.count * (part.mean - mean) ** 2))
    counts: Counter[Level] = Counter()
    for part in parts:
        counts.update(dict(part.levels or ()))
    known = all(part.levels is not None for part in parts)
    return Summary(
        name=name,
        kind=parts[0].kind,
        count=count,
        missing=missing,
        mean=mean,
        M2=M2,
        min=low,
        max=high,
        whole=all(part.whole for part in parts),
        distinct=len(counts) if known else max(part.distinct for part in parts),
        levels=tuple(sorted(counts.items(), key=lambda item: item[0])) if known else None,
    )
