# SPDX-License-Identifier: Apache-2.0
"""Invalid arguments: torchvision, Pillow and torch raise the same errors, or return the same values, as without Stoker.

Each test replaces one argument of a function, on lazy images and on plain ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

import tests.takeover.declared  # noqa: F401

import torchvision.transforms.functional as v1  # isort: skip
from torchvision.transforms import InterpolationMode  # isort: skip
from torchvision.transforms.v2 import functional as v2  # isort: skip

from stoker.frontends.torchvision.tensors.lazy_base import materialize_nested
from tests.complete import COMPLETE
from tests.takeover.lazily import lazily

SIZE = (72, 66)  # (width, height): more pixels than an image that is left to Pillow
BAD: list[Any] = [
    None, "a", b"a", True, -1, 0, 2, 1.5, -0.5, math.nan, math.inf, 10**12, [], (), [1], (1, 2), [1, 2, 3],
    (3, 2, 1, 4), [1.5, 2], ["a", "b"], {}, object(), torch.tensor(2), torch.tensor([1, 2]), torch.tensor(0.5),
    np.float32(0.5), np.int64(3), np.array([3, 2]), Decimal(1), 1j, InterpolationMode.BICUBIC,
    Image.Resampling.BILINEAR, torch.float32,
]  # fmt: skip


class Function(NamedTuple):
    """Function of an image, with valid arguments."""

    call: Callable[..., Any]
    arguments: dict[str, Any]


def _of_both(module: Any) -> dict[str, Function]:
    """Return torchvision's functions that exist in both generations."""
    right: dict[str, dict[str, Any]] = {
        "resize": {"size": [20, 30], "interpolation": InterpolationMode.BILINEAR, "max_size": None, "antialias": True},
        "pad": {"padding": [1, 2], "fill": 3, "padding_mode": "constant"},
        "crop": {"top": 2, "left": 3, "height": 20, "width": 30},
        "center_crop": {"output_size": [20, 30]},
        "resized_crop": {"top": 2, "left": 3, "height": 20, "width": 30, "size": [12, 14]},
        "hflip": {},
        "vflip": {},
        "five_crop": {"size": [20, 30]},
        "rotate": {
            "angle": 30.0,
            "interpolation": InterpolationMode.NEAREST,
            "expand": False,
            "center": None,
            "fill": None,
        },
        "affine": {"angle": 30.0, "translate": [2, 3], "scale": 1.2, "shear": [3.0, 4.0], "fill": None, "center": None},
        "perspective": {
            "startpoints": [[0, 0], [71, 0], [71, 65], [0, 65]],
            "endpoints": [[2, 3], [60, 0], [71, 60], [0, 65]],
            "fill": None,
        },
        "adjust_brightness": {"brightness_factor": 1.2},
        "adjust_contrast": {"contrast_factor": 1.2},
        "adjust_saturation": {"saturation_factor": 1.2},
        "adjust_hue": {"hue_factor": 0.2},
        "adjust_gamma": {"gamma": 1.2, "gain": 1.0},
        "adjust_sharpness": {"sharpness_factor": 1.2},
        "posterize": {"bits": 3},
        "solarize": {"threshold": 0.3},
        "autocontrast": {},
        "equalize": {},
        "invert": {},
        "gaussian_blur": {"kernel_size": [3, 5], "sigma": [0.7, 1.1]},
        "rgb_to_grayscale": {"num_output_channels": 1},
        "to_grayscale": {"num_output_channels": 1},
        "normalize": {"mean": [0.1, 0.2, 0.3], "std": [0.2, 0.3, 0.4], "inplace": False},
        "erase": {"i": 2, "j": 3, "h": 10, "w": 12, "v": torch.tensor([[[1.0]]]), "inplace": False},
        "to_tensor": {},
        "pil_to_tensor": {},
        "to_pil_image": {"mode": None},
        "convert_image_dtype": {"dtype": torch.float32},
        "to_dtype": {"dtype": torch.float32, "scale": True},
        "to_image": {},
        "elastic": {"displacement": torch.zeros(1, SIZE[1], SIZE[0], 2)},
        "permute_channels": {"permutation": [2, 0, 1]},
    }
    return {
        name: Function(_named(module, name), arguments) for name, arguments in right.items() if hasattr(module, name)
    }


