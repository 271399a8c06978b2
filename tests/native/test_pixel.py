# SPDX-License-Identifier: Apache-2.0
"""The register machine against NumPy and plain Python integers, on every instruction set, with and without tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pixel_asm import DTYPES, OPS, Asm, type_of

from stoker.native import _native

INTS = [d for d in DTYPES if d != "bool" and "float" not in d]
FLOATS = ["float16", "float32", "float64"]
ISAS = ["plain", "avx2", "avx512", "neon"]


def available(isa: str) -> bool:
    before = _native.get_isa()
    try:
        _native.set_isa(isa)
    except (ValueError, RuntimeError):
        return False
    finally:
        _native.set_isa(before)
    return True


@pytest.fixture(params=[i for i in ISAS if available(i)])
def isa(request):
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


@pytest.fixture
def no_tables():
    _native.pixel_set_tables(False)
    yield
    _native.pixel_set_tables(True)


def values(dtype: str, seed: int = 0, n: int = 600) -> np.ndarray:
    """Random values with the limits and other awkward ones among them."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if "float" in dtype:
        x = (rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)).astype(dtype)
        edges = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 255.5, -128.5, 1e-8, np.inf, -np.inf, np.nan, 65504.0]
        x[: len(edges)] = edges
        return x[rng.permutation(n)]
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    small = rng.integers(max(info.min, -9), 10, n).astype(dtype)
    x = np.where(rng.random(n) < 0.5, x, small)
    x[:4] = [info.min, info.max, 0, 1]
    return x[rng.permutation(n)]


def register_dtype(dtype: str) -> str:
    return {"i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}[type_of(dtype)]


def wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def same(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        number = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a[number]), np.signbit(b[number]))


def trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def power(a: int, b: int, bits: int) -> int:
    if b < 0:
        return 1 if a == 1 else (-1 if b & 1 else 1) if a == -1 else 0
    return wrap(pow(a, b, 1 << bits), bits)


INT_OPS = {
    "Add": lambda a, b, n: a + b,
    "Sub": lambda a, b, n: a - b,
    "Mul": lambda a, b, n: a * b,
    "IDiv": lambda a, b, n: trunc_div(a, b) if b else 0,
    "IMod": lambda a, b, n: a - b * trunc_div(a, b) if b else 0,
    "IPow": power,
    "Min": lambda a, b, n: min(a, b),
    "Max": lambda a, b, n: max(a, b),
    "And": lambda a, b, n: a & b,
    "Or": lambda a, b, n: a | b,
    "Xor": lambda a, b, n: a ^ b,
    "Shl": lambda a, b, n: a << (b % n),
    "Shr": lambda a, b, n: a >> (b % n),
    "UShr": lambda a, b, n: (a % (1 << n)) >> (b % n),
}
UNSIGNED_OPS = {
    "UDiv": lambda a, b: a // b if b else 0,
    "UMod": lambda a, b: a % b if b else 0,
    "UMin": min,
    "UMax": max,
    "UPow": lambda a, b: pow(a, b, 1 << 64),
}
COMPARES = {"Eq": np.equal, "Ne": np.not_equal, "Lt": np.less, "Le": np.less_equal, "Gt": np.greater,
            "Ge": np.greater_equal}


def binary(op: str, dtype: str, x, y, out_dtype: str, uniform: int = 0):
    """Runs one operation; uniform: bit 0 for a, bit 1 for b (their first element counts)."""
    asm = Asm([dtype, dtype], [out_dtype])
    a = asm.uniform(float(x[0])) if uniform & 1 else asm.load(0)
    b = asm.uniform(float(y[0])) if uniform & 2 else asm.load(1)
    asm.store(asm.op(op, a, b, type=type_of(dtype)))
    out = np.empty(x.shape, out_dtype)
    ok = asm.run([x, y], [out])
    return out, ok


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", INT_OPS)
def test_integer_ops(isa, op, dtype):
    register = register_dtype(dtype)
    bits = np.dtype(register).itemsize * 8
    x, y = values(dtype, 1), values(dtype, 2)
    # Operands as the register sees them: U64 by its bits.
    a, b = (v.astype(register).tolist() for v in (x, y))
    want = np.array([wrap(INT_OPS[op](i, j, bits), bits) for i, j in zip(a, b)], register)
    out, ok = binary(op, dtype, x, y, "int32" if register == "int32" else "int64")
    same(out, want)
    assert ok == (op not in ("IDiv", "IMod") or 0 not in b)


