# SPDX-License-Identifier: Apache-2.0
"""``gpu_function``: functions of PyTorch, Triton and CuPy on the rows of a batch in a GPU's memory.

Without a GPU the null device gives tensors in host memory.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
import torch

from stoker import ArgumentError, DeviceError, ResourceError, UnsupportedError, dali, fn, pipeline_def, types
from stoker.dali.plugin.pytorch.fn import torch_python_function
from stoker.device.gpu import Gpu

ROWS = [np.arange(n, n + 12 * n, dtype=np.float32).reshape(n, 4, 3) for n in (2, 5, 3)]


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))
    return str(request.param)


# Kernels of other libraries need a real GPU.
on_a_real_gpu = pytest.mark.parametrize("gpu", [pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], indirect=True)


def run(make: Callable[..., Any], count: int = 1, rows: Any = ROWS) -> list[list[np.ndarray]]:
    """Return the rows of ``make(x)``, x on the GPU, of the last of several batches."""

    @pipeline_def(batch_size=len(rows), num_threads=2, device_id=0, seed=4)
    def pipe() -> Any:
        x = fn.external_source(source=lambda i: [row + np.float32(i) for row in rows], layout="HWC")
        return make(x.gpu())

    with pipe() as running:
        for _ in range(count):
            outputs = running.run()
        return [[np.array(row) for row in output.as_cpu()] for output in outputs]


def test_a_function_between_operators() -> None:
    """Its inputs are the results of the operators before it, and the operators after it see its results."""
    streams = set()

    def double(images: list[Any]) -> list[Any]:
        assert all(isinstance(x, torch.Tensor) for x in images)
        if images[0].is_cuda:
            streams.add(torch.cuda.current_stream().cuda_stream)
        return [2 * x for x in images]

    (found,) = run(lambda x: fn.flip(fn.gpu_function(x + 1, function=double), horizontal=1) - 3, count=6)
    assert 0 not in streams
    for got, row in zip(found, ROWS, strict=True):
        np.testing.assert_array_equal(got, 2 * (row + 5 + 1)[:, ::-1] - 3)


def test_outputs_of_other_shapes_and_types() -> None:
    def split(images: list[Any]) -> tuple[list[Any], list[Any]]:
        return [x[::2].sum(2) for x in images], [(x > 6).to(torch.uint8) for x in images]

    sums, masks = run(
        lambda x: fn.gpu_function(
            x, function=split, num_outputs=2, output_dtypes=["float32", "uint8"], output_layouts=["HW", "HWC"],
            output_shapes=lambda image: [((image[0] + 1) // 2, image[1]), image],
        )
    )  # fmt: skip
    for total, mask, row in zip(sums, masks, ROWS, strict=True):
        np.testing.assert_array_equal(total, row[::2].sum(2))
        np.testing.assert_array_equal(mask, row > 6)


def test_one_type_and_one_layout() -> None:
    (found,) = run(
        lambda x: fn.gpu_function(x, function=lambda xs: xs, output_dtypes=types.UINT8, output_layouts="HWC")
    )
    for got, row in zip(found, ROWS, strict=True):
        np.testing.assert_array_equal(got, row)
        assert got.dtype == np.uint8


def test_a_function_that_fills_its_outputs() -> None:
    def fill(out: list[Any], first: list[Any], second: list[Any]) -> None:
        for o, a, b in zip(out, first, second, strict=True):
            torch.sub(a, b, out=o)

    (found,) = run(lambda x: fn.gpu_function(x, x * 3, function=fill, fills=True))
    for got, row in zip(found, ROWS, strict=True):
        np.testing.assert_array_equal(got, -2 * row)


def test_dalis_function_on_a_gpu() -> None:
    (rows,) = run(lambda x: torch_python_function(x, function=lambda t: t.flip(0), device="gpu"))
    (batches,) = run(
        lambda x: torch_python_function(
            x, function=lambda own: [t * 2 for t in own], device="gpu", batch_processing=True
        )
    )
    for got, twice, row in zip(rows, batches, ROWS, strict=True):
        np.testing.assert_array_equal(got, row[::-1])
        np.testing.assert_array_equal(twice, 2 * row)


def test_capsules_of_any_library() -> None:
    """The batch's work is done before the function runs, and its own work before the operators after it."""
    from torch.utils.dlpack import from_dlpack, to_dlpack

    def double(column: list[Any]) -> list[Any]:
        assert all(type(x).__name__ == "PyCapsule" for x in column)
        return [to_dlpack(2 * from_dlpack(x)) for x in column]

    def split(column: list[Any]) -> tuple[list[Any], list[Any]]:
        tensors = [from_dlpack(x) for x in column]
        return [x[::2].sum(2) for x in tensors], [to_dlpack((x > 6).to(torch.uint8)) for x in tensors]

    def fill(out: list[Any], column: list[Any]) -> None:
        for o, x in zip(out, column, strict=True):
            torch.mul(from_dlpack(x), 3, out=from_dlpack(o))

    (found,) = run(lambda x: fn.gpu_function(x + 1, function=double, library="dlpack") - 3, count=6)
    (filled,) = run(lambda x: fn.gpu_function(x + 1, function=fill, library="dlpack", fills=True) * 2)
    sums, masks = run(
        lambda x: dali.fn.dl_tensor_python_function(
            x, function=split, num_outputs=2, output_dtypes=["float32", "uint8"], output_layouts=["HW", "HWC"],
            output_shapes=lambda image: [((image[0] + 1) // 2, image[1]), image], device="gpu",
        )
    )  # fmt: skip
    for got, three, total, mask, row in zip(found, filled, sums, masks, ROWS, strict=True):
        np.testing.assert_array_equal(got, 2 * (row + 5 + 1) - 3)
        np.testing.assert_array_equal(three, 6 * (row + 1))
        np.testing.assert_array_equal(total, row[::2].sum(2))
        np.testing.assert_array_equal(mask, row > 6)


def test_dalis_function_on_capsules_of_a_row() -> None:
    from torch.utils.dlpack import from_dlpack, to_dlpack

    seen: list[Any] = []

    def swap(a: Any, b: Any) -> tuple[Any, Any]:
        seen.append(a)
        first, second = from_dlpack(a), from_dlpack(b)
        return to_dlpack(second.flip(0)), to_dlpack(first + second)

    more = {"num_outputs": 2, "batch_processing": False, "device": "gpu", "synchronize_stream": True}
    flipped, sums = run(lambda x: dali.fn.dl_tensor_python_function(x, x * 4, function=swap, **more))
    assert len(seen) % len(ROWS) == 0  # batches are prefetched
    for got, total, row in zip(flipped, sums, ROWS, strict=True):
        np.testing.assert_array_equal(got, 4 * row[::-1])
        np.testing.assert_array_equal(total, 5 * row)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x[:-1], "one result for each of 3 rows, got 2"),
        (lambda x: [torch.from_dlpack(t)[:1] for t in x], r"float32 \(2, 4, 3\), got float32 \(1, 4, 3\)"),
        (lambda x: [torch.from_dlpack(t).double() for t in x], r"float32 \(2, 4, 3\), got float64 \(2, 4, 3\)"),
        (lambda x: [torch.from_dlpack(t).transpose(1, 2).contiguous().transpose(1, 2) for t in x], "contiguous"),
        (lambda x: [3 for t in x], "no attribute '__dlpack__'"),
    ],
)
def test_wrong_results_of_functions_on_capsules_are_named(function: Any, text: str) -> None:
    with pytest.raises(DeviceError, match=text):
        run(lambda x: fn.gpu_function(x, function=function, library="dlpack"))


