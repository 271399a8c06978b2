# SPDX-License-Identifier: Apache-2.0
"""Hostile values: arguments, and arrays as samples. Each has a name, under which findings are reported."""

from __future__ import annotations

import array
import datetime
import decimal
import fractions
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker import types

Named = tuple[str, Callable[[], Any]]

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 255, 256, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**40, 2**53 + 1, 2**62, 2**63 - 1,
    2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 2**70, 10**400, -(10**400), 10**5000, 0.0, -0.0, 0.5, 1.0,
    -1.5, 2.5, 1e-45, 1e-300, 1e300, -1e300, 3.4e38, 3.5e38, 2.0**31, 2.0**53, 2.0**63, -(2.0**63), math.nan, math.inf,
    -math.inf, 1j, True, False,
)  # fmt: skip
EXTENTS: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (5,), (2, 3), (0, 3), (3, 0), (8, 9, 3), (0, 9, 3), (8, 0, 3), (8, 9, 0), (0, 0, 0), (8, 9, 1),
    (8, 9, 2), (8, 9, 4), (8, 9, 17), (8, 9, 300), (3, 8, 9), (1, 1, 3), (2, 8, 9, 3), (0, 8, 9, 3), (2, 3, 4, 5, 6),
    (1, 2, 1, 2, 1, 2, 3), (1,) * 8, (1,) * 9, (1,) * 20, (2,) * 12, (1, 3), (2, 2), (4, 4), (3, 3), (6,), (4096, 1, 3),
    (1, 70000, 3),
)  # fmt: skip
DTYPES: tuple[str, ...] = (
    "uint8", "bool", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
    "longdouble", "complex64", "complex128", "object", "U3", "S3", "V5", ">i2", ">f4", ">u8", "M8[s]", "m8[ns]",
    "u1,f4",
)  # fmt: skip


class _Strange:
    """Object that no argument takes."""

    def __repr__(self) -> str:
        return "<strange>"


class _Unprintable:
    """Object without a text."""

    def __repr__(self) -> str:
        raise ZeroDivisionError("no text")


class UnprintableError(Exception):
    """Error without a text."""

    def __str__(self) -> str:
        raise ZeroDivisionError("no text")


class Failing:
    """Iterable, sequence and array-like, all of whose methods fail."""

    def _fail(self, *args: Any, **named: Any) -> Any:
        raise UnprintableError

    __iter__ = __len__ = __getitem__ = __array__ = __contains__ = __repr__ = _fail


class _Refusing:
    """Number whose conversions fail."""

    def __int__(self) -> int:
        raise ZeroDivisionError("no int")

    def __float__(self) -> float:
        raise ZeroDivisionError("no float")

    def __index__(self) -> int:
        raise ZeroDivisionError("no index")

    def __repr__(self) -> str:
        return "<refusing>"


class _RefusingArray:
    """Array-like whose conversion fails."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise ZeroDivisionError("no array")

    def __repr__(self) -> str:
        return "<refusing array>"


def _nested(depth: int) -> list[Any]:
    value: list[Any] = [1]
    for _ in range(depth):
        value = [value]
    return value


def _cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def _read_only() -> Any:
    x = np.full((8, 9, 3), 7, np.uint8)
    x.flags.writeable = False
    return x


def _unaligned(shape: tuple[int, ...] = (8, 9, 3), dtype: str = "float32") -> Any:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.zeros(size + 1, np.uint8)[1:].view(dtype).reshape(shape)


def _filled(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of the type, with numbers if it has any."""
    kind = np.dtype(dtype).kind
    if kind in "biufc":
        return (np.arange(math.prod(shape)) % 100).reshape(shape).astype(dtype)
    return np.zeros(shape, dtype)


