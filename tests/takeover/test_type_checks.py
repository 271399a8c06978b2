# SPDX-License-Identifier: Apache-2.0
"""``type(x)`` in a script's own code has the outcome that it has without Stoker, and images stay lazy."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from idle_clock import HANG_S
from PIL import Image, JpegImagePlugin
from torch.utils.data import DataLoader, Dataset

import stoker.torchvision
import tests.takeover.declared  # noqa: F401 - before torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.hooks import switch
from stoker.frontends.torchvision.hooks.type_checks import type_of, with_type_of
from stoker.frontends.torchvision.pillow.represented import ProxyMeta
from stoker.frontends.torchvision.tensors import tensor as tensors
from stoker.frontends.torchvision.tensors.lazy_base import LazyMeta
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

import torchvision.transforms as transforms  # isort: skip
from torchvision import tv_tensors  # isort: skip
from torchvision.transforms import v2  # isort: skip

REAL_TYPE = type
HANDLERS: dict[type, str] = {torch.Tensor: "tensor", Image.Image: "image", JpegImagePlugin.JpegImageFile: "file"}


class Mine(torch.Tensor):
    """Tensor of a script, without a ``__new__`` of its own."""


@functools.singledispatch
def named(x: Any) -> str:
    return "other"


named.register(torch.Tensor, lambda x: "tensor")
named.register(Image.Image, lambda x: "image")


def is_exactly(kind: type) -> Callable[[Any], bool]:
    return lambda x: type(x) is kind  # a function within a function


def shares_a_name(x: Any) -> tuple[bool, Any]:
    return type(x) is torch.Tensor, getattr(x, "device", torch.device("cpu")).type


CHECKS: dict[str, Callable[[Any], Any]] = {
    "is Tensor": lambda x: type(x) is torch.Tensor,
    "is Image": lambda x: type(x) is Image.Image,
    "equals": lambda x: (type(x) == torch.Tensor, type(x) != Image.Image),  # noqa: E721 - what scripts write
    "member": lambda x: type(x) in (torch.Tensor, Image.Image, np.ndarray),
    "dictionary": lambda x: HANDLERS[type(x)],
    "name": lambda x: (type(x).__name__, type(x).__module__, repr(type(x))),
    "class": lambda x: x.__class__ is type(x),
    "subclass": lambda x: (issubclass(type(x), torch.Tensor), issubclass(type(x), Image.Image)),
    "comprehension": lambda x: [type(y) is torch.Tensor for y in (x, 1)],
    "match": lambda x: "tensor" if type(x) is torch.Tensor else "image" if type(x) is Image.Image else "other",
    "dispatch": named,
    "inner": is_exactly(torch.Tensor),
    "shared name": shares_a_name,
    "partial": functools.partial(lambda kind, x: type(x) is kind, torch.Tensor),
    "mro": lambda x: [kind.__name__ for kind in type(x).mro()],
    "class of three arguments": lambda x: type("New", (), {"x": 3}).x,
    "itself": lambda x: (type(torch.Tensor), type(type), isinstance(type(x), type)),
}


class Checked(Dataset[Any]):
    """Data set whose own code looks at the classes of its objects."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(str(path) for path in folder.glob("*/*.jpg"))
        self.checks = CHECKS
        self.transform = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        opened = Image.open(self.paths[index])
        image = opened.convert("RGB").resize((48, 40))
        tensor = self.transform(image)
        shown = {name: [check(x) for x in (opened, image, tensor)] for name, check in self.checks.items()}
        return tensor, shown, type(tensor) is torch.Tensor and type(image) is Image.Image


def collate(samples: list[Any]) -> Any:
    assert all(type(x) is torch.Tensor for x, _, _ in samples), [type(x) for x, _, _ in samples]
    return torch.stack([x for x, _, _ in samples]), [(shown, exact) for _, shown, exact in samples]


def batches(folder: Path, workers: int) -> list[Any]:
    torch.manual_seed(4)
    loader = DataLoader(
        Checked(folder), batch_size=3, num_workers=workers, collate_fn=collate, timeout=HANG_S if workers else 0
    )
    return list(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_script_that_checks_types(files: Path, workers: int) -> None:
    expected = batches(files, workers)
    counts.reset()
    with stoker.torchvision.enabled():
        ours = batches(files, workers)
    assert len(ours) == len(expected) > 1
    for (a, shown), (b, really) in zip(ours, expected, strict=True):
        exactly(a, b)
        assert shown == really
        assert all(exact for _, exact in shown)
    total = counts.totals()
    assert total[counts.NATIVE] > 0 and not total[counts.PIXELS] and not total[counts.TORCH], "all stay lazy"


def test_images_of_the_second_generation(files: Path) -> None:
    path = next(files.glob("*/*.jpg"))

    def check() -> Any:
        x = v2.functional.to_image(Image.open(path).convert("RGB"))
        y = v2.functional.resize(x, [20, 20])
        return type(x) is tv_tensors.Image, type(y) is type(x), type(y.as_subclass(torch.Tensor)) is torch.Tensor

    stoker.torchvision.enable()
    try:
        switch.type_checks.scan(check)
        with switch.fetching():
            assert check() == (True, True, True)
    finally:
        stoker.torchvision.disable()
    assert check() == (True, True, True)


