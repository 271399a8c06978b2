# SPDX-License-Identifier: Apache-2.0
"""torchvision's own image tensors, lazily. A class that is made when torchvision is there."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .likeness import named_after
from .tensor import ASKS, IMAGES, LazyTensor, real


@functools.cache
def lazy_image_class() -> Any:
    """The lazy class that stands for ``torchvision.tv_tensors.Image``, and is one."""
    from torchvision import tv_tensors

    @named_after(tv_tensors.Image)
    class LazyImageTensor(LazyTensor, tv_tensors.Image):  # type: ignore[misc]
        """An image of torchvision's transforms v2 that is not made yet."""

        stands_for = tv_tensors.Image

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            """As the base, with the class that torchvision's gives."""
            made = super().__torch_function__(func, types, args, kwargs)
            return made if func in ASKS or not isinstance(made, LazyTensor) else returned(made, func, args)

        def as_made(self) -> torch.Tensor:
            made: torch.Tensor = real(self).as_subclass(tv_tensors.Image)
            return made

    IMAGES[tv_tensors.Image] = IMAGES[LazyImageTensor] = LazyImageTensor
    return LazyImageTensor


def returned(made: LazyTensor, func: Any = None, args: Any = ()) -> Any:
    """What functions of torch, or torchvision's first generation, give for one of its images.

    Tensors, but for a few functions, and unless a script has asked for images (``tv_tensors.set_return_type``).
    """
    from torchvision import tv_tensors
    from torchvision.tv_tensors import _torch_function_helpers as helpers

    is_kept = func in helpers._FORCE_TORCHFUNCTION_SUBCLASS and isinstance(args[0], tv_tensors.Image)
    kind = tv_tensors.Image if is_kept or helpers._must_return_subclass() else torch.Tensor
    is_right = isinstance(made, tv_tensors.Image) == (kind is tv_tensors.Image)
    return made if is_right else made.as_subclass(kind)
