"""Which agent holds which rows: each function returns one array of row numbers per agent."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amble.arrays import Array, Indices
from amble.data.targets import Targets
from amble.errors import AmbleError, is_number, unknown
from amble.randomness import check_seed

Parts = list[NDArray[np.intp]]  # one integer array per agent
ALPHA, ALPHA_MAX = 0.5, 1e6  # of how="dirichlet": where none is given, and at most
HOLDINGS_AGENTS_MAX = 1000
BY_GROUP = "by-group"  # a label per row says which agent holds it, so nothing is drawn


def even(y: Targets, agents: int, rng: "np.random.Generator") -> Parts:
    """Shuffled, then cut into parts whose sizes differ by one row at most."""
    return np.array_split(rng.permutation(len(y)), agents)


def by_target(y: Targets, agents: int, rng: "np.random.Generator") -> Parts:
    """Sorted by target, then cut evenly: each agent sees a narrow band of targets (ties are shuffled)."""
    return np.array_split(np.lexsort((rng.random(len(y)), y)), agents)


def by_label(y: Targets, agents: int, rng: "np.random.Generator") -> Parts:
    """One label per agent: agents are dealt to the labels in turn and share their label's rows evenly."""
    labels = np.unique(y)
    if agents < len(labels):
        raise AmbleError(
            f"how='by-label' gives each agent one label, and {len(labels)} labels need at least {len(labels)} agents; "
            f"{agents} were given. Use more agents, or how='dirichlet'."
        )
    parts: Parts = [np.empty(0, np.intp)] * agents
    for k, label in enumerate(labels):
        holders = range(k, agents, len(labels))
        rows = rng.permutation(np.flatnonzero(y == label))
        if len(rows) < len(holders):
            raise AmbleError(
                f"how='by-label' gives label {label} to {len(holders)} of {agents} agents, and it has {len(rows)} "
                "rows; use fewer agents, or how='dirichlet'."
            )
        for i, part in zip(holders, np.array_split(rows, len(holders)), strict=True):
            parts[i] = part
    return parts


def dirichlet(y: Targets, agents: int, rng: "np.random.Generator", alpha: float) -> Parts:
    """Each label's rows are divided in proportions from Dirichlet(alpha): the smaller alpha, the more agents differ.

    No agent is left empty: one without rows takes one from the agent that has most.
    """
    parts: list[list[int]] = [[] for _ in range(agents)]
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        cuts = np.round(np.cumsum(rng.dirichlet(np.full(agents, alpha)))[:-1] * len(rows)).astype(int)
        for part, more in zip(parts, np.split(rows, cuts), strict=True):
            part.extend(more.tolist())
    for part in parts:
        if not part:
            part.append(max(parts, key=len).pop())
    return [np.array(part) for part in parts]


def by_sizes(y: Targets, agents: int, rng: "np.random.Generator", sizes: ArrayLike | None = None) -> Parts:
    """Shuffled, then cut into parts of given sizes; with none given, into shares drawn from a lognormal.

    Whole numbers are rows, and rows left over belong to no agent; other numbers are proportions of all rows.
    """
    shares = rng.lognormal(size=agents) if sizes is None else np.asarray(sizes)
    counts = shares if shares.dtype.kind in "iu" else round_shares(shares, len(y))
    return np.split(rng.permutation(len(y))[: counts.sum()], np.cumsum(counts)[:-1])


def round_shares(shares: Array, rows: int) -> Indices:
    """Whole numbers near the proportions, at least 1 each, that sum to the rows."""
    wanted = rows * (shares / shares.sum())
    counts: NDArray[np.int64] = np.maximum(1, np.floor(wanted).astype(np.int64))
    for _ in range(rows - counts.sum()):
        counts[np.argmax(wanted - counts)] += 1
    for _ in range(counts.sum() - rows):
        counts[np.argmax(np.where(counts > 1, counts - wanted, -np.inf))] -= 1
    return counts


def by_group(groups: ArrayLike, rows: int) -> tuple[tuple[str, ...], Parts]:
    """One agent per distinct value, in their order: the agents' names, and their rows."""
    values = np.asarray(groups)
    if values.dtype.kind == "O" and all(isinstance(each, str) for each in values.ravel()):
        values = values.astype(str)
    if values.dtype.kind not in "biufU" or (values.dtype.kind == "f" and not np.isfinite(values).all()):
        raise AmbleError("groups holds values that are neither text nor finite numbers; give one such label per row.")
    if values.shape != (rows,):
        raise AmbleError(f"groups has shape {values.shape}, and there are {rows:,} rows; give one label per row.")
    labels, number = np.unique(values, return_inverse=True)
    return tuple(map(str, labels.tolist())), [np.flatnonzero(number == k) for k in range(len(labels))]


