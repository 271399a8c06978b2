# SPDX-License-Identifier: Apache-2.0
"""Operators on bfloat16: torch's bits for arithmetic; for all other operators float32 results, rounded once."""

from __future__ import annotations

import io
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from stoker import UnsupportedError, eager, fn, math, pipeline_def, types
from stoker.contract.pixel import COMPARISONS
from stoker.contract.types import DType, promote
from stoker.frontends.registry import find
from stoker.ops._index import INDEX
from stoker.ops.generic.cast import cast_array

BF16 = DType.BFLOAT16


def numbers(seed: int, count: int = 4000) -> torch.Tensor:
    """Return random bits, ordinary numbers, and special values."""
    rng = np.random.default_rng(seed)
    bits = torch.from_numpy(rng.integers(0, 1 << 16, count, np.uint16).view(np.int16)).view(torch.bfloat16)
    usual = torch.from_numpy(rng.normal(0, 3, count).astype(np.float32)).to(torch.bfloat16)
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 3e38, 1e-40, 0.5, 2.5, -2.5])
    return torch.cat([bits, usual, special.to(torch.bfloat16)])[torch.from_numpy(rng.permutation(2 * count + 12))]


def bits_of(x: torch.Tensor) -> np.ndarray:
    return x.contiguous().view(torch.int16).numpy().view(np.uint16)


def run(make: Callable[..., Any], *inputs: Any, layout: str = "") -> list[np.ndarray]:
    """Return the results of a graph for one row: torch tensors for bfloat16, otherwise arrays."""

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        nodes = []
        for x in inputs:
            tensor = isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16
            array = bits_of(x) if tensor else np.asarray(x)
            dtype = BF16 if tensor else DType.of(array.dtype)
            source = lambda info, array=array: array  # noqa: E731
            nodes.append(
                fn.external_source(source=source, batch=False, dtype=dtype, layout=layout or None, ndim=array.ndim)
            )
        outputs = make(*nodes)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    with pipe() as built:
        return [np.array(batch[0]) for batch in built.run()]


def assert_equal(got: np.ndarray, want: torch.Tensor | np.ndarray) -> None:
    """Check for equal bits. Any NaN equals any NaN."""
    if isinstance(want, torch.Tensor):
        want = bits_of(want) if want.dtype == torch.bfloat16 else want.numpy()
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype == np.uint16:
        got, want = (x.astype(np.uint32) << 16 for x in (got, want))
        got, want = got.view(np.float32), want.view(np.float32)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


def _remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute exactly. torch's own remainder for bfloat16 is NaN if the quotient is large."""
    return torch.fmod(a.double(), b.double()).to(torch.bfloat16)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", *COMPARISONS)},
    "mod": lambda a, b: _remainder(a, b) if isinstance(a, torch.Tensor) else a % b,
}
UNARY = {
    "neg": (operator.neg, torch.neg),
    **{n: (getattr(math, n), getattr(torch, n)) for n in ("abs", "floor", "ceil", "sqrt")},
}
FUNCTIONS = ("rsqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin", "atan", "sinh", "tanh", "asinh")


@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_are_torchs(isa: str, name: str) -> None:
    a, b = numbers(1), numbers(2)
    (got,) = run(BINARY[name], a, b)
    assert_equal(got, BINARY[name](a, b))


@pytest.mark.parametrize("name", UNARY)
def test_unary_operations_are_torchs(isa: str, name: str) -> None:
    ours, theirs = UNARY[name]
    x = numbers(3)
    (got,) = run(ours, x)
    assert_equal(got, theirs(x))


