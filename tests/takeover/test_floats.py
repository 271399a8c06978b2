# SPDX-License-Identifier: Apache-2.0
"""Float tensors after `ToTensor` and `ToDtype`: every bit is torch's, and steps are recorded if trials succeed."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms as v1
from photographs import photograph
from PIL import Image
from torchvision.transforms import functional as f1
from torchvision.transforms.v2 import functional as f2

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.hooks import float_kernels
from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.ir.packing import Row
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.ir.tables import Table
from stoker.frontends.torchvision.materialize import trial
from stoker.frontends.torchvision.materialize.materialization import Materialization
from stoker.frontends.torchvision.reference import sampling, sums, trial_cache
from stoker.frontends.torchvision.reference.float_replay import replay_floats
from stoker.frontends.torchvision.tensors import floats, resizes
from stoker.frontends.torchvision.tensors.tensor import LazyTensor, materialize
from stoker.native import _native
from tests.complete import sample
from tests.takeover import trials
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import run

Mode = v1.InterpolationMode
Step = Callable[[Any], Any]
LOADED: dict[str, tuple[Any, Callable[[Any], torch.Tensor]]] = {
    "v1": (f1, lambda image: f1.to_tensor(image)),
    "v2": (f2, lambda image: f1.to_tensor(image)),
    "v2, ToDtype": (f2, lambda image: f2.to_dtype(f2.to_image(image), torch.float32, scale=True)),
}


def file_of(seed: int, height: int, width: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(photograph(seed, height, width)).save(out, "JPEG", quality=92)
    return out.getvalue()


def is_lazy(x: Any) -> bool:
    return issubclass(type(x), LazyTensor) and x._materialized is None


# ---- single steps ----

STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "resize": lambda f, x: f.resize(x, [40, 51], antialias=True),
    "cubic": lambda f, x: f.resize(x, [150, 31], Mode.BICUBIC, antialias=True),
    "sharp": lambda f, x: f.resize(x, [40, 51], antialias=False),
    "sharp, large": lambda f, x: f.resize(x, [140, 151], Mode.BICUBIC, antialias=False),
    "cut and resized": lambda f, x: f.resized_crop(x, 5, 6, 50, 60, [40, 41], antialias=True),
    "mirrored and resized": lambda f, x: f.resize(f.vflip(f.hflip(x)), [40, 41], antialias=True),
    "frame": lambda f, x: f.pad(x, [1, 2, 3, 4], 0),
    "frame of no byte": lambda f, x: f.pad(x, [1, 2, 3, 4], 0.3),
    "edges of floats": lambda f, x: f.pad(f.adjust_saturation(x, 0.4), [3, 4], padding_mode="reflect"),
    "symmetric edges": lambda f, x: f2.pad(f.adjust_saturation(x, 0.4), [3, 4], padding_mode="symmetric"),
    "rotation": lambda f, x: f.rotate(x, 33.0, Mode.BILINEAR),
    "rotation, colour": lambda f, x: f.rotate(x, 33.0, Mode.BILINEAR, fill=[0.1, -0.5, 2.0]),
    "rotation, nearest": lambda f, x: f.rotate(x, 33.0, fill=[0.25]),
    "perspective": lambda f, x: f.perspective(x, PERSPECTIVE[0], PERSPECTIVE[1]),
    "contrast": lambda f, x: f.adjust_contrast(x, 1.4),
    "contrast of much": lambda f, x: f.adjust_contrast(f.resize(x, [301, 413], antialias=True), 0.7),
    "contrast of gray": lambda f, x: f.adjust_contrast(f.rgb_to_grayscale(x, 1), 1.4),
    "saturation": lambda f, x: f.adjust_saturation(x, 1.7),
    "hue": lambda f, x: f.adjust_hue(x, -0.31),
    "hue of Normalize": lambda f, x: f.adjust_hue(f.normalize(x, [0.4] * 3, [0.2] * 3), 0.2),
    "gray": lambda f, x: f.rgb_to_grayscale(x, 1),
    "gray of three": lambda f, x: f.resize(f.rgb_to_grayscale(x, 3), [33, 34], antialias=True),
    "blur": lambda f, x: f.gaussian_blur(x, [5, 3], [0.7, 2.0]),
    "blur of gray": lambda f, x: f.gaussian_blur(f.rgb_to_grayscale(x, 1), [5, 9], [1.1, 0.4]),
    "sharpness": lambda f, x: f.adjust_sharpness(x, 1.7),
    "autocontrast": lambda f, x: f.autocontrast(f.adjust_brightness(x, 0.4)),
    "autocontrast of one value": lambda f, x: f.autocontrast(f.resize(f.adjust_brightness(x, 0.0), [9, 9])),
    "brightness": lambda f, x: f.adjust_brightness(f.adjust_saturation(x, 0.4), 1.7),
    "inversion": lambda f, x: f.invert(f.adjust_saturation(x, 0.4)),
    "solarize": lambda f, x: f.solarize(f.adjust_saturation(x, 0.4), 0.4),
    "normalize": lambda f, x: f.normalize(f.adjust_saturation(x, 0.4), [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]),
    "erase": lambda f, x: f.erase(f.adjust_saturation(x, 0.4), 3, 4, 20, 30, torch.full((3, 1, 1), 0.3)),
    "operators": lambda f, x: ((f.adjust_hue(x, 0.1) * 2 - 0.7) / 3 + 0.1).clamp(min=0.02),
    "in place": lambda f, x: f.adjust_hue(x, 0.1).mul_(torch.tensor([0.5, 2, 3]).view(3, 1, 1)).sub_(0.3).neg_(),
    "reversed": lambda f, x: (1 - f.adjust_hue(x, 0.1)).floor(),
    "two of one memory": lambda f, x: stacked(f.adjust_hue(x, 0.1)),
}
PERSPECTIVE = [[0, 0], [119, 0], [119, 89], [0, 89]], [[9, 4], [110, 0], [100, 85], [3, 80]]


def stacked(x: Any) -> Any:
    """Stack windows of tensors that change afterwards."""
    cut = x[:, 5:25, 7:27]
    x.mul_(0.5)
    return torch.stack([cut, x[:, 30:50, 30:50]])


def all_orders_known() -> bool:
    """Return whether all trials so far found a known order of additions in this machine's torch."""
    cases = [(kind, smooth, side) for kind in (0, 1) for smooth in (False, True) for side in ((40, 51), (140, 151))]
    sizes = [resizes._find_way(kind, smooth, 3, side) for kind, smooth, side in cases]
    filters = all(sums.is_filter_in_order(3, window, (47, 37)) for window in ((3, 3), (5, 3)))
    known = filters and None not in sizes and sums.float_sum_order(1) is not None and sampling.has_equal_samples()
    return known and all(v for k, v in trial_cache._answers.items() if k[0] in ("bytes", "floats"))


