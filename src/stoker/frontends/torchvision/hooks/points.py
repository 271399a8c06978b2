# SPDX-License-Identifier: Apache-2.0
"""torchvision's kernels for key points, as entries of its registry that record; see `tensors/points.py`.

A recorder returns None if it does not record. Then torchvision's own kernel runs, and computes the points.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from .. import recording
from ..reference import trial_cache
from ..tensors import points, views
from ..tensors.points import Add, CanvasSize, Clamp, Flip, Scale, Step, Subtract

_EXACT = 1 << 24  # float32 rounds larger integers


class _Recorded(NamedTuple):
    """Steps of a kernel, and the size of the image afterwards."""

    steps: tuple[Step, ...]
    canvas_size: CanvasSize


Recorder = Callable[..., _Recorded | None]  # from the size of the image and the kernel's arguments


@functools.cache
def _geometry() -> Any:
    from torchvision.transforms.v2.functional import _geometry

    return _geometry


def _are_sizes(*numbers: Any) -> bool:
    return all(type(n) is int and 0 < n <= _EXACT for n in numbers)


def _are_offsets(*numbers: Any) -> bool:
    return all(type(n) is int and abs(n) <= _EXACT for n in numbers)


def _mirror_x(canvas_size: CanvasSize) -> _Recorded:
    return _Recorded((Flip(0, canvas_size[1] - 1),), canvas_size)


def _mirror_y(canvas_size: CanvasSize) -> _Recorded:
    return _Recorded((Flip(1, canvas_size[0] - 1),), canvas_size)


def _crop(canvas_size: CanvasSize, top: Any, left: Any, height: Any, width: Any) -> _Recorded | None:
    if not _are_offsets(top, left) or not _are_sizes(height, width):
        return None
    return _Recorded((Subtract(left, top),), (height, width))


def _pad(canvas_size: CanvasSize, padding: Any, fill: Any = None, padding_mode: str = "constant") -> _Recorded | None:
    sides = views.parse_padding(padding) if padding_mode == "constant" else None
    if sides is None:
        return None
    left, top, right, bottom = sides
    height, width = canvas_size
    return _Recorded((Add(left, top),), (height + top + bottom, width + left + right))


def _resize(
    canvas_size: CanvasSize,
    size: Any,
    interpolation: Any = None,
    max_size: Any = None,
    antialias: Any = None,
) -> _Recorded | None:
    if torch.get_default_dtype() != torch.float32 or torch.get_default_device().type != "cpu":
        return None
    height, width = canvas_size
    new_height, new_width = _geometry()._compute_resized_output_size(canvas_size, size=size, max_size=max_size)
    if (new_height, new_width) == (height, width) or not _are_sizes(new_height, new_width):
        return None  # the same memory in the first case
    return _Recorded((Scale(new_width / width, new_height / height),), (new_height, new_width))


def _center_crop(canvas_size: CanvasSize, output_size: Any) -> _Recorded | None:
    height, width = _geometry()._center_crop_parse_output_size(output_size)
    top, left = _geometry()._center_crop_compute_crop_anchor(height, width, *canvas_size)
    return _crop(canvas_size, top, left, height, width)


def _resized_crop(
    canvas_size: CanvasSize,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    size: Any,
    interpolation: Any = None,
    antialias: Any = None,
) -> _Recorded | None:
    cropped = _crop(canvas_size, top, left, height, width)
    if cropped is None:
        return None
    resized = _resize((height, width), size)
    if resized is None:
        return None
    return _Recorded((*cropped.steps, *resized.steps), resized.canvas_size)


class Kernel(NamedTuple):
    """Recorder of a kernel, and arguments with which both are compared once."""

    recorder: Recorder
    tried: dict[str, Any]


# By the names of the functions that torchvision dispatches by type.
KERNELS: dict[str, Kernel] = {
    "horizontal_flip": Kernel(_mirror_x, {}),
    "vertical_flip": Kernel(_mirror_y, {}),
    "crop": Kernel(_crop, {"top": 3, "left": -5, "height": 20, "width": 30}),
    "pad": Kernel(_pad, {"padding": [3, 4, 5, 6]}),
    "resize": Kernel(_resize, {"size": [17, 45]}),
    "center_crop": Kernel(_center_crop, {"output_size": [21, 19]}),
    "resized_crop": Kernel(_resized_crop, {"top": 3, "left": 5, "height": 20, "width": 30, "size": [17, 45]}),
}
_TRIED_SIZE = (37, 53)
_TRIED = [[0.0, 0.0], [52.0, 36.0], [3.3, 5.7], [-2.25, 40.5], [0.001, 12.625], [-0.0, 1e6], [31.9, 7.77], [5.0, -0.0]]


def wrap_kernel(name: str, original: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """Return the recording kernel for torchvision's registry.

    Args:
        name: key of :data:`KERNELS`.
        original: torchvision's kernel.
        kind: ``torchvision.tv_tensors.KeyPoints``; the kernel also gets objects of its lazy class and of subclasses.
    """
    lazy, recorder = points.lazy_class(kind), KERNELS[name].recorder

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        recorded = None
        if recording.is_on():
            if type(x) is lazy and points.are_lazy(x):
                recorded = record(x, points.dtype_of(x), points.more_steps, args, kwargs)
            elif type(x) is kind and x.dtype in points.TYPES:
                recorded = record(x, x.dtype, points.first_steps, args, kwargs)
        return original(x, *args, **kwargs) if recorded is None else recorded

    def record(x: Any, dtype: torch.dtype, add: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        canvas_size = x.canvas_size
        if type(canvas_size) is not tuple or not _are_sizes(*canvas_size):
            return None
        try:
            recorded = recorder(canvas_size, *args, **kwargs)
        except Exception:  # noqa: BLE001 - torchvision raises its own error
            return None
        if recorded is None or not _is_equal(name, original, dtype):
            return None
        return add(x, recorded.canvas_size, recorded.steps)

    return call


def _is_equal(name: str, original: Callable[..., Any], dtype: torch.dtype) -> bool:
    """Return whether the recorded steps give the bits of torchvision's kernel, whose arithmetic differs by release."""

    def find() -> bool:
        from torchvision import tv_tensors

        origin, kernel = _tried(dtype), KERNELS[name]
        recorded = kernel.recorder(_TRIED_SIZE, **kernel.tried)
        assert recorded is not None, "the recorder has just recorded a call"
        tried = tv_tensors.KeyPoints(torch.from_numpy(origin), canvas_size=_TRIED_SIZE)
        try:
            wanted = original(tried, **kernel.tried)
        except TypeError:  # a release whose kernel has other arguments
            return False
        return wanted.canvas_size == recorded.canvas_size and _is_replayed(wanted, origin, recorded.steps)

    return trial_cache.find_once(("key points", name, dtype), find)


