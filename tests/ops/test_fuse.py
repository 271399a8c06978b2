# SPDX-License-Identifier: Apache-2.0
"""Functions on pixels: results against NumPy, fusion with neighbours, per-row arguments, errors at the user's line."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import stoker
import stoker.math
from stoker import eager, fn, pipeline_def
from stoker.contract import pixel as px
from stoker.contract import samples
from stoker.contract.errors import ArgumentError, DataError, StokerError, UnsupportedError
from stoker.contract.expr import Expr
from stoker.contract.operator import RowContext
from stoker.contract.random import Stream
from stoker.contract.types import DType
from stoker.testing import check_operator

GAMMA = stoker.table(np.arange(256)[::-1].astype(np.uint8))


@stoker.fuse
def t_vignette(p, strength: float = 0.5):  # type: ignore[no-untyped-def]
    """Darken the corners."""
    d = (p.y / p.height - 0.5) ** 2 + (p.x / p.width - 0.5) ** 2
    return p.value * (1 - 2 * strength * d)


@stoker.fuse
def t_swap(p, keep: bool = False):  # type: ignore[no-untyped-def]
    if keep:  # a constant
        return p[0], p[1], p[2]
    return p[2], p[1], p[0]


@stoker.fuse
def t_luma(p):  # type: ignore[no-untyped-def]
    return 0.25 * p[0] + 0.5 * p[1] + 0.25 * p[-1]


@stoker.fuse
def t_pull(p, amount: float = 0.5):  # type: ignore[no-untyped-def]
    grey = (p[0] + p[1] + p[2]) / 3
    return p.value + amount * (grey - p.value) + p.c


@stoker.fuse(dtype="float32")
def t_functions(p):  # type: ignore[no-untyped-def]
    x = p.value / 64.0 - 1
    inner = np.sqrt(np.abs(x)) + np.where(x > 0, np.exp(x), stoker.math.sin(x)) + np.clip(x, -0.5, 0.5)
    return stoker.where((x > 0.25) & (p.x % 2 == 0), np.maximum(inner, 1), -inner) + np.arctan2(x, 1.5)


@stoker.fuse
def t_bits(p, lost: int = 3):  # type: ignore[no-untyped-def]
    return (p.value >> lost << lost) | 1


@stoker.fuse
def t_lookup(p):  # type: ignore[no-untyped-def]
    return GAMMA[p.value]


@stoker.fuse
def t_blend(p, q, share: float = 0.25):  # type: ignore[no-untyped-def]
    return p.value + share * (q.value - p.value)


@stoker.fuse
def t_grain(p, strength: float = 20.0):  # type: ignore[no-untyped-def]
    return p.value + strength * (p.uniform() - p.uniform())


@stoker.fuse
def t_channel_grain(p):  # type: ignore[no-untyped-def]
    return p[1] + 9 * p.uniform(), p[0] - 9 * p.uniform()


FUNCTIONS = {
    "t_vignette": {}, "t_swap": {}, "t_luma": {}, "t_pull": {"amount": 0.3}, "t_functions": {}, "t_bits": {"lost": 2},
    "t_lookup": {}, "t_blend": {}, "t_grain": {"strength": 31.0}, "t_channel_grain": {},
}  # fmt: skip


def same(got: Any, want: Any, dtype: str) -> None:
    if dtype in ("float32", "float64", "float16"):
        tolerance = 1e-3 if dtype == "float16" else 2e-6
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(13, 17, 3), (1, 1, 3), (0, 4, 3), (2, 5, 4, 3)])
def test_a_function_on_arrays_is_its_reference(name: str, dtype: str, shape: Any) -> None:
    if name in ("t_bits", "t_lookup") and dtype.startswith("float"):
        return
    function = globals()[name]
    arguments = FUNCTIONS[name]
    operator = function.operator
    inputs = [samples.noise(k, shape, dtype) for k in range(operator.inputs[0])]
    seed = {"seed": 5} if operator.draws else {}
    got = np.asarray(function(*inputs, **arguments, **seed))
    args = operator.fill_defaults(operator.bind(arguments), {})
    stream = Stream(5, 0, 0, len(inputs) + len(arguments)) if operator.draws else None
    want = operator().reference(RowContext(args, layouts=("",) * len(inputs), stream=stream), *inputs)
    assert got.shape == want.shape and got.dtype == want.dtype
    same(got, want, str(want.dtype))


def test_known_results() -> None:
    x = samples.noise(1, (6, 8, 3))
    np.testing.assert_array_equal(t_swap(x), x[..., ::-1])
    np.testing.assert_array_equal(t_swap(x, keep=True), x)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(t_luma(x), np.rint(wide @ [0.25, 0.5, 0.25])[..., None].astype(np.uint8))
    np.testing.assert_array_equal(t_lookup(x), 255 - x)
    np.testing.assert_array_equal(t_bits(x, lost=4), x >> 4 << 4 | 1)
    assert t_bits.operator.inputs == (1, 1)
    assert t_vignette.__doc__ == "Darken the corners." and "t_vignette" in dir(fn)
    np.testing.assert_array_equal(eager.t_vignette(x, strength=0.0), x)


@pytest.mark.parametrize("layout", ["CHW", "HW", "FHWC"])
def test_layouts(layout: str) -> None:
    shape = {"CHW": (3, 6, 8), "HW": (6, 8), "FHWC": (2, 6, 8, 3)}[layout]
    x = samples.noise(2, shape)
    got = np.asarray(t_vignette(stoker.types.Constant(x, layout=layout)))
    planes = np.moveaxis(x, 0, -1) if layout == "CHW" else x[..., None] if layout == "HW" else x
    for frame, result in zip(planes if layout == "FHWC" else [planes], got if layout == "FHWC" else [got], strict=True):
        want = np.asarray(t_vignette(np.ascontiguousarray(frame)))
        result = np.moveaxis(result, 0, -1) if layout == "CHW" else result[..., None] if layout == "HW" else result
        np.testing.assert_array_equal(result, want)


def chain(fused: bool) -> Any:
    @pipeline_def(batch_size=3, num_threads=2, seed=7)
    def graph() -> Any:
        rows = [samples.noise(i, (20 + i, 24, 3)) for i in range(3)]
        images = fn.external_source(lambda: rows, dtype="uint8", ndim=3, layout="HWC")
        strength = fn.random.uniform(range=(0, 1))
        images = fn.resize(images, size=(16, 16))
        images = t_vignette(images, strength=strength) if fused else images
        normal = fn.crop_mirror_normalize(images, mean=[127.0] * 3, std=[50.0] * 3)
        return normal, images, strength

    return graph()


def test_a_function_joins_the_stages_around_it() -> None:
    def stages(fused: bool) -> int:
        @pipeline_def(batch_size=1)
        def graph() -> Any:
            x = fn.external_source(lambda: np.zeros((1, 20, 20, 3), np.uint8), dtype="uint8", ndim=3, layout="HWC")
            x = fn.resize(x, size=(16, 16))
            x = t_vignette(t_vignette(x, strength=0.1)) if fused else x
            return fn.crop_mirror_normalize(x, mean=[127.0] * 3, std=[50.0] * 3)

        pipe = graph()
        pipe.build()
        with pipe:
            return pipe.show().count("stage[")

    assert stages(True) == stages(False) == 1


def test_arguments_per_row() -> None:
    pipe = chain(True)
    with pipe:
        normal, images, strength = pipe.run()
        for i in range(3):
            resized = eager.resize(samples.noise(i, (20 + i, 24, 3)), size=(16, 16))
            want = np.asarray(t_vignette(resized, strength=float(np.asarray(strength[i]))))
            np.testing.assert_array_equal(np.asarray(images[i]), want)
            cmn = eager.crop_mirror_normalize(want, mean=[127.0] * 3, std=[50.0] * 3)
            np.testing.assert_array_equal(np.asarray(normal[i]), cmn)


@pytest.mark.parametrize("name", ["t_vignette", "t_swap", "t_luma", "t_pull", "t_bits", "t_lookup"])
def test_functions_keep_the_laws_of_operators(name: str) -> None:
    check_operator(globals()[name].operator)


def test_draws_follow_the_seed_and_the_row() -> None:
    x = samples.noise(3, (9, 9, 3))
    one = np.asarray(t_grain(x, seed=1))
    np.testing.assert_array_equal(one, t_grain(x, seed=1))
    assert (one != np.asarray(t_grain(x, seed=2))).any()


def line_of(function: Any, offset: int) -> str:
    return f"{__file__}:{function.__wrapped__.__code__.co_firstlineno + offset}"


def fused(function: Any) -> Any:
    return stoker.fuse(function, name="t_wrong")


def test_errors_are_at_the_line_of_the_function() -> None:
    def branches(p):  # type: ignore[no-untyped-def]
        value = p.value
        if value > 3:
            return value
        return 0

    def loops(p):  # type: ignore[no-untyped-def]
        return sum(v for v in p)

    def neighbours(p):  # type: ignore[no-untyped-def]
        return p[p.y, p.x + 1]

    def foreign(p):  # type: ignore[no-untyped-def]
        return np.sinc(p.value) + np.logaddexp(p.value, 1)

    def broken(p):  # type: ignore[no-untyped-def]
        return p.nothing

    def too_many_channels(p):  # type: ignore[no-untyped-def]
        return p[3]

    def text(p):  # type: ignore[no-untyped-def]
        return p.value + "1"

    def pixel(p):  # type: ignore[no-untyped-def]
        return p + 1

    def compared(p):  # type: ignore[no-untyped-def]
        return 0 if p == 3 else p.value

    def rooted(p):  # type: ignore[no-untyped-def]
        return np.sqrt(p)

    def indexed(p):  # type: ignore[no-untyped-def]
        return p.value[0]

    def floats(p):  # type: ignore[no-untyped-def]
        return p.value / 2 & 1

    def ranges(p, count: int = 2):  # type: ignore[no-untyped-def]
        return sum(p[i] for i in range(count))

    cases = {
        branches: (2, r"`if`.*stoker\.where|stoker\.where.*`if`"), loops: (1, "loop over a pixel"),
        neighbours: (1, r"fn\.filter.*stoker\.cpp"), foreign: (1, "numpy"), broken: (1, "AttributeError"),
        too_many_channels: (1, "channel from -3 to 2, got 3"), text: (1, "number of a pixel or a constant, got '1'"),
        pixel: (1, r"`p\.value` is its element"), compared: (1, r"`p\.value` is its element"),
        rooted: (1, r"`p\.value` is its element"), indexed: (1, "first channel of the pixel"),
        floats: (1, "whole numbers for `and`"), ranges: (1, "annotate them"),
    }  # fmt: skip
    x = samples.noise(1, (4, 5, 3))
    for function, (offset, words) in cases.items():
        made = fused(function)
        with pytest.raises(StokerError, match=words) as caught:
            made(x)
        assert f"{__file__}:{function.__code__.co_firstlineno + offset}" in str(caught.value), function.__name__
        assert "`t_wrong`" in str(caught.value)


def test_an_input_by_name_says_how_to_declare_an_argument() -> None:
    made = stoker.fuse(lambda p, t: p.value + t.value, name="t_named")
    x = samples.noise(1, (4, 5, 3))
    with pytest.raises(ArgumentError, match=r"expected `t` by position.*annotate it: `t: float`"):
        made(x, t=3)


def test_declarations_that_are_refused() -> None:
    with pytest.raises(ArgumentError, match="first parameter without annotation"):
        stoker.fuse(lambda strength=0.5: strength, name="t_none")
    with pytest.raises(ArgumentError, match=r"without `\*more`"):
        stoker.fuse(lambda p, *more: p.value, name="t_none")
    with pytest.raises(ArgumentError, match="another name than `draws`"):
        stoker.fuse(lambda p, draws=1: p.value, name="t_none")
    with pytest.raises(ArgumentError, match="group `stoker`"):
        stoker.fuse(lambda p: p.value, name="stoker.own")
    with pytest.raises(ArgumentError, match="expected a function"):
        stoker.fuse(3)
    with pytest.raises(ArgumentError, match="one axis"):
        stoker.table(np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="numbers of a pixel"):
        stoker.where(True, 1, 2)
    with pytest.raises((ArgumentError, DataError), match="one shape"):
        t_blend(samples.noise(1, (4, 5, 3)), samples.noise(1, (4, 6, 3)))
    with pytest.raises(ArgumentError, match="axis H"):
        t_vignette(np.zeros(5, np.uint8))


def test_too_long_functions_are_refused() -> None:
    def long(p):  # type: ignore[no-untyped-def]
        x = p.value
        for i in range(1100):
            x = x + i * p.x
        return x

    with pytest.raises((ArgumentError, UnsupportedError), match="at most 256 operations"):
        fused(long)(samples.noise(1, (4, 5, 3)))


def test_functions_are_pickled_by_name_and_versioned_by_source() -> None:
    assert pickle.loads(pickle.dumps(t_vignette)) is t_vignette
    assert t_vignette.operator.version != t_swap.operator.version
    assert DType.UINT8 in t_vignette.operator().made_from.function.__globals__["DType"]


@stoker.fuse(dtype="float32")
def t_row_numbers(p, a: float = 0.0, b: float = 1.0):  # type: ignore[no-untyped-def]
    return p.value * (1 - (a + b) * 0.1 + -(a * b)) + (0.0 + a) * -b


def test_arithmetic_of_a_rows_numbers_has_the_bits_of_float32() -> None:
    """It is computed once for a row, in double, and rounded after every operation."""
    numbers = [0.0, -0.0, 0.1, 1e-45, 1.1754944e-38, 3.4e38, -7.25, 16777217.0, np.inf, np.nan]
    image = np.array([[0.0, -0.0, 1.5, 3e-39]], np.float32)
    one = np.float32
    for a in numbers:
        for b in numbers:
            x, y = one(a), one(b)
            with np.errstate(all="ignore"):
                factor = one(1) - one(one(x + y) * one(0.1)) + -one(x * y)
                want = image * factor + one(one(0.0) + x) * -y
            got = t_row_numbers(image, a=a, b=b)
            np.testing.assert_array_equal(got, want)
            assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


def test_arithmetic_of_a_rows_numbers_is_no_instruction() -> None:
    """The program of a function with such arithmetic is that of a function without."""
    codes = {
        name: i for i, name in enumerate((*px.BINARY.values(), *px.UNARY.values(), "Load", "Store", "Cast", "Copy"))
    }
    value, numbers = px.load(DType.FLOAT), [px.uniform(Expr("elem", i, 0, False)) for i in range(2)]
    for make in (lambda a, b: 1.0, lambda a, b: px.uniform(1.0) - (a * b + a)):
        compiled = px.compile_program([[px.binary("mul", value, make(*numbers))]], codes, 1)
        assert len(compiled.code) == 3 and len(compiled.uniforms) == 1
