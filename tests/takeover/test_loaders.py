# SPDX-License-Identifier: Apache-2.0
"""Loaders other than torch's own, streams, and torchvision's switch of image backends."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
import torchvision.transforms as transforms
from PIL import Image, ImageFilter
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import stoker.torchvision
from stoker.frontends.torchvision import counts
from tests.takeover.scripts import Stream, classification, run
from tests.takeover.test_script import equal

ROOT = Path(__file__).resolve().parents[2]


def stateful(files: Path, workers: int, **options: Any) -> Any:
    """Return the usual script's data set in torchdata's loader."""
    plain = classification(str(files), 0)
    generator = torch.Generator().manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchdata calls functions that newer releases of torch deprecate
        return StatefulDataLoader(
            plain.dataset, batch_size=3, shuffle=True, num_workers=workers, generator=generator, **options
        )


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader(files: Path, workers: int) -> None:
    untouched = run(stateful(files, workers), epochs=2)
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(stateful(files, workers), epochs=2))
    assert counts.totals()[counts.NATIVE] >= 2 * 17


@pytest.mark.parametrize(("workers", "every"), [(0, 1), (2, 1), (2, 2)])
def test_a_stateful_loader_resumes_after_any_batch(files: Path, workers: int, every: int) -> None:
    """The state belongs to the batch delivered last, and is valid for runs with and without Stoker."""

    def states(loader: Any) -> list[Any]:
        torch.manual_seed(1)
        return [(batch, copy.deepcopy(loader.state_dict())) for batch in loader]

    def rest(state: Any) -> list[Any]:
        loader = stateful(files, workers, snapshot_every_n_steps=every)
        loader.load_state_dict(copy.deepcopy(state))
        torch.manual_seed(2)
        return [batch[1] for batch in loader], next(iter(loader))[1]

    without = states(stateful(files, workers, snapshot_every_n_steps=every))
    with stoker.torchvision.enabled():
        ours = states(stateful(files, workers, snapshot_every_n_steps=every))
        equal([batch for batch, _ in without], [batch for batch, _ in ours])
        stops = (0, 1, len(ours) - 1)
        resumed = [rest(ours[at][1]) for at in stops]
        equal(resumed[1], rest(without[1][1]))
    for at, (labels, following) in zip(stops, resumed, strict=True):
        equal(labels, [batch[1] for batch, _ in ours[at + 1 :]])
        equal((labels, following), rest(without[at][1]))


class Resumable(torch.utils.data.IterableDataset[Any]):
    """Stream whose state contains its position and its random state, so that it resumes with the same pixels."""

    def __init__(self, root: Path) -> None:
        self.files = sorted(root.rglob("*.jpg"))
        self.position = 0
        self.drawn: Any = None

    def state_dict(self) -> Any:
        return {"position": self.position, "drawn": self.drawn}

    def load_state_dict(self, state: Any) -> None:
        self.position, self.drawn = state["position"], state["drawn"]

    def __iter__(self) -> Any:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        rng = random.Random(first)
        if self.drawn is not None:
            rng.setstate(self.drawn)
        mine = self.files[first::step]
        while self.position < len(mine):
            image = Image.open(mine[self.position]).convert("RGB").rotate(rng.uniform(-30, 30))
            left, top = rng.randrange(20), rng.randrange(20)
            image = image.crop((left, top, left + 40, top + 30)).filter(ImageFilter.GaussianBlur(rng.uniform(0.1, 2)))
            self.position, self.drawn = self.position + 1, rng.getstate()
            yield transforms.functional.to_tensor(image)


def resumable(files: Path, workers: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return StatefulDataLoader(Resumable(files), batch_size=2, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("at", [0, 3])
def test_a_stateful_loader_resumes_with_the_same_pixels(files: Path, workers: int, at: int) -> None:
    """States of runs with and without Stoker resume in both kinds of run."""

    def interrupted() -> tuple[list[Any], Any]:
        loader = resumable(files, workers)
        iterator = iter(loader)
        first = [next(iterator) for _ in range(at + 1)]
        state = copy.deepcopy(loader.state_dict())
        return [*first, *iterator], state

    def rest(state: Any) -> list[Any]:
        loader = resumable(files, workers)
        loader.load_state_dict(copy.deepcopy(state))
        return list(loader)

    whole, state = interrupted()
    counts.reset()
    with stoker.torchvision.enabled():
        ours, our_state = interrupted()
        assert counts.totals()[counts.NATIVE] == sum(len(batch) for batch in ours)
        resumed = [rest(state), rest(our_state)]
    equal(whole, ours)
    assert len(whole) > at + 2
    for batches in (*resumed, rest(our_state), rest(state)):
        equal(whole[at + 1 :], batches)


def test_a_state_before_the_first_batch(files: Path) -> None:
    with stoker.torchvision.enabled():
        loader = stateful(files, 1)
        state = loader.state_dict()
        first = next(iter(loader))
        again = stateful(files, 1)
        again.load_state_dict(state)
        equal(first[1], next(iter(again))[1])
        assert type(first[0]) is torch.Tensor
        del loader, again


class Watched(DataLoader[Any]):
    """Loader that creates its own iterators, like its base class does."""

    def _get_iterator(self) -> Any:
        return super()._get_iterator()


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders_that_are_defined_before_and_after(files: Path, workers: int) -> None:
    dataset = classification(str(files), 0).dataset
    untouched = run(Watched(dataset, 4, num_workers=workers))
    with stoker.torchvision.enabled():

        class Later(DataLoader[Any]):
            def _get_iterator(self) -> Any:
                return super()._get_iterator()

        for kind in (Watched, Later):
            counts.reset()
            equal(untouched, run(kind(dataset, 4, num_workers=workers)))
            assert counts.totals()[counts.NATIVE] == 17
    assert not hasattr(Watched._get_iterator, "__wrapped__")
    assert not hasattr(Later._get_iterator, "__wrapped__")
    assert "__init_subclass__" not in vars(DataLoader)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_divided_over_workers(files: Path, workers: int) -> None:
    untouched = run(DataLoader(Stream(files), batch_size=3, num_workers=workers))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(DataLoader(Stream(files), batch_size=3, num_workers=workers)))
    assert counts.totals()[counts.NATIVE] == 16 and not counts.totals()[counts.TORCH]


@pytest.fixture
def backend() -> Iterator[None]:
    yield
    torchvision.set_image_backend("PIL")
    stoker.torchvision.disable()


def test_the_image_backend_switches(files: Path, backend: None) -> None:
    untouched = run(classification(str(files), 0))
    assert torchvision.get_image_backend() == "PIL"
    torchvision.set_image_backend("stoker")
    assert stoker.torchvision.is_enabled() and torchvision.get_image_backend() == "stoker"
    counts.reset()
    equal(untouched, run(classification(str(files), 0)))
    assert counts.totals()[counts.NATIVE] == 17
    torchvision.set_image_backend("stoker")  # a second call has no effect
    torchvision.set_image_backend("PIL")
    assert not stoker.torchvision.is_enabled() and torchvision.get_image_backend() == "PIL"
    Image.preinit()
    assert Image.OPEN["JPEG"][0].__name__ == "jpeg_factory"


def test_disabling_restores_the_backend(backend: None) -> None:
    torchvision.set_image_backend("stoker")
    stoker.torchvision.disable()
    assert torchvision.get_image_backend() == "PIL"


def test_a_script_that_sets_the_backend_does_not_undo_enable(backend: None) -> None:
    stoker.torchvision.enable()
    torchvision.set_image_backend("PIL")
    assert stoker.torchvision.is_enabled()
    with pytest.raises(ValueError, match="Invalid backend 'magic'"):
        torchvision.set_image_backend("magic")
    torchvision.set_image_backend("stoker")
    assert torchvision.get_image_backend() == "stoker"


@pytest.mark.parametrize("first", ["stoker.torchvision", "torchvision"])
def test_the_backend_exists_in_any_order_of_imports(first: str) -> None:
    second = {"stoker.torchvision": "torchvision", "torchvision": "stoker.torchvision"}[first]
    code = (
        f"import torch, warnings; warnings.simplefilter('ignore')\n"
        "from benchmarks.torchvision_peer import declare_operators; kept = declare_operators(torch)\n"
        f"import {first}; import {second}; import sys, torchvision, stoker.torchvision\n"
        "torchvision.set_image_backend('stoker')\n"
        "print(stoker.torchvision.is_enabled(), torchvision.get_image_backend(), "
        "any(getattr(f, 'name', '') == 'torchvision' for f in sys.meta_path))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["True", "stoker", "False"], done.stderr
