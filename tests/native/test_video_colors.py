# SPDX-License-Identifier: Apache-2.0
"""The native conversion of video frames: equal to its plain twin, near the real numbers, and safe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from stoker.native import _native
from stoker.video.colors import MATRICES, STORED, convert_plain

SHIFTS = [(1, 1), (1, 0), (0, 0), (0, 1), (2, 0), (2, 2)]


@pytest.fixture(params=_native.instruction_sets())
def _isa(request: pytest.FixtureRequest) -> Iterator[None]:
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield
    _native.set_isa(before)


def planes_of(height: int, width: int, shifts: tuple[int, int], bits: int, seed: int = 0) -> list[Any]:
    draws = np.random.default_rng(seed)
    small = [-(-height // (1 << shifts[1])), -(-width // (1 << shifts[0]))]
    dtype = np.uint8 if bits == 8 else np.uint16
    return [draws.integers(0, 1 << bits, size).astype(dtype) for size in ([height, width], small, small)]


def convert(
    planes: Any, shifts: Any, bits: int, matrix: Any, full: bool, order: int, pad: int = 0, dtype: Any = np.uint8,
    *, out: Any = None,
) -> Any:  # fmt: skip
    height, width = planes[0].shape
    out = np.full((height, width, 3), 77, dtype) if out is None else out
    wide = [np.pad(p, ((0, 0), (0, pad))) for p in planes]
    memory = [np.ascontiguousarray(p).reshape(-1).view(np.uint8) for p in wide]
    pitches = [p.shape[1] * p.itemsize for p in wide]
    _native.video.convert(memory, pitches, shifts, bits, matrix, full, order, out)
    return out


@pytest.mark.usefixtures("_isa")
@pytest.mark.parametrize("bits", [8, 9, 10, 12, 14, 16])
@pytest.mark.parametrize("shifts", SHIFTS)
def test_equal_to_the_plain_twin(bits: int, shifts: tuple[int, int]) -> None:
    for width in (1, 2, 17, 67, 131):
        planes = planes_of(7, width, shifts, bits, width)
        for full in (False, True):
            for order in (0, 1, 2):
                for matrix in (MATRICES[1], MATRICES[9]):
                    got = convert(planes, shifts, bits, matrix, full, order, pad=width % 5)
                    np.testing.assert_array_equal(got, convert_plain(planes, shifts, bits, matrix, full, order))
    gray = planes_of(5, 33, (0, 0), bits)[:1]
    got = convert(gray, (0, 0), bits, MATRICES[1], False, 0)
    np.testing.assert_array_equal(got, convert_plain(gray, (0, 0), bits, MATRICES[1], False, 0))


@pytest.mark.usefixtures("_isa")
@pytest.mark.parametrize("shifts", [(1, 1), (1, 0), (0, 0)])
def test_large_frames_are_equal_to_the_plain_twin(shifts: tuple[int, int]) -> None:
    """Rows of frames that are written past the caches begin at multiples of 16, or do not."""
    for width in (602, 640):
        planes = planes_of(620, width, shifts, 8)
        for order in (0, 1):
            got = convert(planes, shifts, 8, MATRICES[1], False, order)
            np.testing.assert_array_equal(got, convert_plain(planes, shifts, 8, MATRICES[1], False, order))


@pytest.mark.usefixtures("_isa")
@pytest.mark.parametrize("matrix", sorted(MATRICES))
@pytest.mark.parametrize("full", [False, True])
def test_pairs_of_rows_are_equal_to_the_plain_twin(matrix: int, full: bool) -> None:
    """Two rows are written together where chroma samples, sizes and addresses allow, the last row alone."""
    for height, width in ((178, 1984), (547, 640), (5463, 64)):
        planes = planes_of(height, width, (1, 1), 8, matrix)
        size = 3 * height * width
        for order in (0, 1, 2):
            expected = convert_plain(planes, (1, 1), 8, MATRICES[matrix], full, order)
            for beyond in (0, 16):  # a multiple of 64 bytes
                memory = np.full(size + 192, 77, np.uint8)
                start = -memory.ctypes.data % 64 + 64 + beyond
                out = memory[start : start + size].reshape(height, width, 3)
                convert(planes, (1, 1), 8, MATRICES[matrix], full, order, pad=5 * (order == 1), out=out)
                np.testing.assert_array_equal(out, expected)
                assert (memory[:start] == 77).all()
                assert (memory[start + size :] == 77).all()


@pytest.mark.parametrize("bits", [8, 9, 10, 12, 14, 16])
@pytest.mark.parametrize("shifts", SHIFTS)
def test_words_are_equal_to_the_plain_twin(bits: int, shifts: tuple[int, int]) -> None:
    for width in (1, 17, 66):
        planes = planes_of(7, width, shifts, bits, width)
        for full in (False, True):
            for order in (0, 1, 2):
                got = convert(planes, shifts, bits, MATRICES[9], full, order, width % 5, np.uint16)
                np.testing.assert_array_equal(
                    got, convert_plain(planes, shifts, bits, MATRICES[9], full, order, np.uint16)
                )
                if order < 2:
                    small = convert(planes, shifts, bits, MATRICES[9], full, order)
                    assert np.abs(got / 257 - small).max() < 0.54  # half, and the rounded weights of bytes
    gray = planes_of(5, 33, (0, 0), bits)[:1]
    got = convert(gray, (0, 0), bits, MATRICES[1], True, 0, dtype=np.uint16)
    np.testing.assert_array_equal(got, convert_plain(gray, (0, 0), bits, MATRICES[1], True, 0, np.uint16))
    np.testing.assert_array_equal(got[..., 1], np.rint(gray[0] / ((1 << bits) - 1) * 65535))


@pytest.mark.parametrize("matrix", [1, 5, 9])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("bits", [8, 10])
def test_near_the_definition_in_real_numbers(matrix: int, full: bool, bits: int) -> None:
    """H.273's equations, in float64: the integer result is at most one off, and nearly always the rounded one."""
    planes = planes_of(64, 64, (0, 0), bits)
    kr, kb = MATRICES[matrix]
    one = 1 << (bits - 8)
    y, u, v = (p.astype(float) for p in planes)
    if full:
        y, u, v = y / (256 * one - 1), (u - 128 * one) / (256 * one - 1), (v - 128 * one) / (256 * one - 1)
    else:
        y, u, v = (y - 16 * one) / (219 * one), (u - 128 * one) / (224 * one), (v - 128 * one) / (224 * one)
    r, b = y + 2 * (1 - kr) * v, y + 2 * (1 - kb) * u
    g = (y - kr * r - kb * b) / (1 - kr - kb)
    want = 255 * np.stack([r, g, b], -1).clip(0, 1)
    got = convert(planes, (0, 0), bits, (kr, kb), full, 0).astype(float)
    assert np.abs(got - want).max() < 0.54
    assert np.mean(got == np.rint(want)) > 0.97