@pytest.mark.parametrize("way", LOADED)
@pytest.mark.parametrize("name", STEPS)
def test_steps_on_floats_are_torchs(photo: Path, name: str, way: str, isa: str) -> None:
    functional, load = LOADED[way]
    expected = STEPS[name](functional, load(Image.open(photo).convert("RGB")))
    with lazily():
        x = STEPS[name](functional, load(Image.open(photo).convert("RGB")))
        if all_orders_known():
            assert is_lazy(x) or name == "two of one memory"
        exactly(materialize(x) if issubclass(type(x), LazyTensor) else x, expected)


# ---- random chains ----


def chain(rng: random.Random, f: Any, shape: torch.Size) -> tuple[str, Step]:
    """Return a random step of torchvision's functions ``f`` for an image of this shape."""
    channels, height, width = shape
    steps: dict[str, Callable[[], Step]] = {
        "resize": lambda: resized(f, [rng.randint(20, 260), rng.randint(20, 260)], rng),
        "crop": lambda: with_(f.crop, rng.randint(0, 9), rng.randint(0, 9), height - 12, width - 11),
        "hflip": lambda: f.hflip,
        "vflip": lambda: f.vflip,
        "pad": lambda: with_(
            f.pad, [rng.randint(0, 9) for _ in range(4)], rng.choice([0, 0.5]), rng.choice(["constant", "edge"])
        ),
        "rotate": lambda: turned(f, rng),
        "brightness": lambda: with_(f.adjust_brightness, rng.uniform(0.3, 1.7)),
        "contrast": lambda: with_(f.adjust_contrast, rng.uniform(0.3, 1.7)),
        "saturation": lambda: with_(f.adjust_saturation, rng.uniform(0.3, 1.7)),
        "hue": lambda: with_(f.adjust_hue, rng.uniform(-0.5, 0.5)),
        "gray": lambda: with_(f.rgb_to_grayscale, rng.choice([1, 3])),
        "blur": lambda: with_(f.gaussian_blur, rng.choice([5, [5, 7], [9, 5]]), [rng.uniform(0.3, 2)]),
        "sharpness": lambda: with_(f.adjust_sharpness, rng.uniform(0, 2.5)),
        "invert": lambda: f.invert,
        "solarize": lambda: with_(f.solarize, rng.uniform(0.2, 0.9)),
        "normalize": lambda: with_(f.normalize, [0.4] * channels, [0.2] * channels),
    }
    if channels == 1:
        steps.pop("gray")
    name = rng.choice(list(steps))
    return name, steps[name]()


