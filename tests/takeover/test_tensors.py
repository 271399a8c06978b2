# SPDX-License-Identifier: Apache-2.0
"""Lazy tensors have all properties of torch's."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms as transforms
from PIL import Image

from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from tests.takeover import trials
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

MEAN = torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
NORMALIZE = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def erased(x: Any, rows: slice, value: Any) -> Any:
    x[:, rows, 2:7] = value
    return x


RECORDED: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "normalize": NORMALIZE,
    "normalize in place": transforms.Normalize([0.5] * 3, [0.1, 0.2, 0.3], inplace=True),
    "normalize by tensors": lambda x: transforms.functional.normalize(x, torch.full((3,), 0.4), torch.full((3,), 0.2)),
    "arithmetic": lambda x: (x * 2 - 1 + MEAN) / 0.3,
    "reversed": lambda x: 1 - x,
    "in place": lambda x: x.mul_(2).sub_(MEAN).div_(MEAN),
    "operators in place": lambda x: x.__imul__(3),
    "half": lambda x: x.half(),
    "bfloat16": lambda x: x.to(torch.bfloat16),
    "normalize in bfloat16": lambda x: NORMALIZE(x.to(torch.bfloat16)),
    "double": lambda x: x.to(dtype=torch.float64) * 3,
    "convert": lambda x: transforms.ConvertImageDtype(torch.float16)(x),
    "clamp": lambda x: x.clamp(0.2, 0.8),
    "clone": lambda x: x.clone().neg(),
    "contiguous": lambda x: x.contiguous(),
    "stack": lambda x: torch.stack([x, x * 2]),
    "erase": lambda x: transforms.functional.erase(x, 2, 3, 5, 6, torch.rand(3, 5, 6, generator=seeded())),
    "erase twice": lambda x: erased(erased(x, slice(0, 9), 0.5), slice(4, 30), torch.ones(3, 1, 1)),
    "window": lambda x: x[..., 2:9, 3:30],
    "window of a window": lambda x: x[:, 2:, 3:][..., 1:5, :-3],
    "rows": lambda x: x[:, 3:7],
    "mirrored": lambda x: x.flip(-1).flip((1, 2)),
    "turned": lambda x: torch.rot90(x, 1, (-2, -1)).rot90(2, [1, 2]).rot90(-1, (1, 2)),
    "batch of one": lambda x: x.unsqueeze(0).squeeze(0),
    "reshaped": lambda x: torch.stack([x, x]).reshape(1, 2, *x.shape).view(-1, *x.shape),
    "edges": lambda x: torch.nn.functional.pad(x.unsqueeze(0), (1, 2, 3, 4), mode="reflect"),
    "edges repeated": lambda x: torch.nn.functional.pad(x.unsqueeze(0), (40, 2, 3, 44), mode="replicate"),
    "picked": lambda x: torch.nn.functional.interpolate(x.unsqueeze(0), size=(9, 70)),
    "picked exactly": lambda x: torch.nn.functional.interpolate(x.unsqueeze(0), size=[42, 9], mode="nearest-exact"),
    "window, then arithmetic": lambda x: (x[:, 3:17, 4:30] * 2).flip(2)[:, 1:].sub(MEAN),
    "stack of stacks": lambda x: torch.stack([torch.stack([x, x]), torch.stack([x, x])]).sub(MEAN),
}
OTHERWISE: dict[str, Callable[[Any], Any]] = {
    "index": lambda x: x[1:],
    "view": lambda x: x.view(-1),
    "sum": lambda x: x.sum((1, 2)),
    "matmul": lambda x: x @ torch.ones(x.shape[2], 3),
    "other image": lambda x: x + torch.rand(x.shape, generator=torch.Generator().manual_seed(1)),
    "rows differ": lambda x: x * torch.arange(x.shape[1]).view(-1, 1),
    "erase and go on": lambda x: transforms.functional.erase(x, 2, 3, 5, 6, torch.zeros(3, 1, 1)) * 2,
    "set item": lambda x: (x.__setitem__((0, 0), 7.0), x * 2)[1],
    "set by a mask": lambda x: (x.__setitem__(torch.arange(3) > 1, 7.0), x)[1],
    "reversed operand": lambda x: torch.ones(3, 1, 1) - x,
    "cat": lambda x: torch.cat([x, x]),
    "permute": lambda x: x.permute(1, 2, 0).contiguous(),
    "new axis": lambda x: x[None],
    "steps": lambda x: x[:, ::2],
    "nothing": lambda x: x[:, 5:5],
    "channels": lambda x: x[:2],
    "mirrored channels": lambda x: x.flip(0),
    "cut": lambda x: torch.nn.functional.pad(x, (-1, 2, -3, 4)),
    "conversion": lambda x: torch.from_numpy(x.numpy().copy()),
    "asarray": lambda x: torch.from_numpy(np.asarray(x)),
    "dlpack": lambda x: torch.from_dlpack(x).clone(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deep copy": copy.deepcopy,
    "requires grad": lambda x: x.requires_grad_().mul(2).detach(),
    "new": lambda x: x.new_ones(3),
    "to list": lambda x: torch.tensor(x.tolist()),
    "out": lambda x: torch.mul(x, 2, out=torch.empty(x.shape)),
    "stack elsewhere": lambda x: torch.stack([x, x], 1),
}


def image_of(path: Path) -> Image.Image:
    return Image.open(path).convert("RGB").resize((33, 21))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_calls_equal_torch(photo: Path, name: str) -> None:
    expected = RECORDED[name](transforms.ToTensor()(image_of(photo)))
    with lazily():
        x = RECORDED[name](transforms.ToTensor()(image_of(photo)))
        assert issubclass(type(x), LazyTensor) and x._materialized is None, "it is still lazy"
        assert (x.shape, x.dtype, x.device, x.ndim) == (expected.shape, expected.dtype, expected.device, expected.ndim)
        assert torch.equal(x, expected)


@pytest.mark.parametrize("name", OTHERWISE)
def test_other_calls_equal_torch(photo: Path, name: str) -> None:
    expected = OTHERWISE[name](transforms.ToTensor()(image_of(photo)))
    with lazily():
        x = OTHERWISE[name](transforms.ToTensor()(image_of(photo)))
        assert type(x) is type(expected) or x._materialized is not None
        exactly(x.detach().numpy(), expected.detach().numpy())


def test_raw_bytes(photo: Path) -> None:
    expected = transforms.PILToTensor()(image_of(photo))
    with lazily():
        x = transforms.PILToTensor()(image_of(photo))
        assert issubclass(type(x), LazyTensor) and x.dtype == torch.uint8
        exactly(x.numpy(), expected.numpy())
        with pytest.raises(RuntimeError, match="can't be cast"):
            transforms.PILToTensor()(image_of(photo)).div_(3.0)


def test_a_change_is_visible_through_every_name(photo: Path, recording: None) -> None:
    x = transforms.ToTensor()(image_of(photo))
    y = x
    x *= 2
    assert torch.equal(x, y)
    z = x.clone()
    z.add_(1)
    assert torch.equal(z, y + 1)
    y[0] = 0  # materializes it
    x.add_(1)
    assert float(y[0].max()) == 1


def two_windows(x: Any) -> list[Any]:
    left, right = x[..., :10], x[..., 5:]
    left[..., 0:3, 6:8] = 0.25
    right.mul_(2)
    batch = left.unsqueeze(0)
    batch.add_(1)
    return [x, left, right, batch]


def a_window_of_a_released_tensor(x: Any) -> list[Any]:
    window = x.clone()[..., :10]
    window.mul_(2)
    other = window.contiguous()
    other.add_(1)
    return [window, other]


def a_materialized_window(x: Any) -> list[Any]:
    window = x[:, 2:9, 3:12]
    window.sum()
    x.zero_()
    return [window, x]


def a_change_below_a_window(x: Any) -> list[Any]:
    window = x[:, 2:9, 3:12]
    x.mul_(3)
    x[:, 4:6, 4:6] = 7.0
    return [window, window.contiguous(), x, x.view(-1)]


@pytest.mark.parametrize(
    "change", [two_windows, a_window_of_a_released_tensor, a_materialized_window, a_change_below_a_window]
)
def test_windows_share_memory_as_torchs_do(photo: Path, change: Callable[[Any], list[Any]]) -> None:
    expected = change(transforms.ToTensor()(image_of(photo)))
    with lazily():
        for ours, theirs in zip(change(transforms.ToTensor()(image_of(photo))), expected, strict=True):
            exactly(ours, theirs)


def test_torchvisions_images(photo: Path) -> None:
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    expected = v2.ToImage()(image_of(photo))
    with lazily():
        x = v2.ToImage()(image_of(photo))
        assert issubclass(type(x), LazyTensor) and isinstance(x, tv_tensors.Image)
        y = v2.ToDtype(torch.float32, scale=True)(x)
        assert isinstance(y, tv_tensors.Image) and issubclass(type(y), LazyTensor) and y._materialized is None
        with trials.watched() as known:
            small = v2.functional.resize(x, [5, 6])
        assert isinstance(small, tv_tensors.Image)
        assert (issubclass(type(small), LazyTensor) and small._materialized is None) or not all(known)
        assert type(v2.functional.rotate(x, 33.0, fill=300.0)) is tv_tensors.Image, "it is not recorded"
        assert isinstance(x + 1, torch.Tensor) and not isinstance(x + 1, tv_tensors.Image)
        assert isinstance(x.clone(), tv_tensors.Image)
        assert torch.equal(v2.functional.to_pure_tensor(x) if hasattr(v2.functional, "to_pure_tensor") else x, expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float16, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("name", ["ToImage", "PILToTensor"])
def test_memory_is_as_torch_has_it(photo: Path, name: str, dtype: torch.dtype) -> None:
    """Memory layout equals torch's, because the order of additions and the vectorization follow it."""
    from torchvision.transforms import v2

    def steps() -> list[torch.Tensor]:
        x = getattr(v2, name)()(Image.open(photo).convert("RGB").resize((131, 97)))
        x = v2.ToDtype(dtype, scale=True)(x)
        y = [v2.functional.normalize(x, [0.5] * 3, [0.25] * 3)] if dtype.is_floating_point else []
        return [
            *(v2.functional.adjust_contrast(z, 0.7) for z in (x, x.contiguous())),
            *(v2.functional.rgb_to_grayscale(z, 3) for z in (x, x.clone())), x, x.contiguous(), x.clone(), *y,
        ]  # fmt: skip

    expected = steps()
    with lazily():
        for k, (got, want) in enumerate(zip(steps(), expected, strict=True)):
            assert torch.equal(got, want)
            if k > 3:
                tensor = got.materialize() if issubclass(type(got), LazyTensor) else got
                assert tensor.stride() == want.stride()