def _named(owner: Any, name: str) -> Callable[..., Any]:
    """Return a function that is looked up when it is called."""
    return lambda image, **arguments: getattr(owner, name)(image, **arguments)


PILLOW = {
    "resize": Function(
        Image.Image.resize, {"size": (20, 30), "resample": 2, "box": (1, 2, 30, 40), "reducing_gap": None}
    ),
    "crop": Function(Image.Image.crop, {"box": (1, 2, 30, 40)}),
    "convert": Function(Image.Image.convert, {"mode": "L", "matrix": None}),
    "rotate": Function(
        Image.Image.rotate,
        {"angle": 30, "resample": 0, "expand": 0, "center": None, "translate": None, "fillcolor": None},
    ),
    "transform": Function(
        Image.Image.transform,
        {"size": (20, 30), "method": 0, "data": (1, 0.1, 0, 0, 1, 0), "resample": 0, "fillcolor": None},
    ),
    "transpose": Function(Image.Image.transpose, {"method": 0}),
    "point": Function(Image.Image.point, {"lut": list(range(256)) * 3, "mode": None}),
    "filter": Function(Image.Image.filter, {"filter": ImageFilter.GaussianBlur(1)}),
    "copy": Function(Image.Image.copy, {}),
    "getpixel": Function(Image.Image.getpixel, {"xy": (1, 2)}),
    "thumbnail": Function(lambda x, size: x.copy().thumbnail(size), {"size": (20, 30)}),
    "blend": Function(
        lambda x, other, alpha: Image.blend(x, other(x), alpha), {"other": ImageOps.mirror, "alpha": 0.3}
    ),
    "fit": Function(_named(ImageOps, "fit"), {"size": (20, 30), "method": 3, "bleed": 0.0, "centering": (0.5, 0.5)}),
    "expand": Function(_named(ImageOps, "expand"), {"border": 2, "fill": 0}),
    "autocontrast": Function(_named(ImageOps, "autocontrast"), {"cutoff": 0, "ignore": None}),
    "equalize": Function(_named(ImageOps, "equalize"), {"mask": None}),
    "posterize": Function(_named(ImageOps, "posterize"), {"bits": 3}),
    "solarize": Function(_named(ImageOps, "solarize"), {"threshold": 100}),
    **{
        name: Function(lambda x, factor, kind=name: getattr(ImageEnhance, kind)(x).enhance(factor), {"factor": 1.2})
        for name in ("Brightness", "Contrast", "Color", "Sharpness")
    },
}
TORCH = {
    **{name: Function(getattr(torch, name), {"other": 0.5}) for name in ("add", "sub", "mul", "div")},
    **{f"{name}_": Function(getattr(torch.Tensor, f"{name}_"), {"other": 2}) for name in ("add", "sub", "mul", "div")},
    "clamp": Function(torch.clamp, {"min": 0, "max": 1}),
    "to": Function(torch.Tensor.to, {"dtype": torch.float16}),
    "flip": Function(torch.flip, {"dims": [-1]}),
    "rot90": Function(torch.rot90, {"k": 1, "dims": [-2, -1]}),
    "reshape": Function(torch.reshape, {"shape": (1, 3, SIZE[1], SIZE[0])}),
    "unsqueeze": Function(torch.unsqueeze, {"dim": 0}),
    "squeeze": Function(torch.squeeze, {"dim": 0}),
    "stack": Function(lambda x, other, dim: torch.stack([x, other], dim), {"other": torch.zeros(3, 66, 72), "dim": 0}),
    "cat": Function(lambda x, dim: torch.cat([x, x], dim), {"dim": 0}),
    "pad": Function(torch.nn.functional.pad, {"pad": [1, 2, 3, 4], "mode": "constant", "value": 0}),
    "interpolate": Function(
        lambda x, **arguments: torch.nn.functional.interpolate(x[None], **arguments),
        {"size": [20, 30], "mode": "bilinear", "align_corners": False, "antialias": True},
    ),
    "item": Function(lambda x, index: x[index], {"index": (slice(0, 2), slice(3, 9))}),
    "row": Function(lambda x, first, end: x[:, first:end], {"first": 2, "end": 5}),
    "set": Function(lambda x, index, value: x.clone().__setitem__(index, value), {"index": (0, 1), "value": 2}),
    "view": Function(torch.Tensor.view, {"size": (1, 3, SIZE[1], SIZE[0])}),
}  # fmt: skip
KINDS: dict[str, Callable[[Any], Any]] = {
    "Pillow": lambda image: image.convert("RGB"),
    "bytes": lambda image: v1.pil_to_tensor(image),
    "floats": lambda image: v1.to_tensor(image),
    "image": lambda image: v2.to_image(image),
}
LIBRARIES = {"first": _of_both(v1), "second": _of_both(v2), "Pillow": PILLOW, "torch": TORCH}