OBJECTS: tuple[Named, ...] = (
    ("None", lambda: None),
    ('""', lambda: ""),
    ('"x"', lambda: "x"),
    ('"1"', lambda: "1"),
    ("NUL text", lambda: "a\0b"),
    ("surrogate text", lambda: "\udc80"),
    ("escape text", lambda: "\x1b[31m\n"),
    ('"H" * 40', lambda: "H" * 40),
    ('"HWC"', lambda: "HWC"),
    ('"é" * 1000', lambda: "é" * 1000),
    ("{} text", lambda: "{0} %s %(x)d"),
    ('b""', lambda: b""),
    ('b"abc"', lambda: b"abc"),
    ("bytearray", lambda: bytearray(b"abc")),
    ("memoryview[::2]", lambda: memoryview(b"abcdef")[::2]),
    ("object", _Strange),
    ("unprintable", _Unprintable),
    ("[unprintable]", lambda: [_Unprintable()]),
    ("failing", Failing),
    ("...", lambda: ...),
    ("int", lambda: int),
    ("float", lambda: float),
    ("len", lambda: len),
    ("lambda", lambda: lambda: 1),
    ("module", lambda: math),
    ("{}", dict),
    ('{"a": 1}', lambda: {"a": 1}),
    ("set()", set),
    ("{1, 2}", lambda: {1, 2}),
    ("[]", list),
    ("()", tuple),
    ("[[]]", lambda: [[]]),
    ("[1]", lambda: [1]),
    ("[1, 2]", lambda: [1, 2]),
    ("[1, 2, 3]", lambda: [1, 2, 3]),
    ("[-1, -1]", lambda: [-1, -1]),
    ("[0, 0, 0]", lambda: [0, 0, 0]),
    ("(1,) * 9", lambda: (1,) * 9),
    ("(2.5, nan)", lambda: (2.5, math.nan)),
    ("(inf, 1)", lambda: (math.inf, 1)),
    ("ragged", lambda: [[1], [2, 3]]),
    ("ragged arrays", lambda: [np.zeros(2), np.zeros(3)]),
    ("[1, 'x']", lambda: [1, "x"]),
    ("[None]", lambda: [None]),
    ("[None, 1]", lambda: [None, 1]),
    ("['x']", lambda: ["x"]),
    ("['x', 'y']", lambda: ["x", "y"]),
    ("range(3)", lambda: range(3)),
    ("iterator", lambda: iter([1, 2])),
    ("generator", lambda: (i for i in range(2))),
    ("[2**31, 2**31]", lambda: [2**31] * 2),
    ("[2**40] * 3", lambda: [2**40] * 3),
    ("[2**62] * 2", lambda: [2**62] * 2),
    ("[2**64]", lambda: [2**64]),
    ("list of 100000", lambda: [1] * 100_000),
    ("list 100 deep", lambda: _nested(100)),
    ("list 2000 deep", lambda: _nested(2000)),
    ("cyclic list", _cyclic),
    ("refusing", _Refusing),
    ("[refusing]", lambda: [_Refusing()]),
    ("refusing array", _RefusingArray),
    ("np.float32(nan)", lambda: np.float32(math.nan)),
    ("np.int64(-1)", lambda: np.int64(-1)),
    ("np.uint64 max", lambda: np.uint64(2**64 - 1)),
    ("np.bool_", lambda: np.bool_(True)),
    ("np.str_", lambda: np.str_("x")),
    ("np.complex64", lambda: np.complex64(1j)),
    ("np.longdouble", lambda: np.longdouble("1e4000")),
    ("np.datetime64", lambda: np.datetime64("2020-01-01")),
    ("Decimal nan", lambda: decimal.Decimal("NaN")),
    ("Decimal sNaN", lambda: decimal.Decimal("sNaN")),
    ("Fraction", lambda: fractions.Fraction(1, 3)),
    ("date", lambda: datetime.date(2020, 1, 1)),
    ("array.array", lambda: array.array("i", [1, 2])),
    ("types.RGB", lambda: types.RGB),
    ("types.UINT8", lambda: types.UINT8),
    ("types.BFLOAT16", lambda: types.BFLOAT16),
    ("types.INTERP_LINEAR", lambda: types.INTERP_LINEAR),
    ("[types.UINT8] * 2", lambda: [types.UINT8] * 2),
    ("np.dtype object", lambda: np.dtype(object)),
    ("'complex64'", lambda: "complex64"),
    ("'float128'", lambda: "float128"),
    ("Constant", lambda: types.Constant(3)),
    ("slice", lambda: slice(1, 2)),
    ("exception", lambda: ValueError("x")),
    ("path with NUL", lambda: "/tmp/\0"),
    ("/dev/null", lambda: "/dev/null"),
    ("/nonexistent", lambda: "/nonexistent/x"),
)


