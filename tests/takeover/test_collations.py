# SPDX-License-Identifier: Apache-2.0
"""Collation functions of scripts are recorded, and return the same values as without Stoker."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, default_collate

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.collation import batches, padded
from stoker.frontends.torchvision.collation.batches import find_lazy, find_programs
from stoker.frontends.torchvision.collation.deferred import Collation, DeferredTensor
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.tensors.tensor import LazyTensor, image_tensor, materialize, stack_lazy
from stoker.frontends.torchvision.transport.source import Source
from tests.complete import sample
from tests.takeover.collations import EARLY, LAZY, Batch, bytes_copied, loader_of
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import Tolerant, run
from tests.takeover.test_script import equal


# With eight workers, batches arrive in other orders, whatever the function: a sample.
@pytest.mark.parametrize(
    ("name", "workers"),
    [*itertools.product((*LAZY, *EARLY), (0, 2)), *((name, 8) for name in sample([*LAZY, *EARLY], 4))],
)
def test_the_same_batches(files: Path, name: str, workers: int) -> None:
    untouched = run(loader_of(files, workers, name))
    counts.reset()
    with stoker.torchvision.enabled():
        ours = run(loader_of(files, workers, name))
        equal(untouched, ours)
    total = counts.totals()
    assert (total[counts.TORCH] == 0) == (name in LAZY)
    assert (total[counts.FORCED] == 0) == (name in LAZY)
    assert total[counts.NATIVE] >= 17 if name in LAZY else total[counts.NATIVE] == 0
    assert all(type(x) is torch.Tensor for batch in ours for x in batch if isinstance(x, torch.Tensor))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_file_raises_at_its_sample(tmp_path: Path, workers: int) -> None:
    from photographs import photograph
    from PIL import Image

    for i in range(8):
        Image.fromarray(photograph(i, 60, 80)).save(tmp_path / f"{i}.jpg")
    damaged = bytearray((tmp_path / "5.jpg").read_bytes())
    damaged[400:-200] = bytes(len(damaged) - 600)
    (tmp_path / "5.jpg").write_bytes(damaged)

    def rolled(batch: Batch) -> Any:
        images, names = default_collate(batch)
        return images.roll(1, 0), names

    def loader() -> Any:
        return DataLoader(Tolerant(tmp_path), batch_size=4, num_workers=workers, collate_fn=rolled)

    untouched = run(loader())
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()))


# ---- single collations, in this process ----


def lazy_images(count: int, size: tuple[int, int] = (12, 9)) -> list[LazyTensor]:
    """Return lazy images, a different one for every number."""
    import io

    from photographs import photograph
    from PIL import Image

    images = []
    for at in range(count):
        out = io.BytesIO()
        Image.fromarray(photograph(at, 70, 80)).save(out, "JPEG")
        whole = Node.decode(Source.from_bytes(out.getvalue()), (80, 70), 3)
        x, y = 5 * at, 3 * at
        from stoker.frontends.torchvision.ir import steps

        images.append(image_tensor(whole.then(steps.Crop(x, y, x + size[0], y + size[1]), size)))
    return images


def collated(function: Callable[[Any], Any], batch: Any) -> Any:
    return Collation(function, find_lazy, is_on_gpu=False)(batch)


def plain(data: Any) -> Any:
    for program in find_programs(data):
        padded.simplify(program)
    return batches.to_plain(data)


STEPS: dict[str, Callable[[Any, Any, random.Random], Any]] = {
    "roll": lambda a, b, rng: a.roll(rng.randrange(3), 0),
    "roll one": lambda a, b, rng: a.roll(1, 0),
    "mul": lambda a, b, rng: a.mul(rng.random()),
    "mul in place": lambda a, b, rng: a.mul_(rng.random()),
    "add": lambda a, b, rng: a + b,
    "add in place": lambda a, b, rng: a.add_(b),
    "subtract": lambda a, b, rng: b - a,
    "window": lambda a, b, rng: a[..., 2:7, 3:9].fill_(rng.random()),
    "cut": lambda a, b, rng: a.__setitem__((..., slice(1, 5), slice(2, 6)), b[..., 2:6, 1:5]),
    "one row": lambda a, b, rng: a[rng.randrange(4)].copy_(b[rng.randrange(4)]),
    "clone": lambda a, b, rng: a.clone(),
    "view": lambda a, b, rng: a[:],
    "not recorded": lambda a, b, rng: a.clamp_(0.1, 0.8),
    "looked at": lambda a, b, rng: a * float(b.sum() > 1),
    "of the batch": lambda a, b, rng: a.__setitem__(rng.randrange(4), b[rng.randrange(4)] * np.float32(rng.random())),
    "another order": lambda a, b, rng: a[np.array(rng.sample(range(4), 4))] - b,
    "turned round": lambda a, b, rng: np.float64(rng.random()) * a.flip([0]) + b,
    "flip": lambda a, b, rng: a.flip(0),
    "fresh tensor": lambda a, b, rng: torch.zeros(a.shape).add_(a) if a.numel() > 1000 else a,
    "stacked": lambda a, b, rng: torch.stack([a[0], b[1], a[2], b[3]]),
}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=12), st.integers(0, 1 << 20))
def test_random_collations(names: list[str], seed: int) -> None:
    """Random operations in random order give torch's results, also for tensors that share memory."""

    def work(batch: Any) -> Any:
        rng = random.Random(seed)
        values = [batch.float().div(255), batch * 0.5]
        for name in names:
            a, b = rng.choice(values), rng.choice(values)
            result = STEPS[name](a, b, rng)
            if result is not None and tuple(result.shape) == tuple(batch.shape):
                values.append(result)
        return values

    images = lazy_images(4, (48, 40))
    batch = stack_lazy(images)
    assert batch is not None
    expected = work(torch.stack([materialize(image) for image in lazy_images(4, (48, 40))]))
    got = plain(collated(work, batch))
    for a, b in zip(expected, got, strict=True):
        exactly(a, b)


