# SPDX-License-Identifier: Apache-2.0
"""Tables of floats that native code computes instead of looking them up: the bits are those of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image
from torchvision.transforms import functional, v2

from stoker.frontends.torchvision.ir.tables import Table
from stoker.frontends.torchvision.tensors.tensor import image_tensor, materialize, stack_lazy
from stoker.native import _native
from tests.takeover.lazily import lazily

VALUES = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 256).expand(3, 1, 256)
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def drawn(seed: int) -> torch.Tensor:
    """Return ToTensor and Normalize with constants of six digits, as scripts compute them from their data."""
    rng = np.random.default_rng(seed)
    mean, std = rng.uniform(-0.2, 1.2, 3).round(6).tolist(), rng.uniform(0.01, 3, 3).round(6).tolist()
    return functional.normalize(VALUES.div(255), mean, std)


def fused(scale: float) -> torch.Tensor:
    """Return Normalize of bytes with the scale in its constants, as in transformers."""
    mean, std = torch.tensor(MEAN) * (1 / scale), torch.tensor(STD) * (1 / scale)
    return functional.normalize(VALUES.float(), mean.tolist(), std.tolist())


def changed(value: float) -> torch.Tensor:
    table = VALUES.div(255).clone()
    table[1, 0, 77] = value
    return table


CHAINS: dict[str, torch.Tensor] = {
    "ToTensor": VALUES.div(255),
    "Normalize": functional.normalize(VALUES.div(255), MEAN, STD),
    "-1 to 1": functional.normalize(VALUES.div(255), [0.5] * 3, [0.5] * 3),
    "ToDtype": v2.functional.to_dtype(VALUES, torch.float32, scale=True),
    "ToDtype and Normalize": v2.functional.normalize(
        v2.functional.to_dtype(VALUES, torch.float32, scale=True), MEAN, STD
    ),
    "bytes as floats": VALUES.float(),
    "fused": fused(1 / 255),
    "negated": VALUES.div(-255) - 0.0,
    "other constants": drawn(1),
}
OTHERS: dict[str, torch.Tensor] = {
    "one other value": changed(0.3),
    "one NaN": changed(torch.nan),
    "infinite": changed(torch.inf),
    "constant": torch.full((3, 1, 256), 0.5),
    "square root": VALUES.float().sqrt(),
    "bits": (VALUES.int() * 16_777_259).view(torch.float32),
}


def store(pixels: Any, values: torch.Tensor, mirrored: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pixels through a table: by native code, and by indexing."""
    with lazily():
        image = functional.to_tensor(Image.fromarray(pixels))
        node = (functional.hflip(image) if mirrored else image)._rows[0].node
    ours = materialize(stack_lazy([image_tensor(node, Table(values))] * 3))
    indices = torch.from_numpy(pixels[:, ::-1].copy() if mirrored else pixels).long()
    return ours, torch.stack([values[c, 0][indices[..., c]] for c in range(3)]).expand_as(ours)


@pytest.mark.parametrize("values", [*CHAINS.values(), *OTHERS.values()], ids=[*CHAINS, *OTHERS])
def test_every_value(isa: str, values: torch.Tensor) -> None:
    rng = np.random.default_rng(5)
    sizes = ((96, 48), (4200, 1), (700, 7), (512, 9), (2, 4100))  # smaller images are not recorded
    for height, width in sizes:
        pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
        if width == 48:
            pixels[:16] = np.arange(768).reshape(16, 48, 1) % 256
        for mirrored in (False, True):
            ours, expected = store(pixels, values, mirrored)
            assert torch.equal(ours.view(torch.int32), expected.contiguous().view(torch.int32)), (width, mirrored)


@pytest.mark.parametrize("seed", range(2, 22))
def test_other_constants(seed: int) -> None:
    ours, expected = store(photograph(seed, 64, 80), drawn(seed), mirrored=False)
    assert torch.equal(ours, expected)


@pytest.mark.parametrize("name", [*CHAINS, *OTHERS])
def test_usual_tables_are_computed(isa: str, name: str) -> None:
    values = CHAINS.get(name, OTHERS.get(name))
    assert values is not None
    found = [_native.recipe.has_chain(channel.numpy().reshape(256)) for channel in values]
    if isa != "avx2":
        assert not any(found), "other processors have no chains, or faster lookups"
    elif name in CHAINS:
        assert all(found)
    else:
        assert not found[1]
