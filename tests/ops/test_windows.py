# SPDX-License-Identifier: Apache-2.0
"""``crop`` and ``slice``: positions of windows, and windows beyond the data. Results as in DALI 2.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.native import _native
from stoker.testing.tolerances import assert_exact

Array = npt.NDArray[Any]
RAMP = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)


def padded(x: Array, starts: Any, extents: Any, fill: Any = 0) -> Array:
    """Return the window as NumPy pads it."""
    pads, index = [], []
    for start, extent, n in zip(starts, extents, x.shape, strict=True):
        before = max(0, -start)
        pads.append((before, max(0, start + extent - n)))
        index.append(slice(start + before, start + before + extent))
    wide = np.pad(x.astype(np.float64), pads, constant_values=np.nan)[tuple(index)]
    window: Array = np.where(np.isnan(wide), fill, wide).astype(x.dtype)
    return window


@pytest.mark.parametrize(
    ("arguments", "rows", "columns"),
    [
        ({"crop": (3, 4)}, slice(1, 4), slice(2, 6)),
        ({"crop": (3.9, 4.9)}, slice(1, 4), slice(2, 6)),
        ({"crop": (2, 4)}, slice(2, 4), slice(2, 6)),
        ({"crop": (2, 4), "rounding": "truncate"}, slice(1, 3), slice(1, 5)),
        ({"crop": (0, 4), "crop_pos_x": 1.0}, slice(0, 5), slice(3, 7)),
        ({"crop_h": 2, "crop_w": 2, "crop_pos_x": 0.0, "crop_pos_y": 1.0}, slice(3, 5), slice(0, 2)),
        ({"crop": (99, 3), "out_of_bounds_policy": "trim_to_shape"}, slice(0, 5), slice(2, 5)),
        ({"crop": (-8, 3)}, slice(0, 5), slice(2, 5)),
    ],
)
def test_crop(arguments: dict[str, Any], rows: slice, columns: slice) -> None:
    assert_exact(eager.crop(RAMP, **arguments), RAMP[rows, columns])


def test_a_larger_crop_is_centred_and_filled() -> None:
    got = eager.crop(RAMP, crop=(8, 8), out_of_bounds_policy="pad", fill_values=(1, 2, 3))
    assert_exact(got, padded(RAMP, (-2, -1, 0), (8, 8, 3), np.array([1, 2, 3])))
    got = eager.crop(RAMP, crop=(8, 8), crop_pos_x=0.0, crop_pos_y=1.0, out_of_bounds_policy="pad", fill_values=7)
    assert_exact(got, padded(RAMP, (-3, 0, 0), (8, 8, 3), 7))


@pytest.mark.parametrize(
    ("arguments", "index"),
    [
        ({"start": (1, 2), "shape": (2, 3)}, (slice(2, 5), slice(1, 3))),  # x and y, if the axes have names
        ({"start": (1, 2), "shape": (2, 3), "axes": (0, 1)}, (slice(1, 3), slice(2, 5))),
        ({"start": 1, "rel_end": 0.8, "axes": (0,)}, (slice(1, 4),)),
        ({"rel_start": 0.25, "rel_end": 0.75, "axis_names": "W"}, (slice(None), slice(2, 5))),
        ({"start": (1, 1), "shape": 2, "axes": (0, 1)}, (slice(1, 3), slice(1, 3))),
        ({"start": 1, "end": 2, "axes": (-1,)}, (slice(None), slice(None), slice(1, 2))),
        ({"end": 3, "axes": (1,)}, (slice(None), slice(0, 3))),
        ({"start": 3, "end": 3, "axes": (1,)}, (slice(None), slice(3, 3))),
    ],
)
def test_slice(arguments: dict[str, Any], index: tuple[slice, ...]) -> None:
    assert_exact(eager.slice(types.Constant(RAMP, layout="HWC"), **arguments), RAMP[index])


def test_slice_names_follow_the_layout() -> None:
    planar = np.ascontiguousarray(RAMP.transpose(2, 0, 1))
    got = eager.slice(types.Constant(planar, layout="CHW"), start=(1, 2), shape=(2, 3))
    assert_exact(got, planar[:, 2:5, 1:3])


@pytest.mark.parametrize("shape", [(9, 11), (9, 11, 3), (4, 9, 11, 3)])
def test_a_slice_of_unnamed_data_cuts_the_width_and_the_height(shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    wanted = data[..., 2:7, 3:8, :] if len(shape) > 2 else data[2:7, 3:8]
    assert_exact(eager.slice(data, rel_start=(0.25, 0.25), rel_end=(0.75, 0.75)), wanted)
    assert_exact(eager.slice(data, start=(3, 2), shape=(5, 5)), wanted)
    by_number = eager.slice(data, start=(3, 2), shape=(5, 1), axes=(1, 0))
    assert_exact(by_number, data[2:3, 3:8])


def test_limits_as_inputs_are_shares_by_default() -> None:
    image = types.Constant(RAMP, layout="HWC")
    assert_exact(eager.slice(image, np.float32([0.5, 0.2]), np.float32([0.5, 0.6])), RAMP[1:4, 4:7])
    whole = {"normalized_anchor": False, "normalized_shape": False}
    assert_exact(eager.slice(image, np.int32([3, 1]), np.int32([2, 4]), **whole), RAMP[1:5, 3:5])
    assert_exact(eager.slice(image, np.float32([3, 1]), np.float32([2, 4]), **whole), RAMP[1:5, 3:5])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int16])
@pytest.mark.parametrize("normalized", [True, False])
def test_limits_of_integer_types_as_inputs_are_in_elements(dtype: Any, normalized: bool) -> None:
    image = types.Constant(RAMP, layout="HWC")
    more = {"normalized_anchor": normalized, "normalized_shape": normalized}
    anchor, shape = np.array([3, 1], dtype), np.array([2, 4], dtype)
    assert_exact(eager.slice(image, anchor, shape, **more), RAMP[1:5, 3:5])
    assert_exact(eager.slice(image, anchor[:1], shape[:1], axes=(0,), **more), RAMP[3:5])
    drawn = {"axes": np.int32([1, 0]), **more}
    assert_exact(eager.slice(image, anchor, shape, **drawn), RAMP[1:5, 3:5])
    # A float with an integer: each is a share, unless `normalized_*` says otherwise.
    share = np.float32([0.5]) if normalized else np.float32([4])
    mixed = eager.slice(image, np.array([0], dtype), share, axes=(0,), **more)
    assert_exact(mixed, RAMP[: round(0.5 * RAMP.shape[0] + 1e-6)] if normalized else RAMP[:4])


def test_limits_of_integer_types_may_differ_per_row() -> None:
    starts = [np.int32([i]) for i in range(4)]
    got = eager.slice([RAMP] * 4, starts, np.int32([2]), axes=(0,))
    for i, row in enumerate(got):
        assert_exact(row, RAMP[i : i + 2])


def test_a_window_outside_is_filled_per_channel() -> None:
    got = eager.slice(RAMP, start=(-2, 3), shape=(4, 7), axes=(0, 1), out_of_bounds_policy="pad", fill_values=(1, 2, 3))
    assert_exact(got, padded(RAMP, (-2, 3, 0), (4, 7, 3), np.array([1, 2, 3])))


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    dtype=st.sampled_from(["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"]),
)
def test_padding_on_any_axes_of_any_type(data: st.DataObject, shape: list[int], dtype: str) -> None:
    values = np.random.default_rng(len(shape)).integers(0, 2**32, shape, dtype=np.uint32)
    x = (
        (values % 2 if dtype == "bool" else values).astype(dtype)
        if dtype != "float16"
        else (values % 999).astype(dtype)
    )
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=3, unique=True))
    starts, extents = [0] * len(shape), list(shape)
    for axis in axes:
        starts[axis], extents[axis] = data.draw(st.integers(-9, 9)), data.draw(st.integers(0, 9))
    got = eager.slice(
        x, start=[starts[a] for a in axes], shape=[extents[a] for a in axes], axes=axes, out_of_bounds_policy="pad",
        fill_values=1.0,
    )  # fmt: skip
    assert_exact(got, padded(x, starts, extents, 1))


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "FCHW", "CFHW", "HW"])
def test_padding_in_any_layout(layout: str) -> None:
    sizes = {"F": 2, "H": 5, "W": 6, "C": 3}
    shape = [sizes[a] for a in layout]
    x = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    got = eager.crop(types.Constant(x, layout=layout), crop=(8, 4), out_of_bounds_policy="pad", fill_values=9.0)
    starts = [{"H": -2, "W": 1}.get(a, 0) for a in layout]
    assert_exact(got, padded(x, starts, [{"H": 8, "W": 4}.get(a, n) for a, n in zip(layout, shape, strict=True)], 9))


def test_a_window_per_row_may_lie_anywhere() -> None:
    pipe = Pipeline(batch_size=16, num_threads=2, seed=2)
    with pipe:
        start = fn.cast(fn.random.uniform(range=[-9, 9], shape=2), dtype=types.INT32)
        image = types.Constant(RAMP, layout="HWC")
        window = fn.slice(image, start=start, shape=(4, 5), axes=(0, 1), out_of_bounds_policy="pad", fill_values=200.0)
        trimmed = fn.slice(image, start=start, shape=(4, 5), axes=(0, 1), out_of_bounds_policy="trim_to_shape")
        pipe.set_outputs(window, trimmed, start)
    with pipe:
        windows, trims, starts = pipe.run()
    assert len({tuple(s) for s in starts}) > 10
    for window, trimmed, (y, x) in zip(windows, trims, starts, strict=True):
        assert_exact(np.array(window), padded(RAMP, (y, x, 0), (4, 5, 3), 200))
        rows, columns = (slice(max(int(s), 0), max(int(s) + n, 0)) for s, n in ((y, 4), (x, 5)))
        assert_exact(np.array(trimmed), RAMP[rows, columns])


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("crop", {"crop": (6, 3)}, "expected `crop_h` <= 5"),
        ("crop", {"crop": (3, 3), "crop_pos_x": 2.0}, "expected `crop_pos_x` in"),
        ("crop", {"crop": (3, 3), "crop_w": 4}, "got both"),
        ("crop", {"crop_d": 3}, "an axis 'D'"),
        ("slice", {}, "expected limits"),
        ("slice", {"start": (-1, 2), "shape": (2, 3)}, "window inside the input"),
        ("slice", {"start": 3, "end": 2, "axes": (0,)}, "a start <= the end"),
        ("slice", {"start": 3, "rel_start": 0.2}, "got start and rel_start"),
        ("slice", {"start": 1, "end": 3, "shape": 4}, "got end and shape"),
        ("slice", {"end": (5,), "axes": np.zeros(5, np.float32)}, "a tensor with 3, got 5 axes"),
        ("slice", {"start": (1, 1), "end": (2, 2), "axes": (1, 1)}, "expected different axes"),
        ("slice", {"start": (1, 2, 3), "axes": (0, 1)}, "expected 1 or 2 elements"),
        ("slice", {"start": 1, "axes": (5,)}, "3 axes, got 5"),
        ("slice", {"start": -1, "axes": (0,), "out_of_bounds_policy": "pad", "fill_values": (1, 2)}, "one per channel"),
    ],
)
def test_wrong_arguments_are_refused(name: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        getattr(eager, name)(RAMP, **arguments)


def test_wide_types_are_not_padded() -> None:
    with pytest.raises(UnsupportedError, match="up to 32 bits, got int64"):
        eager.slice(RAMP.astype(np.int64), start=-1, axes=(0,), out_of_bounds_policy="pad")


def test_a_former_name_of_dtype() -> None:
    assert_exact(eager.crop(RAMP, crop=(3, 4), output_dtype="float32"), RAMP[1:4, 2:6].astype(np.float32))


@pytest.mark.parametrize("isa", _native.instruction_sets())
def test_rows_of_every_width_are_copied(isa: str) -> None:
    before = _native.get_isa()
    image = np.random.default_rng(3).integers(0, 256, (7, 700), np.uint8)
    widths = [*range(1, 300), 383, 384, 385, 511, 512, 513, 600]
    try:
        _native.set_isa(isa)
        for width in widths:
            got = eager.slice([image], start=(1, 3), shape=(5, width), axes=(0, 1))[0]
            assert_exact(got, image[1:6, 3 : 3 + width])
            assert_exact(eager.flip(types.Constant(got, layout="HW"), horizontal=0, vertical=1), got[::-1])
    finally:
        _native.set_isa(before)
