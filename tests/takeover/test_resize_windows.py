# SPDX-License-Identifier: Apache-2.0
"""Resizes of which later crops show a window: the window alone is computed, from the part of the file that it needs."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image

from stoker.frontends.torchvision.ir import recipe, steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize.eager import interleaved_bytes, planar_pixels
from stoker.frontends.torchvision.reference.replay import replay
from stoker.frontends.torchvision.transport.source import Source
from stoker.native import _native

WIDTH, HEIGHT = 97, 71
FILES = {"file": {}, "full chroma file": {"subsampling": 0}, "progressive file": {"progressive": True}, "gray file": {}}
ROOTS = [*FILES, "truncated file", "packed", "planar", "of four bytes"]


def _root(kind: str) -> Node:
    image = Image.fromarray(photograph(5, HEIGHT, WIDTH))
    size = (WIDTH, HEIGHT)
    if kind.endswith("file"):
        out = io.BytesIO()
        image = image.convert("L") if kind == "gray file" else image
        image.save(out, "JPEG", quality=91, **FILES.get(kind, {}))
        cut = len(out.getvalue()) // 2 if kind == "truncated file" else 0
        data = out.getvalue()[: len(out.getvalue()) - cut]
        return Node.decode(Source.from_bytes(data), size, 1 if image.mode == "L" else 3, is_lenient=cut > 0)
    array = np.asarray(image)
    if kind == "packed":
        return Node.pixels(array.reshape(-1).copy(), size, 3)
    if kind == "planar":
        return Node.pixels(np.ascontiguousarray(array.transpose(2, 0, 1)).reshape(-1), size, 3, recipe.PLANAR)
    return Node.pixels(np.asarray(image.convert("RGBX")).reshape(-1).copy(), size, 3, recipe.OF_FOUR_BYTES)


def _random_chain(root: Node, rng: np.random.Generator) -> Node:
    """Return a resize with crops and mirrors after it, some of them of a cropped file."""
    node = root
    if rng.random() < 0.3 and root.op == steps.DECODE:
        node = node.then(steps.Crop(11, 7, 83, 60), (72, 53))
    if rng.random() < 0.1 and root.channels == 1:
        node = node.then(steps.Spread(), channels=3)
    width, height = (int(n) for n in rng.integers(1, 200, 2))
    kind = int(rng.integers(0, 3))
    node = node.then(
        steps.TorchResize(height, width, kind, 1 if kind == 2 else int(rng.integers(0, 2))), (width, height)
    )
    for _ in range(int(rng.integers(0, 4))):
        if rng.random() < 0.5:
            node = node.then(steps.Transpose(int(rng.choice([0, 1, 3]))))
            continue
        w, h = node.size
        x0, y0 = int(rng.integers(0, w)), int(rng.integers(0, h))
        x1, y1 = int(rng.integers(x0 + 1, w + 1)), int(rng.integers(y0 + 1, h + 1))
        node = node.then(steps.Crop(x0, y0, x1, y1), (x1 - x0, y1 - y0))
    return node


@pytest.fixture(params=_native.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each set of instructions of this machine."""
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


@pytest.mark.parametrize("kind", ROOTS)
def test_a_window_is_the_same_window_of_the_whole(kind: str, isa: str) -> None:
    root = _root(kind)
    rng = np.random.default_rng(ROOTS.index(kind))
    for _ in range(60):
        node = _random_chain(root, rng)
        ours, together = planar_pixels(node), interleaved_bytes(node)  # the second form runs step by step
        assert together is not None
        step_by_step = together.reshape(node.size[1], node.size[0], node.channels).transpose(2, 0, 1)
        assert np.array_equal(ours, step_by_step), node.step


@pytest.mark.parametrize("kind", ROOTS)
def test_a_window_is_torchs(kind: str) -> None:
    root = _root(kind)
    whole = torch.from_numpy(np.atleast_3d(np.array(replay(root))).transpose(2, 0, 1).copy())[None]
    for size, mode, number in (((90, 45), "bilinear", 0), ((33, 150), "bicubic", 1), ((64, 30), "bicubic", 1)):
        node = root.then(steps.TorchResize(*size, number, 1), size[::-1])
        node = node.then(steps.Crop(5, 3, 29, 31), (24, 28))
        expected = torch.nn.functional.interpolate(whole, size=size, mode=mode, antialias=True)[0, :, 3:31, 5:29]
        assert np.array_equal(planar_pixels(node), expected.numpy())


def test_pixels_of_four_bytes_in_rows_of_any_length(isa: str) -> None:
    rng = np.random.default_rng(3)
    for width in (*range(1, 70), 127, 128, 129):
        four = rng.integers(0, 256, (9, width, 4), np.uint8)
        three = np.ascontiguousarray(four[..., :3])
        resize = steps.TorchResize(5, 1 + width // 2, 0, 1)
        made = [
            planar_pixels(Node.pixels(pixels.reshape(-1), (width, 9), 3, layout).then(resize, (1 + width // 2, 5)))
            for pixels, layout in ((three, recipe.PACKED), (four, recipe.OF_FOUR_BYTES))
        ]
        assert np.array_equal(*made), width


def test_an_image_that_is_used_twice_is_computed_whole() -> None:
    small = _root("file").then(steps.TorchResize(30, 40, 0, 1), (40, 30))
    again = small.then(steps.Blend(small.then(steps.Transpose(0)), 0.25))
    expected = interleaved_bytes(again)
    assert expected is not None
    assert np.array_equal(planar_pixels(again), expected.reshape(30, 40, 3).transpose(2, 0, 1))


def test_a_file_of_another_size_is_refused() -> None:
    node = _root("file")
    larger = Node.decode(node.source, (WIDTH + 8, HEIGHT), 3)
    cut = larger.then(steps.TorchResize(50, 210, 0, 1), (210, 50)).then(steps.Crop(150, 0, 210, 50), (60, 50))
    assert planar_pixels(cut) is None, "another decoder has to decide"


def test_a_truncated_file_is_left_to_another_decoder() -> None:
    """The rows that are there reach the resize before the end of the data is known, and must not reach the result."""
    file = _root("truncated file")
    assert file.source is not None
    strict = Node.decode(file.source, (WIDTH, HEIGHT), 3).then(steps.TorchResize(50, 60, 0, 1), (60, 50))
    lenient = file.then(steps.TorchResize(50, 60, 0, 1), (60, 50))
    assert planar_pixels(strict) is None and planar_pixels(lenient) is not None


def test_pixels_in_an_unknown_layout_are_refused() -> None:
    node = Node.pixels(np.zeros(16 * 16 * 4, np.uint8), (16, 16), 3, 3)
    with pytest.raises(RuntimeError, match="an unknown layout of pixels"):
        planar_pixels(node)
    short = Node.pixels(np.zeros(16 * 16 * 3, np.uint8), (16, 16), 3, recipe.OF_FOUR_BYTES)
    with pytest.raises(RuntimeError, match="bytes that are not the image's"):
        planar_pixels(short.then(steps.TorchResize(5, 5, 0, 1), (5, 5)))
