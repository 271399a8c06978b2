# SPDX-License-Identifier: Apache-2.0
"""Fill values of any kind, sensible or not, give the same pixels or the same error as without Stoker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms.functional as v1
import torchvision.transforms.v2.functional as v2
from PIL import Image
from torchvision.transforms import InterpolationMode

from tests.takeover.lazily import lazily

FILLS: list[Any] = [0, 7, 255, 300, -5, 255.5, 1.7, (300, -4, 9), [1, 2, 3], (1.5, 2.5, 3.5), (5,), [5], None]
CORNERS = [[0, 0], [119, 0], [119, 89], [0, 89]]
MOVED = [[5, 3], [110, 8], [100, 80], [9, 70]]
STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "pad": lambda library, x, fill: library.pad(x, [3], fill=fill),
    **{
        f"rotate, {mode.name}": lambda library, x, fill, mode=mode: library.rotate(x, 20, mode, fill=fill)
        for mode in (InterpolationMode.NEAREST, InterpolationMode.BILINEAR)
    },
    "perspective": lambda library, x, fill: library.perspective(x, CORNERS, MOVED, fill=fill),
}


def _image(photo: Path, mode: str, tensor: bool) -> Any:
    image = Image.open(photo).convert(mode)
    return v2.to_image(image) if tensor else image


def _done(step: Callable[[], Any]) -> Any:
    try:
        result = step()
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error), str(error)
    array = np.asarray(result.clone() if isinstance(result, torch.Tensor) else result)
    return array.shape, array.dtype, array.tobytes()


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("library", [v1, v2], ids=["v1", "v2"])
def test_fills(photo: Path, library: Any, step: str, mode: str, tensor: bool) -> None:
    for fill in FILLS:
        expected = _done(lambda fill=fill: STEPS[step](library, _image(photo, mode, tensor), fill))
        with lazily():
            ours = _done(lambda fill=fill: STEPS[step](library, _image(photo, mode, tensor), fill))
        assert ours == expected, fill
