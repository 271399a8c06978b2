# SPDX-License-Identifier: Apache-2.0
"""Large batches, whose blocks compute parts of many batches of groups: the same bits as in batches of one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker import fn, pipeline_def, types

torch = pytest.importorskip("torch")

SHAPES = ((24, 1000, 1500, 3), (64, 375, 500, 3), (40, 700, 601, 3))
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: fn.copy(x),
    "cast": lambda x: fn.cast(x, dtype=types.FLOAT),
    "arithmetic": lambda x: x * 1.5 + 10.0,
    "brightness": lambda x: fn.brightness_contrast(x, brightness=1.1, contrast=0.9),
    "twist": lambda x: fn.color_twist(x, brightness=1.1, contrast=0.9, saturation=0.8, hue=20.0),
    "gray": lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY),
    "flip-h": lambda x: fn.flip(x),
    "flip-v": lambda x: fn.flip(x, horizontal=0, vertical=1),
    "transpose": lambda x: fn.transpose(x, perm=[2, 0, 1]),
    "normalize": lambda x: fn.crop_mirror_normalize(x, mean=MEAN, std=STD),
    "slice": lambda x: fn.slice(x, start=[3, 5], shape=[300, 400], axes=[0, 1]),
    "lookup": lambda x: fn.lookup_table(x, keys=list(range(256)), values=[255.0 - k for k in range(256)]),
    "erase": lambda x: fn.erase(x, anchor=[40.0, 60.0], shape=[100.0, 120.0], axis_names="HW"),
}
# Results that torch computes without rounding.
EXACT: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x,
    "cast": lambda x: x.float(),
    "flip-h": lambda x: x.flip(2),
    "flip-v": lambda x: x.flip(1),
    "transpose": lambda x: x.permute(0, 3, 1, 2),
    "slice": lambda x: x[:, 3:303, 5:405],
}


def outputs(operator: Callable[[Any], Any], images: Any, rows: int) -> list[Any]:
    """Return the rows of an operator's output, computed in batches of ``rows``."""
    batches = iter(images.split(rows))

    @pipeline_def(batch_size=rows, num_threads=4, device_id=0, prefetch_queue_depth=1)
    def one() -> Any:
        return operator(fn.external_source(source=batches, device="gpu", layout="HWC"))

    pipeline = one()
    pipeline.build()
    found = []
    for _ in range(-(-len(images) // rows)):
        batch = pipeline.run()[0]
        found += [torch.from_dlpack(batch[i]).clone() for i in range(len(batch))]
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_parts_of_large_batches(name: str, shape: tuple[int, ...]) -> None:
    images = torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")
    large = outputs(OPERATORS[name], images, len(images))
    few = torch.cat([images[:1], images[-1:]])
    small = outputs(OPERATORS[name], few, 1)
    assert torch.equal(large[0], small[0]) and torch.equal(large[-1], small[1])
    if name in EXACT:
        for got, want in zip(large, EXACT[name](images), strict=True):
            assert torch.equal(got, want)