def with_(function: Callable[..., Any], *args: Any) -> Step:
    return lambda x: function(x, *args)


def resized(f: Any, size: list[int], rng: random.Random) -> Step:
    mode, antialias = rng.choice([Mode.BILINEAR, Mode.BICUBIC, Mode.NEAREST]), rng.random() < 0.7
    return lambda x: f.resize(x, size, mode, antialias=antialias)


def turned(f: Any, rng: random.Random) -> Step:
    angle, mode, fill = rng.uniform(-90, 90), rng.choice([Mode.BILINEAR, Mode.NEAREST]), rng.choice([None, [0.3]])
    return lambda x: f.rotate(x, angle, mode, fill=fill)


@pytest.mark.parametrize("seed", range(24))
def test_random_chains_are_torchs(seed: int) -> None:
    rng = random.Random(seed)
    for at in range(4):
        functional, load = rng.choice(list(LOADED.values()))
        data = file_of(seed, rng.randint(40, 200), rng.randint(40, 200))
        expected = load(Image.open(io.BytesIO(data)).convert("RGB"))
        with lazily():
            x = load(Image.open(io.BytesIO(data)).convert("RGB"))
        done: list[str] = []
        for _ in range(rng.randint(1, 5)):
            if min(expected.shape[-2:]) < 30:
                break
            name, step = chain(rng, functional, expected.shape)
            expected = step(expected)
            done.append(name)
            with lazily():
                x = step(x)
        result = (materialize(x) if issubclass(type(x), LazyTensor) else x).contiguous().numpy()
        assert result.tobytes() == expected.contiguous().numpy().tobytes(), (at, done)


# ---- sums ----


@pytest.mark.leaks("torch keeps its threads")
@pytest.mark.parametrize("threads", [1, 2, 6])
def test_the_twin_of_sums_is_torch(threads: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        order = sums.float_sum_order(1)
        assert order is not None and order.threads == threads
        rng = np.random.default_rng(5)
        for count in (1, 7, 8, 31, 33, 1000, 5003, 32767, 32768, 70_001, 132_003, 600_011):
            values = rng.normal(0, 1, count).astype(np.float32)
            assert sums.sum_floats(values, *order) == float(torch.from_numpy(values).sum()), count
    finally:
        torch.set_num_threads(before)


@pytest.mark.leaks("torch keeps its threads")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [(8, 9), (45, 41), (223, 187), (402, 601)])
def test_contrast_has_torchs_sum_and_ends(threads: int, size: tuple[int, int]) -> None:
    data, before = file_of(3, *size), torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        for functional, load in LOADED.values():
            image = load(Image.open(io.BytesIO(data)).convert("RGB"))
            expected = [functional.adjust_contrast(image, factor) for factor in np.linspace(0.3, 1.9, 9).tolist()]
            with lazily():
                for factor, wanted in zip(np.linspace(0.3, 1.9, 9).tolist(), expected, strict=True):
                    x = functional.adjust_contrast(load(Image.open(io.BytesIO(data)).convert("RGB")), factor)
                    exactly(materialize(x) if issubclass(type(x), LazyTensor) else x, wanted)
    finally:
        torch.set_num_threads(before)