def test_programs_travel() -> None:
    """Recorded calls are sent to another process with their images, each of which is sent once."""
    batch = stack_lazy(lazy_images(3))
    assert batch is not None
    counts.reset()
    with lazily():
        data = collated(lambda x: (x.roll(1, 0), x.roll(1, 0).float().mul_(0.5)), batch)
        assert all(issubclass(type(x), DeferredTensor) for x in data)
        came = pickle.loads(ForkingPickler.dumps(data))
    assert counts.totals()[counts.FORCED] == 0
    assert len(find_lazy(came)) == 1 and len(find_programs(came)) == 1
    values = materialize(batch)
    equal([values.roll(1, 0), values.roll(1, 0) * 0.5], list(plain(came)))


def test_arguments_that_change_later_are_copied() -> None:
    def work(batch: Any) -> Any:
        added = torch.ones(1, 3, 1, 1)
        result = batch + added
        added.fill_(7)
        return result

    batch = stack_lazy(lazy_images(3))
    assert batch is not None
    exactly(plain(collated(work, batch)), materialize(batch) + 1.0)


def test_errors_are_torch_s() -> None:
    batch = stack_lazy(lazy_images(3))
    assert batch is not None
    with pytest.raises(RuntimeError, match="must match the size"):
        collated(lambda x: x.roll(1, 0).add_(torch.zeros(3, 3, 4, 4)), batch)
    with pytest.raises(IndexError):
        collated(lambda x: x.roll(1, 0)[7], batch)


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize(
    ("function", "fits"),
    [
        (lambda x: x[0].float() * 0.4 + x[1].float() * 0.6, True),
        (lambda x: x[0].float() * 0.4 + x[1].float() * 0.7, False),
        (lambda x: x[0].float() * 0.4 - x[1].float() * 0.4, False),
        (lambda x: torch.stack([x[0], x[1]])[0].float().roll(1, 0) * 0.9 + 20, True),
        (lambda x: torch.stack([x[0], x[1]]).roll(1, 0)[0].float() * np.float32(0.9) + x[1].float() * 0.1, True),
        (lambda x: (x[0].float() * 0.4 + x[1].float() * 0.6).add_(1.0), False),
    ],
)
def test_floats_that_become_bytes_elsewhere(function: Any, fits: bool, rounds: bool) -> None:
    """A GPU converts floats to bytes only if they are sure to fit."""

    def work(images: Any) -> Any:
        mixed = function(images)
        if rounds:
            torch.round(mixed, out=mixed)
        return mixed.byte()

    images, expected = lazy_images(2, (40, 36)), work([materialize(x) for x in lazy_images(2, (40, 36))])
    data = Collation(work, find_lazy, is_on_gpu=True)(images)
    assert issubclass(type(data), DeferredTensor) == fits
    exactly(plain(data), expected)


