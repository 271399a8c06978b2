# SPDX-License-Identifier: Apache-2.0
"""DALI's augmentations of images: uint8 with 3 channels in HWC."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.types import DType
from ..definition import DataNode
from .augmenting import Augmentation, augmentation


def _factor(magnitude: float) -> Any:
    """Magnitudes around 0 as factors around 1."""
    return np.float32(1 + magnitude)


def _kept_bits(magnitude: float) -> Any:
    """A mask that clears as many low bits as the magnitude says."""
    bits = round(magnitude)
    return np.uint8(256 - (1 << bits) if bits < 8 else 0)


def _call(data: DataNode, name: str, inputs: list[Any], **arguments: Any) -> Any:
    return data.builder.call(name, inputs, {k: v for k, v in arguments.items() if v is not None})


def _as_bytes(data: DataNode, x: Any) -> Any:
    return _call(data, "cast", [x], dtype=DType.UINT8)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(data: Any, angle: Any, fill_value: Any = 128, interp_type: Any = None, rotate_keep_size: bool = True) -> Any:
    """Rotate by ``angle`` degrees."""
    return _call(data, "rotate", [data], angle=angle, fill_value=fill_value, interp_type=interp_type,
                 keep_size=rotate_keep_size)  # fmt: skip


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=_factor)
def brightness(data: Any, parameter: Any) -> Any:
    """Multiply."""
    return _call(data, "brightness", [data], brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=_factor)
def contrast(data: Any, parameter: Any) -> Any:
    """Scale around the middle of the range (DALI's auto augmentations scale around the image's mean grey)."""
    return _call(data, "contrast", [data], contrast=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=_factor)
def color(data: Any, parameter: Any) -> Any:
    """Change the saturation."""
    return _call(data, "saturation", [data], saturation=parameter)


@augmentation(mag_range=(0, 4), mag_to_param=_kept_bits)
def posterize(data: Any, mask: Any) -> Any:
    """Clear the low bits."""
    return data & mask


@augmentation(mag_range=(256, 0), mag_to_param=np.int32)
def solarize(data: Any, threshold: Any) -> Any:
    """Invert the elements from ``threshold`` on."""
    below = _as_bytes(data, data < threshold)
    return _as_bytes(data, below * data + (1 - below) * (255 - data))


@augmentation(mag_range=(0, 110), mag_to_param=np.int32)
def solarize_add(data: Any, shift: Any) -> Any:
    """Add ``shift`` to the elements below 128."""
    return _as_bytes(data, data + _as_bytes(data, data < 128) * shift)


@augmentation
def invert(data: Any, _: Any) -> Any:
    """Invert."""
    return _as_bytes(data, 255 - data)


@augmentation
def identity(data: Any, _: Any) -> Any:
    """Nothing."""
    return data


def _missing(name: str, *needs: str) -> Augmentation:
    def refused(data: Any, parameter: Any) -> Any:
        raise AssertionError("refused before it is called")

    refused.__doc__ = f"Needs {' and '.join(f'`fn.{n}`' for n in needs)}, which Stoker has not yet."
    return Augmentation(refused, None, False, None, name, needs)


shear_x = _missing("shear_x", "transforms.shear", "warp_affine")
shear_y = _missing("shear_y", "transforms.shear", "warp_affine")
translate_x = _missing("translate_x", "transforms.translation", "warp_affine")
translate_x_no_shape = _missing("translate_x_no_shape", "transforms.translation", "warp_affine")
translate_y = _missing("translate_y", "transforms.translation", "warp_affine")
translate_y_no_shape = _missing("translate_y_no_shape", "transforms.translation", "warp_affine")
sharpness = _missing("sharpness", "filter")
equalize = _missing("equalize", "equalize")
auto_contrast = _missing("auto_contrast", "reductions.min", "reductions.max")


def get_rand_augment_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> Any:
    """RandAugment's augmentations, each stronger with a larger bin."""
    return [
        shear_x, shear_y, translate_x, translate_y, rotate, brightness, contrast, color, sharpness, posterize, solarize,
        equalize, auto_contrast, identity,
    ]  # fmt: skip


def get_rand_augment_non_monotonic_suite(use_shape: bool = False, max_translate_abs: Any = None,
                                         max_translate_rel: Any = None) -> Any:  # fmt: skip
    """RandAugment's augmentations with the magnitudes of the first paper: enhancements from 0.1 to 1.9."""
    enhance: dict[str, Any] = {"mag_range": (0.1, 1.9), "randomly_negate": False, "mag_to_param": np.float32}
    return [
        shear_x, shear_y, translate_x, translate_y, rotate, brightness.augmentation(**enhance),
        contrast.augmentation(**enhance), color.augmentation(**enhance), sharpness, posterize, solarize, equalize,
        auto_contrast, identity,
    ]  # fmt: skip


def get_trivial_augment_wide_suite(use_shape: bool = False, max_translate_abs: Any = None,
                                   max_translate_rel: Any = None) -> Any:  # fmt: skip
    """TrivialAugment's augmentations with wide magnitudes."""
    wide = (0.01, 0.99)
    return [
        shear_x, shear_y, translate_x, translate_y, rotate.augmentation((0, 135)), brightness.augmentation(wide),
        contrast.augmentation(wide), color.augmentation(wide), sharpness, posterize.augmentation((0, 6)), solarize,
        equalize, auto_contrast, identity,
    ]  # fmt: skip
