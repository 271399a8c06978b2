# SPDX-License-Identifier: Apache-2.0
"""Single steps of recipes, for all memory layouts: every instruction set gives the plain form's bits, and Pillow's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize.eager import planar_pixels
from stoker.frontends.torchvision.reference.replay import replay
from stoker.native import _native

Numbers = np.random.Generator


def _image(rng: Numbers, channels: int) -> Node:
    """Return an image in one of the memory layouts: interleaved, mirrored, transposed, cropped, or with a repeated
    channel."""
    height, width = (int(n) for n in rng.integers(3, 60, 2))
    if rng.random() < 0.1:
        width = int(rng.integers(1000, 1100))  # more than one block of planes
    spread = channels == 3 and rng.random() < 0.2
    stored = 1 if spread else channels
    values = rng.integers(0, 256, height * width * stored, np.uint8)
    node = Node.pixels(values, (width, height), stored)
    if spread:
        node = node.then(steps.Spread(), channels=3)
    kind = int(rng.integers(0, 10))
    if kind < 7:
        turned = kind in (2, 4, 5, 6)
        node = node.then(steps.Transpose(kind), node.size[::-1] if turned else node.size)
    if kind == 7:
        box = (1, 1, width - 1, height - 1)
        node = node.then(steps.Crop(*box), (width - 2, height - 2))
    return node


def _matrix(rng: Numbers) -> tuple[float, ...]:
    """Return a matrix that maps near the image, or anywhere."""
    m = rng.normal(0, 1, 6) * (1.0, 0.5, 20, 0.5, 1.0, 20)
    if rng.random() < 0.2:
        m[1] = m[3] = 0.0
    return tuple(float(x) for x in m)


def _color(rng: Numbers) -> tuple[int, ...]:
    color = rng.integers(0, 256, 3)
    return tuple(int(c) for c in (color if rng.random() < 0.6 else color[[0, 0, 0]]))


def _affine(rng: Numbers, node: Node) -> Node:
    height, width = (int(n) for n in rng.integers(1, 60, 2))
    params = (height, width, *_matrix(rng), int(rng.integers(0, 2)), *_color(rng))
    return node.then(steps.Affine(*params), (width, height))


def _pad(rng: Numbers, node: Node) -> Node:
    left, top, right, bottom = (int(n) for n in rng.integers(0, 9, 4))
    size = (left + node.size[0] + right, top + node.size[1] + bottom)
    return node.then(steps.Pad(left, top, size[1], size[0], *_color(rng)), size)


def _pad_edges(rng: Numbers, node: Node) -> Node:
    border = int(rng.integers(0, 4))
    most = 3 * max(node.size) if border else min(node.size) - 1
    left, top, right, bottom = (int(n) for n in rng.integers(0, most + 1, 4))
    size = (left + node.size[0] + right, top + node.size[1] + bottom)
    return node.then(steps.PadEdges(left, top, size[1], size[0], border), size)


def _map(rng: Numbers, node: Node) -> Node:
    tables = node.channels if rng.random() < 0.5 else 1
    return node.then(steps.Map(rng.integers(0, 256, 256 * tables, np.uint8)))


def _factor(rng: Numbers) -> tuple[float]:
    return (float(rng.choice([0.0, 0.5, 1.0, 1.7, -0.6, 30.0, rng.random(), 3 * rng.random()])),)


# The step, and whether Pillow can verify it.
STEPS: dict[str, tuple[Callable[[Numbers, Node], Node], tuple[int, ...]]] = {
    "affine": (_affine, (1, 3)),
    "pad": (_pad, (1, 3)),
    "pad edges": (_pad_edges, (1, 3)),
    "map": (_map, (1, 3)),
    "saturate": (lambda rng, node: node.then(steps.Saturate(*_factor(rng))), (3,)),
    "equalize": (lambda rng, node: node.then(steps.Equalize()), (1, 3)),
    "autocontrast": (lambda rng, node: node.then(steps.Autocontrast()), (1, 3)),
}


def _warp(rng: Numbers, node: Node) -> Node:
    height, width = (int(n) for n in rng.integers(1, 90, 2))
    scale = rng.choice([0.01, 0.03, 1.0])
    m = (rng.normal(0, 1, 8) * (scale, scale, 0.3, scale, scale, 0.3, 0.01, 0.01)).tolist()
    if rng.random() < 0.05:
        m[2] = float(rng.choice([np.nan, np.inf, 1e30]))
    fill = (int(rng.integers(0, 3)), *_color(rng))
    params = (height, width, *m, int(rng.integers(0, 2)), int(rng.random() < 0.8), *fill)
    return node.then(steps.TorchWarp(*params), (width, height))


def _resize(rng: Numbers, node: Node) -> Node:
    height, width = (int(n) for n in rng.integers(1, 90, 2))
    params = (height, width, int(rng.integers(0, 2)), int(rng.integers(0, 2)))
    return node.then(steps.TorchResize(*params), (width, height))


def _resize_floats(rng: Numbers, node: Node) -> Node:
    height, width = (int(n) for n in rng.integers(1, 90, 2))
    kind = int(rng.integers(0, 2))
    params = (height, width, kind, int(rng.choice([0, 1, 3] if kind else [0, 1, 2, 3])))
    return node.then(steps.TorchResizeFloats(*params), (width, height))


def _pick(rng: Numbers, node: Node) -> Node:
    height, width = (int(n) for n in rng.integers(1, 90, 2))
    return node.then(steps.TorchPick(height, width, int(rng.integers(0, 2))), (width, height))


def _of_generation(kind: Any, channels: int = 0) -> Callable[[Numbers, Node], Node]:
    def step(rng: Numbers, node: Node) -> Node:
        factor = () if kind is steps.TorchLuma else _factor(rng)
        return node.then(kind(int(rng.integers(1, 3)), *factor), channels=channels)

    return step


TORCHS: dict[str, tuple[Callable[[Numbers, Node], Node], tuple[int, ...]]] = {
    "warp": (_warp, (1, 3)),
    "resize": (_resize, (1, 3)),
    "resize by floats": (_resize_floats, (1, 3)),
    "pick": (_pick, (1, 3)),
    "luma": (_of_generation(steps.TorchLuma, 1), (3,)),
    "saturate": (_of_generation(steps.TorchSaturate), (3,)),
}


def _chains(name: str, steps: Any, seed: int, count: int) -> Iterator[Node]:
    rng = np.random.Generator(np.random.PCG64(seed))
    step, channels = steps[name]
    for _ in range(count):
        yield step(rng, _image(rng, int(rng.choice(channels))))


@pytest.mark.parametrize("name", STEPS)
def test_steps_have_pillows_bits(name: str, isa: str) -> None:
    for at, node in enumerate(_chains(name, STEPS, 3, 150)):
        expected = np.asarray(replay(node))
        result = planar_pixels(node).transpose(1, 2, 0).reshape(expected.shape)
        assert np.array_equal(result, expected), (at, node.step, node.size, isa)


@pytest.mark.parametrize("name", TORCHS)
def test_steps_of_torch_have_the_plain_forms_bits(name: str, isa: str) -> None:
    for at, node in enumerate(_chains(name, TORCHS, 4, 200)):
        result = planar_pixels(node)
        _native.set_isa("plain")
        assert np.array_equal(result, planar_pixels(node)), (at, node.step, node.size, isa)
        _native.set_isa(isa)


def test_pads_and_tables_that_are_none_are_refused() -> None:
    image = Node.pixels(np.zeros(12, np.uint8), (2, 2), 3)
    for step, size, why in (
        (steps.Pad(-1, 0, 2, 2, 0, 0, 0), (2, 2), "does not fit into its frame"),
        (steps.PadEdges(0, 0, 2, 2, 4), (2, 2), "an unknown border"),
        (steps.Map(np.zeros(512, np.uint8)), (2, 2), "a table of another kind"),
        (steps.Affine(2, 2, float("inf"), 0, 0, 0, 1, 0, 1, 0, 0, 0), (2, 2), "a matrix that is not finite"),
    ):
        with pytest.raises(RuntimeError, match=why):
            planar_pixels(image.then(step, size))
