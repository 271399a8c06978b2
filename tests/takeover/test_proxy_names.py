# SPDX-License-Identifier: Apache-2.0
"""Proxies of Pillow's and torch's objects have their names and memory layout, and are accepted in their place."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

import tests.takeover.declared  # noqa: F401

import torchvision.transforms.functional as v1  # isort: skip
from torchvision import tv_tensors  # isort: skip
from torchvision.transforms.v2 import functional as v2  # isort: skip

from stoker.frontends.torchvision.pillow.image import LazyImage
from stoker.frontends.torchvision.tensors.tensor import LazyTensor, is_lazy
from tests.forked import ForkServer
from tests.takeover import trials
from tests.takeover.lazily import lazily

Make = Callable[[Path], Any]
LOADED: dict[str, Make] = {
    "ToTensor": lambda file: v1.to_tensor(Image.open(file)),
    "PILToTensor": lambda file: v1.pil_to_tensor(Image.open(file)),
    "ToImage": lambda file: v2.to_image(Image.open(file)),
}


def with_its_owner(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the step's result while its owner is still in use."""

    def keep(x: Any) -> Any:
        result = step(x)
        result.part_of = x
        return result

    return keep


def rotated(x: Any, quarters: int = 1) -> Any:
    return torch.rot90(x, quarters, (-2, -1))


STEPS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "window": lambda x: x[:, 3:30, 5:60],
    "window in use": with_its_owner(lambda x: x[:, 3:30, 5:60]),
    "window of a window": lambda x: x[:, 3:30, 5:60][..., 2:9, 3:8],
    "rows": with_its_owner(lambda x: x[:, 3:30]),
    "one image": lambda x: x.unsqueeze(0),
    "window of one image": with_its_owner(lambda x: x.unsqueeze(0)[:, :, 3:30, 5:60].squeeze(0)),
    "crop": lambda x: v1.crop(x, 3, 5, 20, 30),
    "center": lambda x: v1.center_crop(x, [30]),
    "copy of a window": lambda x: x[:, 3:30, 5:60].clone(),
    "contiguous window": with_its_owner(lambda x: x[:, 3:30, 5:60].contiguous()),
    "contiguous": lambda x: x.unsqueeze(0).contiguous(),
    "mirrored window": lambda x: v1.hflip(x[:, 3:30, 5:60]),
    "window, doubled": lambda x: x[:, 3:30, 5:60] * 2,
    "window, changed": lambda x: x[:, 3:30, 5:60].add_(1),
    "resized": lambda x: v1.resize(x, [20, 22]),
    "resized window": lambda x: v1.resize(x[:, 3:30, 5:60], [20, 22]),
    "rotated": rotated,
    "rotated twice": lambda x: rotated(rotated(x), 3),
    "rotated and mirrored": lambda x: v1.vflip(rotated(x, 3)),
    "window of rotated": lambda x: rotated(x)[:, 3:30, 5:50],
    "gray of rotated": lambda x: v1.rgb_to_grayscale(rotated(x)),
    "resized and rotated": lambda x: v1.resize(rotated(x), [20, 22]),
    "stack": lambda x: torch.stack([x, x]),
    "stack of windows": lambda x: torch.stack([x[:, 3:9, 4:9], x[:, 3:9, 4:9]]),
    "window of a stack": lambda x: torch.stack([x, x])[:, :, 3:9, 5:8],
    "frame": lambda x: v1.pad(x, [3]),
    "brightness": lambda x: v1.adjust_brightness(x, 1.5),
    "gray": v1.rgb_to_grayscale,
    "floats": lambda x: v1.convert_image_dtype(x, torch.float32),
}


def memory(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape), x.stride(), x.is_contiguous(), x.storage_offset(), x.stride(-1)


@pytest.mark.parametrize("way", LOADED)
@pytest.mark.parametrize("name", STEPS)
def test_memory_is_laid_out_as_torchs(photo: Path, way: str, name: str) -> None:
    expected = STEPS[name](LOADED[way](photo))
    with lazily():
        with trials.watched() as known:
            x = STEPS[name](LOADED[way](photo))
        assert is_lazy(x) or name == "window, changed" or not all(known)
        assert memory(x) == memory(expected)
        total = x.float().mean().item()  # in memory order
        x.tolist()
        assert not is_lazy(x) and memory(x)[:3] == memory(expected)[:3]
        assert total == expected.float().mean().item() == x.float().mean().item()


@pytest.mark.parametrize("name", ["rotated", "window of rotated", "rotated and mirrored"])
def test_contrast_of_rotated_images(photo: Path, name: str) -> None:
    expected = v1.adjust_contrast(STEPS[name](LOADED["ToTensor"](photo)), 1.3)
    with lazily():
        assert torch.equal(v1.adjust_contrast(STEPS[name](LOADED["ToTensor"](photo)), 1.3) + 0, expected)