def test_other_sums_and_ends_are_detected() -> None:
    """A trial fails if torch has another order of lanes or blocks."""
    order = sums.float_sum_order(1)
    assert order is not None

    def equal(lanes: int, blocks: int, size: tuple[int, int], times: int) -> bool:
        params = (2, 1.1, lanes, 1, blocks, 0)

        def step(node: Node) -> Node:
            for _ in range(times):
                node = node.then(steps.FloatContrast(*params))
            return node

        def wanted(image: torch.Tensor) -> torch.Tensor:
            for _ in range(times):
                image = f2.adjust_contrast(image, 1.1)
            return image

        return trial.is_equal_in_floats(("other", params, times), 3, step, wanted, size, by_pixel=False)

    known = [equal(order.lanes, blocks, (45, 41), 8) for blocks in float_kernels._BLOCKS]
    assert any(known) or not sampling.has_equal_samples(), "without fused multiply-adds there is none"
    assert not equal(order.lanes, 6000, (45, 41), 8), "all values follow the last block"
    assert not sums.is_float_sum_order(sums.Order({8: 4, 4: 16, 16: 8}[order.lanes], 1))


# ---- small windows of one channel ----

OTHERS = [(), ("products",), ("filter", "products"), trials.SUMS]  # trials with other results


def test_the_twin_of_products_of_matrices_is_torch() -> None:
    rng = np.random.default_rng(6)
    for window in ((3, 3), (1, 3), (3, 1), (3, 5), (5, 1), (3, 7)):
        order = sums.product_order(window[::-1])
        if order is None:
            continue
        twin = sums.filter_by_products if order == sums.BY_FOURS else sums.filter_in_order
        for _ in range(12):
            height, width = (int(n) for n in rng.integers(6, 130, 2))
            image, weights = rng.random((height, width), np.float32), rng.random(window, np.float32)
            result = torch.nn.functional.conv2d(
                torch.from_numpy(image)[None, None], torch.from_numpy(weights)[None, None]
            )
            exactly(twin(image, weights), result[0, 0].numpy())
    assert sums.product_order((7, 3)) != sums.BY_FOURS


@pytest.mark.leaks("torch keeps its threads")
@pytest.mark.parametrize(("others", "threads"), sample([*itertools.product(OTHERS, (1, 2))], 4))
def test_small_windows_of_one_channel_are_torchs(threads: int, others: tuple[str, ...], isa: str) -> None:
    rng, before = np.random.default_rng(7), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for at in range(12):
            functional, load = list(LOADED.values())[at % 3]
            data = file_of(at, *(int(n) for n in rng.integers(30, 140, 2)))
            for small in (
                lambda x, f=functional: f.gaussian_blur(f.rgb_to_grayscale(x, 1), [3, 3], [0.8]),
                lambda x, f=functional: f.gaussian_blur(f.rgb_to_grayscale(x, 1), [5, 3], [0.8]),
                lambda x, f=functional: f.adjust_sharpness(f.rgb_to_grayscale(x, 1), 1.7),
                lambda x, f=functional: f.adjust_sharpness(f.rgb_to_grayscale(x.mul(255).to(torch.uint8), 1), 1.7),
            ):
                expected = small(load(Image.open(io.BytesIO(data)).convert("RGB")))
                with lazily(), trials.other_sums(*others), trials.watched() as answered:
                    x = small(load(Image.open(io.BytesIO(data)).convert("RGB")))
                    assert is_lazy(x) == all(answered)
                    exactly(materialize(x) if issubclass(type(x), LazyTensor) else x, expected)
    finally:
        torch.set_num_threads(before)


# ---- the plain twin, files that Pillow decodes, refusals ----


def nodes_of(name: str, photo: Path) -> Iterator[Node]:
    for functional, load in LOADED.values():
        with lazily():
            x = STEPS[name](functional, load(Image.open(photo).convert("RGB")))
        if is_lazy(x) and x._rows[0].node.is_float:
            yield x._rows[0].node


@pytest.mark.parametrize("name", STEPS)
def test_the_plain_twin_is_native_code(photo: Path, name: str, isa: str) -> None:
    for node in nodes_of(name, photo):
        exactly(materialize(LazyTensor([floats.float_row(node)], ())), replay_floats(node))


