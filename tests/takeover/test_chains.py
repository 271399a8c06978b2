# SPDX-License-Identifier: Apache-2.0
"""Random chains of torchvision's transforms, of both generations, on files of many kinds.

Results equal those without Stoker in every bit, and so do errors and the random state afterwards.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms as v1
import torchvision.transforms.v2 as v2
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torchvision.transforms import InterpolationMode

from tests.takeover.lazily import lazily

CHAINS = 120
_MODES = list(InterpolationMode)
_BORDERS = ["constant", "edge", "reflect", "symmetric"]
_FILLS = [0, 9, (1, 2, 3)]
_DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def _moved(x: Any) -> Any:
    return x.crop((-3, 5, x.size[0] - 2, x.size[1] + 4))


def _painted(x: Any) -> Any:
    x.paste(0, (0, 0, 4, 4))
    return x


def _small(x: Any) -> Any:
    x.thumbnail((50, 50))
    return x


_ON_IMAGES: list[Callable[[Any], Any]] = [
    _moved,
    _painted,
    _small,
    lambda x: x.rotate(33, expand=True),
    lambda x: x.transpose(Image.Transpose.ROTATE_90),
    lambda x: x.resize((33, 41), box=(1.5, 2.5, x.size[0] - 1, x.size[1] - 0.5)),
    lambda x: ImageOps.fit(x, (30, 40)),
    lambda x: x.filter(ImageFilter.GaussianBlur(2)).filter(ImageFilter.SHARPEN),
    lambda x: x.convert("L").convert("RGB"),
    lambda x: ImageEnhance.Contrast(x.convert("RGB")).enhance(0.3),
    lambda x: Image.fromarray(np.array(x)[:, ::-1]),
    lambda x: Image.blend(x, x.transpose(Image.Transpose.FLIP_LEFT_RIGHT), 0.3),
]
_ON_TENSORS: list[Callable[[Any], Any]] = [
    lambda x: x.flip(-1),
    lambda x: x[..., 2:-1, 1:],
    lambda x: x.float().div(255).sub(0.5),
    lambda x: x.permute(1, 2, 0).permute(2, 0, 1),
    lambda x: x.clamp(5, 100),
    lambda x: x.mean(0, keepdim=True) if x.is_floating_point() else x,
    lambda x: x.half(),
    lambda x: x + torch.rand(()),
    lambda x: x.transpose(-1, -2).contiguous(),
]


def _image_step(draw: random.Random) -> Any:
    kind = draw.choice([v1, v2])
    size: Any = draw.choice([draw.randint(8, 110), (draw.randint(8, 110), draw.randint(8, 110))])
    mode, smooth, fill = draw.choice(_MODES), draw.choice(_MODES[:1] + _MODES[2:4]), draw.choice(_FILLS)
    steps: list[Callable[[], Any]] = [
        lambda: kind.Resize(size, mode),
        lambda: kind.RandomResizedCrop(size, scale=(0.1, 1), interpolation=mode),
        lambda: kind.RandomCrop(40, padding=4, pad_if_needed=True, fill=fill, padding_mode=draw.choice(_BORDERS)),
        lambda: kind.CenterCrop(size),
        lambda: kind.Pad((1, 2, 3, 4), fill=fill, padding_mode=draw.choice(_BORDERS)),
        lambda: kind.RandomHorizontalFlip(),
        lambda: kind.RandomRotation(60, interpolation=smooth, expand=draw.random() < 0.4, fill=fill),
        lambda: kind.RandomAffine(30, (0.2, 0.1), (0.7, 1.3), 10, interpolation=smooth, fill=fill),
        lambda: kind.RandomPerspective(0.5, p=0.8, interpolation=smooth, fill=fill),
        lambda: kind.ColorJitter(0.4, 0.4, 0.4, draw.choice([0, 0.2])),
        lambda: kind.RandomGrayscale(0.5),
        lambda: kind.GaussianBlur(draw.choice([3, (5, 9)])),
        lambda: kind.RandomPosterize(draw.randint(1, 8)),
        lambda: kind.RandomSolarize(100),
        lambda: kind.RandomAdjustSharpness(draw.choice([0, 2])),
        lambda: kind.RandomAutocontrast(),
        lambda: kind.RandomEqualize(),
        lambda: kind.RandAugment(),
        lambda: kind.TrivialAugmentWide(),
        lambda: kind.AugMix(),
        lambda: kind.RandomOrder([kind.RandomInvert(), kind.RandomVerticalFlip()]),
        lambda: draw.choice(_ON_IMAGES),
    ]
    return draw.choice(steps)()


def _tensor_step(draw: random.Random) -> Any:
    kind = draw.choice([v1, v2])
    mode = draw.choice([InterpolationMode.NEAREST, InterpolationMode.BILINEAR])
    size = draw.randint(8, 90)
    steps: list[Callable[[], Any]] = [
        lambda: kind.Resize(size, mode, antialias=draw.random() < 0.7),
        lambda: kind.RandomResizedCrop(size, interpolation=mode, antialias=True),
        lambda: kind.RandomCrop(size, padding=4, pad_if_needed=True, padding_mode=draw.choice(_BORDERS[:3])),
        lambda: kind.CenterCrop(size),
        lambda: kind.RandomHorizontalFlip(),
        lambda: kind.RandomRotation(60, interpolation=mode, fill=draw.choice([0, 9])),
        lambda: kind.ColorJitter(0.4, 0.4, 0.4, draw.choice([0, 0.2])),
        lambda: kind.RandomGrayscale(0.5),
        lambda: kind.RandomErasing(p=0.8, value=draw.choice([0, "random"])),
        lambda: kind.RandomInvert(),
        lambda: kind.Normalize([0.5] * 3, [0.2] * 3),
        lambda: draw.choice(_ON_TENSORS),
    ]
    return draw.choice(steps)()


def _entry(draw: random.Random) -> list[Any]:
    dtype = draw.choice(_DTYPES)
    return draw.choice(
        [
            [v1.ToTensor()],
            [v1.PILToTensor()],
            [v1.PILToTensor(), v1.ConvertImageDtype(dtype)],
            [v2.ToImage()],
            [v2.ToImage(), v2.ToDtype(dtype, scale=draw.random() < 0.7)],
        ]
    )


def _outcome(path: Path, mode: str | None, chain: list[Any], seed: int) -> Any:
    """Return the result as bytes, twice in a row."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    results: list[Any] = []
    try:
        for _ in range(2):
            x: Any = Image.open(path)
            x = x.convert(mode) if mode else x
            for step in chain:
                x = step(x)
            results.append(x)
    except Exception as error:  # any error of torchvision is an outcome
        return type(error), str(error)
    return [_content(x) for x in results], torch.rand(1).item(), random.random()


def _content(x: Any) -> Any:
    if isinstance(x, Image.Image):
        return x.mode, x.size, x.tobytes()
    plain = torch.clone(x).as_subclass(torch.Tensor).contiguous()
    return plain.dtype, tuple(plain.shape), plain.view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_random_chains(files: Path, seed: int) -> None:
    draw, paths = random.Random(seed), sorted(p for p in files.rglob("*") if p.is_file())
    refused = 0
    for number in range(CHAINS):
        path, mode = draw.choice(paths), draw.choice(["RGB", "RGB", "L", None])
        chain = [_image_step(draw) for _ in range(draw.randint(0, 3))]
        if draw.random() < 0.85:
            chain += [*_entry(draw), *(_tensor_step(draw) for _ in range(draw.randint(0, 3)))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torchvision's warnings about drawn values
            expected = _outcome(path, mode, chain, number)
            with lazily():
                got = _outcome(path, mode, chain, number)
        refused += isinstance(expected[0], type)
        assert got == expected, f"chain {number} of seed {seed}: {path.name} as {mode}, {chain}"
    assert refused < CHAINS / 3, "most chains are possible ones"
