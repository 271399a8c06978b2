# SPDX-License-Identifier: Apache-2.0
"""DALI's imperative mode on a GPU: on the null device with emulated kernels, it has the bits of the CPU."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
from PIL import Image

import stoker.dali.experimental.dynamic as ndd
from stoker.dali.backend import TensorCPU, TensorGPU, TensorListCPU
from stoker.device.gpu import Gpu
from stoker.frontends import eager as calls
from stoker.frontends.dali import gpu_memory
from stoker.frontends.dali.dynamic import context, devices, streams
from stoker.frontends.eager_gpu import GPUS
from stoker.native import _native

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (6, 5, 3), np.uint8)
IMAGES = [RNG.integers(0, 256, (h, h + 7, 3), np.uint8) for h in (23, 31, 40)]


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(request: pytest.FixtureRequest, folder: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))
        monkeypatch.setattr(devices, "count_gpus", lambda: 1)
        monkeypatch.setattr(context, "count_gpus", lambda: 1)
        null = _native.gpu.open_null()
        monkeypatch.setattr(gpu_memory, "open_device", lambda number: null)
    _forget()
    yield request.param
    _forget()


def _forget() -> None:
    GPUS.close()
    calls._prepare.cache_clear()
    context._of_thread.defaults.clear()
    streams._defaults.clear()


class Foreign:
    """Array of another library: memory with CUDA's array interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shown = self.array.__array_interface__
        return {"shape": shown["shape"], "typestr": shown["typestr"], "data": shown["data"], "version": 3,
                "strides": shown["strides"], "stream": None}  # fmt: skip


def same(x: Any, want: Any) -> bool:
    """Return whether a tensor on the GPU has these elements."""
    assert x.device == ndd.Device("gpu", 0)
    return bool(np.array_equal(np.asarray(x.cpu()), np.asarray(want)))


def test_tensors_are_copied_to_the_gpu_and_back() -> None:
    t = ndd.tensor(X, layout="HWC")
    on_gpu = t.gpu()
    assert (on_gpu.shape, on_gpu.dtype, on_gpu.layout, on_gpu.ndim, on_gpu.nbytes) == (
        (6, 5, 3),
        ndd.uint8,
        "HWC",
        3,
        90,
    )
    assert same(on_gpu, X) and on_gpu.gpu() is on_gpu and on_gpu.to_device("gpu:0") is on_gpu
    assert same(on_gpu.to_device("cuda", force_copy=True), X)
    assert same(ndd.tensor(X, device="gpu"), X) and same(ndd.tensor([1, 2], device="gpu"), [1, 2])
    assert ndd.tensor(3, device="gpu").item() == 3 and int(ndd.tensor(3, device="gpu")) == 3
    assert bool(ndd.tensor(1, device="gpu")) and same(ndd.tensor(on_gpu, dtype=ndd.float16), X.astype(np.float16))
    assert 'device="gpu"' in repr(on_gpu) and repr(on_gpu).replace('"gpu"', '"cpu"') == repr(t)
    assert ndd.Device.current() == on_gpu.device == ndd.device("gpu:0") and str(on_gpu.device) == "gpu:0"
    with pytest.raises(TypeError, match=r"Copy it with `cpu\(\)`"):
        np.asarray(on_gpu)
    with pytest.raises(AttributeError, match="no CUDA array interface"):
        t.__cuda_array_interface__  # noqa: B018
    assert on_gpu.__cuda_array_interface__["shape"] == (6, 5, 3)


def test_memory_of_others_is_shared(gpu: str) -> None:
    made = TensorCPU(X, "HWC")._as_gpu()
    assert isinstance(made, TensorGPU)
    shared = ndd.as_tensor(made)
    assert same(shared, X) and shared.layout == "HWC" and shared._array.pointer == made.data_ptr()
    rows = ndd.as_batch(TensorListCPU(np.stack([X, X + 1]), "HWC")._as_gpu())
    assert rows.shape == [X.shape] * 2 and rows.layout == "HWC" and same(rows.select(1), X + 1)
    assert same(ndd.flip(rows).select(1), (X + 1)[:, ::-1])
    if gpu == "null":
        for array in (X.copy(), np.repeat(X, 2, 1)[:, ::2]):
            assert same(ndd.as_tensor(Foreign(array)), X)
            assert same(ndd.flip(Foreign(array)), X[:, ::-1]), "an operator runs where its input is"