def _tried(dtype: torch.dtype) -> points.Values:
    return np.array(_TRIED).astype(points.TYPES[dtype])


def _is_replayed(wanted: torch.Tensor, origin: points.Values, steps: tuple[Step, ...]) -> bool:
    """Return whether ``steps`` give the bits of ``wanted``."""
    found, theirs = points.replay(origin, steps), wanted.as_subclass(torch.Tensor).contiguous().numpy()
    return found.dtype == theirs.dtype and found.tobytes() == theirs.tobytes()


def clamp(original: Callable[..., Any], keypoints: Any, canvas_size: Any) -> Any:
    """Record the limits of lazy key points, which torchvision passes as a tensor."""
    usual = recording.is_on() and type(canvas_size) is tuple and _are_sizes(*canvas_size)
    if not usual or type(keypoints) is not points.LazyPoints or not points.are_lazy(keypoints):
        return original(keypoints, canvas_size)
    step = Clamp(canvas_size[1] - 1, canvas_size[0] - 1)

    dtype = points.dtype_of(keypoints)

    def find() -> bool:
        origin = _tried(dtype)
        last = Clamp(_TRIED_SIZE[1] - 1, _TRIED_SIZE[0] - 1)
        return _is_replayed(original(torch.from_numpy(origin.copy()), _TRIED_SIZE), origin, (last,))

    if not trial_cache.find_once(("key points", "clamp", dtype), find):
        return original(keypoints, canvas_size)
    return points.add_step(keypoints, step)
