# SPDX-License-Identifier: Apache-2.0
"""Whole programs of the register machine: tables of one byte, random programs, and invalid programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pixel_asm import DTYPES, OPS, Asm
from pixel_values import cast_reference, same

from stoker.native import _native


def long_chain(out_dtype: str, channels: int = 0, differ: bool = False) -> Asm:
    asm = Asm(["uint8"], [out_dtype], channels)
    for c in range(max(1, channels)):
        x = asm.cvt(asm.load(0, c), "f32")
        for i in range(3):
            x = asm.op("Exp", asm.op("Mul", x, asm.uniform(0.01 + (c if differ else 0) * 0.001)))
            x = asm.op("Mul", x, asm.uniform(60 + i))
        asm.store(asm.cast(x, out_dtype), 0, c)
    return asm


@pytest.mark.parametrize("out_dtype", DTYPES)
@pytest.mark.parametrize(("channels", "differ"), [(0, False), (3, False), (3, True)])
def test_tables_equal_direct(isa, out_dtype, channels, differ):
    image = np.random.default_rng(0).integers(0, 256, (101, 83, 3), dtype=np.uint8)
    asm = long_chain(out_dtype, channels, differ)
    views = [image, image[::-1, ::2], image[:, ::-1]]
    for x in views:
        results = []
        for tables in (True, False):
            _native.pixel_set_tables(tables)
            out = np.zeros(x.shape, out_dtype)
            asm.run([x], [out])
            assert asm.program().used_table == tables
            results.append(out)
            rows = np.zeros(x.shape, out_dtype)
            asm.program().run_rows(asm.uniforms, [np.ascontiguousarray(x)], [rows], 4)
            same(rows, out)
        _native.pixel_set_tables(True)
        same(*results)


def test_tables_in_place_and_signed_bytes(isa):
    x = np.random.default_rng(0).integers(-128, 128, 30_001).astype(np.int8)
    asm = Asm(["int8"], ["int8"])
    asm.store(asm.cast(asm.op("Mul", asm.cvt(asm.load(), "f32"), asm.uniform(-0.5)), "int8"))
    out = x.copy()
    asm.run([out], [out])
    assert asm.program().used_table
    same(out, cast_reference(x.astype("f4") * np.float32(-0.5), "int8"))


def test_programs_of_two_bytes_have_no_table():
    image = np.zeros((300, 300, 3), np.uint8)
    asm = Asm(["uint8"], ["uint8"], 3)
    x = asm.op("Xor", asm.load(0, 0), asm.load(0, 1))
    for _ in range(30):
        x = asm.op("Xor", x, asm.uniform(3))
    for c in range(3):
        asm.store(x, 0, c)
    asm.run([image], [np.empty_like(image)])
    assert not asm.program().used_table


def test_a_table_is_abandoned_if_it_would_fault():
    """A byte that the image does not contain must not make the run fail."""
    asm = Asm(["uint8"], ["uint8"])
    x = asm.load()
    for _ in range(3):
        x = asm.op("IDiv", asm.op("Add", x, asm.uniform(5)), asm.op("Sub", x, asm.uniform(9)))
    x = asm.op("IDiv", asm.uniform(200), asm.load(), type="i32")
    asm.store(asm.wrap(x, "uint8"))
    image = np.full(100_000, 7, np.uint8)
    assert asm.run([image], [np.empty_like(image)])
    assert not asm.program().used_table
    image[99_999] = 0
    assert not asm.run([image], [np.empty_like(image)])


@pytest.mark.parametrize("in_place", [False, True])
def test_tables_that_swap_channels(isa, in_place):
    """In place, one lookup must not read the result of another."""
    asm = Asm(["uint8"], ["uint8"], 3)
    for c in range(3):
        x = asm.cvt(asm.load(0, 2 - c), "f32")
        for _ in range(4):
            x = asm.op("Mul", asm.op("Sqrt", x), asm.uniform(9 + c))
        asm.store(asm.cast(x, "uint8"), 0, c)
    image = np.random.default_rng(0).integers(0, 256, (150, 160, 3), dtype=np.uint8)
    _native.pixel_set_tables(False)
    want = np.empty_like(image)
    asm.run([image], [want])
    _native.pixel_set_tables(True)
    out = image if in_place else np.empty_like(image)
    asm.run([image], [out])
    assert asm.program().used_table == (not in_place)
    same(out, want)


@pytest.mark.parametrize("out_dtype", ["uint8", "float16", "float32"])
def test_two_outputs_of_one_byte(isa, out_dtype):
    asm = Asm(["uint8"], ["uint8", out_dtype])
    x = asm.cvt(asm.load(), "f32")
    asm.store(asm.cast(asm.op("Exp", asm.op("Mul", x, asm.uniform(0.02))), "uint8"), 0)
    asm.store(asm.cast(asm.op("Sin", x), out_dtype), 1)
    image = np.random.default_rng(0).integers(0, 256, 40_000, dtype=np.uint8)
    want, got = ([np.empty_like(image), np.empty(image.shape, out_dtype)] for _ in range(2))
    _native.pixel_set_tables(False)
    asm.run([image], want)
    _native.pixel_set_tables(True)
    asm.run([image], got)
    assert asm.program().used_table
    in_place = [image, np.empty(image.shape, out_dtype)]
    asm.run([image], in_place)
    assert not asm.program().used_table
    for a, b, c in zip(want, got, in_place, strict=True):
        same(b, a)
        same(c, a)


def test_faulting_table_with_interleaved_pixels(isa):
    """The program falls back to code that stages whole groups of channels."""
    asm = Asm(["int8"], ["float16"], 3)
    for c in range(3):
        x = asm.op("IDiv", asm.uniform(1000 + c), asm.load(0, c), type="i32")
        x = asm.op("Sin", asm.op("Sin", asm.cvt(x, "f32")))
        asm.store(asm.cast(x, "float16"), 0, c)
    image = np.random.default_rng(0).integers(1, 100, (64, 3000, 3)).astype(np.int8)
    out = np.empty(image.shape, np.float16)
    for x in (image, image[:, ::-1]):
        assert asm.run([x], [out])
        assert not asm.program().used_table
        want = np.sin(np.sin((1000 + np.arange(3)) // x.astype("f8").astype("i4"), dtype="f8").astype("f4"), dtype="f8")
        np.testing.assert_allclose(out, want.astype("f2"), atol=1e-3)


# ---- planning ----


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_programs(data):
    """Random straight-line code with random reuse of registers equals the same steps in NumPy."""
    ops = ["Add", "Sub", "Mul", "Min", "Max"]
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    inputs = [rng.integers(-100, 100, 777).astype(np.int16) for _ in range(2)]
    asm = Asm(["int16", "int16"], ["float32", "float64"])
    known: list[tuple[int, np.ndarray]] = []
    for i in range(2):
        v = asm.load(i)
        known.append((asm.cvt(v, "f32"), inputs[i].astype("f4")))
        known.append((asm.cvt(v, "f64"), inputs[i].astype("f8")))
    fns = {
        "Add": np.add,
        "Sub": np.subtract,
        "Mul": np.multiply,
        "Min": lambda a, b: np.where(b < a, b, a),
        "Max": lambda a, b: np.where(a < b, b, a),
    }
    with np.errstate(all="ignore"):
        for _ in range(data.draw(st.integers(1, 25))):
            a, va = data.draw(st.sampled_from(known))
            op = data.draw(st.sampled_from(ops))
            if data.draw(st.booleans()):
                u = data.draw(st.sampled_from([0.5, 2.0, -3.0]))
                b, vb = asm.uniform(u), va.dtype.type(u)
            else:
                b, vb = data.draw(st.sampled_from([k for k in known if k[1].dtype == va.dtype]))
            if data.draw(st.booleans()) and op != "Mul":
                result = (asm.op(op, b, a, type=asm.types[a]), fns[op](vb, va))
            else:
                result = (asm.op(op, a, b, type=asm.types[a]), fns[op](va, vb))
            if op == "Mul":  # keep the numbers small
                s = asm.uniform(1 / 128)
                result = (asm.op("Mul", result[0], s), result[1] * va.dtype.type(1 / 128))
            known.append((result[0], result[1].astype(va.dtype)))
        outs = []
        for port, dtype in enumerate(["float32", "float64"]):
            reg, want = data.draw(st.sampled_from([k for k in known if k[1].dtype == dtype]))
            asm.store(reg, port)
            outs.append((np.empty(777, dtype), want))
    asm.run(inputs, [o for o, _ in outs])
    for out, want in outs:
        same(out, want)


def test_a_register_may_be_overwritten(isa):
    asm = Asm(["uint8"], ["int32"])
    x = asm.load()
    asm.op("Add", x, asm.uniform(1))
    code = [list(i) for i in asm.code]
    code[1][4] = 0  # dst := the loaded register itself
    asm.code = [tuple(i) for i in code]
    asm.store(0)
    out = np.empty(100, np.int32)
    asm.run([np.arange(100, dtype=np.uint8)], [out])
    np.testing.assert_array_equal(out, np.arange(1, 101))


def test_many_live_registers(isa):
    """More registers than the first-level cache holds: blocks get shorter."""
    asm = Asm(["uint8"], ["int32"])
    x = asm.load()
    many = [asm.op("Mul", x, asm.uniform(i)) for i in range(120)]
    total = many[0]
    for v in reversed(many[1:]):
        total = asm.op("Xor", total, v)
    asm.store(total)
    image = np.arange(5000, dtype=np.uint8)
    out = np.empty(5000, np.int32)
    asm.run([image], [out])
    want = np.bitwise_xor.reduce([image.astype(np.int32) * i for i in range(120)])
    np.testing.assert_array_equal(out, want)


def test_constants(isa):
    asm = Asm([], ["uint8", "uint64"])
    asm.store(asm.uniform(9), 0)
    asm.store(asm.uniform(2.0**63), 1)
    a, b = np.zeros((3, 5), np.uint8), np.zeros((3, 5), np.uint64)
    asm.run([], [a, b])
    assert (a == 9).all() and (b == 2**63).all()


def bad_programs():
    def wrong_type(asm):
        asm.emit("Add", asm.load(), asm.load(), type="f32")

    def undefined(asm):
        asm.emit("Neg", 99, type="i32")

    def no_uniform(asm):
        asm.op("Add", asm.load(), asm.uniform(1))
        asm.uniforms.clear()

    def no_port(asm):
        asm.emit("Load", type="i32", port=3)

    def no_channel(asm):
        asm.emit("Load", type="i32", channel=1)

    def wrong_dtype(asm):
        asm.emit("Load", type="f32", dtype="float32")

    def float_shift(asm):
        asm.op("Shl", asm.cvt(asm.load(), "f32"), asm.uniform(1))

    def int_root(asm):
        asm.op("Sqrt", asm.load())

    def narrow_unsigned(asm):
        asm.op("UDiv", asm.load(), asm.load())

    def no_output(asm):
        asm.outputs.clear()

    def no_op(asm):
        asm.load()
        asm.code.append((255, *asm.code[0][1:]))

    return [
        wrong_type,
        undefined,
        no_uniform,
        no_port,
        no_channel,
        wrong_dtype,
        float_shift,
        int_root,
        narrow_unsigned,
        no_output,
        no_op,
    ]


@pytest.mark.parametrize("build", bad_programs(), ids=lambda f: f.__name__)
def test_bad_programs_are_refused(build):
    asm = Asm(["uint8"], ["uint8"])
    build(asm)
    with pytest.raises(ValueError):
        asm.program()


def test_op_numbers():
    assert OPS["Load"] == 0 and len(set(OPS.values())) == len(OPS) == max(OPS.values()) + 1
    assert _native.PIXEL_INSTR_SIZE == 16


def mix_program(weights, *, before=None, after=None, floors=False, order=(0, 1, 2), planes=False) -> Asm:
    """Weighted sums of the channels `order`, one per output channel."""
    asm = Asm(["uint8"], ["uint8"], 3)
    for c, row in enumerate(weights):
        terms = [
            asm.op("Mul", asm.cast(asm.load(0, k), "float32"), asm.uniform(w)) for k, w in zip(order, row, strict=True)
        ]
        x = terms[0] if before is None else asm.op("Add", terms[0], asm.uniform(before))
        x = asm.op("Add", asm.op("Add", x, terms[1]), terms[2])
        x = x if after is None else asm.op("Add", x, asm.uniform(after))
        asm.store(asm.cast(asm.op("Floor", x) if floors else x, "uint8"), 0, c)
    return asm


GRAY = [[19595 / 65536, 38470 / 65536, 7471 / 65536]]
MATRIX = [[0.9, -0.3, 0.6], [-1.5, 2.0, 0.25], [0.5, 0.5, 0.5]]
MIXES = {
    "gray": (GRAY, {"before": 0.5, "floors": True}),
    "gray of BGR": (GRAY, {"before": 0.5, "floors": True, "order": (2, 1, 0)}),
    "rounded": (GRAY, {"after": 0.25}),
    "matrix": (MATRIX, {"after": -7.5}),
    "matrix, no offset": (MATRIX, {}),
    "matrix of BGR": (MATRIX, {"before": 1.5, "order": (2, 1, 0)}),
    "floor below zero": ([[1.0, -2.0, 0.75]], {"before": -0.5, "floors": True}),
    "no offset": (GRAY, {}),
    "beyond integers": ([[3e7, -1.0, 2.0]], {"after": 1.0}),
    "matrix beyond integers": ([MATRIX[0], MATRIX[1], [1.0, 3e7, 2.0]], {}),
    "not finite": ([[np.inf, -np.inf, 1.0]], {"after": 1.0}),
}


@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize("size", [(1, 1), (3, 21), (5, 33), (64, 1), (7, 2111)])
def test_mixes_of_bytes_equal_direct(isa, name, size):
    weights, options = MIXES[name]
    image = np.random.default_rng(size).integers(0, 256, (*size, 3), dtype=np.uint8)
    asm = mix_program(weights, **options)
    for x in (
        image,
        np.ascontiguousarray(image.transpose(2, 0, 1)).transpose(1, 2, 0),
        image[:, ::-1],
        image[::-1, ::2],
    ):
        for planar in (False, True):
            shape = (*x.shape[:2], len(weights))
            results = []
            for tables in (True, False):
                _native.pixel_set_tables(tables)
                out = np.zeros(shape, np.uint8)
                out = np.zeros((shape[2], *shape[:2]), np.uint8).transpose(1, 2, 0) if planar else out
                asm.run([x], [out])
                assert not (asm.program().used_mix and not tables)
                if x is image and not planar:
                    assert asm.program().used_mix == (tables and isa != "plain")
                    rows = np.zeros(shape, np.uint8)
                    asm.program().run_rows(asm.uniforms, [x], [rows], 2)
                    same(rows, out)
                results.append(out)
            _native.pixel_set_tables(True)
            same(*results)


@pytest.mark.parametrize("planar", [False, True])
def test_mixes_in_place(isa, planar):
    image = np.random.default_rng(0).integers(0, 256, (50, 61, 3), dtype=np.uint8)
    image = np.ascontiguousarray(image.transpose(2, 0, 1)).transpose(1, 2, 0) if planar else image
    asm = mix_program(MATRIX, after=3.0)
    _native.pixel_set_tables(False)
    want = np.empty(image.shape, np.uint8)
    asm.run([image], [want])
    _native.pixel_set_tables(True)
    asm.run([image], [image])
    assert asm.program().used_mix == (isa != "plain")
    same(image, want)


def test_other_sums_are_not_mixes(isa):
    """Sums in another order, of other channels, or that are used twice keep their own rounding."""
    image = np.random.default_rng(0).integers(0, 256, (9, 40, 3), dtype=np.uint8)
    asm = Asm(["uint8"], ["uint8"], 3)
    r, g, b = (asm.op("Mul", asm.cast(asm.load(0, k), "float32"), asm.uniform(0.3)) for k in range(3))
    asm.store(asm.cast(asm.op("Add", r, asm.op("Add", g, b)), "uint8"), 0, 0)
    asm.store(asm.cast(asm.op("Add", asm.op("Add", r, r), asm.op("Mul", g, b)), "uint8"), 0, 1)
    out = np.zeros((9, 40, 2), np.uint8)
    asm.run([image], [out])
    assert not asm.program().used_mix
    x = image.astype(np.float32) * np.float32(0.3)
    sums = np.stack([x[..., 0] + (x[..., 1] + x[..., 2]), x[..., 0] + x[..., 0] + x[..., 1] * x[..., 2]], -1)
    same(out, np.rint(sums).clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float64"])
@pytest.mark.parametrize("channels", [0, 3])
def test_copies_by_rows(isa, dtype, channels):
    """A program without arithmetic, between rows and views of one layout or of two."""
    image = np.random.default_rng(0).integers(0, 256, (20, 37, 3)).astype(dtype)
    asm = Asm([dtype], [dtype], channels)
    for c in range(max(1, channels)):
        asm.store(asm.load(0, c), 0, c)
    for out in (
        np.zeros_like(image),
        np.zeros((3, 20, 37), dtype).transpose(1, 2, 0),
        np.zeros((20, 74, 3), dtype)[:, ::2],
    ):
        asm.program().run_rows(asm.uniforms, [image], [out], 3)
        same(np.ascontiguousarray(out), image)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("first", ["Add", "Sub", "Mul", "Pair", None])
@pytest.mark.parametrize("last", [("Sub", "Mul"), ("Mul", "Add"), ("Add", "Sub")])
def test_a_rounding_between_operations_of_floats(isa, dtype, first, last):
    """A function on pixels before a normalization: several operations run as one, with the bits of each alone."""
    rng = np.random.default_rng(0)
    x = np.concatenate([
        rng.uniform(-300, 300, 3000), rng.uniform(-70000, 70000, 3000), np.arange(-520, 520) / 4,
        [0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan, 254.5, 255.5, 32766.5, 65534.5],
    ]).astype(np.float32)  # fmt: skip
    y, factor, mean = x[::-1].copy(), np.float32(0.87), np.float32(123.675)
    asm = Asm(["float32", "float32"], ["float32", "float32"])
    a, b = asm.load(0), asm.load(1)
    with np.errstate(all="ignore"):
        if first == "Pair":  # two operations before the rounding
            value = asm.op("Add", asm.op("Mul", a, asm.uniform(float(factor))), b)
            want = x * factor + y
        elif first is None:
            value, want = a, x
        else:
            value = asm.op(first, a, asm.uniform(float(factor)))
            want = {"Add": x + factor, "Sub": x - factor, "Mul": x * factor}[first]
        rounded = asm.cvt(asm.cast(value, dtype), "f32")
        whole = cast_reference(want, dtype).astype(np.float32)
        numbers = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
        asm.store(asm.op(last[1], asm.op(last[0], rounded, asm.uniform(float(mean))), b), 0)
        other = asm.cvt(asm.cast(asm.op("Mul", b, asm.uniform(float(factor))), dtype), "f32")
        asm.store(asm.op(last[1], asm.op(last[0], other, a), asm.uniform(float(mean))), 1)
        outs = [np.zeros_like(x), np.zeros_like(x)]
        asm.run([x, y], outs)
        same(outs[0], numbers[last[1]](numbers[last[0]](whole, mean), y))
        second = cast_reference(y * factor, dtype).astype(np.float32)
        same(outs[1], numbers[last[1]](numbers[last[0]](second, x), mean))