@pytest.mark.parametrize("op", UNSIGNED_OPS)
def test_unsigned_ops(isa, op):
    x, y = values("uint64", 1), values("uint64", 2)
    want = np.array([UNSIGNED_OPS[op](i, j) for i, j in zip(x.tolist(), y.tolist())], "uint64")
    out, ok = binary(op, "uint64", x, y, "uint64")
    same(out, want)
    assert ok == (op not in ("UDiv", "UMod") or 0 not in y)


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
@pytest.mark.parametrize("op", COMPARES)
@pytest.mark.parametrize("uniform", [0, 1, 2])
def test_compares(isa, op, dtype, uniform):
    x, y = values(dtype, 1), values(dtype, 2)
    y[::3] = x[::3]
    if uniform and np.dtype(dtype).itemsize == 8:
        x[0], y[0] = 3, 5  # a uniform is a double: large integers would not be exact
    out, _ = binary(("U" if dtype == "uint64" and op not in ("Eq", "Ne") else "") + op, dtype, x, y, "bool", uniform)
    same(out, COMPARES[op](x[0] if uniform == 1 else x, y[0] if uniform == 2 else y))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "FMod"])
@pytest.mark.parametrize("uniform", [0, 1, 2])
def test_float_ops(isa, op, dtype, uniform):
    register = register_dtype(dtype)
    x, y = values(dtype, 1), values(dtype, 2)
    a, b = x.astype(register), y.astype(register)
    a, b = (a[:1] if uniform == 1 else a), (b[:1] if uniform == 2 else b)
    with np.errstate(all="ignore"):
        want = {"Add": lambda: a + b, "Sub": lambda: a - b, "Mul": lambda: a * b, "Div": lambda: a / b,
                "Min": lambda: np.where(b < a, b, a), "Max": lambda: np.where(a < b, b, a),
                "FMod": lambda: np.fmod(a, b)}[op]()
    out, _ = binary(op, dtype, x, y, register, uniform)
    same(out, want.astype(register))


FUNCTIONS = {
    "Sqrt": np.sqrt, "Rsqrt": lambda x: 1 / np.sqrt(x), "Cbrt": np.cbrt, "Exp": np.exp, "Log": np.log, "Log2": np.log2,
    "Log10": np.log10, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos,
    "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh,
    "Atanh": np.arctanh,
}


def function(op: str, x: np.ndarray) -> np.ndarray:
    asm = Asm([str(x.dtype)], [str(x.dtype)])
    asm.store(asm.op(op, asm.load()))
    out = np.empty_like(x)
    assert asm.run([x], [out])
    return out


def close(out, want, ulps):
    np.testing.assert_array_equal(np.isnan(out), np.isnan(want))
    known = np.isfinite(want)
    np.testing.assert_array_equal(out[~known & ~np.isnan(want)], want[~known & ~np.isnan(want)])
    error = np.abs(out[known].astype("f8") - want[known].astype("f8")) / np.spacing(np.abs(want[known])).astype("f8")
    assert error.size == 0 or error.max() <= ulps


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions(op):
    rng = np.random.default_rng(3)
    x = np.concatenate([values("float32", 3), rng.uniform(-1.2, 1.2, 4000), rng.uniform(-90, 90, 4000),
                        10.0 ** rng.uniform(-30, 5, 2000), [1, -1, 1e-45, -1e-40]]).astype("f4")
    with np.errstate(all="ignore"):
        want = FUNCTIONS[op](x.astype("f8"))
        close(function(op, x), want.astype("f4"), 1)  # one ulp where NumPy's double and ours straddle a tie
        near = np.abs(x) < 700
        loose = 4 if op not in ("Tan", "Acosh", "Atanh", "Asinh") else 40
        close(function(op, x[near].astype("f8")), FUNCTIONS[op](x[near].astype("f8")), loose)


