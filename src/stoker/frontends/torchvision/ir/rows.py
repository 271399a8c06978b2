# SPDX-License-Identifier: Apache-2.0
"""Rows of a lazy tensor: one per image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch

from .recipe import Node, Patch
from .tables import Table


class LazyRow(NamedTuple):
    """One image of a lazy tensor: its node, the table of its values, and patches that are written last."""

    node: Node
    table: Table
    patches: tuple[Patch, ...] = ()  # in the order of writing


class RecordedTensor(Protocol):
    """Images that are materialized together, one after the other: those of a lazy tensor (`tensors/tensor.py`)."""

    _rows: Sequence[LazyRow]
    _materialized: torch.Tensor | None  # None until it is materialized
    is_counted: bool  # whether its rows are images, which the report counts

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of the values."""

    @property
    def shape(self) -> torch.Size:
        """Return the tensor's shape, which has as many values as all images: ``(..., channels, height, width)``."""

    def element_size(self) -> int:
        """Return the size of a value in bytes."""