def test_errors_of_a_function_fail_its_batch_alone() -> None:
    calls: list[int] = []

    def fails_once(images: list[Any]) -> list[Any]:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("no luck")
        return images

    @pipeline_def(batch_size=3, num_threads=2, device_id=0, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.gpu_function(fn.external_source(source=lambda: ROWS).gpu(), function=fails_once)

    with pipe() as running:
        with pytest.raises(DeviceError, match=r"`gpu_function`: the function failed: .*no luck"):
            running.run()
        np.testing.assert_array_equal(np.array(running.run()[0].as_cpu()[1]), ROWS[1])


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x[:-1], "one result for each of 3 rows, got 2"),
        (lambda x: ([*x], [*x]), "expected 1 outputs, got 2"),
        (lambda x: [t[:1] for t in x], r"a result of shape \(2, 4, 3\), got \(1, 4, 3\)"),
    ],
)
def test_wrong_results_are_named(function: Any, text: str) -> None:
    with pytest.raises(DeviceError, match=text):
        run(lambda x: fn.gpu_function(x, function=function))


def test_wrong_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, text in (
        ({"function": 3}, "a function as `function`"),
        ({"function": list, "library": "numpy"}, "a `library` of torch, cupy"),
        ({"function": list, "num_outputs": 0}, "`num_outputs` from 1 to 16"),
        ({"function": list, "output_shapes": lambda x: 4}, "a tuple of extents for each of 1 outputs"),
        ({"function": list, "output_shapes": lambda x: x[9]}, "`output_shapes` failed: IndexError"),
        ({"function": list, "output_layouts": "HW"}, "a layout of 3 axes"),
    ):
        with pytest.raises(ArgumentError, match=text):
            run(lambda x, a=arguments: fn.gpu_function(x, **a))
    from stoker.ops.generic import _gpu_arrays

    def missing() -> Any:
        raise ImportError("No module named 'cupy'")

    monkeypatch.setitem(_gpu_arrays.LIBRARIES, "cupy", (missing, "cupy-cuda13x"))
    with pytest.raises(ResourceError, match=r"expected cupy, got: .* `pip install cupy-cuda13x`"):
        run(lambda x: fn.gpu_function(x, function=list, library="cupy"))


