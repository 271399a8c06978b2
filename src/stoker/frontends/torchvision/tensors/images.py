# SPDX-License-Identifier: Apache-2.0
"""Lazy version of torchvision's image tensors. Its class is created once torchvision has been imported."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ..proxy_names import named_after
from .tensor import IMAGES, QUERIES, LazyTensor


@functools.cache
def lazy_image_class() -> Any:
    """Return the lazy subclass of ``torchvision.tv_tensors.Image``."""
    from torchvision import tv_tensors

    @named_after(tv_tensors.Image)
    class LazyImageTensor(LazyTensor, tv_tensors.Image):  # type: ignore[misc]
        """Lazy image tensor of torchvision's transforms v2."""

        represented_class = tv_tensors.Image

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            """Dispatch like the base class, with torchvision's result class."""
            result = super().__torch_function__(func, types, args, kwargs)
            return (
                result
                if func in QUERIES or not issubclass(type(result), LazyTensor)
                else as_result_type(result, func, args)
            )

    IMAGES[tv_tensors.Image] = IMAGES[LazyImageTensor] = LazyImageTensor
    return LazyImageTensor


def as_result_type(result: LazyTensor, func: Any = None, args: Any = ()) -> Any:
    """Convert a result on an image to the type that torch's and torchvision's first-generation functions return.

    These are tensors, except for a few functions, and unless a script has requested images
    (``tv_tensors.set_return_type``).
    """
    from torchvision import tv_tensors
    from torchvision.tv_tensors import _torch_function_helpers as helpers

    is_kept = func in helpers._FORCE_TORCHFUNCTION_SUBCLASS and isinstance(args[0], tv_tensors.Image)
    kind = tv_tensors.Image if is_kept or helpers._must_return_subclass() else torch.Tensor
    is_right = isinstance(result, tv_tensors.Image) == (kind is tv_tensors.Image)
    return result if is_right else result.as_subclass(kind)
