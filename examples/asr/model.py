# SPDX-License-Identifier: Apache-2.0
"""Small Jasper-style acoustic model: blocks of convolutions over time with residual connections, for CTC."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """Convolution, normalization and ReLU, repeated, with a residual connection around them."""

    def __init__(self, inputs: int, outputs: int, kernel: int, repeat: int, dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for k in range(repeat):
            layers += [
                nn.Conv1d(inputs if k == 0 else outputs, outputs, kernel, padding=kernel // 2, bias=False),
                nn.BatchNorm1d(outputs),
            ]
            if k < repeat - 1:
                layers += [nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers)
        self.residual = nn.Sequential(nn.Conv1d(inputs, outputs, 1, bias=False), nn.BatchNorm1d(outputs))
        self.last = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(x) + self.residual(x)) * mask


class Jasper(nn.Module):
    """Features ``(N, features, T)`` to log probabilities ``(ceil(T / 2), N, classes)``; class 0 is the blank."""

    def __init__(self, features: int, classes: int, channels: int = 96, blocks: int = 2, repeat: int = 2) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv1d(features, channels, 11, stride=2, padding=5, bias=False), nn.BatchNorm1d(channels), nn.ReLU()
        )
        self.blocks = nn.ModuleList(Block(channels, channels, 11, repeat, 0.1) for _ in range(blocks))
        self.last = nn.Conv1d(channels, classes, 1)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log probabilities and the lengths of their rows. Frames beyond a row's length are kept at 0."""
        lengths = (lengths + 1) // 2
        x = self.first(x)
        mask = (torch.arange(x.shape[2], device=x.device) < lengths[:, None]).unsqueeze(1)
        x = x * mask
        for block in self.blocks:
            x = block(x, mask)
        return self.last(x).log_softmax(1).permute(2, 0, 1), lengths
