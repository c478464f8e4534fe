"""A PyTorch module as one vector, and back. Parameters that require a gradient are trained."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, shown


@final
class Weights:
    """A copy of a module, whose trained parameters are set from a vector before each use.

    The vector has them in the order of `module.named_parameters()`. Everything else of the state_dict stays as it was
    given: buffers, and frozen parameters.
    """

    def __init__(self, module: Any) -> None:
        import torch

        if not isinstance(module, torch.nn.Module):
            raise AmbleError(f"{shown(module)} was given as the module; give a torch.nn.Module.")
        self.module = copy.deepcopy(module)
        self.named = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        kinds = {p.dtype for p in self.named.values()}
        if not self.named or not all(kind.is_floating_point for kind in kinds):
            raise AmbleError("the module has no floating-point parameter that requires a gradient; give one to train.")
        self.parameters = list(self.named.values())
        self.dimension = sum(p.numel() for p in self.parameters)
        self.dtype, self.device = self.parameters[0].dtype, self.parameters[0].device
        self.training = [(part, part.training) for part in self.module.modules()]
        self.buffers = {name: b.clone() for name, b in self.module.named_buffers()}

    def at(self, w: Array, training: bool) -> Any:
        """The module with these numbers: in the mode it was given in, or as for predictions."""
        import torch

        values = torch.as_tensor(np.array(w, np.float64), device=self.device)
        with torch.no_grad():
            end = 0
            for p in self.parameters:
                begin, end = end, end + p.numel()
                p.copy_(values[begin:end].view_as(p))
        for part, given in self.training:
            if part.training != (training and given):  # to set it takes longer than to look
                part.training = training and given
        return self.module

    def vector(self, params: Any) -> Array:
        """The vector of a state_dict or of a module."""
        state = params.state_dict() if hasattr(params, "state_dict") else params
        if not hasattr(state, "keys") or not {*self.named} <= {*state.keys()}:
            raise AmbleError(f"{shown(params)} was given as a start; give a state_dict with {', '.join(self.named)}.")
        for name, p in self.named.items():
            if tuple(state[name].shape) != tuple(p.shape):
                raise AmbleError(f"{name} has shape {tuple(state[name].shape)} in the start; give {tuple(p.shape)}.")
        return np.concatenate([numbers(state[name]) for name in self.named])

    def state_dict(self, w: Array) -> dict[str, Any]:
        """A copy of the whole state_dict with these numbers."""
        return {name: value.detach().clone() for name, value in self.at(w, False).state_dict().items()}

    def changed_buffers(self) -> list[str]:
        """The buffers that a call of the module has changed, such as the running mean of a batch normalisation."""
        import torch

        return [name for name, b in self.module.named_buffers() if not torch.equal(b, self.buffers[name])]


@contextmanager
def seeded(device: Any, seed: int) -> Iterator[None]:
    """What random layers draw inside is by this seed; afterwards PyTorch draws as if they had drawn nothing."""
    import torch

    if device.type != "cpu":
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield
        return
    generator = torch.default_generator  # torch.manual_seed also asks the other devices, which takes half a millisecond
    before = generator.get_state()
    try:
        generator.manual_seed(seed)
        yield
    finally:
        generator.set_state(before)


def numbers(tensor: Any) -> Array:
    """The numbers of a tensor, one after another, in float64."""
    import torch

    return np.asarray(tensor.detach().to("cpu", torch.float64).reshape(-1).numpy())