def _arrays() -> list[Named]:
    """Return arrays of every type and rank, and arrays in unusual memory."""
    made: list[Named] = []
    for i, shape in enumerate(EXTENTS):
        dtype = DTYPES[i % 12]
        made.append((f"{dtype}{list(shape)}", lambda s=shape, d=dtype: _filled(s, d)))  # type: ignore[misc]
        made.append((f"uint8{list(shape)}", lambda s=shape: _filled(s, "uint8")))  # type: ignore[misc]
        made.append((f"float32{list(shape)}", lambda s=shape: _filled(s, "float32")))  # type: ignore[misc]
    for dtype in DTYPES:
        for shape in ((), (2,), (8, 9, 3), (0,)):
            made.append((f"{dtype}{list(shape)}", lambda s=shape, d=dtype: _filled(s, d)))  # type: ignore[misc]
    for value in (math.nan, math.inf, -math.inf, 1e300):
        for dtype in ("float32", "float64"):
            clipped = value if dtype == "float64" or not math.isfinite(value) else 3e38
            made.append((f"{dtype} of {value}", lambda v=clipped, d=dtype: np.full((8, 9, 3), v, d)))  # type: ignore[misc]
            made.append((f"{dtype}[2] of {value}", lambda v=clipped, d=dtype: np.full(2, v, d)))  # type: ignore[misc]
    made += [
        ("non-contiguous", lambda: np.zeros((16, 9, 6), np.uint8)[::2, :, ::2]),
        ("reversed", lambda: np.zeros((8, 9, 3), np.uint8)[::-1, ::-1]),
        ("transposed", lambda: np.zeros((3, 9, 8), np.float32).T),
        ("read-only", _read_only),
        ("unaligned", _unaligned),
        ("unaligned scalar", lambda: _unaligned((), "float64")),
        ("broadcast", lambda: np.broadcast_to(np.uint8(3), (8, 9, 3))),
        # In another byte order, because a reduction of all elements in place would be right, and take an hour.
        ("broadcast 2**40", lambda: np.broadcast_to(np.array(3, ">i2"), (2**20, 2**20))),
        ("broadcast 2**61", lambda: np.broadcast_to(np.array(3, ">i2"), (2**31, 2**30))),
        ("(2**40, 0)", lambda: np.zeros((2**40, 0), np.uint8)),
        ("(0, 2**40, 3)", lambda: np.zeros((0, 2**40, 3), np.uint8)),
        ("(2**31, 0, 3)", lambda: np.zeros((2**31, 0, 3), np.uint8)),
        ("masked", lambda: np.ma.masked_array(np.zeros((8, 9, 3), np.uint8), mask=True)),
        ("matrix", lambda: np.ones((2, 2)).view(np.matrix)),
        ("recarray", lambda: np.zeros(3, "u1,f4").view(np.recarray)),
        ("object of arrays", lambda: np.array([np.zeros(2), None, "x"], object)),
        ("int64 extremes", lambda: np.array([-(2**63), 2**63 - 1])),
        ("uint64 max", lambda: np.array([2**64 - 1], np.uint64)),
        ("[2**31, 2**31]", lambda: np.array([2.0**31, 2.0**31])),
        ("[-1, -1]", lambda: np.array([-1.0, -1.0])),
        ("[1e300, 1]", lambda: np.array([1e300, 1.0])),
        ("[0, 0]", lambda: np.array([0.0, 0.0])),
    ]
    return made


def _number_text(x: Any) -> str:
    if isinstance(x, int) and abs(x) > 10**99:  # Python refuses to print more than 4300 digits
        return f"{'-' if x < 0 else ''}10**{int(math.log10(abs(x)))}"
    return repr(x)


ARRAYS: tuple[Named, ...] = tuple(_arrays())
_NUMBERS: tuple[Named, ...] = tuple((_number_text(x), lambda x=x: x) for x in NUMBERS)  # type: ignore[misc]


def _mutated(drawn: random.Random, valid: Any) -> Named:
    """Return the valid value with one element replaced, removed, or repeated."""
    elements = list(valid)
    at = drawn.randrange(len(elements) + 1)
    name, make = drawn.choice((*_NUMBERS, *_NUMBERS, *OBJECTS))
    kind = type(valid) if isinstance(valid, (list, tuple)) else tuple
    how = drawn.randrange(4)
    if how == 0 and elements:
        return f"{valid!r:.60} without its last", lambda: kind(elements[:-1])
    if how == 1:
        return f"{valid!r:.60} and {name}", lambda: kind([*elements, make()])
    return f"{valid!r:.60} with {name} at {at}", lambda: kind([*elements[:at], make(), *elements[at + 1 :]])


def argument(drawn: random.Random, valid: Any = None) -> Named:
    """Return a hostile argument: any, or one that differs from a valid list in one element."""
    if isinstance(valid, (list, tuple)) and drawn.random() < 0.3:
        return _mutated(drawn, valid)
    pool = drawn.choice((_NUMBERS, _NUMBERS, OBJECTS, ARRAYS))
    return drawn.choice(pool)


def sample(drawn: random.Random) -> Named:
    """Return a hostile sample: mostly an array."""
    return drawn.choice(ARRAYS if drawn.random() < 0.75 else (*OBJECTS, *_NUMBERS))
