# SPDX-License-Identifier: Apache-2.0
"""Numbers that no valid plan contains: positions that are NaN or too large; arrays without rows."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from photographs import photograph
from PIL import Image

from stoker.contract.types import DType
from stoker.graph.scalar_code import Compiler
from stoker.native import _native

NATIVE = 0  # kind of a segment
OUTPUT, INPUT = 2, 3  # storage of a value (native/plan/plan.hpp)
HEIGHT, WIDTH = 20, 24
RGB = 1  # native/jpeg/jpeg.hpp


@contextmanager
def decoding(window: Sequence[float]) -> Iterator[tuple[Any, Any]]:
    """Yield an engine and a job of one row, whose only step decodes a window (y0, x0, height, width) of a file."""
    code = Compiler(lambda v: v)
    params = [code.register(n) for n in window[:2]]
    extents = [code.register(n) for n in (*window[2:], 3)]
    plan = _native.Plan()
    plan.add_value(int(DType.UINT8), 1, INPUT, 0)
    plan.add_value(int(DType.UINT8), 3, OUTPUT, 0)
    kernel = _native.kernels.decode(True, RGB, 0, 0)
    plan.add_step(kernel, [0], [1], code.code, code.consts, params, [extents], [], [], -1, [0], False)
    plan.add_segment(NATIVE, [0], [0])
    plan.add_output(1, False, False, [], code.code, code.consts, extents)
    plan.finish(0, 0)
    engine = _native.Engine(plan, 1)
    job = engine.acquire(np.zeros(1, np.uint64), np.zeros(1, np.int64), 0, ())
    try:
        yield engine, job
    finally:
        engine.release(job)
        engine.close()


def decoded(window: Sequence[float], orientation: int) -> tuple[np.ndarray | None, str]:
    """Return the pixels, or the fault of the window."""
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(photograph(1, HEIGHT, WIDTH)).save(out, "JPEG", exif=exif)
    with decoding(window) as (engine, job):
        job.feed(0, 0, np.frombuffer(out.getvalue(), np.uint8))
        engine.begin(job)
        assert engine.advance(job) is None
        errors = [text.decode() for *_, text in job.errors]
        return (None, errors[0]) if errors else (np.array(job.take_output(0)[0]), "")


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_a_window_inside_of_the_image_is_decoded(orientation: int) -> None:
    pixels, wrong = decoded((2, 3, 5, 7), orientation)
    assert not wrong and pixels is not None and pixels.shape == (5, 7, 3) and pixels.any()


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize(
    "window",
    [
        (math.nan, 0, 5, 7),
        (0, math.nan, 5, 7),
        (math.inf, 0, 5, 7),
        (0, -math.inf, 5, 7),
        (2.0**31, 0, 5, 7),
        (0, 2.0**32, 5, 7),  # zero in 32 bits
        (2.0**63, 0, 5, 7),
        (-1, 0, 5, 7),
        (0, 19, 5, 7),
        (2.0**31 - 4, 0, 5, 7),  # the end of the window does not fit 32 bits
    ],
)
def test_a_window_that_leaves_the_image_is_an_error(window: Sequence[float], orientation: int) -> None:
    _, wrong = decoded(window, orientation)
    assert "expected a window inside of the image" in wrong


def test_an_array_without_rows_is_refused() -> None:
    with decoding((0, 0, 1, 1)) as (_, job), pytest.raises(ValueError, match="one element per row"):
        job.feed_rows(0, np.array(3, np.uint8))
