"""A test between two settings over paired seeds."""

from typing import Any

import numpy as np

from amble.errors import need
from amble.sweeps.measured import Measured, Significance, label_of, values_of


def significance(sweep: Measured, a: Any, b: Any, by: str) -> Significance:
    """The Wilcoxon signed-rank test over pairs of runs that have seed, network and split in common."""
    values = values_of(sweep, by)
    sides: list[dict[Any, float]] = [{}, {}]
    for case, value in zip(sweep.cases, values.tolist(), strict=True):
        for side, method in zip(sides, (a, b), strict=True):
            if case.method == method:
                side[case.network, case.split, case.seed] = value
    pairs = sorted(sides[0].keys() & sides[1].keys())
    one, other = (np.array([side[pair] for pair in pairs]) for side in sides)
    there = np.isfinite(one) & np.isfinite(other)
    with np.errstate(all="ignore"):
        ratio = float(np.median(one[there] / other[there])) if there.any() else float("nan")
    return Significance(
        a=label_of(a),
        b=label_of(b),
        by=by,
        pairs=len(pairs),
        a_better=int((one < other).sum()),
        b_better=int((other < one).sum()),
        ratio=ratio,
        p_value=p_value(one, other),
    )


def p_value(one: Any, other: Any) -> float:
    """Two-sided; 1 where no pair differs. What is infinite differs by more than anything else."""
    finite = np.concatenate([one, other])
    finite = finite[np.isfinite(finite)]
    width = np.ptp(finite) if len(finite) else 0.0
    beyond = (finite.max() if len(finite) else 0.0) + 2 * width + 1.0
    difference = np.where(np.isinf(one), beyond, one) - np.where(np.isinf(other), beyond, other)
    if not np.any(difference):
        return 1.0
    return float(need("scipy.stats", "sim").wilcoxon(difference).pvalue)
