"""Who holds which rows: each function returns one array of row numbers an agent."""

from typing import Any

import numpy as np

from amble.chance import check_seed
from amble.errors import AmbleError, unknown

Parts = list[Any]  # one integer array an agent


def even(y: Any, agents: int, rng: np.random.Generator) -> Parts:
    """Shuffled, then cut into parts whose sizes differ by one row at most."""
    return np.array_split(rng.permutation(len(y)), agents)


def by_target(y: Any, agents: int, rng: np.random.Generator) -> Parts:
    """Sorted by target, then cut evenly: each agent sees a narrow band of targets (ties are shuffled)."""
    return np.array_split(np.lexsort((rng.random(len(y)), y)), agents)


def by_label(y: Any, agents: int, rng: np.random.Generator) -> Parts:
    """One label an agent: agents are dealt to the labels in turn and share their label's rows evenly."""
    labels = np.unique(y)
    if agents < len(labels):
        raise AmbleError(
            f"how='by-label' gives each agent one label, and {len(labels)} labels need at least {len(labels)} agents; "
            f"{agents} were given. Use more agents, or how='dirichlet'."
        )
    parts: Parts = [None] * agents
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


def dirichlet(y: Any, agents: int, rng: np.random.Generator, alpha: float = 0.5) -> Parts:
    """Each label's rows are shared out in proportions drawn from Dirichlet(alpha): small alpha, unlike agents.

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


PARTITIONS = {"even": even, "sorted": by_target, "by-label": by_label, "dirichlet": dirichlet}


def partition(how: str, y: Any, agents: int, seed: int, *, task: str) -> Parts:
    """The parts of `how`, by name; the same seed gives the same parts."""
    if how not in PARTITIONS:
        raise unknown("partition", how, PARTITIONS)
    if agents > len(y):
        raise AmbleError(f"{len(y)} training rows cannot give {agents} agents a row each; use at most {len(y)} agents.")
    if how in ("by-label", "dirichlet") and task == "regression":
        raise AmbleError(f"how={how!r} needs labels and this is a regression; use how='even' or how='sorted'.")
    return PARTITIONS[how](y, agents, np.random.default_rng([check_seed(seed), 1]))
