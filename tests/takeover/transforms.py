# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms, each as a function of the module (v1 or v2) that creates it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from PIL import ImageFilter

import tests.takeover.declared  # noqa: F401

from torchvision.transforms import InterpolationMode as Mode  # isort: skip
from torchvision.transforms import v2  # isort: skip

Make = Callable[[Any], Any]
_FILTERS = (Mode.NEAREST, Mode.BILINEAR, Mode.BICUBIC, Mode.LANCZOS, Mode.BOX, Mode.HAMMING)
# Of Pillow images and tensors of bytes.
IMAGES: dict[str, Make] = {
    **{f"Resize, {f.name}": lambda t, f=f: t.Resize(40, interpolation=f, antialias=True) for f in _FILTERS},
    **{
        f"Resize, {f.name}, antialias=False": lambda t, f=f: t.Resize(40, interpolation=f, antialias=False)
        for f in _FILTERS[1:3]
    },
    "CenterCrop": lambda t: t.CenterCrop(48),
    "CenterCrop, larger than the image": lambda t: t.CenterCrop(150),
    "RandomCrop": lambda t: t.RandomCrop(48),
    "RandomCrop, padding 4": lambda t: t.RandomCrop(64, padding=4),
    **{
        f"RandomResizedCrop, {f.name}": lambda t, f=f: t.RandomResizedCrop(40, interpolation=f, antialias=True)
        for f in _FILTERS[:3]
    },
    "FiveCrop": lambda t: t.FiveCrop(30),
    "TenCrop": lambda t: t.TenCrop(30),
    "Pad, constant": lambda t: t.Pad((1, 2, 3, 4), fill=7),
    "Pad, edge": lambda t: t.Pad(3, padding_mode="edge"),
    "Pad, reflect": lambda t: t.Pad(3, padding_mode="reflect"),
    "RandomHorizontalFlip": lambda t: t.RandomHorizontalFlip(),
    "RandomVerticalFlip": lambda t: t.RandomVerticalFlip(),
    **{f"RandomRotation, {f.name}": lambda t, f=f: t.RandomRotation(30, interpolation=f) for f in _FILTERS[:3]},
    **{
        f"RandomAffine, {f.name}": lambda t, f=f: t.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 9, interpolation=f)
        for f in _FILTERS[:3]
    },
    "RandomRotation, BILINEAR, fill": lambda t: t.RandomRotation(30, Mode.BILINEAR, fill=(9, 80, 254)),
    "RandomRotation, BILINEAR, of 9x8 pixels": lambda t: t.Compose(
        [t.Resize((9, 8), antialias=True), t.RandomRotation(30, Mode.BILINEAR)]
    ),
    "RandomPerspective": lambda t: t.RandomPerspective(p=1.0),
    "ElasticTransform": lambda t: t.ElasticTransform(),
    "ColorJitter, brightness": lambda t: t.ColorJitter(brightness=0.4),
    "ColorJitter, contrast": lambda t: t.ColorJitter(contrast=0.4),
    "ColorJitter, contrast, of 90,000 pixels": lambda t: t.Compose(
        [t.Resize((300, 300), antialias=True), t.ColorJitter(contrast=0.4)]
    ),
    "ColorJitter, saturation": lambda t: t.ColorJitter(saturation=0.4),
    "ColorJitter, hue": lambda t: t.ColorJitter(hue=0.1),
    "ColorJitter, all": lambda t: t.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "Grayscale": lambda t: t.Grayscale(),
    "Grayscale, 3 channels": lambda t: t.Grayscale(3),
    "RandomGrayscale": lambda t: t.RandomGrayscale(0.5),
    "GaussianBlur": lambda t: t.GaussianBlur(5),
    "GaussianBlur, one channel": lambda t: t.Compose([t.Grayscale(), t.GaussianBlur(5)]),
    "GaussianBlur, one channel, 3x3 window": lambda t: t.Compose([t.Grayscale(), t.GaussianBlur(3)]),
    "RandomInvert": lambda t: t.RandomInvert(),
    "RandomPosterize": lambda t: t.RandomPosterize(3),
    "RandomSolarize": lambda t: t.RandomSolarize(128),
    "RandomAdjustSharpness": lambda t: t.RandomAdjustSharpness(2),
    "RandomAdjustSharpness, one channel": lambda t: t.Compose([t.Grayscale(), t.RandomAdjustSharpness(2)]),
    "RandomAdjustSharpness, one channel of 90,000 pixels": lambda t: t.Compose(
        [t.Resize((300, 300), antialias=True), t.Grayscale(), t.RandomAdjustSharpness(2)]
    ),
    "RandomAutocontrast": lambda t: t.RandomAutocontrast(),
    "RandomEqualize": lambda t: t.RandomEqualize(),
    "AutoAugment": lambda t: t.AutoAugment(),
    "RandAugment": lambda t: t.RandAugment(),
    "TrivialAugmentWide": lambda t: t.TrivialAugmentWide(),
    "AugMix": lambda t: t.AugMix(),
    "RandomApply": lambda t: t.RandomApply([t.RandomRotation(20)], p=0.5),
    "RandomChoice": lambda t: t.RandomChoice([t.Resize(30), t.CenterCrop(30)]),
    "RandomOrder": lambda t: t.RandomOrder([t.Resize(30), t.CenterCrop(30)]),
    "RandomChannelPermutation": lambda t: t.RandomChannelPermutation(),
    "RandomPhotometricDistort": lambda t: t.RandomPhotometricDistort(),
    "RandomZoomOut": lambda t: t.RandomZoomOut(fill=(1, 2, 3)),
    "ScaleJitter": lambda t: t.ScaleJitter((60, 60)),
    "RandomShortestSize": lambda t: t.RandomShortestSize((40, 50, 60)),
    "RandomResize": lambda t: t.RandomResize(30, 60),
    "Lambda": lambda t: t.Lambda(lambda x: x),
    "Lambda, Pillow's GaussianBlur": lambda t: t.Lambda(lambda x: x.filter(ImageFilter.GaussianBlur(1.5))),
    "Lambda, Pillow's BoxBlur": lambda t: t.Lambda(lambda x: x.filter(ImageFilter.BoxBlur(2))),
}
# From Pillow's images to tensors.
TO_TENSOR: dict[str, Make] = {
    "ToTensor": lambda t: t.ToTensor(),
    "PILToTensor": lambda t: t.PILToTensor(),
    "ToImage (v2)": lambda t: v2.ToImage(),
    "ConvertImageDtype": lambda t: t.Compose([t.PILToTensor(), t.ConvertImageDtype(torch.float32)]),
    "ToDtype, scaled (v2)": lambda t: v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
    "Normalize": lambda t: t.Compose([t.ToTensor(), t.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])]),
    "Normalize after ToImage (v2)": lambda t: v2.Compose(
        [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])]
    ),
    "ToPureTensor (v2)": lambda t: v2.Compose([v2.ToImage(), v2.ToPureTensor()]),
    "RandomErasing": lambda t: t.Compose([t.ToTensor(), t.RandomErasing(p=1.0)]),
    "RandomErasing, random values": lambda t: t.Compose([t.ToTensor(), t.RandomErasing(p=1.0, value="random")]),
}


