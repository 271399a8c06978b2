# SPDX-License-Identifier: Apache-2.0
"""The register machine on all memory layouts: strided, interleaved, unaligned, in place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pixel_asm import Asm
from pixel_values import same

from stoker.native import _native


def strided(draw, dtype, shape):
    """Return an array of this shape whose axes are permuted, cut, mirrored or repeated at random."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, -1, 2, -3])) for _ in shape]
    full = [max(1, n * abs(s)) + draw(st.integers(0, 1)) for n, s in zip(shape, steps, strict=True)]
    base = np.zeros([full[i] for i in order], dtype).transpose(np.argsort(order))
    cut = tuple(slice(None, None, s) for s in steps)
    return base[(..., *cut)][(..., *(slice(0, n) for n in shape))]


@st.composite
def cases(draw):
    dtype = draw(st.sampled_from(["uint8", "int16", "float32", "float64", "float16"]))
    shape = tuple(draw(st.lists(st.integers(0, 9) | st.integers(60, 70), max_size=5)))
    while np.prod(shape, initial=1) > 60_000:
        shape = shape[:-1]
    seed = draw(st.integers(0, 1000))
    x = strided(draw, dtype, shape)
    x[...] = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    y = strided(draw, dtype, shape)
    y[...] = np.random.default_rng(seed + 1).integers(0, 100, shape).astype(dtype)
    repeat = [draw(st.booleans()) and draw(st.booleans()) for _ in shape]
    if any(repeat) and y.size:
        y = np.broadcast_to(y[(..., *(slice(0, 1) if r else slice(None) for r in repeat))], shape)
    return dtype, x, y, strided(draw, "float32", shape)


@settings(max_examples=200, deadline=None)
@given(cases(), st.sampled_from(_native.instruction_sets()))
def test_layouts(case, name):
    dtype, x, y, out = case
    before = _native.get_isa()
    _native.set_isa(name)
    try:
        asm = Asm([dtype, dtype], ["float32"])
        two = asm.uniform(2)
        a, b = (asm.cvt(asm.load(i), "f32") for i in range(2))
        asm.store(asm.op("Sub", asm.op("Mul", a, two), b))
        asm.run([x, y], [out])
    finally:
        _native.set_isa(before)
    same(np.ascontiguousarray(out), np.ascontiguousarray(2 * x.astype("f4") - y.astype("f4")))


@st.composite
def copies(draw):
    dtype = draw(st.sampled_from(["uint8", "int16", "float32", "float64"]))
    shape = tuple(draw(st.lists(st.integers(0, 9) | st.integers(60, 140), max_size=4)))
    while np.prod(shape, initial=1) > 60_000:
        shape = shape[:-1]
    x = strided(draw, dtype, shape)
    x[...] = np.random.default_rng(draw(st.integers(0, 1000))).integers(0, 100, shape).astype(dtype)
    if x.size and draw(st.booleans()) and draw(st.booleans()):
        x = np.broadcast_to(x[..., :1], shape) if shape else x
    return dtype, x, strided(draw, dtype, shape)


@settings(max_examples=400, deadline=None)
@given(copies(), st.sampled_from(_native.instruction_sets()))
def test_programs_that_only_move_elements(case, name):
    dtype, x, out = case
    before = _native.get_isa()
    _native.set_isa(name)
    try:
        asm = Asm([dtype], [dtype])
        asm.store(asm.load(0))
        asm.run([x], [out])
    finally:
        _native.set_isa(before)
    np.testing.assert_array_equal(out, x)


