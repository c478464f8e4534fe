"""Checks what JaxLoss is given: functions that return one number, and rows that can be stacked by agent."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from amble.errors import AmbleError, shown
from amble.losses.pytree import Layout

LOSS_ADVICE = "loss(params, batch) is called with params and some rows of one agent, and returns one number"


def stack(data: Any, dtype: Any) -> tuple[list[Any], Any, list[int]]:
    """The arrays of all agents, their structure, and how many rows each agent has; checked."""
    import jax

    batches: Any = None
    advice = "give one pytree of arrays per agent, rows first, such as [(X_0, y_0), (X_1, y_1)]"
    if not isinstance(data, Sequence) or isinstance(data, str) or not data:
        raise AmbleError(f"data={shown(data)} was given; {advice}.")
    agents, rows = [], []
    for i, tree in enumerate(data):
        leaves, treedef = jax.tree.flatten(tree)
        arrays = [np.asarray(leaf) for leaf in leaves]
        if i == 0:
            first, batches = arrays, treedef
        if treedef != batches or [a.shape[1:] for a in arrays] != [a.shape[1:] for a in first]:
            raise AmbleError(f"the data of agent {i} have another structure or width than those of agent 0; {advice}.")
        lengths = {len(a) if a.ndim else 0 for a in arrays}
        if len(lengths) != 1 or 0 in lengths:
            raise AmbleError(f"the data of agent {i} have arrays of {sorted(lengths)} rows; {advice}.")
        agents.append([as_host(a, dtype, f"the data of agent {i}") for a in arrays])
        rows.append(lengths.pop())
    return [padded(leaf, max(rows)) for leaf in zip(*agents, strict=True)], batches, rows


def padded(arrays: Sequence[Any], most: int) -> Any:
    """The arrays of all agents as one. Where an agent has fewer rows than others its first is repeated."""
    stacked = np.empty((len(arrays), most, *arrays[0].shape[1:]), arrays[0].dtype)
    for mine, a in zip(stacked, arrays, strict=True):
        mine[: len(a)], mine[len(a) :] = a, a[0]
    return stacked


def as_host(a: Any, dtype: Any, whose: str) -> Any:
    """An array with its floating-point numbers in the dtype of the params."""
    import jax.numpy as jnp

    if not jnp.issubdtype(a.dtype, jnp.number) and a.dtype != bool:
        raise AmbleError(f"{whose} have an array of type {a.dtype}; give numbers.")
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return a
    if not np.isfinite(a).all():
        raise AmbleError(f"{whose} have values that are not finite; fill or drop them first.")
    return a.astype(dtype)


def as_device(a: Any, dtype: Any) -> Any:
    import jax

    return jax.device_put(as_host(np.asarray(a), dtype, "the test rows"))


def check_answer(call: str, function: Callable[..., Any], layout: Layout, batch: Any, advice: str) -> None:
    import jax
    import jax.numpy as jnp

    def one(w: Any, batch: Any) -> Any:
        return function(layout.params(w), batch)

    try:
        answer = jax.eval_shape(one, np.zeros(layout.dimension), batch)
    except Exception as error:
        message = next(iter(str(error).splitlines()), "").rstrip(".")
        raise AmbleError(f"{call} fails with {type(error).__name__}: {message}; {advice}.") from error
    if not hasattr(answer, "shape") or answer.shape != () or not jnp.issubdtype(answer.dtype, jnp.number):
        kind = f"an array of shape {answer.shape}" if hasattr(answer, "shape") else f"a {type(answer).__name__}"
        raise AmbleError(f"{call} returns {kind}; {advice}.")
