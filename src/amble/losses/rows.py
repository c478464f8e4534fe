"""The common part of losses that keep their rows."""

from typing import Any, TypeVar

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
