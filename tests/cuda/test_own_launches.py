# SPDX-License-Identifier: Apache-2.0
"""Launches of custom kernels: block sizes, dynamic shared memory, and rows found by their first blocks.

`equalize` runs here with another GPU form: one block of any size per plane, in dynamic shared memory. Its results
are those of the CPU kernel.
"""

from __future__ import annotations

from typing import Any

import emulated_stages
import numpy as np
import pytest
from kept_reports import report_of
from test_own_kernels import compare_rows

from stoker import fn, pipeline_def
from stoker.contract.errors import DataError, DeviceError
from stoker.contract.lowering import Lowering
from stoker.contract.step import Launches, LaunchPass, Value
from stoker.contract.types import DType
from stoker.device.gpu import Gpu
from stoker.device.own import own_sources
from stoker.frontends.registry import find
from stoker.native import _native
from stoker.ops.geometry._axes import image_axes

# A plane's histogram and table in dynamic shared memory, then unused bytes: one per column of the image.
PLANE = """
#include "device/own.cuh"
#include "shared/histogram_table.hpp"

namespace stoker::own {

template <class Ports>
struct Plane {
  static void whole(const Row& row, uint32_t block) {
    auto* counts = gpu::dynamic_shared<uint32_t>();
    auto* table = reinterpret_cast<uint8_t*>(counts + 256);
    const Image from(row, 0, 0), to(row, 1, 0);
    const int64_t plane = block, frame = plane / from.channels, channel = plane % from.channels;
    const int64_t pixels = from.height * from.width, step = gpu::thread_count();
    const auto at = [&](const Image& image, int64_t i) {
      return image.data + frame * image.frame + channel * image.channel + i / image.width * image.row +
             i % image.width * image.column;
    };
    for (int64_t v = gpu::thread_index(); v < 256; v += step) counts[v] = 0;
    for (int64_t x = gpu::thread_index(); x < from.width; x += step) table[256 + x] = static_cast<uint8_t>(x);
    gpu::block_barrier();
    for (int64_t i = gpu::thread_index(); i < pixels; i += step) gpu::atomic_add(&counts[*at(from, i)], 1);
    gpu::block_barrier();
    if (gpu::thread_index() == 0) {
      int64_t all[256];
      for (int v = 0; v < 256; ++v) all[v] = counts[v];
      histogram::equalized(all, table);
    }
    gpu::block_barrier();
    for (int64_t i = gpu::thread_index(); i < pixels; i += step) *at(to, i) = table[*at(from, i)];
  }
};

}  // namespace stoker::own
"""
HEADER = '#include "device/own_plane.cuh"\n'


def planes(threads: int, max_shared_bytes: int, blocks: int = 1) -> Any:
    """Lower ``Equalize`` with the form above."""

    def lower(self: Any, c: Lowering, x: Value) -> Value:
        axes = image_axes(c, x)
        frames, _, width, channels = (1 if axis < 0 else x.shape[axis] for axis in axes)
        shape = LaunchPass(frames * channels * blocks, threads, 256 * 5 + width, max_shared_bytes)
        own = Launches("Plane", {"whole": shape})
        return c.native("equalize", [x], [(x.dtype, x.shape, x.layout)], attrs=axes, params=axes, own=own)[0]

    return lower


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """Register the kernel above on GPU 0, which is the null device, unless there is a GPU."""
    base = emulated_stages.EmulatedGpu if request.param == "null" else Gpu

    class WithPlanes(base):  # type: ignore[misc, valid-type]
        def compiled(self, source: str) -> bytes:
            return super().compiled(source.replace(HEADER, PLANE))

    def opened(number: int, limit: int | None = None) -> Gpu:
        if request.param == "null":
            return WithPlanes(folder)
        return WithPlanes(real(number, limit).device, 2**64 - 1 if limit is None else limit)

    real = Gpu.open
    monkeypatch.setattr(Gpu, "open", staticmethod(opened))


def images(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    return [rng.integers(0, 200, (1 + i % 5, 3 + i % 7, 1 + i % 3), np.uint8) for i in range(count)]


@pytest.mark.parametrize("threads", [32, 96, 256, 1024])
def test_any_block_size_with_shared_memory_per_row(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find("equalize"), "lower", planes(threads, 4096))
    rows = [*images(5), np.zeros((0, 4, 2), np.uint8), np.full((40, 60, 3), 9, np.uint8)]
    compare_rows([rows], ["HWC"], fn.equalize)


@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 70, 1100])
def test_blocks_find_their_rows(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows have one to three blocks, some have none."""
    monkeypatch.setattr(find("equalize"), "lower", planes(32, 2048))
    some = [x[:, :, :0] if i % 11 == 3 else x for i, x in enumerate(images(rows))]
    compare_rows([some], ["HWC"], fn.equalize)


def test_a_row_with_too_much_shared_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find("equalize"), "lower", planes(64, 1300))  # a row of 21 pixels needs 1301

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe() -> Any:
        return fn.equalize(fn.external_source(lambda: [np.zeros((2, 21, 1), np.uint8)], layout="HWC").gpu())

    with pipe() as running, pytest.raises(DataError, match=r"at most 1300 bytes of a GPU's shared memory, got .* 1301"):
        running.run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threads": 48}, "a multiple of 32, at most 1024, got 48"),
        ({"threads": 2048}, "a multiple of 32, at most 1024, got 2048"),
        ({"threads": 0}, "a multiple of 32"),
        ({"shared_bytes": 64}, "expected max_shared_bytes for a pass with shared_bytes"),
        ({"max_shared_bytes": 1 << 20}, "expected max_shared_bytes to be 0 to 232448, got 1048576"),
    ],
)
def test_launches_that_no_gpu_supports_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LaunchPass(1, **changes)


@pytest.mark.parametrize("threads", [32, 1024])
def test_the_kernel_compiles_for_gpus(threads: int) -> None:
    kernel = Launches("Plane", {"whole": LaunchPass(1, threads, 8, 2048)}).kernel()
    ((_, source),) = own_sources(kernel, [DType.UINT8], [DType.UINT8])
    assert "0 bytes spill stores" in report_of(source.replace(HEADER, PLANE), 90)


def test_launches_that_this_gpu_refuses_are_errors_at_planning(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused:
        def function(self, name: str, shared_bytes: int) -> Any:
            raise _native.gpu.DeviceFailure(f"{name}: invalid argument")

    monkeypatch.setattr(find("equalize"), "lower", planes(64, 100_000))
    monkeypatch.setattr(Gpu, "load", lambda self, source: Refused())

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe() -> Any:
        return fn.equalize(fn.external_source(lambda: [np.zeros((2, 2, 1), np.uint8)], layout="HWC").gpu())

    with pytest.raises(DeviceError, match=r"`stoker_plane_whole` does not run on GPU .* with up to 100000 bytes"):
        pipe().run()