def _also(*names: str) -> dict[str, Make]:
    """Return transforms of bytes, applied to floats as well."""
    return {name: IMAGES[name] for name in names}


# Float transforms, after ToTensor or v2's ToDtype.
FLOATS: dict[str, Make] = {
    **_also("RandomCrop", "RandomHorizontalFlip"),
    "Pad, constant": lambda t: t.Pad(3, fill=0),
    "Pad, constant, of no byte": lambda t: t.Pad(3, fill=0.123),
    **_also("Pad, reflect"),
    "Resize, BILINEAR": lambda t: t.Resize(40, antialias=True),
    "Resize, BICUBIC": lambda t: t.Resize(40, Mode.BICUBIC, antialias=True),
    "Resize, BILINEAR, antialias=False": lambda t: t.Resize(40, antialias=False),
    "Resize, BICUBIC, antialias=False": lambda t: t.Resize(40, Mode.BICUBIC, antialias=False),
    "Resize, NEAREST": lambda t: t.Resize(40, Mode.NEAREST),
    "Resize, BILINEAR, after Normalize": lambda t: t.Compose([_normalize(t), t.Resize(40, antialias=True)]),
    "Resize, BILINEAR, before Normalize": lambda t: t.Compose([t.Resize(40, antialias=True), _normalize(t)]),
    "RandomResizedCrop": lambda t: t.RandomResizedCrop(40, antialias=True),
    "RandomRotation, NEAREST": lambda t: t.RandomRotation(30),
    "RandomRotation, BILINEAR": lambda t: t.RandomRotation(30, Mode.BILINEAR),
    "RandomAffine, BILINEAR": lambda t: t.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 9, interpolation=Mode.BILINEAR),
    **_also("RandomPerspective", "ElasticTransform"),
    **_also("ColorJitter, brightness", "ColorJitter, contrast", "ColorJitter, contrast, of 90,000 pixels"),
    **_also("ColorJitter, saturation", "ColorJitter, hue", "ColorJitter, all", "Grayscale", "Grayscale, 3 channels"),
    **_also("GaussianBlur", "GaussianBlur, one channel", "GaussianBlur, one channel, 3x3 window"),
    **_also("RandomInvert", "RandomPosterize"),
    "RandomSolarize": lambda t: t.RandomSolarize(0.5),
    **_also("RandomAdjustSharpness", "RandomAdjustSharpness, one channel", "RandomAutocontrast", "RandomEqualize"),
    "RandomErasing": lambda t: t.Compose([t.Resize(40, antialias=True), t.RandomErasing(p=1.0)]),
}


def _normalize(library: Any) -> Any:
    return library.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])