def test_a_subclass_of_tensors_is_made_of_a_lazy_one(files: Path) -> None:
    path = next(files.glob("*/*.jpg"))

    def make() -> Any:
        mine = Mine(transforms.functional.pil_to_tensor(Image.open(path).convert("RGB")))  # type: ignore[no-untyped-call]
        return mine, type(mine) is Mine

    expected = make()
    with stoker.torchvision.enabled():
        switch.type_checks.scan(make)
        with switch.fetching():
            ours = make()
    assert ours[1] and expected[1]
    exactly(ours[0].as_subclass(torch.Tensor), expected[0].as_subclass(torch.Tensor))
    assert "__new__" not in vars(Mine)
    assert type(Mine([1.0, 2.0])) is Mine, "the class is its own again"  # type: ignore[arg-type, no-untyped-call]


def test_functions_are_as_before_after_a_fetch(files: Path) -> None:
    code = shares_a_name.__code__
    with stoker.torchvision.enabled():
        switch.type_checks.scan()
        assert shares_a_name.__code__ is code
        with switch.fetching():
            within = shares_a_name.__code__
            assert within is not code and "stoker_type_of" in within.co_names
            assert inspect.getsource(shares_a_name).startswith("def shares_a_name")
            assert list(within.co_lines()) == list(code.co_lines())
        assert shares_a_name.__code__ is code


def test_a_function_that_is_still_running_after_its_fetch(files: Path) -> None:
    def numbers(*given: Any) -> Any:
        for x in given:
            yield type(x)

    with stoker.torchvision.enabled():
        switch.type_checks.scan(numbers)
        with switch.fetching():
            running = numbers(1, 2)
            assert next(running) is int
    assert next(running) is int


def test_a_module_that_is_imported_later(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("imported_later")
    module.__dict__["torch"] = torch
    exec("def check(x):\n    return type(x)\n", module.__dict__)
    outside = module.check.__code__
    with stoker.torchvision.enabled():
        switch.type_checks.scan()
        monkeypatch.setitem(sys.modules, module.__name__, module)
        with switch.fetching():
            assert module.check.__code__ is not outside and module.check(3) is int


def test_a_data_set_of_many_objects() -> None:
    class Sample:
        def kind(self) -> type:
            return type(self)

    many = [[Sample() for _ in range(100)] for _ in range(100)]
    code = vars(Sample)["kind"].__code__
    with stoker.torchvision.enabled():
        begin = time.process_time()
        switch.type_checks.scan({"data": many, "itself": (cycle := [many])}, cycle)
        assert time.process_time() - begin < 5, "each class is searched once"
        with switch.fetching():
            assert vars(Sample)["kind"].__code__ is not code and many[3][4].kind() is Sample


def test_only_functions_that_may_see_lazy_objects() -> None:
    scopes = [ModuleType(name) for name in ("unrelated", "referred_to", "with_torch", "of_the_data_set")]
    unrelated, referred, with_torch, data = scopes
    for module in scopes:
        exec("def check(x):\n    return type(x)\n", module.__dict__)
    with_torch.__dict__.update(torch=torch, other=referred)
    with pytest.MonkeyPatch.context() as patch, stoker.torchvision.enabled():
        for module in scopes:
            patch.setitem(sys.modules, module.__name__, module)
        codes = {module: module.check.__code__ for module in scopes}
        switch.type_checks.scan([{"a": functools.partial(data.check)}])
        with switch.fetching():
            changed = {module: module.check.__code__ is not codes[module] for module in scopes}
    assert changed == {unrelated: False, referred: True, with_torch: True, data: True}


def test_a_module_that_names_the_classes_of_lazy_objects(files: Path) -> None:
    scope: dict[str, Any] = {"LazyTensor": tensors.LazyTensor, "__name__": "knowing"}
    exec("def check(x):\n    return type(x) is LazyTensor\n", scope)
    with stoker.torchvision.enabled():
        switch.type_checks.scan(scope["check"])
        with switch.fetching():
            tensor = transforms.functional.to_tensor(Image.open(next(files.glob("*/*.jpg"))))
            assert scope["check"](tensor)


def test_names_that_do_not_fit() -> None:
    names = [f"n{i}" for i in range(140)]
    scope: dict[str, Any] = dict.fromkeys(names, 1)
    exec(f"def many(x):\n    return type(x), {' + '.join(names)}\n", scope)
    exec(f"def enough(x):\n    return {' + '.join(names[:120])}, type(x)\n", scope)
    exec("def own(x, type=str):\n    return type(x)\n", scope)
    exec("def passed(x):\n    return list(map(type, [x])), isinstance(x, type)\n", scope)
    scope["stoker_type_of"] = lambda x: "replaced"
    for name, expected in (("many", int), ("enough", "replaced"), ("own", "3"), ("passed", [int])):
        function = scope[name]
        function.__code__ = with_type_of(function.__code__)
        found = function(3)
        assert expected in (found, *(found if isinstance(found, tuple) else ())), name


def test_classes_of_lazy_objects(files: Path) -> None:
    path = next(files.glob("*/*.jpg"))
    with lazily():
        image = Image.open(path)
        tensor = transforms.functional.to_tensor(image)
        assert isinstance(REAL_TYPE(image), ProxyMeta) and type_of(image) is JpegImagePlugin.JpegImageFile
        assert isinstance(REAL_TYPE(tensor), LazyMeta) and type_of(tensor) is torch.Tensor
    assert type_of(3) is int and type_of("A", (), {}).__name__ == "A"
    with pytest.raises(TypeError, match="1 or 3 arguments"):
        type_of(1, 2)