# Widths around the vectors of every instruction set. The memory around the output must stay as it is.
@pytest.mark.parametrize("width", [1, 2, 5, 6, 10, 11, 16, 17, 20, 21, 22, 32, 48, 63, 64, 65, 84, 127, 128, 130, 500])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_flips_and_transposes(isa, dtype, width, channels):
    image = np.random.default_rng(width).integers(0, 256, (3, width, channels)).astype(dtype)
    ways = {
        "mirror": lambda x: x[:, ::-1],
        "turn": lambda x: x[::-1, ::-1],
        "window": lambda x: x[1:, width // 3 :],
        "planes": lambda x: x.transpose(2, 0, 1),
        "mirrored planes": lambda x: x[:, ::-1].transpose(2, 0, 1),
        "columns": lambda x: x.transpose(1, 0, 2),
        "swapped channels": lambda x: x[..., ::-1],
        "interleaved": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
    }
    for name, way in ways.items():
        source = way(image)
        guarded = np.full(source.size + 128, 77, dtype)
        out = guarded[64:-64].reshape(source.shape)
        asm = Asm([dtype], [dtype])
        asm.store(asm.load(0))
        asm.run([source], [out])
        np.testing.assert_array_equal(out, source, err_msg=name)
        assert (guarded[:64] == 77).all() and (guarded[-64:] == 77).all(), name


@pytest.mark.parametrize("channels", [1, 3, 4, 6])
def test_channels_that_change_places(isa, channels):
    image = np.random.default_rng(channels).integers(0, 256, (5, 37, channels), np.uint8)
    order = np.random.default_rng(channels).permutation(channels)
    asm = Asm(["uint8"], ["uint8"], channels)
    for c in range(channels):
        asm.store(asm.load(0, int(order[c])), 0, c)
    for out in (np.zeros_like(image), np.zeros((channels, 5, 37), np.uint8).transpose(1, 2, 0)):
        asm.run([image], [out])
        np.testing.assert_array_equal(out, image[..., order])
    expected = image[..., order].copy()
    asm.run([image], [image])  # in place
    np.testing.assert_array_equal(image, expected)


def normalise(out_dtype: str, channels: int = 3, channelled: bool = True) -> Asm:
    asm = Asm(["uint8"], [out_dtype], channels if channelled else 0)
    for c in range(channels if channelled else 1):
        x = asm.cvt(asm.load(0, c), "f32")
        x = asm.op("Mul", asm.op("Sub", x, asm.uniform(100 + 5 * c)), asm.uniform(1.5 + c))
        asm.store(asm.cast(x, out_dtype) if out_dtype != "float32" else x, 0, c)
    return asm


def normalised(image: np.ndarray, out_dtype: str) -> np.ndarray:
    n = image.shape[-1]
    mean, scale = (np.array(v, "f4") for v in ([100 + 5 * c for c in range(n)], [1.5 + c for c in range(n)]))
    x = (image.astype("f4") - mean) * scale
    return np.clip(np.rint(x), 0, 255).astype("u1") if out_dtype == "uint8" else x.astype(out_dtype)


@pytest.mark.parametrize("out_dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("width", [1, 7, 16, 37, 224, 700])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("planar", [True, False])
def test_training_store(isa, no_tables, out_dtype, width, channels, planar):
    image = np.random.default_rng(width).integers(0, 256, (9, width, channels), dtype=np.uint8)
    asm = normalise(out_dtype, channels)
    want = normalised(image, out_dtype)
    for mirror_in in (1, -1):
        for mirror_out in (1, -1):
            out = np.zeros((channels, 9, width) if planar else (9, width, channels), out_dtype)
            view = (out.transpose(1, 2, 0) if planar else out)[:, ::mirror_out]
            asm.run([image[:, ::mirror_in]], [view])
            same(np.ascontiguousarray(view), np.ascontiguousarray(want[:, ::mirror_in]))
            for rows in (1, 2, 4, 100):
                out[...] = 0
                asm.program().run_rows(asm.uniforms, [np.ascontiguousarray(image[:, ::mirror_in])], [view], rows, 5)
                same(np.ascontiguousarray(view), np.ascontiguousarray(want[:, ::mirror_in]))


def test_channels_against_flat(isa, no_tables):
    image = np.random.default_rng(0).integers(0, 256, (33, 65, 3), dtype=np.uint8)
    both = []
    for channels in (0, 3):
        asm = Asm(["uint8"], ["float32"], channels)
        two = asm.uniform(2.5)
        for c in range(max(1, channels)):
            asm.store(asm.op("Mul", asm.cvt(asm.load(0, c), "f32"), two), 0, c)
        out = np.zeros(image.shape, np.float32)
        asm.run([image], [out])
        both.append(out)
    same(*both)


def test_cross_channel_and_one_channel_inputs(isa):
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)
    mask = rng.integers(0, 2, (40, 50, 1)).astype(bool)
    asm = Asm(["uint8", "bool"], ["uint8"], 3)
    keep = asm.load(1, 0)
    planes = [asm.load(0, c) for c in range(3)]
    for c in range(3):
        asm.store(asm.op("Select", planes[c], planes[2 - c], keep), 0, c)
    out = np.zeros_like(image)
    asm.run([image, np.broadcast_to(mask, image.shape)], [out])
    same(out, np.where(mask, image, image[..., ::-1]))
    in_place = image.copy()
    asm.run([in_place, np.broadcast_to(mask, image.shape)], [in_place])
    same(in_place, out)


def test_fewer_output_channels(isa):
    image = np.random.default_rng(1).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    asm = Asm(["uint8"], ["int32"], 3)
    asm.store(asm.op("Add", asm.op("Add", asm.load(0, 0), asm.load(0, 1)), asm.load(0, 2)))
    out = np.zeros((40, 50, 1), np.int32)
    asm.run([image], [out])
    same(out, image.sum(-1, keepdims=True, dtype=np.int32))


@pytest.mark.parametrize("shape", [(100_000,), (77, 91, 3), (5, 1000)])
def test_in_place(isa, shape):
    x = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    asm = Asm(["uint8"], ["uint8"])
    v = asm.op("Mul", asm.cvt(asm.load(), "f32"), asm.uniform(0.7))
    asm.store(asm.cast(v, "uint8"))
    want = np.empty_like(x)
    asm.run([x], [want])
    for view in (x.copy(), x.copy()[::-1]):
        before = view.copy()
        expected = np.empty_like(before)
        asm.run([before], [expected])
        asm.run([view], [view])
        same(np.ascontiguousarray(view), expected)


def test_unaligned_memory(isa):
    raw = np.zeros(4 * 1000 + 1, np.uint8)
    x = raw[1:].view("f4")
    x[:] = np.arange(1000)
    asm = Asm(["float32"], ["float32"])
    asm.store(asm.op("Add", asm.load(), asm.uniform(1)))
    asm.run([x], [x])
    np.testing.assert_array_equal(x, np.arange(1000) + 1)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 511, 513, 5000])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16", "int64"])
def test_nothing_is_written_beyond(isa, n, dtype):
    out = np.full(n + 64, 77, dtype)
    asm = Asm(["uint8"], [dtype])
    x = asm.cvt(asm.load(), "f32")
    asm.store(asm.cast(asm.op("Add", asm.op("Mul", x, asm.uniform(1)), asm.uniform(0)), dtype))
    asm.run([np.arange(n, dtype=np.uint8)], [out[32 : 32 + n]])
    same(out[32 : 32 + n], np.arange(n).astype("u1").astype(dtype))
    assert (out[:32] == 77).all() and (out[32 + n :] == 77).all()