def test_an_invalid_window_is_refused_with_torchs_error(photo: Path, recording: None) -> None:
    x = transforms.ToTensor()(image_of(photo))
    with pytest.raises(RuntimeError, match="expand"):
        x[:, 0:4, 0:5] = torch.zeros(3, 9, 9)


def test_the_default_type_is_followed(photo: Path) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        expected = transforms.ToTensor()(image_of(photo))
        with lazily():
            exactly(transforms.ToTensor()(image_of(photo)).numpy(), expected.numpy())
    finally:
        torch.set_default_dtype(torch.float32)


def test_functions_that_bypass_torch_function_find_values(photo: Path) -> None:
    expected = transforms.ToTensor()(image_of(photo)).sum()
    with lazily():
        x = transforms.ToTensor()(image_of(photo))
        with torch._C.DisableTorchFunctionSubclass():
            assert torch.equal(torch.ops.aten.sum.default(x), expected)
        out = io.BytesIO()
        torch.save(transforms.ToTensor()(image_of(photo)), out)
        out.seek(0)
        assert torch.equal(torch.load(out).sum(), expected)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_normalizing_by_another_number_of_channels(photo: Path, channels: int, count: int) -> None:
    """The pixels, or the error, equal those without Stoker."""

    def normalized_pixels() -> Any:
        image = Image.open(photo).convert("L" if channels == 1 else "RGB")
        try:
            tensor = transforms.Normalize([0.5] * count, [0.25] * count)(transforms.ToTensor()(image))
        except (RuntimeError, ValueError) as error:
            return type(error), str(error)
        return tensor.shape, tensor.clone().numpy().tobytes()

    expected = normalized_pixels()
    with lazily():
        assert normalized_pixels() == expected
