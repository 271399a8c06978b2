# SPDX-License-Identifier: Apache-2.0
"""Paddings, canvases, statistics and constants: values of DALI, batches, and what is refused."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn, types

IMAGE = np.random.default_rng(2).integers(0, 256, (10, 13, 3), dtype=np.uint8)
BOXES = np.random.default_rng(3).uniform(0, 1, (6, 4)).astype(np.float32)
FLOATS = np.random.default_rng(4).normal(100, 30, (5, 6, 3)).astype(np.float32)
# Checksums of the outputs of DALI 2.4 on the CPU.
DALIS: dict[str, tuple[Callable[[], Any], int]] = {
    "pad to a shape and a multiple": (lambda: eager.pad(IMAGE, shape=[12, 20, 4], align=8), 1576781193),
    "pad a negative axis": (lambda: eager.pad(IMAGE, axes=[-1], shape=[7], fill_value=9), 1694740454),
    "pad to multiples": (lambda: eager.pad(IMAGE, align=[4, 4, 4]), 1764799201),
    "pad named axes": (lambda: eager.pad(IMAGE, axis_names="WH", shape=[30, -1]), 3687341519),
    "paste": (
        lambda: eager.paste(IMAGE, ratio=1.7, fill_value=(1, 2, 3), paste_x=0.3, paste_y=0.8), 4088981774,
    ),
    "paste on a smallest canvas": (
        lambda: eager.paste(IMAGE, ratio=1.1, fill_value=(9, 9, 9), min_canvas_size=20.5), 977117291,
    ),
    "boxes": (lambda: eager.bbox_paste(BOXES, ratio=3.3, paste_x=1.0, paste_y=1.0), 3646063445),
    "boxes with corners": (
        lambda: eager.bbox_paste(BOXES, ratio=2.5, paste_x=0.1, paste_y=0.9, ltrb=True), 85959453,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DALIS)
def test_bytes_are_dalis(name: str) -> None:
    call, want = DALIS[name]
    assert zlib.crc32(np.ascontiguousarray(call())) == want


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ({}, (-0.5557239, -0.09527881, 1.6790816, 0.7095209)),
        ({"axes": [0, 1]}, (-0.7135789, -0.07867176, 1.7420942, 0.62033635)),
        ({"mean": 3.0}, (0.77687186, 0.92043924, 1.4736872, 1.171377)),
        ({"stddev": 2.0}, (-8.636906, -1.4807968, 26.095818, 11.027176)),
        ({"mean": 3.0, "stddev": 2.0}, (38.723133, 45.879242, 73.45586, 58.387215)),
        (
            {"axes": [0, 1], "ddof": 1, "epsilon": 0.5, "scale": 2.0, "shift": 1.0},
            (-0.4027803, 0.8453388, 4.4248104, 2.2194805),
        ),
        ({"axes": [0, 1], "dtype": types.UINT8, "scale": 64.0, "shift": 128.0}, (82, 123, 239, 168)),
    ],
)
def test_statistics_are_dalis(arguments: dict[str, Any], want: tuple[float, ...]) -> None:
    """Sums have another order than DALI's, so that floats differ in the last places."""
    got = np.asarray(eager.normalize(FLOATS, **arguments)).reshape(-1)[:4]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


def test_data_without_deviation() -> None:
    flat = np.full((4, 5), 7, np.uint8)
    assert (np.asarray(eager.normalize(flat, shift=3.0)) == 3).all()
    assert np.isnan(np.asarray(eager.normalize(flat, mean=7.0, stddev=0.0))).all()
    assert (np.asarray(eager.normalize(flat, mean=6.0, stddev=0.0)) == np.inf).all()
    assert (np.asarray(eager.normalize(flat[:1, :1], ddof=1)) == 0).all()
    assert np.asarray(eager.normalize(flat[:0])).shape == (0, 5)


ROWS = [np.random.default_rng(i).integers(0, 256, (4 + i, 6, 3), dtype=np.uint8) for i in range(4)]


def batch_of(define: Callable[[Any], Any], rows: list[Any] = ROWS, layout: str = "HWC") -> list[Any]:
    pipe = Pipeline(batch_size=len(rows), num_threads=2)
    with pipe:
        x = fn.external_source(
            source=lambda info: rows[info.idx_in_batch], batch=False, dtype=types.UINT8 if layout else types.FLOAT,
            ndim=rows[0].ndim, layout=layout or None,
        )  # fmt: skip
        pipe.set_outputs(define(x))
    with pipe:
        (batch,) = pipe.run()
        return [np.array(row) for row in batch]


def undeclared(image: Any) -> Any:
    """Twist the colours of an image whose type only the run determines."""
    pipe = Pipeline(batch_size=1)
    with pipe:
        pipe.set_outputs(fn.color_twist(fn.external_source(source=lambda: [image]), hue=9.0))
    with pipe:
        return pipe.run()


