# SPDX-License-Identifier: Apache-2.0
"""Recorded key points beside an image: values, classes, memory and errors as torchvision's."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image
from torch.utils.data import DataLoader, Dataset, default_collate
from torchvision import tv_tensors
from torchvision.transforms import v2

import stoker.torchvision
from stoker.frontends.torchvision.hooks import points as hooks
from stoker.frontends.torchvision.reference import trial_cache
from stoker.frontends.torchvision.tensors import points
from tests.complete import COMPLETE
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

if not hasattr(tv_tensors, "KeyPoints"):
    pytest.skip("this release of torchvision has no key points", allow_module_level=True)

F: Any = v2.functional
CANVAS = (90, 120)
SHAPES = [(1, 2), (7, 2), (3, 17, 2), (2, 3, 4, 2)]


def _points(*shape: int, dtype: Any = torch.float32, canvas: tuple[int, int] = CANVAS) -> Any:
    values = np.random.default_rng(len(shape)).uniform(-10, 130, shape)
    values[..., 0].flat[:1] = canvas[1] - 1  # becomes a negative zero
    return tv_tensors.KeyPoints(torch.from_numpy(values).to(dtype), canvas_size=canvas)


def _drawn(rng: Any) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return random functions of key points, each with its arguments."""
    chain: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for _ in range(int(rng.integers(1, 7))):
        a, b, c, d = (int(n) for n in rng.integers(1, 100, 4))
        chain.append(
            [
                (F.horizontal_flip, ()),
                (F.vertical_flip, ()),
                (F.crop, (a - 50, b - 50, c, d)),
                (F.pad, ([a, b, c, d],)),
                (F.pad, (a,)),
                (F.resize, ([a, b],)),
                (F.resize, ([a],)),
                (F.center_crop, ([a, b],)),
                (F.resized_crop, (a - 50, b - 50, c, d, [d, a])),
                (F.clamp_keypoints, ()),
            ][int(rng.integers(10))]
        )
    return chain


def _run(x: Any, chain: Any) -> Any:
    for function, args in chain:
        x = function(x, *args)
    return x


