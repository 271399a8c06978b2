# SPDX-License-Identifier: Apache-2.0
"""Debayering: layouts, arguments per row, and what is refused. OpenCV's values are in tests/compat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn
from stoker.ops.image.debayer import _by_gradients

MOSAIC = np.random.default_rng(4).integers(0, 256, (2, 10, 12), dtype=np.uint8)


def test_a_mosaic_of_a_plain_colour_is_the_colour() -> None:
    plain = np.empty((8, 10), np.uint16)
    plain[...] = 2000  # green
    plain[0::2, 0::2], plain[1::2, 1::2] = 1000, 3000  # red, blue
    found = np.asarray(eager.debayer(plain, blue_position=(0, 0)))
    assert found.dtype == np.uint16 and (found == (1000, 2000, 3000)).all()


@pytest.mark.parametrize("layout", ["HWC", "FHW", "FHWC"])
def test_layouts(layout: str) -> None:
    x = MOSAIC if "F" in layout else MOSAIC[0]
    x = x[..., None] if "C" in layout else x
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        node = fn.external_source(source=lambda: x, batch=False, dtype="uint8", ndim=x.ndim, layout=layout)
        out = fn.debayer(node, blue_position=[1, 0])
        pipe.set_outputs(out, fn.flip(out, horizontal=1))  # the flip needs the layout
    with pipe:
        found, flipped = (np.asarray(batch[0]) for batch in pipe.run())
    want = np.stack([np.asarray(eager.debayer(frame, blue_position=(1, 0))) for frame in MOSAIC])
    np.testing.assert_array_equal(found, want if "F" in layout else want[0])
    np.testing.assert_array_equal(flipped, found[..., ::-1, :])


def test_without_a_small_gradient_the_pixel_is_gray() -> None:
    """All gradients are equal, and none is less than the threshold."""
    x = np.full((16, 24), 100, np.uint8)
    for at in ((6, 11), (7, 8), (9, 12), (10, 9)):
        x[at] += 1
    found = np.asarray(eager.debayer(x, blue_position=(0, 0), algorithm="vng_ocv"))
    assert found[8, 10].tolist() == [100, 100, 100]


@pytest.mark.parametrize("shape", [(7, 20), (20, 7), (3, 3)])
def test_gradients_need_eight_pixels_on_a_side(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(5).integers(0, 256, shape, dtype=np.uint8)
    found = [np.asarray(eager.debayer(x, blue_position=(1, 0), algorithm=n)) for n in ("vng_ocv", "bilinear_ocv")]
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("position", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gradients_equal_their_reference(position: tuple[int, int]) -> None:
    """Widths on both sides of groups of eight columns, plain and noisy mosaics."""
    rng = np.random.default_rng(6)
    for width in range(8, 28):
        for high in (3, 20, 256):
            x = rng.integers(0, high, (8 + width % 5, width), dtype=np.uint8)
            found = np.asarray(eager.debayer(x, blue_position=position, algorithm="vng_ocv"))
            np.testing.assert_array_equal(found, _by_gradients(x, list(position)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: eager.debayer(x, blue_position=(0, 2)), (ArgumentError, DataError), "0 or 1 as `blue_position`"),
        (
            lambda x: eager.debayer(x.astype(np.uint16), blue_position=(0, 0), algorithm="vng_ocv"),
            UnsupportedError,
            "expected uint8 for the algorithm 'vng_ocv'",
        ),
        (lambda x: eager.debayer(x, blue_position=(0, 0), algorithm="default_npp"), UnsupportedError, "bilinear_ocv"),
        (lambda x: eager.debayer(x[:2], blue_position=(0, 0)), (ArgumentError, DataError), "at least 3 pixels"),
        (
            lambda x: eager.debayer(x[..., None].repeat(3, 2), blue_position=(0, 0)),
            (ArgumentError, DataError),
            "channel",
        ),
        (lambda x: eager.debayer(x.astype(np.float32), blue_position=(0, 0)), UnsupportedError, "Cast it first"),
    ],
)
def test_invalid_arguments_are_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(MOSAIC[0])
