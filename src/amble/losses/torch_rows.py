"""The rows of an agent as tensors."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from amble.arrays import Indices
from amble.errors import AmbleError
from amble.losses.torch_module import Weights


def rows_of(given: Any, weights: Weights, whose: str) -> tuple[Any, int]:
    """Tensors on the module's device, floating-point ones in its dtype; and how many rows they have."""
    import torch

    if isinstance(given, torch.utils.data.Dataset):
        given = torch.utils.data.default_collate([given[k] for k in range(len(cast(Any, given)))])

    def tensor(leaf: Any) -> Any:
        try:
            made = leaf if isinstance(leaf, torch.Tensor) else torch.as_tensor(np.array(leaf))
        except (TypeError, ValueError, RuntimeError) as error:
            raise AmbleError(f"{whose} have a {type(leaf).__name__} that is no tensor of numbers: {error}.") from error
        if made.is_floating_point() and not bool(torch.isfinite(made).all()):
            raise AmbleError(f"{whose} have values that are not finite; fill or drop them first.")
        return made.to(weights.device, weights.dtype if made.is_floating_point() else made.dtype)

    batch = each(tensor, given)
    lengths = {len(leaf) if leaf.dim() else 0 for leaf in tensors(batch)}
    if len(lengths) != 1 or 0 in lengths:
        raise AmbleError(f"{whose} have tensors of {sorted(lengths)} rows; give the same number, one or more, in each.")
    return batch, lengths.pop()


def take(batch: Any, rows: Indices) -> Any:
    """Some rows of a batch."""
    import torch

    return each(lambda leaf: leaf[torch.as_tensor(np.asarray(rows), device=leaf.device)], batch)


def each(function: Callable[[Any], Any], batch: Any) -> Any:
    """A batch with a function applied to each tensor; dicts, lists and tuples stay what they are."""
    if isinstance(batch, dict):
        return {key: each(function, part) for key, part in batch.items()}
    if isinstance(batch, tuple | list):
        made = [each(function, part) for part in batch]
        return type(batch)(*made) if hasattr(batch, "_fields") else type(batch)(made)
    return function(batch)


def tensors(batch: Any) -> list[Any]:
    """The tensors of a batch, in order."""
    found: list[Any] = []
    each(found.append, batch)
    return found