def _wrong(function: Function) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield argument lists of which one argument is invalid or superfluous.

    `make test` gives half of the invalid values to each argument, and the other half to the next.
    """
    yield "right", function.arguments
    yield "unknown", {**function.arguments, "unknown": 1}
    for number, name in enumerate(function.arguments):
        yield f"no {name}", {n: x for n, x in function.arguments.items() if n != name}
        for at, bad in enumerate(BAD):
            if (at + number) % 2 and not COMPLETE:
                continue
            yield f"{name}={bad!r} ({at})", {**function.arguments, name: bad}


def _outcome(function: Function, image: Any, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Return an exception's type and text, or the values."""
    try:
        return "gave", _plain(function.call(image, **arguments))
    except Exception as error:  # any error of these libraries is an outcome
        return "raised", type(error), str(error)


def _plain(x: Any) -> Any:
    x = materialize_nested(x)
    if isinstance(x, Image.Image):
        return "image", x.mode, x.size, x.tobytes()
    if isinstance(x, torch.Tensor):
        return "tensor", type(x), x.dtype, tuple(x.shape), x.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return [_plain(y) for y in x] if isinstance(x, (list, tuple)) else repr(x)


def _outcomes(file: Path, library: str, kind: str) -> dict[str, tuple[Any, ...]]:
    found = {}
    for name, function in LIBRARIES[library].items():
        for case, arguments in _wrong(function):
            with Image.open(file) as image:
                found[f"{name}, {case}"] = _outcome(function, KINDS[kind](image), arguments)
    return found


def _differences(file: Path, library: str, kind: str) -> list[str]:
    wanted = _outcomes(file, library, kind)
    with lazily():
        ours = _outcomes(file, library, kind)
    return [
        f"{case}: expected {str(wanted[case])[:200]}, got {str(got)[:200]}"
        for case, got in ours.items()
        if _differ(wanted[case], got)
    ]


def _differ(want: tuple[Any, ...], got: tuple[Any, ...]) -> bool:
    """Return whether outcomes differ; texts with addresses, or about refused memory, are not compared."""
    texts = want[0] == "raised" and not any(part in want[2] for part in ("0x", "overflowed", "allocate"))
    return want[:2] != got[:2] or (texts and want[2] != got[2])


CASES = [
    *[(library, kind) for library in ("first", "second") for kind in KINDS if (library, kind) != ("first", "image")],
    ("Pillow", "Pillow"), ("torch", "bytes"), ("torch", "floats"),
]  # fmt: skip


@pytest.mark.parametrize(("library", "kind"), CASES, ids=lambda x: x)
def test_bad_arguments(library: str, kind: str, tmp_path: Path) -> None:
    Image.fromarray(photograph(5, SIZE[1], SIZE[0])).save(tmp_path / "photo.jpg", quality=90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not _differences(tmp_path / "photo.jpg", library, kind)
