# SPDX-License-Identifier: Apache-2.0
"""The take-over as a data set sees it: images and tensors are lazy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import stoker.torchvision
from stoker.frontends.torchvision.hooks import switch


@contextlib.contextmanager
def lazily(device: str = "cpu") -> Iterator[None]:
    """Enable the take-over, and act as if a DataLoader fetched a batch."""
    with stoker.torchvision.enabled(device), switch.fetching():
        yield