def _alike(ours: Any, expected: Any) -> None:
    assert type(ours) is type(expected)
    assert getattr(ours, "canvas_size", None) == getattr(expected, "canvas_size", None)
    exactly(ours.as_subclass(torch.Tensor), expected.as_subclass(torch.Tensor))
    assert (ours.stride(), ours.storage_offset(), ours.is_contiguous()) == (
        expected.stride(), expected.storage_offset(), expected.is_contiguous(),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("shape", SHAPES)
def test_chains_are_torchvisions(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(len(shape))
    recorded, count = 0, 60 if COMPLETE else 20
    for _ in range(count):
        chain, x = _drawn(rng), _points(*shape, dtype=dtype)
        before = x.clone()
        expected = _run(x, chain)
        with lazily():
            ours = _run(x, chain)
            recorded += points.are_lazy(ours)
            assert ours.__class__ is type(expected) and ours.canvas_size == expected.canvas_size
            assert (ours.shape, ours.dtype, ours.device) == (expected.shape, expected.dtype, expected.device)
            assert ours._is_view() == expected._is_view()
            plain = copy.copy(ours) if chain else ours
            _alike(plain, expected)
        exactly(x, before)
    assert recorded > 0.7 * count, "resizes to the same size, and limits of plain points, are not recorded"


@pytest.mark.parametrize("function", sorted(hooks.KERNELS))
def test_each_kernel_is_recorded(function: str) -> None:
    kernel = hooks.KERNELS[function]
    x = _points(4, 2)
    expected = getattr(F, function)(x, **kernel.tried)
    with lazily():
        ours = getattr(F, function)(x, **kernel.tried)
        assert points.are_lazy(ours)
        _alike(ours.clone(), expected.clone())


def test_limits_of_recorded_points_are_recorded() -> None:
    x = _points(5, 2)
    expected = F.clamp_keypoints(F.horizontal_flip(x))
    with lazily():
        ours = F.clamp_keypoints(F.horizontal_flip(x))
        assert points.are_lazy(ours) and ours.canvas_size == CANVAS
        _alike(ours.clone(), expected.clone())


def test_special_values() -> None:
    inf, nan = float("inf"), float("nan")
    x = tv_tensors.KeyPoints([[nan, -inf], [inf, nan], [-0.0, 0.0], [1e38, -1e38], [3e-45, 0.5]], canvas_size=CANVAS)
    for chain in (
        [(F.horizontal_flip, ()), (F.resize, ([400, 333],)), (F.clamp_keypoints, ())],
        [(F.vertical_flip, ()), (F.pad, (3,)), (F.clamp_keypoints, ()), (F.crop, (0, 0, 5, 5))],
    ):
        expected = _run(x, chain)
        with lazily():
            ours = _run(x, chain)
            assert points.are_lazy(ours)
            exactly(ours.clone(), expected)


def test_a_copy_is_recorded() -> None:
    """The script may change its points afterwards."""
    x = _points(3, 2)
    expected = F.horizontal_flip(x).clone()
    with lazily():
        ours = F.horizontal_flip(x)
        x.zero_()
        exactly(ours.clone(), expected)


def test_aliases_share_memory() -> None:
    def result(which: int) -> Any:
        flipped = F.horizontal_flip(_points(3, 2))
        aliases = [flipped, flipped.as_subclass(torch.Tensor), F.vertical_flip(flipped)]
        aliases[which].add_(5)
        return aliases

    for which in range(3):
        expected = result(which)
        with lazily():
            for ours, theirs in zip(result(which), expected, strict=True):
                assert ours.__class__ is type(theirs)
                exactly(ours, theirs)


def test_a_script_changes_recorded_points() -> None:
    def result() -> Any:
        x = F.resize(_points(4, 2), [45, 33])
        x[..., 0] += 1
        x[1:, 1].clamp_(0, 20)
        x = F.horizontal_flip(x)
        chosen = x[torch.tensor([True, False, True, True])]
        return x, chosen, x.mean(), F.affine(x, 10, [1, 2], 1.5, [3.0, 4.0]), F.horizontal_flip(F.rotate(x, 30))

    expected = result()
    with lazily():
        ours = result()
        assert points.are_lazy(ours[-1]), "recording begins again after a function that is not recorded"
    for x, y in zip(ours, expected, strict=True):
        assert x.__class__ is y.__class__
        exactly(x, y)


class _Mine(tv_tensors.KeyPoints):
    """A script's own class."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: _points(3, 2).requires_grad_(),
        lambda: _points(3, 2, dtype=torch.float16),
        lambda: _points(0, 2),
        lambda: tv_tensors.KeyPoints(torch.rand(2, 6).mT[:, :2], canvas_size=CANVAS),
        lambda: tv_tensors.KeyPoints([3.0, 4.0], canvas_size=CANVAS),
        lambda: _points(3, 2).as_subclass(_Mine),
        lambda: tv_tensors.KeyPoints([[3.0, 4.0]], canvas_size=[90, 120]),  # type: ignore[arg-type]
    ],
)
def test_other_points_stay_torchvisions(make: Callable[[], Any]) -> None:
    torch.manual_seed(3)
    expected = _outcome(make())
    torch.manual_seed(3)
    x = make()
    with lazily():
        ours = _outcome(x)
    assert ours[0] == expected[0]
    if isinstance(expected[1], torch.Tensor):
        exactly(ours[1].clone().detach(), expected[1].clone().detach())
        assert ours[1].requires_grad == expected[1].requires_grad
    else:
        assert ours[1] == expected[1]


def _outcome(x: Any) -> tuple[type, Any]:
    try:
        result = F.resize(F.horizontal_flip(x), [30, 40])
    except Exception as error:
        return type(error), str(error)
    return result.__class__, result


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.pad(x, [1, 2], padding_mode="reflect"),
        lambda x: F.pad(x, [1, 2, 3]),
        lambda x: F.resize(x, "large"),
        lambda x: F.crop(x, 1, 2),
        lambda x: F.center_crop(x, None),
        lambda x: F.resized_crop(x, 1, 2, 3, 4, [0, 0]),
        lambda x: F.crop(x, 1.5, 2, 3, 4),
        lambda x: F.resize(x, [10], max_size=5),
    ],
)
def test_errors_are_torchvisions(call: Callable[[Any], Any]) -> None:
    def outcome() -> Any:
        try:
            result = call(F.horizontal_flip(_points(3, 2)))
        except Exception as error:
            return type(error), str(error)
        return np.asarray(result).tobytes(), result.canvas_size

    expected = outcome()
    with lazily():
        assert outcome() == expected


def test_torchs_default_type_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision's ratios have the default type. No trial may have been answered before."""
    monkeypatch.setattr(trial_cache, "find_once", lambda key, find: find())
    x = _points(9, 2, dtype=torch.float64)
    try:
        torch.set_default_dtype(torch.float64)
        expected = F.resize(F.horizontal_flip(x), [31, 77])
        with lazily():
            ours = F.resize(F.horizontal_flip(x), [31, 77])
    finally:
        torch.set_default_dtype(torch.float32)
    exactly(ours, expected)


def test_a_release_with_other_arithmetic_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that mirrors at the image's width instead of the last coordinate fails the trial."""
    monkeypatch.setattr(trial_cache, "find_once", lambda key, find: find())

    def other(x: Any) -> Any:
        values = (x.as_subclass(torch.Tensor) * torch.tensor([-1, 1])) + torch.tensor([x.canvas_size[1], 0])
        return tv_tensors.wrap(values, like=x)

    with lazily():
        ours = hooks.wrap_kernel("horizontal_flip", other, tv_tensors.KeyPoints)(_points(3, 2))
        assert not points.are_lazy(ours)
        exactly(ours, other(_points(3, 2)))


@dataclasses.dataclass
class _Target:
    """Batch of a class whose structure is unknown."""

    points: Any


class _Samples(Dataset[Any]):
    """Photographs with key points."""

    def __init__(self, transform: Any, *, keeps: bool = False) -> None:
        self.transform = transform
        self.keeps = keeps
        self.kept: dict[int, Any] = {}

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        if index not in self.kept:
            image = Image.fromarray(photograph(index % 3, *CANVAS))
            x = _points(2 + index % 3, 4, 2) + index
            points_of_image = tv_tensors.KeyPoints(x, canvas_size=CANVAS)
            sample = self.transform({"image": image, "points": points_of_image, "label": index})
            if not self.keeps:
                return sample
            self.kept[index] = sample
        return self.kept[index]


def _listed(rows: Any) -> Any:
    return [r["points"] for r in rows], {"labels": [r["label"] for r in rows]}, [r["image"] for r in rows]


def _wrapped(rows: Any) -> Any:
    return [_Target(r["points"]) for r in rows], [r["image"] for r in rows]


GEOMETRY = [
    v2.RandomResizedCrop((40, 50)),
    v2.RandomHorizontalFlip(),
    v2.RandomVerticalFlip(),
    v2.Pad([1, 2, 3, 4]),
    v2.ToImage(),
]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize("collate", [_listed, _wrapped])
def test_loaders_deliver_plain_points(collate: Any, is_pure: bool, workers: int) -> None:
    transform = v2.Compose([*GEOMETRY, *([v2.ToPureTensor()] if is_pure else [])])

    def run() -> list[Any]:
        torch.manual_seed(1)
        found: list[Any] = []
        for batch in DataLoader(_Samples(transform), 4, num_workers=workers, collate_fn=collate):
            found += [x.points if isinstance(x, _Target) else x for x in batch[0]]
        return found

    expected = run()
    with stoker.torchvision.enabled():
        ours = run()
    for x, y in zip(ours, expected, strict=True):
        _alike(x, y)
        assert type(x) is (torch.Tensor if is_pure else tv_tensors.KeyPoints)


def test_an_object_that_occurs_twice_is_delivered_as_one() -> None:
    def transform(sample: Any) -> Any:
        flipped = F.horizontal_flip(sample["points"])
        return {**sample, "points": (flipped, [flipped])}

    with stoker.torchvision.enabled():
        batch = next(iter(DataLoader(_Samples(transform), 2, collate_fn=_listed)))
    for one, [other] in batch[0]:
        assert one is other and type(one) is tv_tensors.KeyPoints


@pytest.mark.parametrize("workers", [0, 2])
def test_default_collate_stacks_points(workers: int) -> None:
    class Same(_Samples):
        def __getitem__(self, index: int) -> Any:
            sample = super().__getitem__(3 * (index % 2))
            return sample["image"], sample["points"]

    def run() -> list[Any]:
        torch.manual_seed(1)
        transform = v2.Compose(GEOMETRY)
        return [points_of_batch for _, points_of_batch in DataLoader(Same(transform), 2, num_workers=workers)]

    expected = run()
    with stoker.torchvision.enabled():
        ours = run()
    for x, y in zip(ours, expected, strict=True):
        _alike(x, y)


def test_a_collation_on_points_is_torchs() -> None:
    rows = [_points(3, 2), _points(4, 2)]

    def result() -> Any:
        flipped = [F.horizontal_flip(x) for x in rows]
        return torch.cat(flipped), default_collate([flipped[0], flipped[0]])

    expected = result()
    with lazily():
        ours = result()
    for x, y in zip(ours, expected, strict=True):
        _alike(x, y)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_may_keep_points(workers: int) -> None:
    def run() -> list[Any]:
        torch.manual_seed(1)
        loader = DataLoader(
            _Samples(v2.Compose(GEOMETRY), keeps=True), 4, num_workers=workers, collate_fn=_listed,
            persistent_workers=bool(workers),
        )  # fmt: skip
        return [x for _ in range(3) for batch in loader for x in batch[0]]

    expected = run()
    with stoker.torchvision.enabled():
        ours = run()
    for x, y in zip(ours, expected, strict=True):
        _alike(x, y)


def test_lazy_points_are_pickled_as_plain_ones() -> None:
    import pickle

    with lazily():
        ours = F.horizontal_flip(_points(3, 2))
        assert points.are_lazy(ours)
        loaded = pickle.loads(pickle.dumps(ours))
    expected = F.horizontal_flip(_points(3, 2))
    _alike(loaded, pickle.loads(pickle.dumps(expected)))


def test_sanitized_points() -> None:
    def result() -> Any:
        sample = {"points": F.horizontal_flip(_points(6, 2)), "labels": torch.arange(6)}
        return v2.SanitizeKeyPoints(labels_getter=lambda s: s["labels"])(sample)

    expected = result()
    with lazily():
        ours = result()
    for name in ("points", "labels"):
        exactly(ours[name], expected[name])
