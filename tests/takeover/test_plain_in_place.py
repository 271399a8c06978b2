# SPDX-License-Identifier: Apache-2.0
"""A lazy tensor becomes a plain one, in place: its uses in a data set have torch's outcomes."""

from __future__ import annotations

import copy
import pickle
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils import dlpack
from torch.utils.dlpack import to_dlpack as imported_to_dlpack
from torchvision import transforms
from torchvision.transforms import functional, v2

import stoker.torchvision
from stoker.frontends.torchvision.tensors.tensor import is_lazy
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import classification, run

LOADED: dict[str, Callable[[Path], Any]] = {
    "ToTensor": lambda path: transforms.ToTensor()(Image.open(path).convert("RGB")),
    "PILToTensor": lambda path: transforms.PILToTensor()(Image.open(path).convert("RGB")),
    "ToImage": lambda path: v2.functional.to_image(Image.open(path).convert("RGB")),
    "ToDtype": lambda path: v2.ToDtype(torch.float32, scale=True)(
        v2.functional.to_image(Image.open(path).convert("L"))
    ),
}


def backward(x: Any) -> Any:
    x = x.float().requires_grad_()
    (x * x).sum().backward()
    return x, x.grad


def in_place_gradient(x: Any) -> Any:
    x = x.float()
    x.requires_grad = True
    x.sum().backward()
    return x.grad, x.requires_grad, x.is_leaf


def subclassed(x: Any) -> Any:
    class Mine(torch.Tensor):
        """Tensor of a script."""

    return x.as_subclass(Mine).sum().item(), isinstance(x.as_subclass(Mine), Mine)


def shape_in_place(x: Any) -> Any:
    shown = x.unsqueeze_(0) is x, x.transpose_(0, 1) is x, x.squeeze_(1) is x
    return x, x.shape, x.stride(), shown


def reclassed(x: Any) -> Any:
    x.__class__ = torch.nn.Parameter
    return isinstance(x, torch.nn.Parameter), x


def kept_attributes(x: Any) -> Any:
    x.label = 3
    x.numpy()
    return x.label, sorted(vars(x))


USES: dict[str, Callable[[Any], Any]] = {
    "backward": backward,
    "gradient in place": in_place_gradient,
    "subclass": subclassed,
    "shape in place": shape_in_place,
    "class in place": reclassed,
    "attributes": kept_attributes,
    "class": lambda x: (x.__class__, isinstance(x + 1, type(x)), isinstance(torch.zeros(1), type(x))),
    "class of results": lambda x: (type(torch.fft.fft(x.float())), isinstance(x.double(), type(x.double().floor()))),
    "storage": lambda x: (x.numpy().shape, x.data_ptr() == x.data_ptr(), x.untyped_storage().nbytes()),
    "detach in place": lambda x: (x.clone().as_subclass(torch.Tensor).float().add(1).detach_(),),
    "view": lambda x: (x._is_view(), x.clone()._is_view(), x[:, 3:20]._is_view(), x.rot90(1, (1, 2))._is_view()),
    "detach a view in place": lambda x: x[:, 3:20, :9].detach_(),
    "weak reference": lambda x: weakref.ref(x)() is x,
    "copy": lambda x: (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.deepcopy([x])),
    "capsule": lambda x: torch.from_dlpack(x.as_subclass(torch.Tensor)).sum(),
    "data": lambda x: (x.data, x.detach(), x.data.sum()),
    "func": lambda x: torch.func.vmap(lambda row: row.sum())(x.as_subclass(torch.Tensor)),
    "compare": lambda x: (x == x, torch.equal(x, x), x is x.cpu(), x.to(x.dtype) is x),
    "list": lambda x: (x.tolist()[0][0][:3], len(x), bool((x > 3).any()), [row.shape for row in x]),
    "clamp by keyword": lambda x: torch.clamp(input=x, min=0),
    "add by keyword": lambda x: torch.add(input=x, other=1),
    "mul by keyword": lambda x: torch.mul(input=x, other=2),
    "sub by keyword": lambda x: torch.sub(input=x, other=1, alpha=2),
    "div by keyword": lambda x: torch.div(input=x, other=2),
    "mode of div": lambda x: torch.div(input=x, other=3, rounding_mode="floor"),
    "neg by keyword": lambda x: torch.neg(input=x),
    "floor by keyword": lambda x: torch.floor(input=x.float()),
    "round by keyword": lambda x: torch.round(input=x.float() * 3.3, decimals=1),
    "flip by keyword": lambda x: torch.flip(input=x, dims=(-1,)),
    "clone by keyword": lambda x: torch.clone(input=x),
    "reshape by keyword": lambda x: torch.reshape(input=x, shape=(-1,)),
    "rot90 by keyword": lambda x: torch.rot90(input=x, k=1, dims=(1, 2)),
    "other by keyword": lambda x: x.add(other=x.clone()),
    "zeros": lambda x: (
        torch.signbit(x.float() * 0.0),
        torch.signbit(x.float() * -0.0),
        torch.signbit(x.float() * 0.0),
    ),
}