def test_proxies_have_the_names_of_the_represented_classes(photo: Path) -> None:
    with lazily():
        file = Image.open(photo)
        image = v1.hflip(file)
        tensor, wrapped = v1.to_tensor(image), v2.to_image(image)
        assert issubclass(type(image), LazyImage) and issubclass(type(tensor), LazyTensor)
        pairs = [(file, JpegImageFile), (image, Image.Image), (tensor, torch.Tensor), (wrapped, tv_tensors.Image)]
        for x, kind in pairs:
            assert str(type(x)) == str(kind) and type(x).__name__ == kind.__name__
        with pytest.raises(TypeError, match=r"Got <class 'PIL\.Image\.Image'>"):
            v1.normalize(image, [0.5], [0.5])
        with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
            _ = tensor.nothing
        file.close()


def test_copies_and_pickles_are_of_these_classes(photo: Path) -> None:
    """Pickles of tensors can be read without Stoker, and those of images where it is disabled."""
    with lazily():
        originals = [
            Image.open(photo),
            v1.hflip(Image.open(photo)),
            LOADED["ToTensor"](photo),
            LOADED["ToImage"](photo),
        ]
        pickles = [pickle.dumps(x) for x in originals]
        copies = [copy.deepcopy(x) for x in originals]
    kinds = [JpegImageFile, Image.Image, torch.Tensor, tv_tensors.Image]
    for original, data, other, kind in zip(originals, pickles, copies, kinds, strict=True):
        loaded = pickle.loads(data)
        assert type(loaded) is kind and isinstance(other, kind)
        if isinstance(loaded, torch.Tensor):
            assert torch.equal(loaded, other) and torch.equal(loaded, original)
        else:
            assert loaded.tobytes() == other.tobytes() == original.tobytes()


class Double(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return image * 2


TAKEN: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "trace of a function": lambda x: torch.jit.trace(lambda image: image * 2, x())(x()),
    "trace of functions of several": lambda x: torch.jit.trace(lambda a, b: a + b, (x(), x()))(x(), x()),
    "trace by name": lambda x: torch.jit.trace(Double(), example_kwarg_inputs={"image": x()})(x()),
    "trace of a module": lambda x: torch.jit.trace(Double(), x())(x()),
    "trace_module": lambda x: torch.jit.trace_module(Double(), {"forward": x()})(x()),
    "script": lambda x: torch.jit.script(Double())(x()),
    "Parameter": lambda x: torch.nn.Parameter(x()),
    "Parameter without gradient": lambda x: torch.nn.Parameter(x(), requires_grad=False),
    "list of parameters": lambda x: torch.nn.ParameterList([x()])[0],
    "named": lambda x: torch.nn.Parameter(data=x(), requires_grad=True),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", TAKEN)
def test_proxies_are_accepted_where_torch_checks_the_class(photo: Path, name: str) -> None:
    expected = TAKEN[name](lambda: LOADED["ToTensor"](photo))
    with lazily():
        x = TAKEN[name](lambda: LOADED["ToTensor"](photo))
    assert type(x) is type(expected) and x.requires_grad == expected.requires_grad
    assert torch.equal(x.detach(), expected.detach())


def test_buffers_are_tensors(photo: Path) -> None:
    module = torch.nn.Module()
    with lazily():
        module.register_buffer("image", LOADED["ToTensor"](photo))
        module.register_buffer("nothing", None)
    assert type(module.image) is torch.Tensor and module.nothing is None


def test_the_gradient_of_an_image(photo: Path) -> None:
    with lazily():
        x = LOADED["ToTensor"](photo)
        x.requires_grad = True
        (x * 3).sum().backward()
        assert x.requires_grad and x.is_leaf and torch.equal(x.grad, torch.full(x.shape, 3.0))


@pytest.mark.parametrize(
    "change",
    ["unsqueeze_(0)", "transpose_(0, 1)", "resize_(3, 2)", "swapaxes_(0, 2)", "requires_grad_()", "squeeze_()"],
)
def test_a_change_in_place_is_visible(photo: Path, change: str) -> None:
    """A change in place is visible in the shape: many scripts turn an image into a batch of one."""
    expected = LOADED["ToTensor"](photo)
    exec(f"x.{change}", {"x": expected})
    with lazily():
        x = LOADED["ToTensor"](photo)
        exec(f"x.{change}", {"x": x})
        assert (x.shape, x.stride(), x.ndim, len(x)) == (
            expected.shape,
            expected.stride(),
            expected.ndim,
            len(expected),
        )
        assert x.requires_grad == expected.requires_grad
        assert torch.equal(x, expected)


def test_a_pickled_image_needs_no_take_over(photo: Path, tmp_path: Path, forked: ForkServer) -> None:
    with lazily():
        (tmp_path / "tensor.pickle").write_bytes(pickle.dumps(LOADED["ToTensor"](photo)))
    program = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb')); print('stoker' in sys.modules)"
    done = forked.run("-c", program, tmp_path / "tensor.pickle")
    assert done.stdout.split() == ["False"], done.stderr
