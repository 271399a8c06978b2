# SPDX-License-Identifier: Apache-2.0
"""torchvision's kernels for tensors and Pillow images: equal to untouched ones, and lazy where they are recorded."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms as v1
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

from stoker.frontends.torchvision.hooks import kernels
from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize.eager import planar_pixels
from stoker.frontends.torchvision.pillow.image import LazyImage
from stoker.frontends.torchvision.reference.replay import replay
from stoker.frontends.torchvision.tensors import resizes
from stoker.frontends.torchvision.tensors.mixing import LazySum
from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from tests.takeover import trials
from tests.takeover.conftest import exactly
from tests.takeover.declared import LANCZOS
from tests.takeover.lazily import lazily

Mode = v1.InterpolationMode
TENSORS: dict[str, Callable[[Any], Any]] = {
    **{f"contrast {f}": lambda x, f=f: F.adjust_contrast(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    **{f"saturation {f}": lambda x, f=f: F.adjust_saturation(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    **{f"brightness {f}": lambda x, f=f: F.adjust_brightness(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    **{f"hue {f}": lambda x, f=f: F.adjust_hue(x, f) for f in (-0.5, -0.21, 0.0, 0.03, 0.5)},
    **{f"sharpness {f}": lambda x, f=f: F.adjust_sharpness(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    "autocontrast": lambda x: F.autocontrast(F.adjust_brightness(x, 0.4)),
    "autocontrast of one value": lambda x: F.autocontrast(F.posterize(x, 0)),
    "equalize": F.equalize,
    "equalize of few": lambda x: F.equalize(F.resize(x, [9, 9])),
    "invert": F.invert,
    "posterize": lambda x: F.posterize(x, 3),
    "solarize": lambda x: F.solarize(x, 99.5),
    "gray": lambda x: F.rgb_to_grayscale(x, 1),
    "gray of three": lambda x: F.rgb_to_grayscale(x, 3),
    "blur": lambda x: F.gaussian_blur(x, [5, 3], [0.7, 2.0]),
    "blur by default": lambda x: F.gaussian_blur(x, 7),
    "blur of gray": lambda x: F.gaussian_blur(F.rgb_to_grayscale(x, 1), [5, 9], [1.1, 0.4]),
    "small blur of large gray": lambda x: F.gaussian_blur(F.rgb_to_grayscale(F.resize(x, [190, 213]), 1), [3, 7]),
    "small blur of gray images": lambda x: F.gaussian_blur(torch.stack([F.rgb_to_grayscale(x, 1)] * 2), 3),
    "sharpness of gray": lambda x: F.adjust_sharpness(F.rgb_to_grayscale(F.resize(x, [190, 213]), 1), 1.7),
    "contrast of many pixels": lambda x: F.adjust_contrast(F.resize(x, [301, 413]), 0.4),
    "contrast of much gray": lambda x: F.adjust_contrast(F.rgb_to_grayscale(F.resize(x, [301, 413]), 1), 0.4),
    "contrast of large images": lambda x: F.adjust_contrast(torch.stack([F.resize(x, [301, 413])] * 3), 0.4),
    "rotation of a few pixels": lambda x: F.rotate(F.resize(x, [9, 8]), 33.0, Mode.BILINEAR),
    "mirrored edges": lambda x: F.pad(x, [3, 4, 5, 6], padding_mode="symmetric"),
    "one edge": lambda x: F.pad(x, [2], padding_mode="edge"),
    "frame": lambda x: F.pad(x, [3, 4], fill=7.0),
    "crop beyond": lambda x: F.crop(x, -3, 5, 40, 90),
    "resize": lambda x: F.resize(x, [30, 50], interpolation=Mode.BICUBIC),
    **{
        f"resize without antialias {size} {mode.name}": lambda x, size=size, mode=mode: F.resize(
            x, size, mode, antialias=False
        )
        for size in ([30, 40], [170, 40], [200, 290], [1, 33])
        for mode in (Mode.BILINEAR, Mode.BICUBIC)
    },
    "resize of gray without antialias": lambda x: F.resize(F.rgb_to_grayscale(x, 1), [60, 69], antialias=False),
    "resize a window": lambda x: F.resized_crop(x, 3, 5, 40, 60, [32, 32]),
    "resize, colours, mirror": lambda x: F.horizontal_flip(F.adjust_hue(F.resize(x, [30, 50]), 0.1)),
    "turned by 90 degrees": lambda x: F.rotate(x, 90, expand=True),
    "rotation": lambda x: F.rotate(x, 33.0, Mode.BILINEAR, expand=True, fill=[1.0, 200.5, 255.0]),
    "rotation about a point": lambda x: F.rotate(x, -71, Mode.NEAREST, center=[3, 4], fill=9),
    "affine": lambda x: F.affine(x, 20, [3, 4], 1.1, [5, 6], Mode.BILINEAR),
    "shear": lambda x: F.affine(x, 0, [0, 0], 1.0, [30.0, 0], Mode.NEAREST, fill=[7.0], center=[0, 0]),
    "perspective": lambda x: F.perspective(x, CORNERS[0], CORNERS[1], Mode.BILINEAR, [9, 8, 7]),
    "perspective, nearest": lambda x: F.perspective(x, CORNERS[1], CORNERS[0], Mode.NEAREST),
    "elastic": lambda x: F.elastic(x, waves(), Mode.BILINEAR, 3.0),
    "elastic, nearest": lambda x: F.elastic(x, waves(), Mode.NEAREST),
    "small rotation": lambda x: F.rotate(F.resize(x, [12, 11]), 33.0, Mode.BILINEAR),
    "frame of colours": lambda x: F.pad(x, [3, 4], fill=[1, 2.5, 3]),
    "channels": lambda x: F.permute_channels(x, [2, 0, 1]),
    "after a table": lambda x: F.equalize(F.posterize(F.invert(x), 5)),
}
CORNERS = [[[0, 0], [119, 0], [119, 89], [0, 89]], [[9, 4], [100, 7], [111, 80], [3, 77]]]


def waves() -> torch.Tensor:
    """Return a displacement of an image of 120x90."""
    return torch.rand((1, 90, 120, 2), generator=torch.Generator().manual_seed(3)) * 0.2 - 0.1


V = v1.functional
FIRST_GENERATION: dict[str, Callable[[Any], Any]] = {
    **{f"contrast {f}": lambda x, f=f: V.adjust_contrast(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    **{f"saturation {f}": lambda x, f=f: V.adjust_saturation(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    **{f"brightness {f}": lambda x, f=f: V.adjust_brightness(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    **{f"sharpness {f}": lambda x, f=f: V.adjust_sharpness(x, f) for f in (0.0, 0.4, 1.0, 2.3)},
    **{f"hue {f}": lambda x, f=f: V.adjust_hue(x, f) for f in (-0.5, -0.21, 0.0, 0.03, 0.5)},
    "hue of gray": lambda x: V.adjust_hue(V.rgb_to_grayscale(x), 0.2),
    "contrast of many pixels": lambda x: V.adjust_contrast(V.resize(x, [301, 413]), 0.4),
    "blur of gray": lambda x: V.gaussian_blur(V.rgb_to_grayscale(x), [5, 7]),
    "small blur of large gray": lambda x: V.gaussian_blur(V.rgb_to_grayscale(V.resize(x, [190, 213])), [3, 3]),
    "sharpness of gray": lambda x: V.adjust_sharpness(V.rgb_to_grayscale(V.resize(x, [190, 213])), 1.7),
    "autocontrast": lambda x: V.autocontrast(V.adjust_brightness(x, 0.4)),
    "equalize": V.equalize,
    "invert": V.invert,
    "posterize": lambda x: V.posterize(x, 3),
    "solarize": lambda x: V.solarize(x, 99.5),
    "gray": V.rgb_to_grayscale,
    "gray of three": lambda x: V.rgb_to_grayscale(x, 3),
    "blur": lambda x: V.gaussian_blur(x, [5, 3], [0.7, 2.0]),
    "affine": lambda x: V.affine(x, 20.0, [3, 4], 1.1, [5.0, 6.0], Mode.BILINEAR),
    "rotation": lambda x: V.rotate(x, -71.0, Mode.NEAREST, fill=[9.0, 8.0, 7.0]),
    "rotation, bright": lambda x: V.rotate(x, 33.0, Mode.BILINEAR, fill=[9.0, 80.0, 254.0]),
    "rotation, gray, bright": lambda x: V.rotate(V.rgb_to_grayscale(x), 33.0, Mode.BILINEAR, fill=77.0),
    "perspective, bright": lambda x: V.perspective(x, CORNERS[0], CORNERS[1], Mode.BILINEAR, [200.0, 3.0, 7.0]),
    "rotation, black": lambda x: V.rotate(x, 33.0, Mode.BILINEAR, expand=True, fill=[0.0]),
    "perspective": lambda x: V.perspective(x, CORNERS[0], CORNERS[1], Mode.BILINEAR),
    "elastic": lambda x: V.elastic_transform(x, waves(), Mode.BILINEAR),
    "resize": lambda x: V.resize(x, [30, 40]),
    "resize, nearest": lambda x: V.resize(x, [31, 170], Mode.NEAREST),
    "resize of gray": lambda x: V.resize(V.rgb_to_grayscale(x), [200, 22]),
    "cubic resize": lambda x: V.resize(x, [30, 40], Mode.BICUBIC),
    "cubic resize of gray": lambda x: V.resize(V.rgb_to_grayscale(x), [210, 170], Mode.BICUBIC),
    **{
        f"resize without antialias {size} {mode.name}": lambda x, size=size, mode=mode: V.resize(
            x, size, mode, antialias=False
        )
        for size in ([30, 40], [170, 40], [200, 290], [1, 33])
        for mode in (Mode.BILINEAR, Mode.BICUBIC)
    },
    "resize of gray without antialias": lambda x: V.resize(V.rgb_to_grayscale(x), [60, 68], antialias=False),
    "resize of gray without antialias, larger": lambda x: V.resize(V.rgb_to_grayscale(x), [60, 69], antialias=False),
    "resized crop without antialias": lambda x: V.resized_crop(x, 3, 5, 40, 60, [64, 50], antialias=None),
    "resize, one side as it is": lambda x: V.resize(V.resized_crop(x, 3, 5, 40, 60, [64, 50]), [20, 50]),
    "batch": lambda x: V.equalize(V.affine(x.view(1, *x.shape), 20.0, [3, 4], 1.1, [5.0, 6.0], Mode.BILINEAR)),
    "crops": lambda x: torch.stack(v1.TenCrop(30)(x)),
    "edges": lambda x: V.pad(V.hflip(V.center_crop(x, [60, 70])), [3, 4], padding_mode="reflect"),
}
FIRST_NOT_RECORDED: dict[str, Callable[[Any], Any]] = {
    "resize to a column": lambda x: V.resize(x, [30, 1]),
    "small blur of gray": lambda x: V.gaussian_blur(V.rgb_to_grayscale(x), [5, 3]),
    "contrast of a turned image": lambda x: V.adjust_contrast(torch.rot90(V.resize(x, [300, 310]), 1, (-2, -1)), 0.5),
}


NOT_RECORDED: dict[str, Callable[[Any], Any]] = {
    "contrast of floats": lambda x: F.adjust_contrast(F.to_dtype(x, torch.float32, scale=True), 0.5),
    "small blur of gray": lambda x: F.gaussian_blur(F.rgb_to_grayscale(x, 1), 3),
    "crop outside": lambda x: F.crop(x, 500, 500, 10, 10),
    "contrast of a turned image": lambda x: F.adjust_contrast(F.rotate(F.resize(x, [300, 310]), 90, expand=True), 0.5),
    "contrast of two million pixels": lambda x: F.adjust_contrast(F.resize(x, [1500, 1500], Mode.NEAREST), 0.5),
    "rotation of floats": lambda x: F.rotate(F.to_dtype(x, torch.float32, scale=True), 33.0, Mode.BILINEAR),
    "bright fill": lambda x: F.rotate(x, 33.0, fill=300.0),
    "sharpness of gray": lambda x: F.adjust_sharpness(F.rgb_to_grayscale(x, 1), 0.5),
}
IMAGES: dict[str, Callable[[Any], Any]] = {
    "v1 blur": lambda x: v1.functional.gaussian_blur(x, [5, 3], [0.7, 2.0]),
    "v1 blur by default": lambda x: v1.functional.gaussian_blur(x, 7),
    "v2 blur": lambda x: F.gaussian_blur(x, 9, [1.5]),
    "v1 edges": lambda x: v1.functional.pad(x, [3, 4, 5, 6], padding_mode="edge"),
    "v1 mirrored edges": lambda x: v1.functional.pad(x, (30, 40), padding_mode="symmetric"),
    "v2 reflected edges": lambda x: F.pad(x, [7], padding_mode="reflect"),
    "far edges": lambda x: v1.functional.pad(x, 200, padding_mode="reflect"),
    "perspective": lambda x: v1.functional.perspective(
        x, [[0, 0], [119, 0], [119, 89], [0, 89]], [[9, 4], [100, 7], [111, 80], [3, 77]], Mode.BICUBIC, [9, 8, 7]
    ),
    "to an image and back": lambda x: v1.functional.to_pil_image(v1.functional.pil_to_tensor(x)),
    "back from a gray tensor": lambda x: v2.ToPILImage()(F.rgb_to_grayscale(F.pil_to_tensor(x), 1)),
    "v1 elastic": lambda x: v1.functional.elastic_transform(x, waves()),
    "v1 elastic, bright": lambda x: v1.functional.elastic_transform(x, waves(), Mode.BILINEAR, [9.0, 80.0, 254.0]),
    "v1 elastic, nearest": lambda x: v1.functional.elastic_transform(x, waves(), Mode.NEAREST, [0.0]),
    "v2 elastic": lambda x: F.elastic(x, waves(), Mode.BILINEAR, [3.0, 4.0, 5.0]),
    "rotation": lambda x: F.rotate(x, 33.0, Mode.BICUBIC, expand=True, fill=[1, 2, 3]),
    "affine": lambda x: F.affine(x, 20, [3, 4], 1.1, [5, 6], Mode.BICUBIC),
}


def tensor_of(path: Path, kind: str) -> Any:
    image = Image.open(path).convert("RGB")
    return v2.functional.to_image(image) if kind == "image" else v2.functional.pil_to_tensor(image)


@pytest.mark.parametrize("kind", ["image", "tensor"])
@pytest.mark.parametrize("name", TENSORS)
def test_recorded_kernels_of_tensors_equal_torchvision(photo: Path, name: str, kind: str) -> None:
    expected = TENSORS[name](tensor_of(photo, kind))
    with lazily():
        with trials.watched() as known:
            x = TENSORS[name](tensor_of(photo, kind))
        assert (issubclass(type(x), LazyTensor) and x._materialized is None) or not all(known), "it is still lazy"
        assert isinstance(x, tv_tensors.Image) == isinstance(expected, tv_tensors.Image)
        exactly(x, expected)


@pytest.mark.parametrize("name", FIRST_GENERATION)
def test_the_first_generation_of_tensors(photo: Path, name: str) -> None:
    expected = FIRST_GENERATION[name](tensor_of(photo, "tensor"))
    with lazily():
        with trials.watched() as known:
            x = FIRST_GENERATION[name](tensor_of(photo, "tensor"))
        assert (issubclass(type(x), LazyTensor) and x._materialized is None) or not all(known), "it is still lazy"
        exactly(x, expected)


def test_resizing_through_floats(isa: str) -> None:
    """Resizing between any sizes gives torch's bits, with every instruction set."""
    rng = np.random.default_rng(7)
    for _ in range(60):
        channels = int(rng.choice([1, 3]))
        height, width, h, w = (int(n) for n in (*rng.integers(1, 130, 2), rng.integers(1, 150), rng.integers(2, 150)))
        pixels = rng.integers(0, 256, (height, width, channels), np.uint8)
        planes = torch.from_numpy(pixels).permute(2, 0, 1)
        node = Node.pixels(pixels.reshape(-1), (width, height), channels)
        for kind, mode in enumerate((Mode.BILINEAR, Mode.BICUBIC)):
            for antialias in (False, True):
                way = resizes._find_way(kind, antialias, channels, (h, w))
                if way is None:
                    continue
                resized = planar_pixels(node.then(steps.TorchResizeFloats(h, w, kind, way), (w, h)))
                exactly(resized, V.resize(planes, [h, w], mode, antialias=antialias))


