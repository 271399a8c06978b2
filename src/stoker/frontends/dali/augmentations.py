# SPDX-License-Identifier: Apache-2.0
"""DALI's augmentations of images: uint8 with 3 channels in HWC, or videos in FHWC."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.types import DType
from ..data_node import DataNode
from .augmenting import augmentation

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_SMOOTH = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
_SHARP = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], np.float32)


def _along_x(magnitude: float) -> Any:
    return [magnitude, 0]


def _along_y(magnitude: float) -> Any:
    return [0, magnitude]


def shift_enhance_range(magnitude: float) -> Any:
    """Shift magnitudes around 0 to factors around 1."""
    return np.float32(1 + magnitude)


def sharpness_kernel(magnitude: float) -> Any:
    """Return a float32 ``(3, 3)`` kernel.

    Magnitude -1 smooths the image, 0 keeps it, 1 sharpens it by the same amount.
    """
    return ((1 + magnitude) * _SHARP - magnitude * _SMOOTH).astype(np.float32)


def sharpness_kernel_shifted(magnitude: float) -> Any:
    """Return the kernel of :func:`sharpness_kernel` for magnitudes from 0 to 2."""
    return sharpness_kernel(magnitude - 1)


def poster_mask_uint8(magnitude: float) -> Any:
    """Return a mask of the ``magnitude`` highest bits; at least one bit, so that no image becomes black."""
    bits = min(8, max(1, round(float(magnitude))))
    return np.uint8(256 - (1 << (8 - bits)))


def _call(data: DataNode, name: str, inputs: list[Any], **arguments: Any) -> Any:
    return data.builder.call(name, inputs, {k: v for k, v in arguments.items() if v is not None})


def _as_bytes(data: DataNode, x: Any) -> Any:
    return _call(data, "cast", [x], dtype=DType.UINT8)


def _warp(data: DataNode, kind: str, fill_value: Any, interp_type: Any, **numbers: Any) -> Any:
    matrix = _call(data, f"transforms.{kind}", [], **numbers)
    return _call(data, "warp_affine", [data], matrix=matrix, fill_value=fill_value, interp_type=interp_type,
                 inverse_map=False)  # fmt: skip


def _over_image(data: DataNode, reduction: str) -> Any:
    return _call(data, f"reductions.{reduction}", [data], axis_names="HW", keep_dims=True)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=_along_x)
def shear_x(data: Any, shear: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Shear along x."""
    return _warp(data, "shear", fill_value, interp_type, shear=shear)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=_along_y)
def shear_y(data: Any, shear: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Shear along y."""
    return _warp(data, "shear", fill_value, interp_type, shear=shear)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=_along_x)
def translate_x(data: Any, rel_offset: Any, shape: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Translate along x by a share of the width; ``shape`` is (height, width, ...)."""
    return _warp(data, "translation", fill_value, interp_type, offset=rel_offset * shape[1])


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=_along_x, name="translate_x")
def translate_x_no_shape(data: Any, offset: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Translate along x by a number of pixels."""
    return _warp(data, "translation", fill_value, interp_type, offset=offset)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=_along_y)
def translate_y(data: Any, rel_offset: Any, shape: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Translate along y by a share of the height; ``shape`` is (height, width, ...)."""
    return _warp(data, "translation", fill_value, interp_type, offset=rel_offset * shape[0])


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=_along_y, name="translate_y")
def translate_y_no_shape(data: Any, offset: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Translate along y by a number of pixels."""
    return _warp(data, "translation", fill_value, interp_type, offset=offset)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(data: Any, angle: Any, fill_value: Any = 128, interp_type: Any = None, rotate_keep_size: bool = True) -> Any:
    """Rotate by ``angle`` degrees."""
    return _call(data, "rotate", [data], angle=angle, fill_value=fill_value, interp_type=interp_type,
                 keep_size=rotate_keep_size)  # fmt: skip


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: Any, parameter: Any) -> Any:
    """Multiply the values."""
    return _call(data, "brightness", [data], brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: Any, parameter: Any) -> Any:
    """Scale around the image's mean grey, as Pillow's ``ImageEnhance.Contrast`` does."""
    mean = _over_image(data, "mean")
    center = _call(data, "reductions.sum", [mean * _LUMA], axes=[-1], keep_dims=True)
    return _as_bytes(data, center + (data - center) * parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: Any, parameter: Any) -> Any:
    """Change the saturation."""
    return _call(data, "saturation", [data], saturation=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel)
def sharpness(data: Any, kernel: Any) -> Any:
    """Smooth or sharpen with a 3 x 3 filter, edges included."""
    return _call(data, "filter", [data, kernel])


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8)
def posterize(data: Any, mask: Any) -> Any:
    """Keep only the high bits."""
    return data & mask


@augmentation(mag_range=(256, 0))
def solarize(data: Any, threshold: Any) -> Any:
    """Invert the elements from ``threshold`` on."""
    below = _as_bytes(data, data < threshold)
    return _as_bytes(data, below * data + (1 - below) * (255 - data))


@augmentation(mag_range=(0, 110), mag_to_param=np.uint8)
def solarize_add(data: Any, shift: Any) -> Any:
    """Add ``shift`` to the elements below 128."""
    return _as_bytes(data, data + _as_bytes(data, data < 128) * shift)


@augmentation
def invert(data: Any, _: Any) -> Any:
    """Invert the values."""
    return _as_bytes(data, 255 - data)


@augmentation
def equalize(data: Any, _: Any) -> Any:
    """Spread each channel's values evenly, as OpenCV does."""
    return _call(data, "equalize", [data])


@augmentation
def auto_contrast(data: Any, _: Any) -> Any:
    """Stretch each channel to 0..255. A channel with a single value stays."""
    low, high = _over_image(data, "min"), _over_image(data, "max")
    varies = _as_bytes(data, high > low)
    span = _as_bytes(data, (high - low) * varies + 255 * (1 - varies))
    return _as_bytes(data, _as_bytes(data, data - low * varies) * (255 / span))


@augmentation
def identity(data: Any, _: Any) -> Any:
    """Return the image unchanged."""
    return data
