# SPDX-License-Identifier: Apache-2.0
"""Data sets whose samples contain nothing lazy: most fetches run as without Stoker, and recording resumes."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision import transforms

import stoker.torchvision
from stoker.frontends.torchvision import counts, recording
from stoker.frontends.torchvision.loader import activity, scheduler
from stoker.frontends.torchvision.loader.activity import _IDLE_AFTER, _PERIOD, Activity, activity_of
from tests.takeover.conftest import exactly
from tests.takeover.scripts import run

_BATCHES = _IDLE_AFTER + 2 * _PERIOD


class Switching(torch.utils.data.Dataset[Any]):
    """Tensors up to a number, photographs after it. Each sample draws a number before it opens its file."""

    def __init__(self, path: Path, tensors: int, count: int = _BATCHES) -> None:
        self.path = path
        self.count = count
        self.tensors = tensors
        self.transform: Any = transforms.ToTensor()
        self.recorded: list[bool] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        self.recorded.append(recording.is_on())
        x = torch.rand(3)
        return (x if index < self.tensors else self.transform(Image.open(self.path).convert("RGB"))), recording.is_on()


class Stream(torch.utils.data.IterableDataset[Any]):
    """The same samples as a stream."""

    def __init__(self, data: Switching) -> None:
        self.data = data

    def __iter__(self) -> Any:
        return (self.data[i] for i in range(len(self.data)))


def loader_of(data: Any, workers: int = 0) -> Any:
    return torch.utils.data.DataLoader(data, batch_size=1, num_workers=workers, persistent_workers=workers > 0)


def expected(fetch: int) -> bool:
    """Return whether a fetch of a data set of tensors is recorded."""
    return fetch < _IDLE_AFTER or (fetch - _IDLE_AFTER + 1) % _PERIOD == 0


def test_an_idle_data_set_is_recorded_now_and_then() -> None:
    state = Activity()
    recorded = []
    for _ in range(_BATCHES):
        recorded.append(state.begin_fetch())
        if recorded[-1]:
            state.end_fetch(has_lazy=False)
    assert recorded == [expected(i) for i in range(_BATCHES)]
    assert state.is_idle
    state.end_fetch(has_lazy=True)
    assert not state.is_idle
    assert [state.begin_fetch() for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", [lambda data: data, Stream], ids=["map", "stream"])
def test_fetches_without_lazy_objects_run_unrecorded(taken_over: None, photo: Path, workers: int, kind: Any) -> None:
    recorded = [bool(flag) for _, flag in loader_of(kind(Switching(photo, _BATCHES)), workers)]
    assert recorded == [expected(i) for i in range(_BATCHES)]


def test_the_state_outlasts_the_epoch(taken_over: None, photo: Path) -> None:
    data = Switching(photo, _BATCHES)
    loader = loader_of(data)
    for _ in range(2):
        for _ in loader:
            pass
    assert data.recorded == [expected(i) for i in range(2 * _BATCHES)]


@pytest.mark.parametrize("workers", [0, 2])
def test_recording_resumes_with_the_first_photographs(photo: Path, workers: int) -> None:
    untouched = run(loader_of(Switching(photo, 20, 3 * _BATCHES), workers))
    counts.reset()
    with stoker.torchvision.enabled():
        ours = run(loader_of(Switching(photo, 20, 3 * _BATCHES), workers))
        made = stoker.torchvision.report().counts[counts.NAMES[counts.NATIVE]]
    for (a, _), (b, _) in zip(untouched, ours, strict=True):
        assert type(b) is torch.Tensor
        exactly(a, b)
    recorded = [bool(flag) for _, flag in ours]
    assert not all(recorded[20 : 20 + _PERIOD // 2]), "the first photographs come before the next recorded fetch"
    assert all(recorded[2 * (_IDLE_AFTER + _PERIOD) :]) and made == sum(recorded[20:]) > 0


def test_type_checks_of_an_idle_data_set_are_found_when_it_is_recorded(photo: Path) -> None:
    def epochs() -> Any:
        data = Switching(photo, _BATCHES)
        loader = loader_of(data)
        batches = run(loader)
        data.tensors = 0
        load = transforms.ToTensor()

        def checked(image: Any) -> Any:  # defined when the data set is idle
            x = load(image)
            return torch.tensor([type(x) is torch.Tensor, type(image) is Image.Image])

        data.transform = checked
        return batches + run(loader)

    untouched = epochs()
    with stoker.torchvision.enabled():
        ours = epochs()
    for (a, _), (b, _) in zip(untouched, ours, strict=True):
        exactly(a, b)
    assert any(bool(flag) for _, flag in ours[_BATCHES:])


def test_a_state_ends_with_its_data_set(photo: Path) -> None:
    data = Switching(photo, 1)
    key, state = id(data), activity_of(data)
    assert activity_of(data) is state and key in activity._known
    del data
    gc.collect()
    assert key not in activity._known
    assert activity_of([1, 2]).is_idle is False  # a list has no weak references


def test_the_relays_thread_pauses_while_batches_are_plain() -> None:
    class Items:
        """Queue whose items with a number divisible by 40 are lazy."""

        def __init__(self) -> None:
            self.taken = 0
            self.readers: list[str] = []

        def get(self, timeout: float) -> Any:
            self.taken += 1
            self.readers.append(scheduler.threading.current_thread().name)
            return self.taken, self.taken % 40 == 0

    source, batch_scheduler, found = Items(), scheduler.BatchScheduler(0), []

    def arrived(data: Any, created: Any) -> Any:
        found.append(data)
        return [], [], [object()] if data else []

    relay = scheduler.Relay(source, batch_scheduler, arrived)
    try:
        got = [relay.get(timeout=60) for _ in range(100)]
    finally:
        relay.close()
        batch_scheduler.close()
    assert [number for number, _ in got] == list(range(1, 101)) and sum(found) == 2
    by_thread = [name == "stoker-relay" for name in source.readers]
    plain = scheduler._PLAIN_ITEMS
    assert by_thread == [i < plain or 40 <= i < 40 + plain or 80 <= i < 80 + plain for i in range(100)]
    assert not relay._thread.is_alive()