@pytest.mark.parametrize("name", FIRST_NOT_RECORDED)
def test_other_kernels_of_the_first_generation_equal_torchvision(photo: Path, name: str) -> None:
    expected = FIRST_NOT_RECORDED[name](tensor_of(photo, "tensor"))
    with lazily():
        exactly(FIRST_NOT_RECORDED[name](tensor_of(photo, "tensor")), expected)


@pytest.mark.parametrize("name", NOT_RECORDED)
def test_other_kernels_of_tensors_equal_torchvision(photo: Path, name: str) -> None:
    expected = NOT_RECORDED[name](tensor_of(photo, "image"))
    with lazily():
        exactly(NOT_RECORDED[name](tensor_of(photo, "image")), expected)


@pytest.mark.parametrize("name", IMAGES)
def test_recorded_kernels_of_images_equal_torchvision(photo: Path, name: str) -> None:
    expected = IMAGES[name](Image.open(photo).convert("RGB"))
    with lazily():
        with trials.watched() as known:
            x = IMAGES[name](Image.open(photo).convert("RGB"))
        assert (issubclass(type(x), LazyImage) and x._node is not None) or not all(known)
        assert (x.size, x.mode, x.info) == (expected.size, expected.mode, expected.info)
        exactly(x, expected)


def mixed(x: Any, crop: bool = False) -> Any:
    """Mix like AugMix, with weights that are not tensors of a batch."""
    batch = x.reshape(1, *x.shape)
    parts = [F.equalize(batch), F.rotate(batch, 20.0), F.invert(batch)]
    if crop:
        batch, parts = batch[..., 3:30, 4:50], [part[..., 3:30, 4:50] for part in parts]
    total = torch.full((1, 1, 1, 1), 0.4) * batch
    for weight, part in zip((0.1, 0.2, 0.3), parts, strict=True):
        total.add_(torch.tensor([weight]).view(1, 1, 1, 1) * part)
    return total


