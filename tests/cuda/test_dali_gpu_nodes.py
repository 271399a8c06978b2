# SPDX-License-Identifier: Apache-2.0
"""Nodes of ``stoker.dali`` on a GPU: constants, copies, subscripts, shapes and arrays of other libraries. On the null
device with emulated kernels they have the elements of the same nodes on the CPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker.dali import fn, pipeline_def, types
from stoker.dali.backend import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from stoker.device.gpu import Gpu
from stoker.frontends.dali import gpu_memory
from stoker.native import _native
from stoker.ops.generic.decode_inflate import _block
from tests.hostile.walk import write_images
from tests.run.every_operator import apply, calls, sources

IMAGES = [np.random.default_rng(h).integers(0, 256, (h, h + 7, 3), np.uint8) for h in (5, 8)]


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(request: pytest.FixtureRequest, folder: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))
        null = _native.gpu.open_null()
        monkeypatch.setattr(gpu_memory, "open_device", lambda number: null)
    return request.param


class Foreign:
    """Array of another library in the null device's memory, with CUDA's array interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.ndim = array, array.ndim

    def copy(self) -> Foreign:
        return Foreign(self.array.copy())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        a = self.array
        return {"shape": a.shape, "typestr": a.dtype.str, "data": (a.ctypes.data, False), "strides": a.strides,
                "version": 3, "stream": None}  # fmt: skip


def on_device(array: np.ndarray, gpu: str) -> Any:
    """Return the array in the GPU's memory, as an object of another library."""
    if gpu == "null":
        return Foreign(array)
    import torch

    return torch.tensor(array).cuda()


def run(define: Callable[[Any], Any], on_gpu: bool, source: Any = None, layout: str | None = "HWC") -> list[Any]:
    """Return the outputs of a pipeline whose input is images, on the CPU or on the GPU."""

    @pipeline_def(batch_size=len(IMAGES), num_threads=1, device_id=0 if on_gpu else None, seed=1)
    def defined() -> Any:
        device = "gpu" if on_gpu else "cpu"
        x = fn.external_source(source=lambda: IMAGES if source is None else source, layout=layout, device=device)
        return define(x)

    pipe = defined()
    outputs = list(pipe.run())
    pipe.close()
    return outputs


def move(x: Any, on_gpu: bool) -> Any:
    return x.gpu() if on_gpu else x.cpu()


