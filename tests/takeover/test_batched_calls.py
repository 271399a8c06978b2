# SPDX-License-Identifier: Apache-2.0
"""Calls per image that become calls on the whole batch, for batches on a GPU."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from photographs import photograph

import stoker.torchvision
from stoker.frontends.torchvision.collation.batched_calls import batch_calls
from stoker.frontends.torchvision.collation.batches import find_lazy, find_programs
from stoker.frontends.torchvision.collation.deferred import Collation, DeferredTensor
from stoker.frontends.torchvision.collation.program import Program
from stoker.frontends.torchvision.loader import delivery
from stoker.frontends.torchvision.pillow.image import pixels_node
from stoker.frontends.torchvision.reference.replay import plain_image
from stoker.frontends.torchvision.tensors.tensor import image_tensor
from tests.complete import sample
from tests.takeover.collations import LAZY, loader_of
from tests.takeover.scripts import run

Batch = list[torch.Tensor]


def into(batch: Batch, each: Callable[[int], torch.Tensor]) -> torch.Tensor:
    """Add images into a batch like timm's collations."""
    together = torch.zeros((len(batch), *batch[0].shape), dtype=torch.uint8)
    for at in range(len(batch)):
        image = each(at)
        together[at] += image
    return together


def mixed(batch: Batch) -> Any:
    def each(at: int) -> torch.Tensor:
        both = batch[at].float() * 0.3 + batch[-1 - at].float() * 0.7
        torch.round(both, out=both)
        return both.byte()

    return into(batch, each)


def cut(batch: Batch) -> Any:
    def each(at: int) -> torch.Tensor:
        image = batch[at].clone()
        image[:, 4:30, 6:20] = batch[-1 - at][:, 4:30, 6:20]
        return image.byte()

    return into(batch, each)


def copied(batch: Batch) -> Any:
    together = torch.empty((len(batch), *batch[0].shape), dtype=torch.uint8)
    for at, image in enumerate(batch):
        together[at] = (image.float() * 0.5 + batch[0].float() * 0.5).byte()
    return together


def named(batch: Batch) -> Any:
    """Use a number that equals the number of one of the program's tensors."""
    together = torch.zeros((len(batch), *batch[0].shape))
    for at, image in enumerate(batch):
        together[at] = 0
        together[at] += image.float() - batch[1].float()
    return together


def mixed_by_numbers(batch: Batch) -> Any:
    return into(batch, lambda at: (batch[at].clone() + batch[-1 - at]) * at)


def signs(batch: Batch) -> Any:
    together = torch.zeros((len(batch), *batch[0].shape))
    for at, image in enumerate(batch):
        both = (image.float() + batch[0].float()).mul_(0.0 if at else -0.0)
        together[at] = both
    return together


def cut_by_image(batch: Batch) -> Any:
    def each(at: int) -> torch.Tensor:
        image = batch[at].clone()
        image[:, at : at + 9, 6:20] = batch[-1 - at][:, at : at + 9, 6:20]
        return image

    return into(batch, each)


def elsewhere(batch: Batch) -> Any:
    together = torch.zeros((len(batch), *batch[0].shape), dtype=torch.uint8)
    for at, image in enumerate(batch):
        together[-1 - at] += image.clone().add_(1)
    return together


def one_more(batch: Batch) -> Any:
    together = into(batch, lambda at: batch[at].clone().add_(3))
    return together + 1


def kept(batch: Batch) -> Any:
    parts: list[torch.Tensor] = []

    def each(at: int) -> torch.Tensor:
        parts.append(batch[at].clone().add_(3))
        return parts[-1]

    return into(batch, each), parts[1]


def changed(batch: Batch) -> Any:
    """Accumulate all images in the first one."""
    return into(batch, lambda at: batch[0].add_(1).clone())


def changed_by_image(batch: Batch) -> Any:
    """Accumulate images in the memory of another one."""
    return into(batch, lambda at: (batch[0].add_(batch[at] - batch[at]) + 1).clone())


TOGETHER = [mixed, cut, copied, named, changed]
APART = [mixed_by_numbers, signs, cut_by_image, elsewhere, one_more, kept, changed_by_image]


def images(count: int) -> Batch:
    pixels = [plain_image(photograph(i, 70, 90)) for i in range(count)]
    return [image_tensor(pixels_node(image.im)) for image in pixels]


def plain(count: int) -> Batch:
    return [torch.from_numpy(np.ascontiguousarray(photograph(i, 70, 90).transpose(2, 0, 1))) for i in range(count)]


def recorded(collate: Callable[[Batch], Any], count: int) -> tuple[Any, Program]:
    data = Collation(collate, find_lazy, is_on_gpu=True)(images(count))
    (program,) = find_programs(data)
    program.stack_equal_leaves({id(x) for x in (data if isinstance(data, tuple) else (data,))})
    return data, program


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("collate", TOGETHER + APART)
def test_the_values_are_the_same(recording: None, collate: Callable[[Batch], Any], count: int) -> None:
    expected = collate(plain(count))
    data, program = recorded(collate, count)
    before = copy.copy(program.calls)
    batch_calls(program)
    if collate in TOGETHER:
        assert len(program.calls) <= 10 < len(before) * 8 / count
    else:
        assert program.calls == before
    parts = [(expected, data)] if issubclass(type(data), DeferredTensor) else list(zip(expected, data, strict=True))
    for a, b in parts:
        value = b.materialize() if issubclass(type(b), DeferredTensor) else b
        assert torch.equal(a, value) and torch.equal(torch.signbit(a), torch.signbit(value)) and a.dtype == value.dtype
    assert math.prod(parts[0][0].shape) > 0


@pytest.mark.parametrize(
    ("name", "workers"), [*((name, 0) for name in LAZY), *((name, 2) for name in sample([*LAZY], 6))]
)
def test_collations_as_for_a_gpu(files: Path, monkeypatch: pytest.MonkeyPatch, name: str, workers: int) -> None:
    """The CPU runs the calls that workers prepare for a GPU."""
    untouched = run(loader_of(files, workers, name))
    monkeypatch.setattr(delivery, "is_on_gpu", lambda: True)
    monkeypatch.setattr(delivery, "destination", lambda workers: None)
    with stoker.torchvision.enabled():
        ours = run(loader_of(files, workers, name))
    for a, b in zip(flat(untouched), flat(ours), strict=True):
        assert torch.equal(a, b) and a.dtype == b.dtype


def flat(data: Any) -> list[torch.Tensor]:
    if isinstance(data, torch.Tensor):
        return [data]
    return [x for part in data for x in flat(part)] if isinstance(data, (list, tuple)) else [torch.tensor(data)]