def test_smaller_and_larger_are_torchs_without_nan() -> None:
    a, b = (torch.nan_to_num(numbers(k), nan=1.0) for k in (1, 2))
    zero = (a == 0) & (b == 0)  # either zero
    got = run(lambda x, y: (math.min(x, y), math.max(x, y)), torch.where(zero, 1.0, a), torch.where(zero, 1.0, b))
    for result, theirs in zip(got, (torch.minimum, torch.maximum), strict=True):
        assert_equal(result, theirs(torch.where(zero, 1.0, a), torch.where(zero, 1.0, b)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_float32s_rounded(name: str) -> None:
    """torch's float32 functions differ: results are at most one bfloat16 apart."""
    x = numbers(4)
    x = torch.where(x.abs() > 1e4, 0.75, x)  # sines of larger values differ everywhere
    (got,) = run(getattr(math, name), x)
    (wide,) = run(getattr(math, name), x.float())
    assert_equal(got, torch.from_numpy(wide).to(torch.bfloat16))
    theirs = getattr(torch, name)(x)
    same = torch.isnan(theirs).numpy() == np.isnan(wide)
    assert same.all()
    finite = torch.isfinite(theirs).numpy() & np.isfinite(wide)
    ordered = [np.where(b & 0x8000, 0x8000 - b.astype(np.int64), b) for b in (got[finite], bits_of(theirs)[finite])]
    assert np.abs(ordered[0] - ordered[1]).max() <= 1


OTHERS = {
    "uint8": torch.uint8, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
    "bool": torch.bool, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_types_beside_it_are_torchs(name: str) -> None:
    """Integers are rounded to bfloat16 first. The promoted type holds both types."""
    rng = np.random.default_rng(5)
    other = torch.from_numpy(rng.normal(0, 300, 3000)).to(OTHERS[name])
    x = torch.from_numpy(rng.normal(0, 3, 3000)).to(torch.bfloat16)
    for operation in (operator.add, operator.mul, operator.lt):
        got = run(lambda a, b, op=operation: (op(a, b), op(b, a)), x, other.numpy())
        for result, want in zip(got, (operation(x, other), operation(other, x)), strict=True):
            assert_equal(result, want)
    assert promote(BF16, DType.of(name)) == promote(DType.of(name), BF16) == DType.of(str((x + other).dtype))


def test_numbers_of_python_beside_it() -> None:
    """Python integers are int32, other Python numbers float32, as everywhere."""
    x = numbers(6)
    whole, wide, rounded = run(lambda v: (v + 257, v * 0.1, fn.cast(v * 0.1, dtype=types.BFLOAT16)), x)
    assert_equal(whole, x + torch.tensor([257], dtype=torch.int32))
    assert_equal(wide, x.float() * torch.tensor(0.1))
    assert_equal(rounded, x * 0.1)  # torch rounds once


def test_a_chain_rounds_after_every_operation() -> None:
    """Torch runs one operation after the other; here they are one program."""
    a, b = numbers(7), numbers(8)
    make = lambda x, y: math.sqrt(abs(x * y - x)) / (y + 3)  # noqa: E731
    (got,) = run(make, a, b)
    assert_equal(got, torch.sqrt(torch.abs(a * b - a)) / (b + 3))
    once = torch.sqrt(torch.abs(a.float() * b.float() - a.float())) / (b.float() + 3)
    assert (bits_of(once.to(torch.bfloat16)) != got).mean() > 0.01, "which is not the same as at the end"


IMAGE_OPERATORS = (
    "brightness", "brightness_contrast", "color_twist", "contrast", "crop", "crop_mirror_normalize", "gaussian_blur",
    "hsv", "hue", "random_resized_crop", "resize", "resize_crop_mirror", "rotate", "saturation", "slice", "warp_affine",
)  # fmt: skip


def image_cases() -> list[Any]:
    found = []
    for name, layout in itertools.product(IMAGE_OPERATORS, ("HWC", "CHW")):
        for i, case in enumerate(find(name).cases):
            if layout == "HWC" or (i == 0 and name != "slice"):
                found.append(pytest.param(name, case, layout, id=f"{name}-{i}-{layout}"))
    return found


@pytest.mark.parametrize(("name", "case", "layout"), image_cases())
def test_images_are_computed_in_float32_and_rounded_once(name: str, case: dict[str, Any], layout: str) -> None:
    x = torch.from_numpy(np.random.default_rng(9).uniform(-20, 280, (31, 23, 3))).to(torch.bfloat16)
    x = x if layout == "HWC" else x.permute(2, 0, 1)
    drawn = {"seed": 3} if find(name).draws else {}

    def apply(v: Any) -> Any:
        return getattr(fn, name)(fn.reshape(v, shape=list(x.shape), layout=layout), **case, **drawn)

    (got,), (want,) = run(apply, x, layout=layout), run(apply, x.float(), layout=layout)
    if "dtype" not in case and name not in ("hsv", "crop_mirror_normalize"):  # operators whose output has its own type
        want = cast_array(want, BF16)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)


def test_filters() -> None:
    x = torch.from_numpy(np.random.default_rng(9).normal(0, 9, (12, 17, 3))).to(torch.bfloat16)
    window = np.random.default_rng(2).normal(0, 1, (3, 4)).astype(np.float32)
    make = lambda v, w: (fn.filter(v, w), fn.filter(v, w, dtype="float32"))  # noqa: E731
    (own, wide), (want, _) = run(make, x, window, layout=""), run(make, x.float(), window, layout="")
    np.testing.assert_array_equal(wide, want)
    np.testing.assert_array_equal(own, cast_array(want, BF16))


def test_outputs_of_it() -> None:
    """The output of bytes has this type wherever a type may be given."""
    x = np.random.default_rng(3).integers(0, 256, (9, 12, 3), np.uint8)
    for call in (
        lambda dtype: eager.resize(x, size=(5, 7), dtype=dtype),
        lambda dtype: eager.rotate(x, angle=33.0, dtype=dtype),
        lambda dtype: eager.brightness(x, brightness=0.37, dtype=dtype),
        lambda dtype: eager.crop(x, crop=(3, 4), dtype=dtype),
        lambda dtype: eager.ones_like(x, dtype=dtype),
    ):
        np.testing.assert_array_equal(call(types.BFLOAT16), cast_array(np.asarray(call(types.FLOAT)), BF16))


def test_fills_are_rounded_to_it() -> None:
    x = torch.ones(4, 5, 3, dtype=torch.bfloat16)
    fill = torch.tensor([1 / 3, 257.0, -1e-3]).to(torch.bfloat16)
    how = {"crop": (6, 9), "out_of_bounds_policy": "pad"}
    one, each = run(
        lambda v: (
            fn.crop(v, fill_values=1 / 3, **how),
            fn.crop(fn.reshape(v, shape=[4, 5, 3], layout="HWC"), fill_values=(1 / 3, 257.0, -1e-3), **how),
        ),
        x,
        layout="HWC",
    )
    assert set(one.reshape(-1).tolist()) == {0x3F80, int(bits_of(fill)[0])}
    np.testing.assert_array_equal(each[0, 0], bits_of(fill))


def test_joining() -> None:
    """Joining works natively and in Python, also with other types."""
    a, b = (numbers(k)[:6].reshape(2, 3) for k in (1, 2))
    wide = torch.arange(6, dtype=torch.float16).reshape(2, 3)

    def joined(x: Any, y: Any, z: Any) -> Any:
        many = [x, y] * 6
        return fn.stack(x, y), fn.cat(x, y, axis=1), fn.stack(*many), fn.cat(*many), fn.stack(x, z), fn.cat(*many, z)

    got = run(joined, a, b, wide.numpy())
    many = [a, b] * 6
    both = [a.float(), wide.float()]
    want = (torch.stack([a, b]), torch.cat([a, b], 1), torch.stack(many), torch.cat(many), torch.stack(both),
            torch.cat([*(m.float() for m in many), wide.float()]))  # fmt: skip
    for result, expected in zip(got, want, strict=True):
        assert_equal(result, expected)


def test_elements_conditions_and_branches() -> None:
    @pipeline_def(batch_size=1, num_threads=1, enable_conditionals=True)
    def pipe() -> Any:
        x = fn.external_source(source=lambda info: bits_of(x_of), batch=False, dtype=BF16, ndim=1)
        first, last = x[0], x[-2:]
        chosen = last if first > 1 else fn.cast(last * 0.5, dtype=types.BFLOAT16)
        small = fn.cast(0.5, dtype=types.BFLOAT16) if first < 1 else 0.25
        full = fn.full(first, shape=(2, 2)), fn.full_like(last, 0.1)
        return first, chosen, small, *full

    x_of = torch.tensor([2.5, -3.0, 0.3]).to(torch.bfloat16)
    with pipe() as built:
        first, chosen, small, full, like = [np.array(batch[0]) for batch in built.run()]
    assert_equal(first, x_of[0])
    assert_equal(chosen, x_of[1:])
    assert_equal(small, torch.tensor(0.25).to(torch.bfloat16))
    assert_equal(full, torch.full((2, 2), 2.5).to(torch.bfloat16))
    assert_equal(like, torch.full((2,), 0.1).to(torch.bfloat16))


REFUSED: dict[str, dict[str, Any]] = {
    "equalize": {}, "experimental.warp_perspective": {"matrix": [1.0] * 9},
    "color_space_conversion": {"image_type": "RGB", "output_type": "GRAY"}, "python_function": {"function": abs},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_operators_that_do_not_take_it_refuse_it(name: str) -> None:
    call: Any = fn
    for part in name.split("."):
        call = getattr(call, part)
    x = torch.ones(4, 5, 3, dtype=torch.bfloat16)
    with pytest.raises(UnsupportedError, match=r"does not take bfloat16. Cast it first \(`fn.cast"):
        run(lambda v: call(v, **REFUSED[name]), x, layout="HWC")


def special(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return rows for each summation method, selected by the number of elements, and rows with NaN and infinities."""
    rows = {str(n): x[:n] for n in (1, 3, 4, 31, 33, 4096, 4097)}
    zeros = torch.tensor([0.0, -0.0, 0.0], dtype=x.dtype)
    return {**rows, "infinite": torch.cat([x[:9], zeros / -0.0]), "zeros": zeros}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reductions_are_those_of_the_same_numbers_in_float32(dtype: torch.dtype) -> None:
    """Results of 16 bits are rounded once. The minimum and the maximum are elements of the input."""
    short = "bfloat16" if dtype == torch.bfloat16 else "float16"
    usual = torch.from_numpy(np.random.default_rng(11).normal(3, 90, 6000)).to(dtype)
    for x in special(usual).values():
        data = x if dtype == torch.bfloat16 else x.numpy()

        def reduced(v: Any) -> Any:
            mean = fn.reductions.mean(v)
            return (
                fn.reductions.sum(v), mean, fn.reductions.mean_square(v), fn.reductions.rms(v),
                fn.reductions.variance(v, mean), fn.reductions.std_dev(v, mean, ddof=1),
            )  # fmt: skip

        for got, want in zip(run(reduced, data), run(reduced, x.float().numpy()), strict=True):
            assert got.dtype == np.float32
            np.testing.assert_array_equal(got, want)
        rounded = run(lambda v: (fn.reductions.sum(v, dtype=short), fn.reductions.rms(v, dtype=short)), data)
        exact = run(lambda v: (fn.reductions.sum(v), fn.reductions.rms(v)), x.double().numpy())
        for got, want in zip(rounded, exact, strict=True):
            np.testing.assert_array_equal(got, cast_array(want.astype(np.float64), DType.of(short)))
        extremes = run(lambda v: (fn.reductions.min(v), fn.reductions.max(v)), data)
        for got, want in zip(extremes, (x.amin(), x.amax()), strict=True):
            if (x == 0).all():
                want = torch.tensor(-0.0 if got is extremes[0] else 0.0, dtype=dtype)
            assert_equal(got, want)


def test_sums_that_torch_takes_in_float32_are_near() -> None:
    """torch adds float32 in its own order, and also rounds once."""
    x = torch.from_numpy(np.random.default_rng(12).normal(0, 1, (40, 500))).to(torch.bfloat16)
    got, mean = run(lambda v: (fn.reductions.sum(v, axes=1, dtype="bfloat16"),
                               fn.reductions.mean(v, axes=0, dtype="bfloat16")), x)  # fmt: skip
    for result, theirs in ((got, x.sum(1)), (mean, x.mean(0))):
        same = result == bits_of(theirs)
        assert same.mean() > 0.97
        np.testing.assert_allclose((result.astype(np.uint32) << 16).view(np.float32), theirs.float(), rtol=2**-7)


def test_nans_are_the_result() -> None:
    x = torch.tensor([1.0, torch.nan, 3.0]).to(torch.bfloat16)
    for result in run(lambda v: (fn.reductions.min(v), fn.reductions.max(v)), x):
        assert_equal(result, torch.tensor(torch.nan).to(torch.bfloat16))


def test_decoders_give_it() -> None:
    """The result is the decoder's float32 output, rounded."""
    data = np.frombuffer(jpeg_file(), np.uint8)
    short, wide = (eager.decoders.image(data, dtype=dtype) for dtype in ("bfloat16", "float32"))
    np.testing.assert_array_equal(short, cast_array(np.asarray(wide), BF16))


def jpeg_file() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(4).integers(0, 256, (30, 40, 3), np.uint8)).save(file, "JPEG")
    return file.getvalue()


def test_operators_that_do_not_give_it_refuse_it() -> None:
    with pytest.raises(UnsupportedError, match=r"`random.uniform`: it does not give bfloat16. Cast what it gives"):
        run(lambda v: v + fn.random.uniform(dtype=types.BFLOAT16), torch.ones(3, dtype=torch.bfloat16))


def test_every_operator_takes_it_or_refuses_it() -> None:
    """Bitwise operators require integers. Every other operator computes or refuses."""
    takes = {name for name in INDEX if find(name).takes_bfloat16}
    assert {
        *IMAGE_OPERATORS,
        "filter",
        "_arithmetic",
        "stack",
        "cat",
        "flip",
        "reductions.sum",
    } <= takes and not takes & set(REFUSED)
    with pytest.raises(Exception, match="whole numbers or booleans"):
        run(lambda v: v & 1, torch.ones(3, dtype=torch.bfloat16))
