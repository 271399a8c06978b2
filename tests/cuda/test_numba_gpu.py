# SPDX-License-Identifier: Apache-2.0
"""``numba_function(device="gpu")``: kernels of Numba between operators on a GPU.

Without a GPU, the null device and a module in Numba's place show which launches are issued, on which memory.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
import pytest
from test_gpu_functions import ROWS, gpu, on_a_real_gpu, run  # noqa: F401

from stoker import DeviceError, ResourceError, fn, types
from stoker.dali.plugin.numba.fn.experimental import numba_function
from stoker.ops.generic import numba_gpu_function

F32 = types.FLOAT
on_the_null_device = pytest.mark.parametrize("gpu", ["null"], indirect=True)
GRID = {"device": "gpu", "blocks": [4, 1, 1], "threads_per_block": [32, 2, 1]}
ONE = {"in_types": [F32], "ins_ndim": [3], "out_types": [F32], "outs_ndim": [3], **GRID}


class NumbaOnHost:
    """Numba's module for CUDA, whose kernels are called once with arrays in host memory."""

    def __init__(self) -> None:
        self.launches: list[Any] = []
        self.gpus = {0: contextlib.nullcontext()}

    def jit(self, kernel: Any) -> Any:
        module = self

        class Kernel:
            def __getitem__(self, launch: Any) -> Any:
                module.launches.append(launch)
                return kernel

        return Kernel()

    def external_stream(self, address: int) -> tuple[str, int]:
        return "stream", address

    def as_cuda_array(self, x: Any, sync: bool = True) -> np.ndarray:
        assert not sync
        face = x.__cuda_array_interface__
        kind, shape = np.dtype(face["typestr"]), face["shape"]
        memory = (ctypes.c_byte * (kind.itemsize * int(np.prod(shape)))).from_address(face["data"][0])
        return np.frombuffer(memory, kind).reshape(shape)


@on_the_null_device
def test_launches_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch for each row, with its outputs and inputs, in order with the operators before and after."""
    pytest.importorskip("numba", reason="Numba is not installed: the extra `numba`")
    numba = NumbaOnHost()
    monkeypatch.setattr(numba_gpu_function, "cuda_module", lambda: numba)

    def setup(outs: Any, ins: Any) -> None:
        for sample in range(len(outs[0])):
            outs[0][sample][0], outs[0][sample][1], outs[0][sample][2] = ins[0][sample]
            outs[1][sample][0] = ins[0][sample][1]

    def both(double: Any, sums: Any, x: Any, gain: Any) -> None:
        double[:] = gain * x
        sums[:] = x.sum((0, 2))

    declared = {
        "in_types": [F32, F32], "ins_ndim": [3, 0], "out_types": [F32, F32], "outs_ndim": [3, 1], "setup_fn": setup
    }  # fmt: skip

    def make(x: Any) -> Any:
        gain = fn.external_source(source=lambda: [np.float32(2)] * 3)
        double, sums = numba_function(x + 1, gain, run_fn=both, **declared, **GRID)
        return fn.flip(double, horizontal=1), sums

    doubled, sums = run(make)
    for got, total, row in zip(doubled, sums, ROWS, strict=True):
        np.testing.assert_array_equal(got, 2 * (row + 1)[:, ::-1])
        np.testing.assert_array_equal(total, (row + 1).sum((0, 2)))
    assert {launch[:2] for launch in numba.launches} == {((4, 1, 1), (32, 2, 1))}
    assert all(kind == "stream" for _, _, (kind, _) in numba.launches)

    def fails(out: Any, x: Any) -> None:
        raise ValueError("no luck")

    with pytest.raises(DeviceError, match=r"the kernel failed: .*no luck"):
        run(lambda x: numba_function(x, run_fn=fails, **ONE))


@on_the_null_device
def test_it_needs_numbas_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="Numba is not installed: the extra `numba`")

    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(numba_gpu_function.importlib, "import_module", absent)
    with pytest.raises(ResourceError, match=r"expected numba-cuda, got: No module named 'numba\.cuda'"):
        run(lambda x: numba_function(x, run_fn=lambda out, x: None, **ONE))


@on_a_real_gpu
@pytest.mark.filterwarnings("ignore:.*Grid size")  # small grids, so that the strides of the kernel's loop are tested
def test_a_kernel_of_numba() -> None:
    cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")

    def scale(out: Any, x: Any) -> None:
        start, step = cuda.grid(1), cuda.gridsize(1)
        for i in range(start, x.shape[0] * x.shape[1], step):
            for c in range(x.shape[2]):
                out[i // x.shape[1], i % x.shape[1], c] = 3 * x[i // x.shape[1], i % x.shape[1], c]

    grid = {**ONE, "blocks": [2, 1, 1], "threads_per_block": [32, 1, 1]}
    (found,) = run(lambda x: numba_function(x + 1, run_fn=scale, **grid) * 2, count=6)
    (compiled,) = run(lambda x: numba_function(x, run_fn=cuda.jit(scale), **grid))
    for got, once, row in zip(found, compiled, ROWS, strict=True):
        np.testing.assert_array_equal(got, 2 * (3 * (row + 6)))
        np.testing.assert_array_equal(once, 3 * row)
