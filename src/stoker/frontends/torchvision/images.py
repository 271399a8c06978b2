# SPDX-License-Identifier: Apache-2.0
"""torchvision's own image tensors, lazily. A class that is made when torchvision is there."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .tensor import IMAGES, LazyTensor, real


@functools.cache
def lazy_image_class() -> Any:
    """The lazy class that stands for ``torchvision.tv_tensors.Image``, and is one."""
    from torchvision import tv_tensors

    class LazyImageTensor(LazyTensor, tv_tensors.Image):  # type: ignore[misc]
        """An image of torchvision's transforms v2 that is not made yet."""

        stands_for = tv_tensors.Image

        def as_made(self) -> torch.Tensor:
            made: torch.Tensor = real(self).as_subclass(tv_tensors.Image)
            return made

    IMAGES[tv_tensors.Image] = IMAGES[LazyImageTensor] = LazyImageTensor
    return LazyImageTensor