def test_batches() -> None:
    ragged, dense = ndd.batch(IMAGES, device="gpu", layout="HWC"), ndd.as_batch(np.stack([X, X]), device="gpu")
    assert (ragged.batch_size, ragged.ndim, ragged.layout) == (3, 3, "HWC")
    assert ragged.shape == [x.shape for x in IMAGES] and all(same(a, b) for a, b in zip(ragged, IMAGES, strict=True))
    assert same(ndd.as_tensor(dense), np.stack([X, X])) and same(ndd.as_tensor(dense.select([1])), X[None])
    padded = np.zeros((3, 40, 47, 3), np.uint8)
    for i, image in enumerate(IMAGES):
        padded[i, : image.shape[0], : image.shape[1]] = image
    assert same(ndd.as_tensor(ragged, pad=True), padded)
    with pytest.raises(ValueError, match="one shape"):
        ndd.as_tensor(ragged)
    assert ragged.cpu().gpu().shape == ragged.shape and 'device="gpu"' in repr(ragged)
    assert same(ndd.Batch.broadcast(X, 2, device="gpu").select(1), X)
    assert same(ndd.as_tensor([ndd.tensor(X).gpu(), ndd.tensor(X).gpu()]), [X, X])
    empty = ndd.batch([], dtype=ndd.float32, device="gpu")
    assert (empty.batch_size, empty.dtype, empty.device.device_type) == (0, ndd.float32, "gpu")
    assert ragged.select([]).batch_size == 0
    with pytest.raises(ValueError, match="device"):
        ndd.batch([X, ndd.tensor(X).gpu()])


def test_operators_run_where_their_inputs_are_or_where_they_are_asked() -> None:
    cpu, gpu = ndd.batch(IMAGES, layout="HWC"), ndd.batch(IMAGES, device="gpu", layout="HWC")
    angles = ndd.batch([10.0, 20.0, 30.0])
    want = ndd.rotate(cpu, angle=angles, fill_value=3)
    assert want.device == ndd.Device.CPU
    for got in (
        ndd.rotate(gpu, angle=angles, fill_value=3),
        ndd.rotate(gpu, angle=angles.gpu(), fill_value=3),
        ndd.rotate(cpu, angle=angles, fill_value=3, device="gpu"),
        ndd.rotate(cpu, angle=angles, fill_value=3, device=ndd.Device("gpu")),
    ):
        assert all(same(a, b) for a, b in zip(got, want, strict=True)) and got.layout == "HWC"
    back = ndd.rotate(gpu, angle=angles, fill_value=3, device="cpu")
    assert back.device == ndd.Device.CPU and all(np.array_equal(a, b) for a, b in zip(back, want, strict=True))
    assert same(ndd.resize(ndd.tensor(X).gpu(), size=[4, 4]), ndd.resize(X, size=[4, 4]))
    assert same(ndd.copy(X, device="gpu"), X) and np.array_equal(ndd.copy(ndd.tensor(X).gpu(), device="cpu"), X)
    first, second = ndd.random.RNG(seed=4), ndd.random.RNG(seed=4)
    drawn = ndd.random.uniform(shape=[5], batch_size=2, device="gpu", rng=first)
    assert all(same(a, b) for a, b in zip(drawn, ndd.random.uniform(shape=[5], batch_size=2, rng=second), strict=True))