def plain(outcome: Any) -> Any:
    """Return an outcome in a form that can be compared."""
    if isinstance(outcome, torch.Tensor):
        kind = outcome.__class__
        strides = [stride for stride, n in zip(outcome.stride(), outcome.shape, strict=True) if n != 1]
        layout = strides, outcome.storage_offset(), outcome.requires_grad, outcome.is_leaf
        return kind, outcome.dtype, outcome.shape, layout, outcome.detach().as_subclass(torch.Tensor).numpy().tobytes()
    return [plain(x) for x in outcome] if isinstance(outcome, (list, tuple)) else outcome


def outcome(use: Callable[[Any], Any], x: Any) -> Any:
    try:
        result = plain(use(x))
    except Exception as error:
        result = type(error), str(error)
    return result, plain(x)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("way", LOADED)
@pytest.mark.parametrize("use", USES)
def test_uses_of_tensors(photo: Path, way: str, use: str) -> None:
    expected = outcome(USES[use], LOADED[way](photo))
    with lazily():
        x = LOADED[way](photo)
        assert is_lazy(x)
        assert outcome(USES[use], x) == expected
        assert type(x) is expected[1][0], "plain from now on"


def test_capsules_of_lazy_tensors(photo: Path) -> None:
    """A capsule of a function that a script has imported early has no null pointer: it is refused."""
    expected = LOADED["ToTensor"](photo)
    with lazily():
        exactly(dlpack.from_dlpack(dlpack.to_dlpack(LOADED["ToTensor"](photo))), expected)
        x = LOADED["ToTensor"](photo)
        try:
            exactly(dlpack.from_dlpack(imported_to_dlpack(x)), expected)
        except RuntimeError as error:
            assert "data pointer" in str(error)


def test_tables_depend_on_the_default_type(photo: Path) -> None:
    def scaled() -> Any:
        return LOADED["PILToTensor"](photo) * 1.5

    with lazily():
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            try:
                assert scaled().dtype == dtype
            finally:
                torch.set_default_dtype(torch.float32)


def test_zeros_of_both_signs(photo: Path) -> None:
    def zeros(sign: float) -> Any:
        x = LOADED["ToTensor"](photo)
        return x * (0.0 * sign), functional.normalize(x, [0.0 * sign, 1.0, 0.0], [1.0] * 3) * 1.0

    expected = [zeros(sign) for sign in (1.0, -1.0)]
    with lazily():
        for sign, want in zip((1.0, -1.0), expected, strict=True):
            for a, b in zip(want, zeros(sign), strict=True):
                exactly(a, b)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_no_views(files: Path, workers: int) -> None:
    with stoker.torchvision.enabled():
        for images, _ in classification(str(files), workers):
            assert type(images) is torch.Tensor and not images._is_view()
            assert images.detach_() is images and images.requires_grad_().is_leaf


class Batch:
    """Batch of a class that is no container."""

    def __init__(self, samples: Any) -> None:
        self.images = torch.stack([image for image, _ in samples])
        self.first = samples[0][0]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_any_class_are_plain(files: Path, workers: int) -> None:
    expected = run(classification(str(files), workers, collate_fn=Batch))
    with stoker.torchvision.enabled():
        ours = run(classification(str(files), workers, collate_fn=Batch))
    for a, b in zip(expected, ours, strict=True):
        for x, y in ((a.images, b.images), (a.first, b.first)):
            assert type(y) is torch.Tensor
            exactly(x, y)


class Own:
    """Iterator of another library over torch's fetchers."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        fetcher: Any = torch.utils.data._utils.fetch._MapDatasetFetcher(
            self.loader.dataset, True, self.loader.collate_fn, False
        )
        for index in self.loader.batch_sampler:
            yield fetcher.fetch(index)


def test_fetches_of_other_libraries_are_plain(files: Path) -> None:
    torch.manual_seed(0)
    expected = list(Own(classification(str(files), 0)))
    with stoker.torchvision.enabled():
        torch.manual_seed(0)
        ours = list(Own(classification(str(files), 0)))
    for (a, _), (b, _) in zip(expected, ours, strict=True):
        assert type(b) is torch.Tensor
        exactly(a, b)


class Keeping(torch.utils.data.Dataset[Any]):
    """Data set that keeps its tensors."""

    def __init__(self, root: Path) -> None:
        self.files = sorted(root.rglob("[0-9].jpg"))
        self.kept: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        if index not in self.kept:
            image = Image.open(self.files[index]).convert("RGB").resize((70, 70))
            self.kept[index] = transforms.ToTensor()(image)
        return self.kept[index], is_lazy(self.kept[index])


@pytest.mark.parametrize("workers", [0, 1])
def test_tensors_that_a_data_set_keeps_are_computed_once(files: Path, workers: int) -> None:
    def loader(data: Keeping) -> Any:
        return torch.utils.data.DataLoader(data, 2, num_workers=workers, persistent_workers=bool(workers))

    expected, data = run(loader(Keeping(files)), epochs=2), Keeping(files)
    with stoker.torchvision.enabled():
        ours = run(loader(data), epochs=2)
        assert all(type(x) is torch.Tensor for x in data.kept.values())
    for (x, _), (y, _) in zip(expected, ours, strict=True):
        exactly(x, y)
    half = len(ours) // 2
    assert all(was_lazy.all() for _, was_lazy in ours[:half])
    assert not any(was_lazy.any() for _, was_lazy in ours[half:])
