# SPDX-License-Identifier: Apache-2.0
"""The boundary of the take-over: scripts outside of a fetch use torch, torchvision and Pillow as they are."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from torchvision.transforms import functional, v2

import stoker.torchvision
from stoker.frontends.torchvision.hooks.changes import FetchChanges, hooked_code
from tests.forked import ForkServer
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["enabled", "in a fetch"])
def taken(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Context managers: the take-over is enabled; a data set's code runs."""
    return stoker.torchvision.enabled if request.param == "enabled" else lazily


# Compilers cache what they have compiled, so each case runs in a process of its own.
COMPILING = """
import sys
import torch, tests.takeover.declared, torchvision, stoker.torchvision
from torchvision import transforms
from tests.takeover.lazily import lazily

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.normalize = transforms.Normalize([0.5] * 3, [0.25] * 3)
        self.layer = torch.nn.Conv2d(3, 2, 3)
    def forward(self, x):
        return self.layer(self.normalize(x)).relu().mean((2, 3))

model, image = Model().eval(), torch.rand(1, 3, 50, 48)
scripted = {
    "Normalize": transforms.Normalize([0.5] * 3, [0.25] * 3),
    "Resize": transforms.Resize([5, 6], antialias=True),
    "GaussianBlur": transforms.GaussianBlur(3, 1.0),
    "RandomAffine": transforms.RandomAffine((10.0, 10.0)),
    "RandomPerspective": transforms.RandomPerspective(p=1.0),
    "ColorJitter": transforms.ColorJitter(0.2, 0.2, 0.2, 0.1),
    "ElasticTransform": transforms.ElasticTransform(2.0),
    "Grayscale": transforms.Grayscale(),
    "RandomAutocontrast": transforms.RandomAutocontrast(1.0),
    "weights": torchvision.models.ResNet18_Weights.DEFAULT.transforms(antialias=True),
    "model": model,
}
with torch.no_grad(), {"enabled": stoker.torchvision.enabled, "in a fetch": lazily}[sys.argv[1]]():
    for name, module in scripted.items():
        torch.manual_seed(0)
        expected = module(image)
        torch.manual_seed(0)
        torch.testing.assert_close(torch.jit.script(module)(image), expected, msg=name)
    torch.testing.assert_close(torch.jit.trace(model, image)(image), model(image))
    if sys.argv[1] == "enabled":
        torch.testing.assert_close(torch.compile(model, backend="aot_eager")(image), model(image))
        exported = torch.export.export(model.layer, (image,)).run_decompositions()
        torch.testing.assert_close(exported.module()(image), model.layer(image))
print("done")
"""


@pytest.mark.parametrize("mode", ["enabled", "in a fetch"])
def test_models_and_transforms_are_compiled(mode: str, tmp_path: Path, forked: ForkServer) -> None:
    script = tmp_path / "compiling.py"
    script.write_text(COMPILING)
    done = forked.run(script, mode)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    "function", [functional.normalize, functional.to_tensor, Image.fromarray, v2.functional.to_image]
)
def test_hooked_functions_look_like_the_originals(function: Any) -> None:
    expected = inspect.getsource(function), inspect.signature(function), function.__code__.co_qualname
    with lazily():
        found = inspect.getsource(function), inspect.signature(function), function.__code__.co_qualname
        assert found == expected


class Mine(JpegImageFile):
    """Class of a script's own."""


class MineToo(Image.Image):
    """Class of a script's own."""


OPENED: dict[str, Callable[[Path], Any]] = {
    "file": Image.open,
    "loaded file": lambda path: loaded(Image.open(path)),
    "read file": lambda path: with_size(Image.open(path)),
    "step": lambda path: Image.open(path).convert("L"),
    "other format": lambda path: Image.open(as_format(path, "PNG")),
    "array": lambda path: Image.fromarray(plain_array(path)),
}


def loaded(image: Any) -> Any:
    image.load()
    return image


def with_size(image: Any) -> Any:
    assert image.resize((20, 20)).size == (20, 20)
    return image


def as_format(path: Path, name: str) -> io.BytesIO:
    with open(path, "rb") as opened:
        file = io.BytesIO()
        JpegImageFile(opened).save(file, name)
    return file


def plain_array(path: Path) -> Any:
    with open(path, "rb") as opened:
        return functional.np.array(JpegImageFile(opened))


