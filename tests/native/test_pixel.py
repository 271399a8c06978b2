# SPDX-License-Identifier: Apache-2.0
"""The register machine's operations against NumPy and plain Python integers, on every instruction set."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pixel_asm import DTYPES, Asm, type_of
from pixel_values import cast_reference, same, values

from stoker.native import _native

INTS = [d for d in DTYPES if d != "bool" and "float" not in d]
FLOATS = ["float16", "float32", "float64"]


def register_dtype(dtype: str) -> str:
    return {"i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}[type_of(dtype)]


def wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


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
COMPARES = {
    "Eq": np.equal,
    "Ne": np.not_equal,
    "Lt": np.less,
    "Le": np.less_equal,
    "Gt": np.greater,
    "Ge": np.greater_equal,
}


def binary(op: str, dtype: str, x, y, out_dtype: str, uniform: int = 0):
    """Run one operation. uniform: bit 0 for a, bit 1 for b (only their first element counts)."""
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
    # Operands as the register has them: U64 by its bits.
    a, b = (v.astype(register).tolist() for v in (x, y))
    want = np.array([wrap(INT_OPS[op](i, j, bits), bits) for i, j in zip(a, b, strict=True)], register)
    out, ok = binary(op, dtype, x, y, "int32" if register == "int32" else "int64")
    same(out, want)
    assert ok == (op not in ("IDiv", "IMod") or 0 not in b)


@pytest.mark.parametrize("op", UNSIGNED_OPS)
def test_unsigned_ops(isa, op):
    x, y = values("uint64", 1), values("uint64", 2)
    want = np.array([UNSIGNED_OPS[op](i, j) for i, j in zip(x.tolist(), y.tolist(), strict=True)], "uint64")
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
        want = {
            "Add": lambda: a + b,
            "Sub": lambda: a - b,
            "Mul": lambda: a * b,
            "Div": lambda: a / b,
            "Min": lambda: np.where(b < a, b, a),
            "Max": lambda: np.where(a < b, b, a),
            "FMod": lambda: np.fmod(a, b),
        }[op]()
    out, _ = binary(op, dtype, x, y, register, uniform)
    same(out, want.astype(register))


FUNCTIONS = {
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Cbrt": np.cbrt,
    "Exp": np.exp,
    "Log": np.log,
    "Log2": np.log2,
    "Log10": np.log10,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
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
    x = np.concatenate(
        [
            values("float32", 3),
            rng.uniform(-1.2, 1.2, 4000),
            rng.uniform(-90, 90, 4000),
            10.0 ** rng.uniform(-30, 5, 2000),
            [1, -1, 1e-45, -1e-40],
        ]
    ).astype("f4")
    with np.errstate(all="ignore"):
        want = FUNCTIONS[op](x.astype("f8"))
        close(function(op, x), want.astype("f4"), 1)  # one ulp if NumPy's double and Stoker's straddle a tie
        near = np.abs(x) < 700
        loose = 4 if op not in ("Tan", "Acosh", "Atanh", "Asinh") else 40
        close(function(op, x[near].astype("f8")), FUNCTIONS[op](x[near].astype("f8")), loose)


@pytest.mark.parametrize(
    ("op", "fn"), [("Floor", np.floor), ("Ceil", np.ceil), ("Trunc", np.trunc), ("Round", np.rint)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding(isa, op, fn, dtype):
    large = np.array([2.0**e + d for e in (22, 23, 24, 31, 52) for d in (-1.5, -0.5, 0.5, 1.5)])
    x = np.concatenate([values(dtype), np.arange(-8, 8, 0.25), [-0.0], large, -large]).astype(dtype)
    same(function(op, x), fn(x))


@pytest.mark.parametrize(("op", "fn"), [("Pow", math.pow), ("Atan2", math.atan2)])
def test_two_argument_functions(op, fn):
    grid = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -2.0, 0.5, 0.3, -2.5, 7.0, 40.0, -33.0, np.inf, -np.inf, np.nan]
    x, y = (v.ravel().astype("f4") for v in np.meshgrid(grid, grid))

    def reference(a, b):
        try:
            return fn(a, b)
        except ValueError:  # Python raises, C returns a value
            with np.errstate(all="ignore"):
                return float(np.power(np.float64(a), np.float64(b)))
        except OverflowError:
            return math.inf

    with np.errstate(over="ignore"):
        want = np.array([reference(float(a), float(b)) for a, b in zip(x, y, strict=True)]).astype("f4")
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
    """The cast cannot be fused into the store."""
    x = values("float32")
    asm = Asm(["float32"], [to, "int32"])
    v = asm.cast(asm.load(), to)
    asm.store(v, 0)
    asm.store(v, 1)
    out, again = np.empty(x.shape, to), np.empty(x.shape, "int32")
    asm.run([x], [out, again])
    same(out, cast_reference(x, to))
    same(again, out.astype("int32"))


@pytest.mark.parametrize("first", ["", "Add", "Sub", "Mul"])
@pytest.mark.parametrize("to", ["bool", "uint8", "int8", "uint16", "int16", "int32"])
def test_floats_that_are_rounded_to_integers_between_two_operations(isa, to, first):
    """The two casts become one, in a loop with the operation before them."""
    x = values("float32")
    asm = Asm(["float32"], ["float32", "float32"])
    v = asm.load()
    if first:
        v = asm.op(first, v, asm.uniform(0.75), type="f32")
    whole = asm.cvt(asm.cast(v, to), "f32")
    asm.store(whole, 0)
    asm.store(asm.op("Mul", whole, asm.uniform(-0.5), type="f32"), 1)
    out, halves = np.empty(x.shape, "float32"), np.empty(x.shape, "float32")
    asm.run([x], [out, halves])
    with np.errstate(all="ignore"):
        numbers = {"": x, "Add": x + np.float32(0.75), "Sub": x - np.float32(0.75), "Mul": x * np.float32(0.75)}
    want = cast_reference(numbers[first], to).astype("float32")
    same(out, want)
    assert not np.signbit(out[out == 0]).any()
    same(halves, want * np.float32(-0.5))


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
    # Each half, the ties between neighbours, and one float on either side of the tie.
    exact = floats[np.isfinite(floats)]
    with np.errstate(over="ignore"):
        up = np.nextafter(exact.astype("f2"), np.float16(np.inf)).astype("f4")
    tie = np.where(np.isfinite(up), (exact.astype("f8") + up) / 2, 65520).astype("f4")
    x = np.concatenate(
        [
            exact,
            tie,
            np.nextafter(tie, np.float32(np.inf)),
            np.nextafter(tie, np.float32(-np.inf)),
            np.array([1e-8, -1e-8, 65519, 65520, 1e6, np.inf, -np.inf, np.nan], "f4"),
        ]
    )
    out = np.empty(x.shape, np.float16)
    _native.floats_to_halves(out, x)
    with np.errstate(all="ignore"):
        same(out, x.astype(np.float16))


def test_half_bits_are_equal_on_every_isa():
    floats = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    halves = np.arange(65536, dtype=np.uint16)
    results = []
    before = _native.get_isa()
    for name in _native.instruction_sets():
        _native.set_isa(name)
        h, f = np.empty(floats.shape, np.float16), np.empty(halves.shape, np.float32)
        _native.floats_to_halves(h, floats.view(np.float32))
        _native.halves_to_floats(f, halves.view(np.float16))
        results.append((h.tobytes(), f.tobytes()))
    _native.set_isa(before)
    assert all(r == results[0] for r in results)


def test_double_to_half_rounds_once():
    tie = 1 + 2.0**-11  # between 1 and its successor, which a float cannot distinguish
    x = np.array([tie + 2.0**-40, tie - 2.0**-40, tie, -tie - 2.0**-40])
    asm = Asm(["float64"], ["float16"])
    asm.store(asm.cast(asm.load(), "float16"))
    out = np.empty(x.shape, np.float16)
    asm.run([x], [out])
    same(out, x.astype(np.float16))


IN_VECTORS = ["Sqrt", "Log", "Exp", "Sin", "Cos"]


def floats_of_all_kinds(seed: int) -> np.ndarray:
    """Return random bits, neighbours of multiples of pi/2 and ln 2, powers of two and special numbers, as float32."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, 1 << 17, dtype=np.uint32).view(np.float32)
    usual = rng.normal(0, 30, 1 << 17).astype(np.float32)
    k = np.arange(-3000, 3000) * rng.integers(1, 400, 6000)
    centers = [k * (np.pi / 2), k * np.log(2), 1 + k * 1e-6, 2.0 ** rng.integers(-149, 127, 6000)]
    near = [c.astype(np.float32) + np.spacing(c.astype(np.float32)) * j for c in centers for j in (-1, 0, 1)]
    info = np.finfo(np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.smallest_subnormal, 1.0, -1.0]
    return np.concatenate([bits, usual, *near, np.array(special, np.float32)]).astype(np.float32)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", IN_VECTORS)
def test_functions_in_vectors_have_the_plain_bits(isa, name):
    x = floats_of_all_kinds(IN_VECTORS.index(name))
    asm = Asm(["float32"], ["float32"])
    asm.store(asm.op(name, asm.load()))
    got, want = np.empty_like(x), np.empty_like(x)
    asm.run([x], [got])
    _native.set_isa("plain")
    asm.run([x], [want])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    np.testing.assert_array_equal(got[number].view(np.uint32), want[number].view(np.uint32))
