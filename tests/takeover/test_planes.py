# SPDX-License-Identifier: Apache-2.0
"""Recorded masks and videos beside an image: values, memory layouts and shared memory as torch's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, default_collate
from torchvision import tv_tensors
from torchvision.transforms import v2

import stoker.torchvision
from stoker.frontends.torchvision.loader import loader
from stoker.frontends.torchvision.tensors import planes
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

F = v2.functional


def _mask(*shape: int, dtype: Any = torch.uint8) -> Any:
    values = torch.from_numpy(np.random.default_rng(7).integers(0, 2 if dtype is torch.bool else 256, shape))
    return tv_tensors.Mask(values.to(dtype))


def _drawn_steps(rng: Any, size: tuple[int, int]) -> list[Any]:
    """Return random steps for planes of (height, width), each a function and its arguments."""
    height, width = size
    steps: list[Any] = []
    for _ in range(int(rng.integers(1, 6))):
        kind = rng.choice(["hflip", "vflip", "crop", "outside", "pad", "resize"])
        if kind in ("hflip", "vflip"):
            steps.append((F.horizontal_flip if kind == "hflip" else F.vertical_flip, ()))
            continue
        if kind == "pad":
            left, top, right, bottom = (int(n) for n in rng.integers(0, 40, 4))
            steps.append((F.pad, ([left, top, right, bottom], int(rng.choice([0, 7])))))
            height, width = top + height + bottom, left + width + right
            continue
        new = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
        if kind == "resize":
            new = int(rng.integers(1, 300)), int(rng.integers(1, 300))
            steps.append((F.resize, (list(new),)))
        else:
            first = [int(rng.integers(0, n - m + 1)) for n, m in zip((height, width), new, strict=True)]
            if kind == "outside":
                first[0] -= 3
            steps.append((F.crop, (*first, *new)))
        height, width = new
    return steps


@pytest.mark.parametrize("kind", ["mask", "bool", "flat", "video"])
def test_chains_are_torchs(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    shape = {"mask": (2, 110, 150), "bool": (2, 110, 150), "flat": (150, 170), "video": (2, 3, 100, 60)}[kind]
    x: Any = _mask(*shape, dtype=torch.bool if kind == "bool" else torch.uint8)
    x = tv_tensors.Video(x.as_subclass(torch.Tensor)) if kind == "video" else x
    for _ in range(40):
        steps = _drawn_steps(rng, x.shape[-2:])
        expected = x
        for step, args in steps:
            expected = step(expected, *args)
        with lazily():
            ours = x
            for step, args in steps:
                ours = step(ours, *args)
            assert ours.__class__ is type(expected) and ours.shape == expected.shape and ours.dtype == expected.dtype
            assert ours.stride() == expected.stride() and ours.storage_offset() == expected.storage_offset(), steps
            plain = ours.clone()
        assert type(plain) is type(expected)
        exactly(expected, plain)


def test_a_copy_is_recorded() -> None:
    """The script may change its mask afterwards."""
    mask = _mask(2, 100, 120)
    expected = F.horizontal_flip(mask).clone()
    with lazily():
        ours = F.horizontal_flip(mask)
        assert planes.are_lazy(ours)
        mask.zero_()
        exactly(expected, ours.clone())


def test_windows_share_memory() -> None:
    mask = _mask(3, 100, 120)

    def result(which: str) -> Any:
        whole = F.horizontal_flip(mask)
        window = F.crop(whole, 10, 20, 30, 40)
        narrow = F.crop(window, 1, 2, 3, 4).as_subclass(torch.Tensor)
        {"whole": whole, "window": window, "narrow": narrow}[which].add_(5)
        return whole, window, narrow

    for which in ("whole", "window", "narrow"):
        expected = result(which)
        with lazily():
            ours = result(which)
            for x, y in zip(expected, ours, strict=True):
                exactly(x, y)
                assert x.stride() == y.stride() and x.is_contiguous() == y.is_contiguous()


def test_a_window_whose_tensor_is_gone_has_its_layout() -> None:
    mask = _mask(2, 100, 120)
    expected = F.crop(F.horizontal_flip(mask), 10, 20, 30, 40)
    with lazily():
        ours = F.crop(F.horizontal_flip(mask), 10, 20, 30, 40)
        ours.bitwise_not_()
    exactly(expected.bitwise_not_(), ours)
    assert ours.stride() == expected.stride()
    assert list(ours.untyped_storage()) == list(expected.untyped_storage()), "pickling stores all of the memory"


def test_masks_become_numbers_and_batches() -> None:
    masks = [_mask(1, 100, 200), _mask(1, 100, 200).flip(-1).as_subclass(tv_tensors.Mask)]

    def batch(dtype: Any) -> Any:
        convert = v2.ToDtype({tv_tensors.Mask: dtype, "others": None})
        one, other = convert(F.horizontal_flip(masks[0])), convert(masks[1])
        return default_collate([one, other])

    for dtype in (torch.int64, torch.float32, torch.uint8, torch.int16):
        expected = batch(dtype)
        with lazily():
            ours = batch(dtype)
            assert ours.__class__ is type(expected) and ours.dtype == expected.dtype
            assert planes.are_lazy(ours) == (dtype == torch.uint8), "a plain mask is no bytes any more"
            exactly(expected, ours.clone())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
@pytest.mark.parametrize("is_mask", [False, True])
def test_converted_masks_are_torchs(dtype: Any, is_mask: bool) -> None:
    """A mask of another type is an alias, because torchvision wraps the tensor that `to` returns."""

    def result() -> Any:
        flipped = F.horizontal_flip(_mask(2, 100, 120))
        flipped = flipped if is_mask else flipped.as_subclass(torch.Tensor)
        converted = flipped.to(dtype)
        return converted is flipped, converted._is_view(), converted.clone()

    expected = result()
    with lazily():
        ours = result()
    assert ours[:2] == expected[:2]
    exactly(expected[2], ours[2])


def test_chosen_masks_are_torchs() -> None:
    corners = torch.tensor([[3.0, 4, 20, 30], [5, 5, 5, 5], [0, 0, 50, 40], [7, 9, 6, 20]])
    for kept in ([0, 1, 2, 3], [1, 3], [0, 2, 0, 2]):
        boxes = tv_tensors.BoundingBoxes(corners[kept], format="XYXY", canvas_size=(80, 90))
        for turned in (False, True):
            mask = _mask(len(kept), 80, 90)

            def result(boxes: Any = boxes, mask: Any = mask, turned: bool = turned) -> Any:
                masks = F.crop(F.horizontal_flip(mask), 1, 2, 70, 80) if turned else mask
                target = {"masks": masks, "boxes": boxes, "labels": torch.arange(len(boxes))}
                return v2.ToPureTensor()(v2.SanitizeBoundingBoxes()(target))["masks"]

            expected = result()
            with lazily():
                ours = result()
                assert planes.are_lazy(ours) == bool(len(expected))
                assert ours.__class__ is torch.Tensor and ours.stride() == expected.stride()
                exactly(expected, ours.clone())


def test_what_is_not_recorded_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [_mask(2, 9, 8), _mask(2, 100, 120).long(), _mask(100, 120).float(), _mask(0, 100, 120)]
    for mask in others:
        with lazily():
            assert not planes.are_lazy(F.horizontal_flip(tv_tensors.Mask(mask)))
    mask = _mask(2, 100, 120)
    with lazily():
        lazy = F.horizontal_flip(mask)
        exactly(F.rotate(F.horizontal_flip(mask), 30.0).clone(), F.rotate(lazy, 30.0).clone())
        assert int(lazy.sum()) == int(mask.sum()) and type(pickle.loads(pickle.dumps(lazy))) is tv_tensors.Mask
    monkeypatch.setattr(loader, "_sends_groups", True)
    with lazily():
        assert not planes.are_lazy(F.horizontal_flip(mask)), "a GPU computes the batch, the masks stay on the CPU"


class Beside(Dataset[Any]):
    """Masks and videos without an image."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        mask = F.horizontal_flip(_mask(2, 90, 100 + index))
        video = F.vertical_flip(tv_tensors.Video(_mask(2, 3, 90, 100).as_subclass(torch.Tensor)))
        return {"mask": F.resize(mask, [70, 60]), "window": F.crop(mask, 3, 4, 50, 60), "video": video, "at": index}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("listed", [False, True])
def test_loaders_deliver_plain_tensors(workers: int, listed: bool) -> None:
    def batches() -> list[Any]:
        collate = list if listed else None
        return list(DataLoader(Beside(), batch_size=3, num_workers=workers, collate_fn=collate))

    expected = batches()
    with stoker.torchvision.enabled():
        ours = batches()
    for a, b in zip(expected, ours, strict=True):
        for x, y in zip(a, b, strict=True) if listed else [(a, b)]:
            assert list(x) == list(y)
            for name, value in x.items():
                assert type(y[name]) is type(value), name
                exactly(torch.as_tensor(value), torch.as_tensor(y[name]))