def test_a_file_that_is_left_to_pillow_has_its_floats(photo: Path, recording: None) -> None:
    with trials.watched() as known:
        x = f2.adjust_contrast(f1.resize(f1.to_tensor(Image.open(photo).convert("RGB")), [40, 50], antialias=True), 1.3)
    x[:, 3:5, 4:9] = 0.25
    if not all(known):
        assert not is_lazy(x)
        return
    materialization = Materialization([x])
    row = x._rows[0]
    materialization._memory[0].zero_()
    materialization._replay(Row(row.node, None, 0, 0, patches=row.patches))
    exactly(materialization._memory[0].view(torch.float32).view(x.shape), materialize(x))


def test_floats_that_steps_do_not_take_are_refused() -> None:
    image = Node.pixels(np.arange(48, dtype=np.uint8), (4, 4), 3)
    table = Table(torch.linspace(0, 1, 256).expand(3, 1, 256))
    as_floats = image.then(steps.Floats(table))
    halves = Table(torch.zeros(3, 1, 256, dtype=torch.float16))
    for node, why in (
        (image.then(steps.Floats(halves)), "a table of another kind"),
        (as_floats.then(steps.Floats(table)), "does not take floats"),
        (as_floats.then(steps.Equalize()), "does not take floats"),
        (as_floats.then(steps.Resize(4, 4, 0, 4, 0, 4, 1, 0)), "does not take floats"),
        (as_floats.then(steps.Pointwise((0, 1, 1))), "end early"),
        (as_floats.then(steps.Pointwise((9, 1, 1, 1))), "an unknown operation"),
        (as_floats.then(steps.FloatPad(-1, 0, 4, 4, 0, 0, 0)), "does not fit into its frame"),
        (as_floats.then(steps.PadEdges(0, 0, 4, 4, 4)), "an unknown border"),
        (as_floats.then(steps.Channels(0, 1, 3)), "a channel that is not there"),
        (as_floats.then(steps.Spread()), "other than one channel"),
        (as_floats.then(steps.FloatContrast(2, 1.1, 5, 1, 16, 0)), "an unknown order"),
        (as_floats.then(steps.FloatContrast(2, 1.1, 8, 1, 0, 0)), "blocks without values"),
        (as_floats.then(steps.TorchHue(2, 0.7)), "more than half a circle"),
        (as_floats.then(steps.Crop(0, 0, 4, 5), (4, 5)), "a crop that leaves the image"),
        (image.then(steps.Blend(as_floats, 0.5)), "a mixture of bytes and floats"),
        (image.then(steps.Pointwise((0, 1, 1, 1))), "a step that takes floats only"),
    ):
        with pytest.raises(RuntimeError, match=why):
            materialization = Materialization([LazyTensor([floats.float_row(node)], ())])
            _native.recipe.materialize(materialization.native_batch)
            materialization.finish()


# ---- loaders ----


class Folder(torch.utils.data.Dataset[Any]):
    """Float steps after `ToTensor`, like in scripts that do not choose the fastest order."""

    def __init__(self, root: Path) -> None:
        self.files = sorted([*root.rglob("*.jpg"), *root.rglob("*.png")])
        self.transform = v1.Compose(
            [
                v1.ToTensor(),
                v1.RandomResizedCrop(40, antialias=True),
                v1.RandomHorizontalFlip(),
                v1.ColorJitter(0.4, 0.4, 0.4, 0.1),
                v1.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4]),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(self.files[index]).convert("RGB")), index


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.leaks("torch keeps its threads")
def test_loaders_deliver_torchs_floats(files: Path, workers: int) -> None:
    expected = run(torch.utils.data.DataLoader(Folder(files), batch_size=4, shuffle=True, num_workers=workers))
    counts.reset()
    with stoker.torchvision.enabled():
        batches = run(torch.utils.data.DataLoader(Folder(files), batch_size=4, shuffle=True, num_workers=workers))
    for (a, i), (b, j) in zip(expected, batches, strict=True):
        assert torch.equal(i, j)
        exactly(b, a)
    native = counts.totals()[counts.NATIVE]
    assert native >= 12 or not trials.all_known(lambda: [Folder(files)[i] for i in range(len(Folder(files)))])
    counts.reset()
