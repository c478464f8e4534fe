"""The common part of losses that keep their rows."""

from typing import Any, TypeVar

import numpy as np

from amble.arrays import Array, namespace

Loss = TypeVar("Loss", bound=Any)  # no type says "some NamedTuple"


def pooled(stacked: Loss, by_row: tuple[str, ...]) -> Loss:
    """The sum of stacked objectives as one: fields with an entry per row are joined, without padding; others summed."""
    used = stacked.rows.reshape(-1) > 0
    return stacked._replace(
        **{
            name: leaf.reshape(-1, *leaf.shape[2:])[used] if name in by_row else leaf.sum(axis=0)
            for name, leaf in stacked._asdict().items()
        }
    )


def largest(X: Any, weights: Any, ridge: Any) -> Any:
    """The largest eigenvalue of X' diag(weights) X + ridge, of each agent."""
    gram = np.swapaxes(X * weights[..., None], -1, -2) @ X + ridge[..., None] * np.eye(X.shape[-1])
    return np.linalg.eigvalsh(gram)[..., -1]


def reach(X: Array, step: Array) -> Array:
    """How far a step of the model moves the linear predictor of any row."""
    xp = namespace(step)
    return xp.max(xp.abs(X @ step))