DEFINITIONS: dict[str, Callable[[bool], Callable[[Any], Any]]] = {
    "a constant on the device": lambda g: (
        lambda x: x + types.Constant([1, 2, 3], dtype=types.UINT8, device="gpu" if g else "cpu")
    ),
    "a constant that is copied": lambda g: lambda x: move(types.Constant(np.float32([0.5, 2, 3]), device="cpu"), g) * x,
    "a number that is a node": lambda g: lambda x: x - types.Constant(7, device="gpu" if g else "cpu"),
    "a scalar": lambda g: lambda x: x // types.Constant(3),
    "a constant as output": lambda g: (
        lambda x: move(fn.constant(fdata=[1.0, 2.0, 4.0], shape=[3]) if not g else types.Constant([1.0, 2.0, 4.0]), g)
    ),
    "draws that are copied": lambda g: lambda x: x * move(fn.random.uniform(range=(1, 2)), g),
    "subscripts": lambda g: (
        lambda x: (x[1:3, 2], x[-1], x[:, ::2], x[:, :, fn.random.uniform(values=[0, 2], dtype=types.INT32)])
    ),
    "shapes": lambda g: lambda x: (x.shape(device="gpu" if g else "cpu"), x.shape(dtype=types.INT32)),
    "copies of copies": lambda g: lambda x: move(move(x, g) + 1, g),
    "tuples": lambda g: lambda x: (1, 2, 4) / (x + 1),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_nodes_have_the_elements_of_the_cpu(name: str) -> None:
    wanted = run(DEFINITIONS[name](False), on_gpu=False)
    found = run(DEFINITIONS[name](True), on_gpu=True)
    assert any(isinstance(x, TensorListGPU) for x in found)
    for got, want in zip(found, wanted, strict=True):
        assert (got.dtype, got.layout()) == (want.dtype, want.layout())
        host = got.as_cpu() if isinstance(got, TensorListGPU) else got
        for i in range(len(want)):
            np.testing.assert_array_equal(np.asarray(host[i]), np.asarray(want[i]))


def lists(outputs: list[Any]) -> list[Any]:
    """Return the elements of outputs, with their types and shapes."""
    hosts = [x.as_cpu() if isinstance(x, TensorListGPU) else x for x in outputs]
    return [(a.dtype, a.shape, a.tobytes()) for x in hosts for a in map(np.asarray, x)]


OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "what a GPU computed": lambda x: fn.flip(x).cpu(),
    "of one shape": lambda x: fn.resize(x, size=(4, 6)).cpu(),
    "on both": lambda x: (fn.flip(x), fn.flip(x).cpu(), x.cpu()),
    "there and back": lambda x: move((x + 1).cpu(), x.device == "gpu"),
    "without rows that a number counts": lambda x: fn.boolean_mask(
        fn.reshape(x, shape=[-1]), fn.reshape(x, shape=[-1]) > 100
    ).cpu(),
    "a view": lambda x: fn.flip(x)[1:3].cpu(),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_return_from_a_gpu(name: str, recwarn: pytest.WarningsRecorder) -> None:
    """The GPU computes them, and the run copies them when the batch is done."""
    found = run(OUTPUTS[name], on_gpu=True)
    assert lists(found) == lists(run(OUTPUTS[name], on_gpu=False))
    on_gpu = [isinstance(x, TensorListGPU) for x in found]
    assert on_gpu == {"on both": [True, False, False], "there and back": [True]}.get(name, [False])
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


IN_THE_MIDDLE: dict[str, Callable[[Any], Any]] = {
    "dump_image": lambda x: fn.flip(fn.dump_image(fn.resize(x, size=(5, 4)), suffix="seen")),
    "+": lambda x: fn.flip(fn.resize(x, size=(5, 4)).cpu() + 1),
    "python_function": lambda x: fn.python_function(fn.resize(x, size=(5, 4)), function=_doubled),
    "python_function, declared": lambda x: fn.python_function(
        fn.flip(fn.resize(x, size=(5, 4))), function=_doubled, output_dtypes=types.INT32, output_ndims=3
    ),
    "flip": lambda x: fn.flip(fn.resize(x, size=(5, 4)), device="cpu") + 1,
}


def _doubled(x: np.ndarray) -> np.ndarray:
    assert isinstance(x, np.ndarray)
    return (x.astype(np.int32) * 2)[::-1]


@pytest.mark.parametrize("name", IN_THE_MIDDLE)
def test_the_cpu_computes_what_a_node_on_the_cpu_reads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = name.split(",")[0]
    with pytest.warns(RuntimeWarning) as warned:
        found = run(IN_THE_MIDDLE[name], on_gpu=True)
    text = f"`{reader}` runs on the CPU, so the CPU also computes what it reads, which is placed on a GPU: `resize`. "
    assert [str(w.message) for w in warned] == [text + "The results are the same bits"]
    written = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert lists(found) == lists(run(IN_THE_MIDDLE[name], on_gpu=False))
    assert written == {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert len(written) == (len(IMAGES) if name == "dump_image" else 0)
    assert isinstance(found[0], TensorListGPU) == (name not in ("+", "flip"))


def test_what_a_gpu_would_count_is_counted_on_the_cpu() -> None:
    def sums(x: Any) -> Any:
        flat = fn.reshape(x, shape=[-1])
        return fn.python_function(fn.boolean_mask(flat, flat > 100), function=np.sum)

    with pytest.warns(RuntimeWarning, match="`boolean_mask`"):
        found = run(sums, on_gpu=True)
    assert lists(found) == lists(run(sums, on_gpu=False))


FED: dict[str, Callable[[Any], Any]] = {
    "dump_image": lambda x: fn.dump_image(x),
    "python_function": lambda x: fn.python_function(x, function=lambda a: a + 1),
    "cpu": lambda x: x.cpu(),
    "a reduction as an argument": lambda x: (fn.brightness(x, brightness=fn.reductions.max(x) / 200.0), fn.flip(x)),
}


@pytest.mark.parametrize("name", FED)
@pytest.mark.parametrize("form", ["rows", "tensor", "strided"])
def test_arrays_in_a_gpus_memory_that_the_cpu_reads_are_copied(
    name: str, form: str, gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    images = {
        "rows": IMAGES,
        "tensor": np.stack([IMAGES[1], IMAGES[1] + 1]),
        "strided": [on_device(row, gpu) for row in IMAGES],
    }[form]
    if form == "strided":
        images = [row[:, ::2] for row in IMAGES]
        given: Any = [Foreign(row) if gpu == "null" else on_device(full, gpu)[:, ::2]
                      for full, row in zip(IMAGES, images, strict=True)]  # fmt: skip
        monkeypatch.setattr(Foreign, "copy", lambda self: self)
    else:
        given = on_device(images, gpu) if form == "tensor" else [on_device(row, gpu) for row in images]
    found = run(FED[name], on_gpu=True, source=given)
    assert lists(found) == lists(run(FED[name], on_gpu=False, source=images))


def test_compressed_data_in_a_gpus_memory(gpu: str) -> None:
    blocks = [np.frombuffer(_block(bytes(range(i, i + 6))), np.uint8) for i in range(2)]

    def inflated(x: Any) -> Any:
        return fn.decoders.inflate(x, shape=[2, 3]) + 1

    found = run(inflated, on_gpu=True, source=[on_device(x, gpu) for x in blocks], layout=None)
    assert isinstance(found[0], TensorListGPU)
    assert lists(found) == lists(run(inflated, on_gpu=False, source=blocks, layout=None))


@pytest.mark.parametrize("form", ["rows", "tensor"])
def test_a_source_returns_arrays_in_a_gpus_memory(form: str, gpu: str) -> None:
    stacked = np.stack([IMAGES[1], IMAGES[1] + 1])
    rows = list(stacked) if form == "tensor" else IMAGES
    source = on_device(stacked, gpu) if form == "tensor" else [on_device(row, gpu) for row in IMAGES]
    same, flipped = run(lambda x: (x, fn.flip(x)), on_gpu=True, source=source)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(np.asarray(same.as_cpu()[i]), row)
        np.testing.assert_array_equal(np.asarray(flipped.as_cpu()[i]), row[:, ::-1])


def test_tensors_show_and_take_cudas_array_interface(gpu: str) -> None:
    image = np.ascontiguousarray(IMAGES[0])
    tensor = TensorGPU(on_device(image, gpu), "HWC")
    shown = tensor.__cuda_array_interface__
    assert (shown["shape"], shown["typestr"]) == (image.shape, "|u1")
    assert shown["data"][0] == tensor.data_ptr()
    again = TensorGPU(tensor)
    assert again.data_ptr() == tensor.data_ptr()
    np.testing.assert_array_equal(np.asarray(again.as_cpu()), image)
    rows = TensorListGPU([on_device(np.ascontiguousarray(row), gpu) for row in IMAGES], "HWC")
    for i, row in enumerate(IMAGES):
        np.testing.assert_array_equal(np.asarray(rows.as_cpu()[i]), row)
    np.testing.assert_array_equal(np.asarray(TensorCPU(image, "HWC")._as_gpu().as_cpu()), image)
    assert TensorListCPU(IMAGES, "HWC")._as_gpu().shape() == [row.shape for row in IMAGES]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("every"))


@pytest.mark.parametrize(
    "name",
    [
        "bbox_rotate", "decoders.numpy", "dump_image", "get_property", "random.beta",
        "roi_random_crop", "segmentation.random_mask_pixel", "segmentation.random_object_bbox",
        "segmentation.select_masks",
    ],
)  # fmt: skip
def test_operators_of_the_cpu_deliver_on_the_gpu(
    name: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipeline with a GPU they compute on the CPU, from data there; their results are copied."""
    monkeypatch.chdir(tmp_path)  # `dump_image` writes there
    for call, columns in itertools.islice(calls(name, files), 2):
        found = []
        for on_gpu in (False, True):

            @pipeline_def(batch_size=2, num_threads=1, device_id=0 if on_gpu else None, seed=1)
            def defined(on_gpu: bool = on_gpu, call: Any = call, columns: Any = columns) -> Any:
                if name == "get_property":
                    data, _ = fn.readers.file(files=sorted(map(str, files.glob("*.jpg"))))
                    outputs = [fn.get_property(data, key="source_info")]
                else:
                    outputs = apply(name, call, sources(columns))
                return tuple(x.gpu() if on_gpu else x for x in outputs)

            pipe = defined()
            found.append(list(pipe.run()))
            pipe.close()
        for want, got in zip(*found, strict=True):
            assert isinstance(got, TensorListGPU) and len(got) == 2
            for a, b in zip(want, got.as_cpu(), strict=True):
                a, b = np.asarray(a), np.asarray(b)
                assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