@pytest.mark.parametrize("op, fn", [("Floor", np.floor), ("Ceil", np.ceil), ("Trunc", np.trunc), ("Round", np.rint)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding(isa, op, fn, dtype):
    x = np.concatenate([values(dtype), np.arange(-8, 8, 0.25), [2.0**23 + 0.5, 2.0**52 - 0.5]]).astype(dtype)
    same(function(op, x), fn(x))


@pytest.mark.parametrize("op, fn", [("Pow", math.pow), ("Atan2", math.atan2)])
def test_two_argument_functions(op, fn):
    grid = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -2.0, 0.5, 0.3, -2.5, 7.0, 40.0, -33.0, np.inf, -np.inf, np.nan]
    x, y = (v.ravel().astype("f4") for v in np.meshgrid(grid, grid))

    def reference(a, b):
        try:
            return fn(a, b)
        except ValueError:  # Python raises where C returns a value
            with np.errstate(all="ignore"):
                return float(np.power(np.float64(a), np.float64(b)))
        except OverflowError:
            return math.inf

    with np.errstate(over="ignore"):
        want = np.array([reference(float(a), float(b)) for a, b in zip(x, y)]).astype("f4")
    out, _ = binary(op, "float32", x, y, "float32")
    close(out, want, 1)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(out[known]), np.signbit(want[known]))


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
def test_unary_and_select(isa, dtype):
    register = register_dtype(dtype)
    x = values(dtype)
    a = x.astype(register)
    ops = {"Neg": lambda: -a, "Abs": lambda: np.abs(a)}
    if type_of(dtype)[0] == "i":
        ops["Not"] = lambda: ~a
    for op, want in ops.items():
        asm = Asm([dtype], [register])
        asm.store(asm.op(op, asm.load()))
        out = np.empty(x.shape, register)
        asm.run([x], [out])
        with np.errstate(all="ignore"):
            same(out, want())
    asm = Asm([dtype, "bool"], [register])
    seven = asm.uniform(7)
    asm.store(asm.op("Select", asm.load(0), seven, asm.load(1), type=type_of(dtype)))
    chosen = values("bool", 4)
    asm.run([x, chosen], [out])
    same(out, np.where(chosen, a, np.array(7, register)))