def test_other_inputs_are_refused() -> None:
    planes = [np.zeros(64, np.uint8)] * 3
    good: dict[str, Any] = {
        "planes": planes, "pitches": [8, 4, 4], "shifts": (1, 1), "bits": 8, "matrix": (0.3, 0.1), "full_range": False,
        "order": 0, "out": np.zeros((8, 8, 3), np.uint8),
    }  # fmt: skip
    _native.video.convert(**good)
    bad: list[dict[str, Any]] = [
        {"pitches": [7, 4, 4]}, {"pitches": [8, 3, 4]}, {"pitches": [9, 4, 4]}, {"pitches": [8, 4]},
        {"pitches": [-8, 4, 4]}, {"pitches": [1 << 40, 4, 4]}, {"planes": planes[:2]}, {"planes": []},
        {"planes": [planes[0], planes[0], planes[0][:15]]}, {"shifts": (3, 1)}, {"shifts": (-1, 0)}, {"bits": 7},
        {"bits": 17}, {"bits": 10}, {"matrix": (0.0, 0.1)}, {"matrix": (0.5, 0.5)}, {"matrix": (np.nan, 0.1)},
        {"order": 3}, {"order": -1}, {"out": np.zeros((8, 8, 4), np.uint8)}, {"out": np.zeros((0, 8, 3), np.uint8)},
        {"out": np.zeros((9, 8, 3), np.uint8)},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises((ValueError, TypeError)):
            _native.video.convert(**{**good, **change})
    for out in (np.zeros((8, 8, 3), np.int8), np.zeros((8, 16, 3), np.uint8)[:, ::2], np.zeros((8, 8), np.uint8)):
        with pytest.raises(TypeError):
            _native.video.convert(**{**good, "out": out})


def test_stored_samples_are_rounded() -> None:
    planes = [np.array([[0, 1, 2, 3, 1021, 1023]], np.uint16)] * 3
    got = convert(planes, (0, 0), 10, MATRICES[1], False, STORED)
    assert got[0, :, 0].tolist() == [0, 0, 1, 1, 255, 255]
