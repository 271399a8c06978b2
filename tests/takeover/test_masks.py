# SPDX-License-Identifier: Apache-2.0
"""Masks that are computed immediately, as for a GPU: torch's nearest places, in native code."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2

from stoker.frontends.torchvision.hooks import masks
from stoker.frontends.torchvision.loader import loader
from stoker.native import _native
from tests.complete import sample
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

SIDES = [
    (1, 1),
    (7, 5),
    (90, 120),
    (33, 64),
    (64, 65),
    (129, 1),
    (180, 240),
    (91, 121),
    (45, 60),
    (300, 1000),
    (12, 900),
]


def _mask(*shape: int, dtype: Any = torch.uint8) -> torch.Tensor:
    values = torch.from_numpy(np.random.default_rng(5).integers(0, 2 if dtype is torch.bool else 256, shape))
    return values.to(dtype)


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let masks be computed immediately."""
    monkeypatch.setattr(loader, "_sends_groups", True)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Native resizes."""
    found: list[Any] = []
    native = _native.recipe.pick_nearest
    monkeypatch.setattr(masks._native.recipe, "pick_nearest", lambda *args: found.append(native(*args)))
    return found


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool])
@pytest.mark.parametrize("shape", [(90, 120), (1, 90, 120), (3, 90, 120), (5, 31, 700), (2, 1, 130), (2, 40, 1)])
def test_every_size_is_torchs(shape: tuple[int, ...], dtype: Any, isa: str, calls: list[Any]) -> None:
    mask = tv_tensors.Mask(_mask(*shape, dtype=dtype))
    for size in SIDES:
        expected = v2.functional.resize(mask, list(size))
        with lazily():
            ours = v2.functional.resize(mask, list(size))
        assert type(ours) is tv_tensors.Mask and ours.stride() == expected.stride()
        exactly(expected, ours)
    assert len(calls) >= len(SIDES) - 1


@pytest.mark.parametrize("exact", [False, True])
def test_both_modes(exact: bool, isa: str) -> None:
    mask = _mask(2, 77, 333)
    mode = "nearest-exact" if exact else "nearest"
    for size in SIDES:
        result = np.zeros((2, *size), np.uint8)
        _native.recipe.pick_nearest(mask.numpy(), result, exact)
        exactly(torch.nn.functional.interpolate(mask[None], size=size, mode=mode)[0], result)


def test_other_masks_are_left_to_torch(calls: list[Any]) -> None:
    tall = _mask(2, 50, 40)
    for mask in (tall.long(), tall.float(), tall.mT, tall[..., 3:9], tall[None], tall[:0]):
        mask = tv_tensors.Mask(mask)
        expected = v2.functional.resize(mask, [20, 30])
        with lazily():
            ours = v2.functional.resize(mask, [20, 30])
        assert ours.stride() == expected.stride()
        exactly(expected, ours)
    assert not calls


def test_sizes_and_errors_are_torchvisions() -> None:
    mask = tv_tensors.Mask(_mask(2, 50, 40))
    for size, most in ((20, None), ([20], 23), ([20], None), (None, 90)):
        expected = v2.functional.resize(mask, size, max_size=most)
        with lazily():
            exactly(expected, v2.functional.resize(mask, size, max_size=most))
    with lazily():
        assert v2.functional.resize(mask, [50, 40]).data_ptr() == mask.data_ptr()
    for size, most in (([0, 5], None), ([5, 6], 9), ("large", None), (60, 50)):
        with pytest.raises(Exception) as expected_error:
            v2.functional.resize(mask, size, max_size=most)
        with lazily(), pytest.raises(type(expected_error.value)) as ours:
            v2.functional.resize(mask, size, max_size=most)
        assert str(ours.value) == str(expected_error.value)


FILLS = (None, 0, 255, 7.0, 0.5, -1, 300, [3], [1, 2, 3])
PADDINGS = ([0, 0, 3, 5], 4, [3], [2, 700], [2000, 900, 0, 1], [-2, 0, 1500, 900])


@pytest.mark.parametrize(("padding", "fill"), sample([*itertools.product(PADDINGS, FILLS)], 25))
def test_frames_are_torchs(padding: Any, fill: Any) -> None:
    def outcome(mask: Any, mode: str) -> Any:
        try:
            return v2.functional.pad(tv_tensors.Mask(mask), padding, fill=fill, padding_mode=mode)
        except (ValueError, RuntimeError) as error:
            return f"{type(error)} {error}"

    masks_in = (
        _mask(50, 40),
        _mask(1, 50, 40),
        _mask(3, 50, 40),
        _mask(2, 50, 40, dtype=torch.bool),
        _mask(2, 9, 8).mT,
    )
    for mask in [*masks_in, _mask(2, 50, 40).long()]:
        for mode in ("constant", "edge"):
            expected = outcome(mask, mode)
            with lazily():
                ours = outcome(mask, mode)
            if isinstance(expected, str):
                assert ours == expected
                continue
            assert type(ours) is tv_tensors.Mask and ours.stride() == expected.stride()
            exactly(expected, ours)


def _sanitized(mask: Any, boxes: Any) -> Any:
    """Return what ``SanitizeBoundingBoxes`` makes of masks, or the error."""
    target = {"masks": mask, "boxes": boxes, "labels": torch.arange(len(boxes))}
    try:
        return v2.SanitizeBoundingBoxes()(target)["masks"]
    except (IndexError, ValueError, RuntimeError) as error:
        return f"{type(error)} {error}"


def test_chosen_masks_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[Any] = []
    select = torch.index_select
    monkeypatch.setattr(torch, "index_select", lambda *args, **kwargs: chosen.append(select(*args, **kwargs)))
    corners = torch.tensor([[3.0, 4, 20, 30], [5, 5, 5, 5], [0, 0, 50, 40], [7, 9, 6, 20]])
    usual = [_mask(4, 40, 50), _mask(4, 40, 50, dtype=torch.bool), _mask(4, 3, 40, 50), _mask(4, 900, 1000)]
    usual += [_mask(4, 40, 50).long(), _mask(4, 40, 50).float()]
    others = [_mask(4, 50, 40).mT, _mask(8, 40, 50)[::2], _mask(5, 40, 50), _mask(40, 50), _mask(4, 0, 50), _mask(4)]
    others.append(_mask(4, 40, 50).float().requires_grad_())
    for kept in ([0, 1, 2, 3], [1, 3], [0, 2, 0, 2]):
        boxes = tv_tensors.BoundingBoxes(corners[kept], format="XYXY", canvas_size=(40, 50))
        for masks_in, is_usual in [(x, True) for x in usual] + [(x, False) for x in others]:
            mask = tv_tensors.Mask(masks_in[: len(boxes)] if is_usual else masks_in)
            before, expected = mask.clone(), _sanitized(mask, boxes)
            assert not chosen
            with lazily():
                ours = _sanitized(mask, boxes)
            assert len(chosen) == (is_usual and len(boxes) == len(mask))
            chosen.clear()
            if isinstance(expected, str):
                assert ours == expected
                continue
            assert type(ours) is type(expected) is tv_tensors.Mask and ours.stride() == expected.stride()
            assert ours.requires_grad == expected.requires_grad and (ours is mask) == (expected is mask)
            exactly(expected.detach(), ours.detach())
            if ours is not mask:
                ours.detach().zero_()
                assert torch.equal(mask, before), "the result has memory of its own"


def test_native_code_checks_its_arrays() -> None:
    masks_in = np.zeros((2, 4, 4), np.uint8)
    with pytest.raises(ValueError, match="as many results"):
        _native.recipe.pick_nearest(masks_in, np.zeros((1, 4, 4), np.uint8), False)
    with pytest.raises(ValueError, match="with pixels"):
        _native.recipe.pick_nearest(masks_in, np.zeros((2, 0, 4), np.uint8), False)


def test_an_image_tensor_that_is_wrapped_stays_lazy(photo: Path) -> None:
    def result() -> Any:
        image = v2.functional.pil_to_tensor(Image.open(photo).convert("RGB"))
        return tv_tensors.Image(image), v2.functional.to_image(image), torch.as_tensor(image).requires_grad_(False)

    expected = result()
    with lazily():
        ours = result()
        assert all(getattr(x, "_materialized", x) is None for x in ours)
        for x, y in zip(expected, ours, strict=True):
            assert type(x) is y.__class__ and x.stride() == y.stride()
            exactly(x, y.clone())
        changed = torch.as_tensor(v2.functional.pil_to_tensor(Image.open(photo).convert("RGB")), dtype=torch.int64)
        exactly(expected[2].long(), changed)