PARTITIONS: dict[str, Callable[..., Parts]] = {
    "even": even,
    "sorted": by_target,
    "by-label": by_label,
    "dirichlet": dirichlet,
    "by-sizes": by_sizes,
}


def check_sizes(sizes: list[float], agents: int, rows: int) -> None:
    """One per agent; whole numbers are rows, and there must be as many."""
    if len(sizes) != agents:
        raise AmbleError(f"{len(sizes)} sizes were given for {agents} agents; give one per agent.")
    if np.asarray(sizes).dtype.kind in "iu" and sum(sizes) > rows:
        raise AmbleError(
            f"the sizes sum to {sum(sizes):,}, and there are {rows:,} training rows; give fewer, or proportions "
            "(numbers with a point, such as 1.0)."
        )


def settle(how: str, alpha: float | None, sizes: ArrayLike | None, by_groups: bool = False) -> dict[str, Any]:
    """The settings of a partition, as a problem records them: sizes mean by-sizes, groups mean by-group, and dirichlet
    has an alpha."""
    if by_groups:
        if how not in ("even", BY_GROUP) or alpha is not None or sizes is not None:
            other = f"how={how!r}" if how not in ("even", BY_GROUP) else "alpha" if alpha is not None else "sizes"
            raise AmbleError(f"{other} was given with groups, which say which agent holds which rows; leave one out.")
        return {"how": BY_GROUP}
    if how == BY_GROUP:
        raise AmbleError("how='by-group' was given without groups; give groups=, or a column of the file (--by SITE).")
    if how not in PARTITIONS:
        raise unknown("partition", how, PARTITIONS)
    if sizes is not None and how not in ("even", "by-sizes"):
        raise AmbleError(f"sizes were given with how={how!r}; they are for how='by-sizes', so leave one out.")
    if alpha is not None and how != "dirichlet":
        raise AmbleError(f"alpha={alpha} was given with how={how!r}; it is for how='dirichlet', so leave it out.")
    if alpha is not None and not (is_number(alpha) and 0 < alpha <= ALPHA_MAX):
        raise AmbleError(
            f"alpha={alpha!r} was given; it must be a number above zero, at most {ALPHA_MAX:g}: the smaller it "
            "is, the more the agents differ."
        )
    if sizes is not None:
        listed = list(sizes) if isinstance(sizes, list | tuple | np.ndarray) else []
        if not listed or not all(is_number(size) and 0 < size < np.inf for size in listed):
            raise AmbleError(f"sizes={sizes!r} was given; give a list of numbers above zero: rows, or proportions.")
        return {"how": "by-sizes", "sizes": np.asarray(listed).tolist()}
    return {"how": how, "alpha": ALPHA if alpha is None else float(alpha)} if how == "dirichlet" else {"how": how}


def partition(
    how: str,
    y: Targets,
    agents: int,
    seed: int,
    *,
    task: str,
    alpha: float | None = None,
    sizes: ArrayLike | None = None,
) -> Parts:
    """The parts of `how`, by name; the same seed gives the same parts."""
    options = settle(how, alpha, sizes)
    how = options.pop("how")
    if agents > len(y):
        raise AmbleError(f"{len(y)} training rows cannot give {agents} agents a row each; use at most {len(y)} agents.")
    if how in ("by-label", "dirichlet") and task == "regression":
        raise AmbleError(f"how={how!r} needs labels and this is a regression; use how='even' or how='sorted'.")
    if "sizes" in options:
        check_sizes(options["sizes"], agents, len(y))
    return PARTITIONS[how](y, agents, np.random.default_rng([check_seed(seed), 1]), **options)


def quartiles(y: Array) -> list[float]:
    """The smallest, the quartiles and the largest; np.quantile takes five times as long for few numbers."""
    last = len(y) - 1
    spread: list[float] = np.interp(np.linspace(0, last, 5), np.arange(last + 1), np.sort(y)).tolist()
    return spread


def holdings(y: Targets, parts: Parts, labels: Targets | None) -> dict[str, Any] | None:
    """Who holds what, in plain numbers: rows of each label, or the spread of the targets; None for very many agents."""
    if len(parts) > HOLDINGS_AGENTS_MAX:
        return None
    if labels is None:
        return {"rows": [len(part) for part in parts], "target": [quartiles(y[part]) for part in parts]}
    counts = [np.bincount(np.searchsorted(labels, y[part]), minlength=len(labels)).tolist() for part in parts]
    return {"labels": labels.tolist(), "counts": counts}
