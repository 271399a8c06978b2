# SPDX-License-Identifier: Apache-2.0
"""Small R(2+1)D network (Tran et al., 2018): convolutions over space and over time, with residual connections."""

from __future__ import annotations

import torch
from torch import nn


class Conv2Plus1D(nn.Sequential):
    """Convolution over space, normalization, ReLU, convolution over time."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        # As many weights between as make the two equal to one convolution of 3 x 3 x 3.
        between = 27 * inputs * outputs // (9 * inputs + 3 * outputs)
        super().__init__(
            nn.Conv3d(inputs, between, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
            nn.BatchNorm3d(between),
            nn.ReLU(),
            nn.Conv3d(between, outputs, (3, 1, 1), padding=(1, 0, 0), bias=False),
            nn.BatchNorm3d(outputs),
        )


class Block(nn.Module):
    """Two convolutions with a residual connection around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(Conv2Plus1D(inputs, outputs, stride), nn.ReLU(), Conv2Plus1D(outputs, outputs))
        self.residual = nn.Sequential(
            nn.Conv3d(inputs, outputs, 1, (1, stride, stride), bias=False), nn.BatchNorm3d(outputs)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(x) + self.residual(x))


class R2Plus1D(nn.Module):
    """Clips ``(N, 3, frames, height, width)`` to scores ``(N, classes)``."""

    def __init__(self, classes: int, channels: int = 12) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv3d(3, channels, (1, 5, 5), (1, 2, 2), (0, 2, 2), bias=False),
            nn.BatchNorm3d(channels),
            nn.ReLU(),
            nn.Conv3d(channels, channels, (3, 1, 1), padding=(1, 0, 0), bias=False),
            nn.BatchNorm3d(channels),
            nn.ReLU(),
        )
        self.blocks = nn.Sequential(Block(channels, channels, 1), Block(channels, 2 * channels, 2))
        # Places matter: a turning pattern moves to different sides at the top and at the bottom.
        self.pool = nn.AdaptiveAvgPool3d((1, 3, 3))
        self.last = nn.Linear(9 * 2 * channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.pool(self.blocks(self.first(x))).flatten(1))