def test_arithmetic_and_subscripts() -> None:
    t = ndd.tensor(X, layout="HWC").gpu()
    assert same(t + 1, X.astype(np.int32) + 1) and same(2.5 * t, X * np.float32(2.5)) and same(t > 3, X > 3)
    for other in (ndd.tensor([1, 2, 3]).gpu(), [1, 2, 3]):
        assert same(t + other, X + np.int32([1, 2, 3]))
    assert same(ndd.math.clamp(t, 2, 4), X.clip(2, 4).astype(np.int32))
    for other in (ndd.tensor(X), X):
        with pytest.raises(ValueError, match="on one device"):
            t + other
    for found, want, layout in (
        (t[0], X[0], "WC"), (t[0, :, 1:], X[0, :, 1:], "WC"), (t[..., 0], X[..., 0], "HW"), (t[::2], X[::2], "HWC"),
        (t[ndd.tensor(1)], X[1], "WC"), (t[-1, 0, 0], X[-1, 0, 0], None), (t[:, ::-1], X[:, ::-1], "HWC"),
    ):  # fmt: skip
        assert same(found, want) and found.layout == layout
    assert [same(a, b) for a, b in zip(t, X, strict=True)] == [True] * 6
    b = ndd.batch([X, X + 1], device="gpu", layout="HWC")
    assert all(same(a, w) for a, w in zip(b.slice[1:3], [X[1:3], X[1:3] + 1], strict=True))
    chosen = b.slice[:, ndd.batch([0, 1])]
    assert same(chosen.select(0), X[:, 0]) and same(chosen.select(1), X[:, 1] + 1) and chosen.layout == "HC"
    for wrong in (lambda: t[9], lambda: t[0, 0, 0, 0], lambda: t["a"], lambda: t[b]):
        with pytest.raises((ValueError, RuntimeError)):
            wrong()


def test_files_are_decoded_on_the_gpu(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.fromarray(X).save(file, "PNG")
    path = tmp_path / "x.png"
    path.write_bytes(file.getvalue())
    assert same(ndd.imread(path, device="gpu"), X)
    data = ndd.as_tensor(np.frombuffer(file.getvalue(), np.uint8))
    assert same(ndd.decoders.image(data, device="gpu"), X)
    assert same(ndd.decoders.image(data.gpu(), device="gpu"), X), "data that the CPU reads are copied to it"
    source = ndd.ExternalSource([X, X + 1], device="gpu")
    assert same(source(), X) and same(source(batch_size=2).select(1), X + 1)


def test_readers_with_a_device(tmp_path: Path) -> None:
    for i in range(5):
        np.save(tmp_path / f"{i}.npy", np.full((2, 3), i, np.float32))
    reader = ndd.readers.Numpy(device="gpu", file_root=str(tmp_path), file_filter="*.npy")
    rows = [batch for (batch,) in reader.next_epoch(batch_size=2)]
    assert [b.batch_size for b in rows] == [2, 2, 2]  # the last one is filled up from the beginning
    assert same(rows[2].select(0), np.full((2, 3), 4)) and same(rows[2].select(1), np.full((2, 3), 0))


def test_streams(gpu: str) -> None:
    one, other = ndd.stream(), ndd.Stream(device_id=0)
    assert one.device_id == 0 and ndd.stream(stream=one) is one and ndd.stream(stream=None) is None
    assert (
        (one == other) is (one.handle == other.handle)
        and one == one.handle
        and one.__cuda_stream__() == (0, one.handle)
    )
    one.synchronize()
    assert ndd.get_default_stream() is None
    ndd.set_default_stream(other)
    assert ndd.get_default_stream() is ndd.get_current_stream() is other
    ndd.set_current_stream(one)
    assert ndd.get_current_stream() is one and ndd.EvalContext().cuda_stream is one
    with ndd.EvalContext(cuda_stream=other) as inner:
        assert inner.cuda_stream is other and ndd.EvalContext.current().device_id == 0
        assert same(ndd.flip(ndd.tensor(X).gpu()), X[:, ::-1])
    ndd.set_current_stream(None)
    ndd.set_default_stream(None)
    assert ndd.get_default_stream() is None and isinstance(ndd.get_current_stream(), ndd.Stream)
    for wrong in (
        lambda: ndd.Stream(stream=None),
        lambda: ndd.stream(stream=one, device_id=1),
        lambda: ndd.stream(stream="x"),
    ):
        with pytest.raises((ValueError, TypeError)):
            wrong()


def test_operators_wait_for_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []
    monkeypatch.setattr(ndd.Stream, "synchronize", lambda stream: waited.append(stream.handle))
    on_gpu, chosen = ndd.tensor(X).gpu(), ndd.stream()
    ndd.flip(on_gpu)
    assert not waited, "without a stream of the user's there is nothing to wait for"
    with ndd.EvalContext(cuda_stream=chosen):
        ndd.flip(X, device="gpu")
        assert not waited, "data in host memory are complete"
        ndd.flip(on_gpu)
    assert waited == [chosen.handle]