def test_statistics_of_a_batch() -> None:
    everything = np.concatenate([row.reshape(-1) for row in ROWS]).astype(np.float64)
    for row, got in zip(ROWS, batch_of(lambda x: fn.normalize(x, batch=True)), strict=True):
        np.testing.assert_allclose(got, (row - everything.mean()) / everything.std(), atol=1e-6)
    pixels = np.concatenate([row.reshape(-1, 3) for row in ROWS]).astype(np.float64)
    spread = np.sqrt(pixels.var(0, ddof=1) + 0.25)
    results = batch_of(lambda x: fn.normalize(x, batch=True, axes=[0, 1], ddof=1, epsilon=0.25))
    for row, got in zip(ROWS, results, strict=True):
        np.testing.assert_allclose(got, (row - pixels.mean(0)) / spread, atol=1e-6)


def test_statistics_of_a_batch_need_equal_other_axes() -> None:
    with pytest.raises(DataError, match="equal extents along the other axes"):
        batch_of(lambda x: fn.normalize(x, batch=True, axes=[1, 2]))


def test_padding_to_the_largest_of_the_batch() -> None:
    padded = batch_of(lambda x: fn.pad(x, fill_value=5.0))
    for row, got in zip(ROWS, padded, strict=True):
        assert got.shape == (7, 6, 3) and (got[: len(row)] == row).all() and (got[len(row) :] == 5).all()
    aligned = batch_of(lambda x: fn.pad(x, axes=[0, 1], shape=[-1, 9], align=[4, 1]))
    assert {got.shape for got in aligned} == {(8, 9, 3)}


def test_rows_name_their_axes_and_extents() -> None:
    rows = [np.full((n, m), 3, np.float32) for n, m in ((5, 2), (1, 4))]

    def numbers(*values: Any) -> Any:
        given = [np.array(v, np.int32) for v in values]
        return fn.external_source(source=lambda: given, batch=True)

    got = batch_of(lambda x: fn.pad(x, axes=numbers([0], [-1]), align=3), rows, "")
    assert [x.shape for x in got] == [(6, 2), (1, 6)]  # the largest extents are 5 and 4
    both = batch_of(lambda x: fn.pad(x, axes=numbers([0, 1], [1, 0]), shape=numbers([7, -1], [-1, 2])), rows, "")
    assert [x.shape for x in both] == [(7, 4), (2, 4)]
    aligned = batch_of(lambda x: fn.pad(x, axes=[1], shape=[1], align=numbers([4], [3]), fill_value=9), rows, "")
    assert [x.shape for x in aligned] == [(5, 4), (1, 6)] and aligned[1].tolist() == [[3, 3, 3, 3, 9, 9]]
    for axes, text in (
        (([0], [2]), r"axes in \[-2, 2\), got 2"), (([0, 1], [1, -1]), "each axis once, got 1 twice"),
        (([0, 1, 0], [0, 1, 0]), "with 2, got 3 axes"), (([0], [0, 1]), "a number of elements that is the same"),
    ):  # fmt: skip
        with pytest.raises((ArgumentError, DataError), match=text):
            batch_of(lambda x, axes=axes: fn.pad(x, axes=numbers(*axes)), rows, "")


def test_rows_without_boxes_are_padded() -> None:
    rows = [np.ones((n, 4), np.float32) for n in (0, 3, 1)]
    padded = batch_of(lambda x: fn.pad(x, axes=[0], fill_value=-1.0), rows, "")
    assert [(got[:, 0] == 1).sum() for got in padded] == [0, 3, 1] and {got.shape for got in padded} == {(3, 4)}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "uint64", "float16", "float64"])
def test_padding_of_all_types(dtype: str) -> None:
    x = IMAGE.astype(dtype)
    y = np.asarray(eager.pad(x[::-1, ::2], shape=[12, 9, 3], fill_value=-2.5))
    np.testing.assert_array_equal(y[:10, :7], x[::-1, ::2])
    fill = {"bool": True, "int8": -2, "int64": -2, "float16": -2.5, "float64": -2.5}.get(dtype, 0)
    assert y.dtype == x.dtype and (y[10:] == fill).all() and (y[:, 7:] == fill).all()


def test_constants() -> None:
    assert np.asarray(eager.constant(idata=7)).tolist() == [7]
    assert np.asarray(eager.constant(idata=[7], shape=[2, 3])).tolist() == [[7] * 3] * 2
    assert np.asarray(eager.constant(fdata=[2.5, 3.5, -1.5], dtype=types.INT32)).tolist() == [2, 4, -2]
    assert np.asarray(eager.constant(idata=2**64 - 1, dtype=types.UINT64)).item() == 2**64 - 1
    assert np.asarray(eager.constant(fdata=[1, 2, 3, 4], shape=[2, 2])).dtype == np.float32


def test_a_constant_without_axes() -> None:
    assert np.asarray(eager.constant(idata=7, shape=[])).shape == ()


def test_dumped_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(np.asarray(eager.dump_image(IMAGE, suffix="a")), IMAGE)
    head, size, most, *numbers = (tmp_path / "0-a-0.ppm").read_text().splitlines()
    assert (head, size, most) == ("P3", "13 10", "255")
    assert [int(n) for line in numbers for n in line.split()] == IMAGE.reshape(-1).tolist()
    eager.dump_image(IMAGE[..., :1])
    assert (tmp_path / "0--0.ppm").read_text().startswith("P2\n13 10\n255\n")