def test_a_change_through_a_view_removes_the_bounds_of_values() -> None:
    def work(images: Any) -> Any:
        mixed = images[0].float() * 0.5 + images[1].float() * 0.5
        mixed[0].copy_(images[1].float()[0] * 2)
        return mixed.byte()

    images = lazy_images(2, (40, 36))
    assert not issubclass(type(Collation(work, find_lazy, is_on_gpu=True)(images)), DeferredTensor)


def test_errors_of_missing_rows() -> None:
    batch = stack_lazy(lazy_images(3))
    assert batch is not None
    with pytest.raises(IndexError, match=r"out of bounds|out of range"):
        collated(lambda x: x.roll(1, 0) + x[np.array([0, 1, 3])], batch)


def test_changes_in_a_collation_are_visible_to_all_holders_of_the_image() -> None:
    """A change in place is visible in an image that a data set keeps, and in its older views."""

    def work(images: Any) -> Any:
        image = images[0]
        both = image.float() + images[1]
        row = both[0]
        both[:, 1:4, 2:5] = both[:, 2:5, 1:4].clone() * 2
        image[:, 1:4, 2:5] = images[1][:, 1:4, 2:5]
        return torch.stack([image, images[1]]), both, row, image + 0

    images, expected = lazy_images(2, (40, 36)), [materialize(x) for x in lazy_images(2, (40, 36))]
    equal(list(work(expected)), list(plain(collated(work, images))))
    equal(expected, [batches.to_plain(x) for x in images])


def test_rows_of_a_batch_are_no_program() -> None:
    """Images that are copied into a batch are recorded as a batch; other operations on it are recorded as calls."""
    images = lazy_images(3, (40, 36))
    data = collated(lambda x: bytes_copied([(image, 0) for image in x])[0], images)
    padded.simplify(data._program)
    assert data.as_lazy() is not None and data._program.calls == []
    partly = collated(lambda x: torch.zeros(3, 3, 36, 40, dtype=torch.uint8).__setitem__(0, x[0]), images)
    assert partly is None
    half = collated(_first_row, images)
    padded.simplify(half._program)
    assert half.as_lazy() is None
    expected = torch.zeros(3, 3, 36, 40, dtype=torch.uint8)
    expected[0] = materialize(images[0])
    exactly(plain(half), expected)


def _first_row(images: Any) -> Any:
    together = torch.zeros(3, 3, 36, 40, dtype=torch.uint8)
    together[0] = images[0]
    return together


def test_a_part_of_a_batch_that_is_used_alone() -> None:
    """A view of such a batch shows later changes of the batch."""

    def work(images: Any) -> Any:
        together = torch.zeros(3, 3, 36, 40)
        row = together[1]
        for at, image in enumerate(images):
            together[at] = image.float()
        together.mul_(2)
        return together, row

    images = lazy_images(3, (40, 36))
    equal(list(work([materialize(x) for x in lazy_images(3, (40, 36))])), list(plain(collated(work, images))))
