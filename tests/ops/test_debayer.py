# SPDX-License-Identifier: Apache-2.0
"""Debayering: layouts, arguments per row, and what is refused. OpenCV's values are in tests/compat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn

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


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: eager.debayer(x, blue_position=(0, 2)), (ArgumentError, DataError), "0 or 1 as `blue_position`"),
        (lambda x: eager.debayer(x, blue_position=(0, 0), algorithm="vng_ocv"), UnsupportedError, "'vng_ocv' of DALI"),
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
