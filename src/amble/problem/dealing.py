"""Which agent holds which rows: rows in one place dealt out, or those that agents already hold put together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array
from amble.data.partition import Parts, by_group, partition, settle
from amble.data.targets import Targets
from amble.errors import AmbleError, is_whole
from amble.problem.assemble import check_rows
from amble.problem.rows import check_pairs, in_order, infer_task, names_of

AGENTS = 20  # where no number is given


class Rows(NamedTuple):
    """All agents' rows and targets, checked, and the rows of each agent by their indices."""

    X: Array
    y: Targets
    task: str
    parts: Parts
    columns: tuple[str, ...] | None  # the names of the columns
    names: tuple[str, ...] | None  # of the agents, where each is a group of rows
    settings: dict[str, Any]  # how they were dealt out


def deal(
    X: ArrayLike,
    y: ArrayLike,
    task: str | None,
    agents: int | None,
    how: str,
    groups: ArrayLike | None,
    seed: int,
    alpha: float | None,
    sizes: ArrayLike | None,
) -> Rows:
    """Rows in one place, dealt out; Problem.from_arrays says what each parameter is."""
    columns = names_of(X)
    y, task = infer_task(y, task)
    X, y = check_rows(in_order(X, None, "the data"), y, task, "the data")
    if agents is not None and (not is_whole(agents) or agents < 1):
        raise AmbleError(f"agents={agents} was given; it must be a whole number, one or more.")
    settings = settle(how, alpha, sizes, groups is not None)
    names = None
    if groups is not None:
        names, parts = by_group(groups, len(y))
        if agents not in (None, len(names)):
            raise AmbleError(f"agents={agents} was given with {len(names)} groups, one agent each; leave agents out.")
    else:
        parts = partition(how, y, AGENTS if agents is None else agents, seed, task=task, alpha=alpha, sizes=sizes)
    return Rows(X, y, task, parts, columns, names, {**settings, "seed": int(seed)})


def gather(rows: Sequence[tuple[ArrayLike, ArrayLike]], task: str | None) -> Rows:
    """The rows that agents already hold, one pair (X, y) per agent, put together."""
    pairs = check_pairs(rows)
    columns = names_of(pairs[0][0])
    if task is None:
        _, task = infer_task(np.concatenate([np.asarray(y).ravel() for _, y in pairs]), None)
    checked = []
    for i, (X, y) in enumerate(pairs):
        checked.append(check_rows(in_order(X, columns, f"agent {i}'s rows"), y, task, f"agent {i}"))
    widths = {X.shape[1] for X, _ in checked}
    if len(widths) != 1:
        raise AmbleError(f"agents disagree on the number of columns: {sorted(widths)}; give all the same columns.")
    ends = np.cumsum([len(y) for _, y in checked])
    parts = np.split(np.arange(ends[-1]), ends[:-1])
    X, y = (np.concatenate(side) for side in zip(*checked, strict=True))
    return Rows(X, y, task, parts, columns, None, {"how": "given"})