def test_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a file"
    path.write_bytes(b"\0\1\2")
    name = np.frombuffer(str(path).encode(), np.uint8)
    assert bytes(np.asarray(eager.io.file.read(name))) == b"\0\1\2"
    with pytest.raises(DataError, match="No such file"):
        eager.io.file.read(np.append(name, np.uint8(65)))
    os.mkfifo(tmp_path / "pipe")
    for other in ("/dev/zero", str(tmp_path / "pipe"), str(tmp_path)):
        with pytest.raises(DataError, match=r"regular file|directory"):
            eager.io.file.read(np.frombuffer(other.encode(), np.uint8))


def test_bytes_as_elements_of_another_type() -> None:
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    for dtype in ("int8", "uint16", "int32", "float32"):
        got = np.asarray(eager.reinterpret(x, dtype=dtype))
        assert got.tobytes() == x.tobytes() and got.shape == x.view(dtype).shape and got.dtype == dtype
    flipped = np.asarray(eager.reinterpret(x[::-1, :, ::-1], dtype="uint16"))
    np.testing.assert_array_equal(flipped, np.ascontiguousarray(x[::-1, :, ::-1]).view("uint16"))
    assert np.asarray(eager.reinterpret(x, dtype="uint16", shape=[-1])).shape == (12,)
    assert np.asarray(eager.reinterpret(x, dtype="uint16", src_dims=[2, -1, 0, 1])).shape == (2, 1, 2, 3)
    assert np.asarray(eager.reinterpret(np.float32(1), dtype="int32")).item() == 0x3F800000
    assert np.asarray(eager.reinterpret(x[:0], dtype="int32")).shape == (0, 3, 1)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: eager.reinterpret(np.uint8(3), dtype="uint16"), "an axis whose bytes become"),
        (lambda: eager.reinterpret(IMAGE, dtype="uint16"), "whose bytes divide into uint16, got 3 bytes"),
        (lambda: eager.reinterpret(IMAGE, dtype="bool"), "a type other than bool"),
        (lambda: eager.paste(IMAGE, ratio=0.7, fill_value=0), "a `ratio` of at least 1"),
        (lambda: eager.paste(IMAGE, ratio=2.0, fill_value=0, paste_x=1.5), "places from 0 to 1"),
        (lambda: eager.paste(IMAGE[..., :1], ratio=2.0, fill_value=[1, 2, 3]), "one for each of 1 channels, got 3"),
        (lambda: eager.bbox_paste(BOXES, ratio=0.5), "a `ratio` of at least 1"),
        (lambda: eager.bbox_paste(BOXES, ratio=2.0, paste_y=-0.1), "`paste_y` from 0 to 1"),
        (lambda: eager.bbox_paste(BOXES[:, :3], ratio=2.0), "boxes of 4 numbers, got 3"),
        (lambda: eager.pad(IMAGE, axes=[3]), r"axes in \[-3, 3\), got 3"),
        (lambda: eager.pad(IMAGE, axes=[0, -3]), "each axis once"),
        (lambda: eager.pad(IMAGE, align=0), "an `align` of at least 1"),
        (lambda: eager.pad(IMAGE, axis_names="D"), "axes of the layout"),
        (lambda: eager.normalize(IMAGE, epsilon=-1.0), "an `epsilon` of at least 0"),
        (lambda: eager.normalize(IMAGE, axes=[5]), "axes in"),
        (lambda: eager.normalize(IMAGE, batch=True, mean=1.0, stddev=1.0), "`batch` only without"),
        (lambda: eager.constant(), "one of `fdata` and `idata`, got neither"),
        (lambda: eager.constant(fdata=[1, 2], shape=[3]), "one element, or the 3 of `shape`"),
        (lambda: eager.constant(fdata=1, shape=[1] * 100), "at most 8 axes, got 100"),
        (lambda: eager.get_property(IMAGE, key="name"), 'expected "layout" or "source_info" as `key`'),
        (lambda: eager.get_property(IMAGE, key="source_info"), "data of a reader for their origin, got none"),
        (lambda: eager.dump_image(IMAGE.astype(np.float32)), "expected uint8 HWC"),
        (lambda: eager.dump_image(IMAGE, suffix="/../../a"), "without slashes"),
        (lambda: eager.constant(idata=1, shape=[2, 1 << 40]), "of at most 268435456 elements"),
        (lambda: eager.color_twist(np.zeros((2, 2, 300), np.uint8), hue=9.0), "got 300"),
        (lambda: undeclared(np.zeros((2, 2, 300), np.uint8)), "3 to 16 channels, got 300"),
        (
            lambda: batch_of(lambda x: fn.warp_affine(x, matrix=np.broadcast_to(1.0, (1 << 40,)))),
            "at most 16777216 values",
        ),
        (lambda: batch_of(lambda x: fn.normalize(x, mean=np.zeros((3, 0), np.uint8))), "expected one number"),
    ],
)  # fmt: skip
def test_refused(call: Callable[[], Any], why: str) -> None:
    with pytest.raises((ArgumentError, DataError, UnsupportedError), match=why):
        call()