def cast_reference(x: np.ndarray, to: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        if to == "bool":
            return x != 0
        if "float" in to:
            return x.astype(to)
        info = np.iinfo(to)

        def one(v):
            if isinstance(v, float):
                if math.isnan(v):
                    return 0
                v = info.max if v == math.inf else info.min if v == -math.inf else round(v)
            return min(max(int(v), info.min), info.max)

        return np.array([one(v) for v in x.tolist()], to)


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_casts(isa, no_tables, source, to):
    x = values(source)
    asm = Asm([source], [to])
    asm.store(asm.cast(asm.load(), to, unsigned=source == "uint64"))
    out = np.empty(x.shape, to)
    asm.run([x], [out])
    same(out, cast_reference(x, to))


@pytest.mark.parametrize("to", ["bool", "uint8", "int8", "uint16", "int16", "int32"])
def test_cast_that_is_used_twice(isa, to):
    """The cast cannot melt into the store."""
    x = values("float32")
    asm = Asm(["float32"], [to, "int32"])
    v = asm.cast(asm.load(), to)
    asm.store(v, 0)
    asm.store(v, 1)
    out, again = np.empty(x.shape, to), np.empty(x.shape, "int32")
    asm.run([x], [out, again])
    same(out, cast_reference(x, to))
    same(again, out.astype("int32"))


@pytest.mark.parametrize("to", ["bool", *INTS])
@pytest.mark.parametrize("source", INTS)
def test_wrap(isa, no_tables, source, to):
    x = values(source)
    asm = Asm([source], [to])
    asm.store(asm.wrap(asm.load(), to))
    out = np.empty(x.shape, to)
    asm.run([x], [out])
    same(out, (x & np.array(1, x.dtype)).astype(bool) if to == "bool" else x.astype(to))


@pytest.mark.parametrize("to", ["i32", "i64", "f32", "f64"])
@pytest.mark.parametrize("source", DTYPES)
def test_cvt(isa, source, to):
    x = values(source)
    out_dtype = {"i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}[to]
    unsigned = source == "uint64" and to[0] == "f"
    asm = Asm([source], [out_dtype])
    asm.store(asm.cvt(asm.load(), to, unsigned))
    out = np.empty(x.shape, out_dtype)
    asm.run([x], [out])
    trunc = "float" in source and to[0] == "i"
    want = cast_reference(np.trunc(x), out_dtype) if trunc else x.astype(out_dtype)
    same(out, want)


def test_every_half(isa):
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    floats = np.empty(65536, np.float32)
    _native.halves_to_floats(floats, halves)
    same(floats, halves.astype(np.float32))
    # Each half, the ties between neighbours, and one float to either side of the tie.
    exact = floats[np.isfinite(floats)]
    with np.errstate(over="ignore"):
        up = np.nextafter(exact.astype("f2"), np.float16(np.inf)).astype("f4")
    tie = np.where(np.isfinite(up), (exact.astype("f8") + up) / 2, 65520).astype("f4")
    x = np.concatenate([exact, tie, np.nextafter(tie, np.float32(np.inf)), np.nextafter(tie, np.float32(-np.inf)),
                        np.array([1e-8, -1e-8, 65519, 65520, 1e6, np.inf, -np.inf, np.nan], "f4")])
    out = np.empty(x.shape, np.float16)
    _native.floats_to_halves(out, x)
    with np.errstate(all="ignore"):
        same(out, x.astype(np.float16))


def test_half_bits_are_equal_on_every_isa():
    floats = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    halves = np.arange(65536, dtype=np.uint16)
    results = []
    before = _native.get_isa()
    for name in filter(available, ISAS):
        _native.set_isa(name)
        h, f = np.empty(floats.shape, np.float16), np.empty(halves.shape, np.float32)
        _native.floats_to_halves(h, floats.view(np.float32))
        _native.halves_to_floats(f, halves.view(np.float16))
        results.append((h.tobytes(), f.tobytes()))
    _native.set_isa(before)
    assert all(r == results[0] for r in results)


def test_double_to_half_rounds_once():
    tie = 1 + 2.0**-11  # between 1 and its successor; a float cannot tell the next value from it
    x = np.array([tie + 2.0**-40, tie - 2.0**-40, tie, -tie - 2.0**-40])
    asm = Asm(["float64"], ["float16"])
    asm.store(asm.cast(asm.load(), "float16"))
    out = np.empty(x.shape, np.float16)
    asm.run([x], [out])
    same(out, x.astype(np.float16))


# ---- layouts ----

def strided(draw, dtype, shape):
    """An array of this shape whose axes are permuted, cut, mirrored or repeated at random."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, -1, 2, -3])) for _ in shape]
    full = [max(1, n * abs(s)) + draw(st.integers(0, 1)) for n, s in zip(shape, steps)]
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
@given(cases(), st.sampled_from(["plain", "avx2", "avx512"]))
def test_layouts(case, name):
    dtype, x, y, out = case
    if not available(name):
        return
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


# ---- tables ----

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
@pytest.mark.parametrize("channels, differ", [(0, False), (3, False), (3, True)])
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


def test_what_depends_on_two_bytes_has_no_table():
    image = np.zeros((300, 300, 3), np.uint8)
    asm = Asm(["uint8"], ["uint8"], 3)
    x = asm.op("Xor", asm.load(0, 0), asm.load(0, 1))
    for _ in range(30):
        x = asm.op("Xor", x, asm.uniform(3))
    for c in range(3):
        asm.store(x, 0, c)
    asm.run([image], [np.empty_like(image)])
    assert not asm.program().used_table


def test_table_is_given_up_if_it_would_fault():
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
    """In place, one lookup must not read what another one has written."""
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
    for a, b, c in zip(want, got, in_place):
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
    """Random straight-line code, registers reused at random, against the same steps in NumPy."""
    ops = ["Add", "Sub", "Mul", "Min", "Max"]
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    inputs = [rng.integers(-100, 100, 777).astype(np.int16) for _ in range(2)]
    asm = Asm(["int16", "int16"], ["float32", "float64"])
    known: list[tuple[int, np.ndarray]] = []
    for i in range(2):
        v = asm.load(i)
        known.append((asm.cvt(v, "f32"), inputs[i].astype("f4")))
        known.append((asm.cvt(v, "f64"), inputs[i].astype("f8")))
    fns = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Min": lambda a, b: np.where(b < a, b, a),
           "Max": lambda a, b: np.where(a < b, b, a)}
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
    """More than L1 likes: blocks get shorter."""
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

    return [wrong_type, undefined, no_uniform, no_port, no_channel, wrong_dtype, float_shift, int_root,
            narrow_unsigned, no_output, no_op]


@pytest.mark.parametrize("build", bad_programs(), ids=lambda f: f.__name__)
def test_bad_programs_are_refused(build):
    asm = Asm(["uint8"], ["uint8"])
    build(asm)
    with pytest.raises(ValueError):
        asm.program()


def test_op_numbers():
    assert OPS["Load"] == 0 and len(set(OPS.values())) == len(OPS) == max(OPS.values()) + 1
    assert _native.PIXEL_INSTR_SIZE == 16