@pytest.mark.parametrize("name", OPENED)
def test_a_script_sets_the_class_of_an_image(photo: Path, name: str, taken: Callable[[], Any]) -> None:
    def changed() -> Any:
        image = OPENED[name](photo)
        image.__class__ = Mine if isinstance(image, ImageFile.ImageFile) else MineToo
        return image

    expected = changed()
    with taken():
        image = changed()
        assert type(image) is type(expected)
        assert (image.mode, image.size, image.info) == (expected.mode, expected.size, expected.info)
        exactly(image.resize((30, 20)), expected.resize((30, 20)))
        assert set(vars(image)) == set(vars(expected))


@pytest.mark.parametrize("name", OPENED)
def test_classes_are_pillows(photo: Path, name: str, taken: Callable[[], Any]) -> None:
    def classes() -> list[Any]:
        image = OPENED[name](photo)
        results = [image.convert("L"), image.resize((9, 9)), image.quantize(), image.copy(), image.rotate(3)]
        own = [x.__class__ for x in (image, *results)]
        return own + [isinstance(x, type(y)) for x in (image, *results) for y in (image, *results)]

    expected = classes()
    with taken():
        assert classes() == expected


def test_nothing_is_lazy_outside_of_a_fetch(photo: Path) -> None:
    expected = loaded(Image.open(photo))
    with stoker.torchvision.enabled():
        image = loaded(Image.open(photo))
        assert type(image) is type(expected) and type(image.convert("L")) is Image.Image
        for x in (functional.to_tensor(image), functional.pil_to_tensor(image), v2.functional.to_image(image)):
            assert type(x) in (torch.Tensor, torchvision.tv_tensors.Image)


def _rooms() -> Any:
    cell = 1

    def closure(a: int, /, b: int, *rest: int, c: int = 3, **others: int) -> Any:
        return cell, a, b, rest, c, others

    return closure


def _pure_mask(_: Path) -> Any:
    mask = torchvision.tv_tensors.Mask(torch.arange(2 * 90 * 120).view(2, 90, 120).to(torch.uint8))
    return v2.functional.horizontal_flip(mask).as_subclass(torch.Tensor)


def _pure_points(_: Path) -> Any:
    if not hasattr(torchvision.tv_tensors, "KeyPoints"):
        pytest.skip("this release of torchvision has no key points")
    points: Any = torchvision.tv_tensors.KeyPoints([[[3.0, 4.0]], [[5.0, 6.0]]], canvas_size=(90, 120))
    return v2.functional.horizontal_flip(points).as_subclass(torch.Tensor)


@pytest.mark.parametrize("make", [lambda photo: functional.to_tensor(Image.open(photo)), _pure_mask, _pure_points])
@pytest.mark.parametrize("name", ["repeat", "broadcast_to", "hash_tensor", "squeeze", "unsqueeze"])
def test_errors_about_a_tensor_in_place_of_integers(photo: Path, name: str, make: Callable[[Path], Any]) -> None:
    if not hasattr(torch.Tensor, name):
        pytest.skip(f"this release of torch has no `Tensor.{name}`")
    function = getattr(torch.Tensor, name)

    def outcome() -> tuple[Any, str]:
        image = make(photo)
        with pytest.raises(TypeError) as found:
            function(image if name.endswith("squeeze") else torch.ones(3, 1, 1), image)
        return image, str(found.value)

    expected = outcome()
    with lazily():
        image, text = outcome()
        assert text == expected[1]
        exactly(expected[0], image.clone())
        with pytest.raises(TypeError, match="only integer tensors of a single element"):
            range(functional.to_tensor(Image.open(photo)))  # type: ignore[call-overload]


def test_changes_of_functions_are_made_and_undone() -> None:
    changes = FetchChanges()
    function, calls = _rooms(), []
    body = function.__code__

    def hook(original: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        return original(*args, **kwargs)

    changes.replace_body(function, hook)
    assert function.__code__ is body
    changes.enter()
    changes.enter()
    changes.leave()
    assert function(1, 2, 4, d=5) == (1, 1, 2, (4,), 3, {"d": 5}) and calls == [((1, 2, 4), {"c": 3, "d": 5})]
    assert changes.original(function)(1, 2) == (1, 1, 2, (), 3, {}) and len(calls) == 1
    with pytest.raises(TypeError, match=r"closure\(\) missing 1 required positional argument: 'b'"):
        function(1)
    changes.leave()
    assert function.__code__ is body
    changes.leave()
    assert function(1, 2)[-1] == {} and len(calls) == 1
    assert hooked_code(body, hook).co_freevars != () == hooked_code(hook.__code__, hook).co_freevars[1:]