def test_it_needs_a_gpu() -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def pipe() -> Any:
        return fn.gpu_function(fn.external_source(source=lambda: ROWS), function=list)

    with pytest.raises(UnsupportedError, match="expected an input in a GPU's memory"), pipe() as running:
        running.run()


def test_a_cycle_through_the_function_is_collected() -> None:
    holder: dict[str, Any] = {}

    def keep(images: list[Any]) -> list[Any]:
        assert holder
        return images

    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipe() -> Any:
        return fn.gpu_function(fn.external_source(source=lambda: ROWS).gpu(), function=keep)

    running = pipe()
    holder["pipeline"] = running
    running.run()
    gone = weakref.ref(running)
    running.close()
    holder.clear()
    del running
    gc.collect()
    assert gone() is None


@on_a_real_gpu
def test_a_kernel_of_triton() -> None:
    triton = pytest.importorskip("triton")
    from gpu_kernels_of_triton import scale  # a file, because Triton reads the source

    def fill(out: list[Any], images: list[Any]) -> None:
        for o, x in zip(out, images, strict=True):
            scale[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), BLOCK=64)

    (found,) = run(lambda x: fn.gpu_function(x + 1, function=fill, fills=True) * 2, count=4)
    for got, row in zip(found, ROWS, strict=True):
        np.testing.assert_array_equal(got, 2 * (3 * (row + 4)))


@on_a_real_gpu
def test_functions_and_kernels_of_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    kernel = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 3 * x", "stoker_test_scale")

    def fill(out: list[Any], images: list[Any]) -> None:
        for o, x in zip(out, images, strict=True):
            kernel(x, o)

    (filled,) = run(lambda x: fn.gpu_function(x + 1, function=fill, library="cupy", fills=True) * 2, count=4)
    (made,) = run(lambda x: fn.gpu_function(x, function=lambda xs: [cupy.sqrt(x) for x in xs], library="cupy"))
    for got, root, row in zip(filled, made, ROWS, strict=True):
        np.testing.assert_array_equal(got, 2 * (3 * (row + 4)))
        np.testing.assert_allclose(root, np.sqrt(row), rtol=1e-6)
