# SPDX-License-Identifier: Apache-2.0
"""The images of a tensor that records: one row each, and what is made of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch

from .recipe import Node, Patch
from .tables import Table


class LazyRow(NamedTuple):
    """One image of a lazy tensor: what it is, what its values become, and what is set in it at last."""

    node: Node
    table: Table
    patches: tuple[Patch, ...] = ()  # in order


class Recorded(Protocol):
    """A tensor whose images are made together, `making.py`: of it are :class:`~.tensor.LazyTensor` s."""

    _rows: Sequence[LazyRow]
    _real: torch.Tensor | None  # once it has been made

    @property
    def dtype(self) -> torch.dtype:
        """The type of its values."""

    @property
    def shape(self) -> torch.Size:
        """``(..., channels, height, width)``."""

    def element_size(self) -> int:
        """Bytes of a value."""
