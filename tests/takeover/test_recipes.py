# SPDX-License-Identifier: Apache-2.0
"""The interpreter of recipes equals Pillow on random recipes, and is safe with arbitrary numbers."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from photographs import photograph
from PIL import Image

from stoker.frontends.torchvision.ir import packing, steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.ir.tables import Table
from stoker.frontends.torchvision.materialize.eager import core_image
from stoker.frontends.torchvision.pillow.image import map_node, pad_node
from stoker.frontends.torchvision.reference.replay import FILTERS, replay
from stoker.frontends.torchvision.reference.sums import sum_order
from stoker.frontends.torchvision.tensors import resizes
from stoker.frontends.torchvision.tensors.views import pad_edges_node
from stoker.frontends.torchvision.transport.source import Source
from stoker.native import _native
from tests.takeover.declared import LANCZOS

WIDTH, HEIGHT = 60, 44


def jpeg(gray: bool) -> bytes:
    out = io.BytesIO()
    image = Image.fromarray(photograph(3, HEIGHT, WIDTH))
    (image.convert("L") if gray else image).save(out, "JPEG", quality=88)
    return out.getvalue()


FILES = {1: jpeg(True), 3: jpeg(False)}


KINDS = [
    "crop",
    "resize",
    "transpose",
    "affine",
    "pad",
    "map",
    "mode",
    "contrast",
    "saturate",
    "sharpen",
    "lut",
    "hue",
    "boxes",
    "blend",
    "mix",
]


def a_step(rng: random.Random, node: Node) -> Node:
    width, height = node.size
    kind = rng.choice(KINDS)
    if kind == "crop":
        x0, y0 = rng.randrange(width), rng.randrange(height)
        x1, y1 = rng.randint(x0 + 1, width), rng.randint(y0 + 1, height)
        return node.then(steps.Crop(x0, y0, x1, y1), (x1 - x0, y1 - y0))
    if kind == "resize":
        size = (rng.randint(1, 50), rng.randint(1, 50))
        params = (size[1], size[0], 0.0, float(height), 0.0, float(width), rng.choice(list(FILTERS)), 0)
        return node.then(steps.Resize(*params), size)
    if kind == "transpose":
        method = rng.randrange(7)
        return node.then(steps.Transpose(method), (height, width) if method in (2, 4, 5, 6) else node.size)
    if kind == "affine":
        size = (rng.randint(1, 50), rng.randint(1, 50))
        matrix = [rng.uniform(-1.5, 1.5) * (30 if i % 3 == 2 else 1) for i in range(6)]
        fill = [rng.randrange(256) for _ in range(3)]
        return node.then(steps.Affine(size[1], size[0], *matrix, rng.randrange(2), *fill), size)
    if kind == "pad":
        left, top = rng.randrange(9), rng.randrange(9)
        size = (left + width + rng.randrange(9), top + height + rng.randrange(9))
        return pad_node(node, left, top, size, (rng.randrange(256), rng.randrange(256), rng.randrange(256)))
    if kind == "map":
        channels = rng.choice([1, node.channels])
        return map_node(node, np.random.default_rng(rng.randrange(99)).integers(0, 256, (channels, 256), np.uint8))
    if kind == "mode":
        return node.then(steps.Luma(), channels=1) if node.channels == 3 else node.then(steps.Spread(), channels=3)
    if kind == "sharpen":
        return node.then(steps.Sharpen(rng.uniform(-1, 3)))
    if kind == "boxes":
        return node.then(steps.Blur(rng.uniform(0, 4), rng.uniform(0, 4), *rng.choice([(1, 0), (3, 1)])))
    if kind == "blend":
        other = map_node(node.then(steps.Transpose(rng.choice([0, 1, 3]))), np.arange(256)[::-1])
        return node.then(steps.Blend(other, rng.uniform(*rng.choice([(0, 1), (-1, 3)]))))
    if kind == "mix":
        parts = [
            node,
            node.then(steps.Transpose(3)),
            node.then(steps.Transpose(0)).then(steps.Sharpen(2.0)),
        ]
        ramp = torch.arange(256, dtype=torch.float32).expand(rng.choice([1, node.channels]), 1, 256)
        tables = [Table(ramp * np.float32(rng.uniform(0, 0.33))) for _ in parts[:-1]]
        tables.append(Table((ramp.flip(2) * 0.3 if rng.random() < 0.5 else ramp.sqrt()).contiguous()))
        return node.then(steps.Mix(tables[0], tuple(zip(parts[1:], tables[1:], strict=True))))
    if kind == "lut":
        return node.then(rng.choice([steps.Autocontrast(), steps.Equalize()]))
    if kind == "hue":
        return node.then(steps.Hue(rng.randrange(256))) if node.channels == 3 else node
    if kind == "contrast":
        return node.then(steps.Contrast(rng.uniform(-1, 3)))
    return node.then(steps.Saturate(rng.uniform(-1, 3))) if node.channels == 3 else node


TORCH_KINDS = ["warp", "resize", "pick", "gray", "colors", "lut", "sharpen", "blur", "edges", "project"]


def another_step(rng: random.Random, node: Node) -> Node:
    """Return steps of torch's, and of Pillow's with another sampling."""
    width, height = node.size
    kind = rng.choice(TORCH_KINDS)
    size = (rng.randint(1, 70), rng.randint(1, 70))
    if kind == "resize":
        if size[0] > 1 and rng.random() < 0.3:
            kind = rng.randrange(2)
            way = resizes._find_way(kind, rng.random() < 0.5, node.channels, size)
            if way is not None:
                return node.then(steps.TorchResizeFloats(size[1], size[0], kind, way), size)
        kind = rng.randrange(2 + LANCZOS)
        return node.then(steps.TorchResize(size[1], size[0], kind, 1 if kind == 2 else rng.randrange(2)), size)
    if kind == "pick":
        return node.then(steps.TorchPick(size[1], size[0], rng.randrange(2)), size)
    if kind == "edges":
        left, top, right, bottom = (rng.randrange(n) for n in (width, height, width, height))
        return pad_edges_node(node, (left, top, right, bottom), rng.randrange(4))
    if kind == "project":
        matrix = [rng.uniform(-1.5, 1.5) * (30 if i % 3 == 2 else 1) for i in range(6)]
        matrix += [rng.uniform(-0.01, 0.01), rng.uniform(-0.01, 0.01)]
        fill = [rng.randrange(256) for _ in range(3)]
        projective, sampling = rng.choice([(0, 1), (0, 2), (1, 0), (1, 1), (1, 2)])
        params = (size[1], size[0], *matrix, projective, sampling, *fill)
        return node.then(steps.Project(*params), size)
    if kind == "warp":
        size = (rng.randint(12, 70), rng.randint(12, 70))
        numbers = [rng.uniform(-0.04, 0.04) if i % 3 < 2 else rng.uniform(-0.6, 0.6) for i in range(6)]
        numbers += [rng.uniform(-0.005, 0.005), rng.uniform(-0.005, 0.005)]
        numbers = np.array(numbers, np.float32).tolist()
        fill = [float(rng.randrange(256)) for _ in range(3)]
        params = (size[1], size[0], *numbers, rng.randrange(2), rng.randrange(2), rng.randrange(3), *fill)
        return node.then(steps.TorchWarp(*params), size)
    if kind == "lut":
        if rng.random() < 0.5:
            return node.then(steps.TorchEqualize())
        return node.then(steps.TorchAutocontrast(rng.randint(1, 2)))
    if node.channels == 1:
        return node.then(steps.Spread(), channels=3) if kind == "colors" else node
    if kind == "gray":
        return node.then(steps.TorchLuma(rng.randint(1, 2)), channels=1)
    if kind == "sharpen":
        return node.then(steps.TorchSharpen(rng.randint(1, 2), rng.uniform(0, 3))) if min(node.size) > 2 else node
    if kind == "blur":
        rows, columns = (rng.randrange(1, min(n, 12) + 1, 2) for n in (height, width))
        weights = np.random.default_rng(rng.randrange(99)).random(rows * columns).astype(np.float32)
        weights /= weights.sum()
        return node.then(steps.Correlate(rows, columns, tuple(weights.tolist())))
    if rng.random() < 0.3:
        return node.then(steps.TorchHue(rng.randint(1, 2), rng.uniform(-0.5, 0.5)))
    numbers = rng.randint(1, 2), rng.uniform(0, 3)
    order = sum_order(width * height, 1)
    if order is not None and rng.random() < 0.5:
        return node.then(steps.TorchContrast(*numbers, *order))
    return node.then(steps.TorchSaturate(*numbers))


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_recipes_equal_torch_and_pillow(seed: int) -> None:
    rng = random.Random(seed)
    channels = rng.choice([1, 3])
    node = Node.decode(Source(np.frombuffer(FILES[channels], np.uint8)), (WIDTH, HEIGHT), channels)
    for _ in range(rng.randint(1, 4)):
        node = rng.choice([a_step, another_step, another_step])(rng, node)
    expected = replay(node)
    result = Image.Image()._new(core_image(node))
    assert (result.mode, result.size) == (expected.mode, expected.size)
    assert result.tobytes() == expected.tobytes()


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_recipes_equal_pillow(seed: int) -> None:
    rng = random.Random(seed)
    channels = rng.choice([1, 3])
    node = Node.decode(Source(np.frombuffer(FILES[channels], np.uint8)), (WIDTH, HEIGHT), channels)
    for _ in range(rng.randint(0, 5)):
        node = a_step(rng, node)
    expected = replay(node)
    result = Image.Image()._new(core_image(node))
    assert (result.mode, result.size) == (expected.mode, expected.size)
    assert result.tobytes() == expected.tobytes()


@given(st.lists(st.one_of(st.integers(-3, 70), st.floats()), max_size=60), st.integers(0, 10**6))
@settings(max_examples=400, deadline=None)
def test_any_numbers_are_refused_or_run(numbers: list[float], seed: int) -> None:
    rng = random.Random(seed)
    start: list[float] = [steps.DECODE, -1, 3, 0, 0, WIDTH, HEIGHT, 0]
    for _ in range(rng.randrange(4)):  # well-formed steps, so that the invalid ones have images to damage
        start += [steps.TRANSPOSE, 0, rng.randrange(9)]
    array = np.array([*start, *numbers], np.float64)
    output = np.zeros(64, np.uint8)
    table = np.arange(256, dtype=np.uint8)
    order = _native.recipe.make_batch(
        array, np.array([0, len(array)]), [np.frombuffer(FILES[3], np.uint8)], [(table, 1)], [output[:32]]
    )
    _native.recipe.materialize(order)
    assert order.done
    assert not output[32:].any(), "nothing is written after an output"


RAMP = np.arange(256, dtype=np.uint8)[::-1].copy()


def run_steps(more_steps: list[list[float]], size: int) -> tuple[list[tuple[int, str]], list[bytes]]:
    """Return the error of a recipe of a gray 8 x 6 picture, and its two outputs."""
    begin = [steps.PIXELS, -1, 6, 8, 1, 0, 0, 0, 8, 6]
    numbers = np.array([*begin, *(number for step in more_steps for number in step)], np.float64)
    pixels = np.arange(48, dtype=np.uint8) * 5
    outputs = [np.zeros(size, np.uint8) for _ in range(2)]
    order = _native.recipe.make_batch(numbers, np.array([0, len(numbers)]), [pixels], [(RAMP, 1)], outputs)
    _native.recipe.materialize(order)
    return order.failures, [output.tobytes() for output in outputs]


@pytest.mark.parametrize(
    "then",
    [
        [[steps.MAP, 2, 0], [steps.STORE, 3, 1, 0, -1]],
        [[steps.STORE, 2, 1, 0, -1]],
        [
            [steps.PATCH, 2, 0, 0, 1, 5, 7, 0, 1, 1, 3, 2, 4, 1, 0],
            [steps.TRANSPOSE, 3, 0],
            [steps.STORE, 4, 1, 0, -1],
        ],
        [[steps.BLEND, 1, 2, 0.5], [steps.STORE, 3, 1, 0, 0]],
    ],
)
def test_a_stored_image_may_be_the_input_of_later_steps(then: list[list[float]]) -> None:
    """The image of a storing step is its input, whichever way that was computed."""
    before: list[list[float]] = [[steps.RESIZE, 0, 5, 7, 0, 6, 0, 8, 1, 0], [steps.STORE, 1, 0, 0, -1], *then]
    wrong, together = run_steps(before, 35)
    # Unfused: another step reads the resized image.
    apart = run_steps([*before, [steps.TRANSPOSE, 1, 0]], 35)
    assert not wrong and apart == (wrong, together)
    assert any(together[0]) and any(together[1])


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ([steps.STORE, 2, 0, 0, -1], "an image that is not there"),
        ([steps.STORE, -1, 0, 0, -1], "an image that is not there"),
        ([steps.STORE, 0, 2, 0, -1], "an output that is not there"),
        ([steps.STORE, 0, 0, 1, -1], "does not fit into its output"),
        ([steps.STORE, 0, 0, 2.0**63, -1], "should be whole"),
        ([steps.PIXELS, 0, 6, 8, 1, 0, 0, 0, 8, 6], "taken from an image"),
        ([steps.CROP, 0, 0, 0, 9, 6], "a crop that leaves the image"),
        ([steps.TRANSPOSE, 0, 7], "an unknown transposition"),
        ([steps.LUMA, 0], "three channels"),
        ([steps.RESIZE, 0, 5, 5, 0, NAN, 0, 8, 1, 0], "not finite"),
        ([steps.RESIZE, 0, 5, 5, 0, INF, 0, 8, 1, 0], "not finite"),
        ([steps.RESIZE, 0, 2.0**31, 5, 0, 6, 0, 8, 1, 0], "larger than can be addressed"),
        ([steps.RESIZE, 0, 5, 5, 0, 6, 0, 8, 8, 0], "an unknown filter"),
        ([steps.AFFINE, 0, 5, 5, 1, 0, INF, 0, 1, 0, 1, 0, 0, 0], "not finite"),
        ([steps.PAD, 0, -1, 0, 6, 9, 0, 0, 0], "does not fit into its frame"),
        ([steps.MAP, 0, 1], "a table that is not there"),
        ([steps.BLEND, 0, 2, 0.5], "an image that is not there"),
        ([steps.BLUR, 0, NAN, 0, 1, 0], "a blur of that radius"),
    ],
)
def test_a_recipe_is_checked_before_its_first_step(step: list[float], why: str) -> None:
    wrong, outputs = run_steps([[steps.STORE, 0, 0, 0, -1], step], 48)
    assert len(wrong) == 1 and why in wrong[0][1]
    assert not any(map(any, outputs)), "nothing has been stored"


@pytest.mark.parametrize("cut", [0, 1, 20, 300, -2])
def test_a_truncated_file_is_refused(cut: int) -> None:
    data = np.frombuffer(FILES[3][:cut], np.uint8)
    numbers = np.array([steps.DECODE, -1, 3, 0, 0, WIDTH, HEIGHT, 0], np.float64)
    order = _native.recipe.make_batch(numbers, np.array([0, 8]), [data], [], [])
    _native.recipe.materialize(order)
    assert order.failures == [(0, "")]


def test_threads_give_the_same_pixels_as_the_caller() -> None:
    rng = random.Random(5)
    source = Source(np.frombuffer(FILES[3], np.uint8))
    nodes = [a_step(rng, a_step(rng, Node.decode(source, (WIDTH, HEIGHT), 3))) for _ in range(40)]
    for node in nodes:
        node.source = Source(source.data)

    def pixels_of(threads: int) -> list[bytes]:
        memory = [np.zeros(n.size[0] * n.size[1] * n.channels, np.uint8) for n in nodes]
        rows = [packing.Row(n, None, i, 0) for i, n in enumerate(nodes)]
        packed = packing.pack(rows, memory)
        if not threads:
            _native.recipe.materialize(packed.native_batch)
        else:
            pool = _native.recipe.WorkerPool(threads)
            pool.submit(packed.native_batch)
            pool.prioritize(packed.native_batch)
            assert pool.wait(packed.native_batch, 30)
            pool.close()
        assert not packed.native_batch.failures
        return [m.tobytes() for m in memory]

    assert pixels_of(0) == pixels_of(1) == pixels_of(3)


def test_a_closed_worker_pool_reports_orders_that_never_ran() -> None:
    pool = _native.recipe.WorkerPool(1)
    pool.close()
    numbers = np.array([steps.DECODE, -1, 3, 0, 0, WIDTH, HEIGHT, 0], np.float64)
    order = _native.recipe.make_batch(numbers, np.array([0, 8]), [np.frombuffer(FILES[3], np.uint8)], [], [])
    pool.submit(order)
    assert pool.wait(order, 1)
    assert order.failures == [(0, "it was not begun")]


@pytest.mark.parametrize("item", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3])
def test_tables_of_outputs(item: type, channels: int) -> None:
    """Images are resized, mirrored and mapped to any output, row by row if no other step reads the inputs."""
    rng = random.Random(11)
    source = Source(np.frombuffer(FILES[channels], np.uint8))
    for _ in range(40):
        width, height, first = rng.randint(1, 150), rng.randint(1, 40), rng.randrange(9) * 8
        params = (height, width, 0.0, float(HEIGHT), 0.0, float(WIDTH), rng.choice(list(FILTERS)), 0)
        node = Node.decode(source, (WIDTH, HEIGHT), channels).then(steps.Resize(*params), (width, height))
        for _ in range(rng.randrange(3)):
            node = node.then(steps.Transpose(rng.choice([0, 1, 3])))
        tables = np.random.default_rng(width).integers(0, 99, (rng.choice([1, channels]), 256)).astype(item)
        out = np.zeros(first + width * height * channels * tables.itemsize + 64, np.uint8)
        twice = np.zeros(width * height * channels * 2, np.uint8)
        table = Table(torch.from_numpy(tables))
        fused = packing.pack([packing.Row(node, table, 0, first)], [out])
        # Stored twice, so that the preceding steps run unfused.
        rows = [packing.Row(node, None, 0, 0), packing.Row(node, None, 0, twice.size // 2)]
        plain = packing.pack(rows, [twice])
        for order in (fused.native_batch, plain.native_batch):
            _native.recipe.materialize(order)
            assert not order.failures
        planes = np.asarray(replay(node)).reshape(height, width, channels).transpose(2, 0, 1)
        assert np.array_equal(twice.reshape(2, channels, height, width), [planes, planes])
        expected = np.stack([tables[c % len(tables)][plane] for c, plane in enumerate(planes)])
        assert out[first:-64].tobytes() == expected.tobytes()
        assert not out[:first].any() and not out[-64:].any()