@pytest.mark.parametrize("crop", [False, True])
def test_weighted_sums(photo: Path, crop: bool) -> None:
    known = trials.all_known(lambda: mixed(tensor_of(photo, "tensor")))
    expected = mixed(tensor_of(photo, "tensor"), crop)
    with lazily():
        total = mixed(tensor_of(photo, "tensor"), crop)
        assert issubclass(type(total), LazySum) or not known
        assert (total.shape, total.dtype) == (expected.shape, expected.dtype)
        total_as_bytes = total.reshape(*expected.shape[1:]).to(torch.uint8)
        assert (issubclass(type(total_as_bytes), LazyTensor) and total_as_bytes._materialized is None) or not known
        exactly(total_as_bytes, expected.reshape(expected.shape[1:]).to(torch.uint8))
        assert torch.equal(mixed(tensor_of(photo, "tensor"), crop).mul_(2), expected * 2)
        assert torch.equal(total, expected), "also after it has become bytes"
        total.add_(1)
        assert torch.equal(pickle.loads(pickle.dumps(total)), expected + 1)
        assert torch.equal(copy.deepcopy(mixed(tensor_of(photo, "tensor"), crop))[0], expected[0])


def test_mixtures_on_pillow_equal_native_ones(photo: Path) -> None:
    with lazily():
        with trials.watched() as known:
            total_as_bytes = mixed(tensor_of(photo, "tensor")).to(torch.uint8)
        assert issubclass(type(total_as_bytes), LazyTensor) or not all(known)
        if issubclass(type(total_as_bytes), LazyTensor):
            node = total_as_bytes._rows[0].node
            exactly(planar_pixels(node).transpose(1, 2, 0), replay(node))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: F.adjust_contrast(x, -1),
        lambda x: F.adjust_hue(x, 0.7),
        lambda x: F.gaussian_blur(x, 4),
        lambda x: F.gaussian_blur(x, 201),
        lambda x: F.pad(x, [200], padding_mode="reflect"),
        lambda x: F.pad(x, [1, 2, 3], padding_mode="symmetric"),
        lambda x: F.solarize(x, 300),
        lambda x: F.rotate(x, 30, Mode.BICUBIC),
        lambda x: F.affine(x, 30, [1], 1.0, [0, 0]),
        lambda x: F.elastic(x, torch.zeros(1, 5, 5, 2)),
        lambda x: F.rotate(x, 30, fill=[1, 2]),
    ],
)
def test_errors_are_torchvisions(photo: Path, wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(Exception) as expected:
        wrong(tensor_of(photo, "image"))
    with lazily(), pytest.raises(expected.type) as found:
        wrong(tensor_of(photo, "image"))
    assert str(found.value) == str(expected.value)


def test_steps_that_differ_on_this_machine_are_not_recorded(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch computes a step whose trial gives other bits."""
    from stoker.frontends.torchvision.reference import trial_cache

    monkeypatch.setattr(trial_cache, "_answers", {})
    monkeypatch.setattr(kernels.steps, "TorchSaturate", kernels.steps.TorchSharpen)
    expected = F.adjust_saturation(tensor_of(photo, "image"), 0.3)
    with lazily():
        x = F.adjust_saturation(tensor_of(photo, "image"), 0.3)
        assert not issubclass(type(x), LazyTensor)
        exactly(x, expected)


@pytest.mark.parametrize("size", [(1, 1), (3, 200), (200, 3), (90, 61), (45, 120), (255, 256)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_every_instruction_set_resizes_as_torch(photo: Path, size: tuple[int, int], mode: str) -> None:
    from stoker.native import _native

    if mode == "lanczos" and not LANCZOS:
        pytest.skip("this torch has no such filter")

    def resized(x: Any) -> Any:
        x = F.horizontal_flip(x)
        whole = torch.nn.functional.interpolate(x.unsqueeze(0), size=size, mode=mode, antialias=True)
        gray = F.rgb_to_grayscale(x, 1).unsqueeze(0)
        return [
            np.asarray(whole),
            np.asarray(torch.nn.functional.interpolate(gray, size=size, mode=mode, antialias=True)),
        ]

    expected = resized(tensor_of(photo, "tensor"))
    before = _native.get_isa()
    try:
        for isa in _native.instruction_sets():
            _native.set_isa(isa)
            with lazily():
                for a, b in zip(resized(tensor_of(photo, "tensor")), expected, strict=True):
                    exactly(a, b)
    finally:
        _native.set_isa(before)
