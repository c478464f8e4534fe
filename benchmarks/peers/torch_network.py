"""The network that peers_torch.py trains, with amble and with decent-bench: the same module on both sides."""

import torch
from torch import nn


def network_of(side: int) -> nn.Module:
    """Two layers of 3 x 3, 8 and 16 channels, then a dense layer; in float64, so that models can be compared."""
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * (side // 4) ** 2, 10),
    ).to(torch.float64)  # fmt: skip
