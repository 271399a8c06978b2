# SPDX-License-Identifier: Apache-2.0
"""Arrays in GPU memory from sources, on the null device; with a GPU, torch's arrays."""

from __future__ import annotations

import weakref

import emulated_stages
import numpy as np
import pytest

from stoker import DataError, fn, pipeline_def, types
from stoker.native import _native

ROWS = 5


class Interface:
    """Array that supports only CUDA's array interface. The memory of the null device is host memory."""

    def __init__(self, array, version=3, **description):
        self.array, self.version, self.description = array, version, description
        self.ndim = array.ndim

    @property
    def __cuda_array_interface__(self):
        a = self.array
        return {"shape": a.shape, "typestr": a.dtype.str, "data": (a.ctypes.data, False), "strides": a.strides,
                "version": self.version, **self.description}  # fmt: skip

    def __getitem__(self, at):
        return Interface(self.array[at], self.version, **self.description)

    def copy(self):
        return Interface(self.array.copy(), self.version, **self.description)


class OnCuda(Interface):
    """Array that reports GPU 7 through DLPack."""

    def __dlpack_device__(self):
        return (2, 7)

    def __dlpack__(self, **_):
        raise AssertionError("another GPU's array is not read")


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def to_device(request):
    """Return a function that copies an array to the device."""
    if request.param == "cuda":
        import torch

        return lambda a: torch.as_tensor(np.ascontiguousarray(a)).cuda()
    request.getfixturevalue("emulated_gpu")
    return Interface


def images(seed=0, shape=(ROWS, 23, 31, 3)):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


@pipeline_def(batch_size=ROWS, num_threads=2, seed=4, device_id=0)
def augmented(device, **source):
    x = fn.external_source(name="x", device=device, **source)
    x = fn.random_resized_crop(x, size=(16, 12))
    return fn.crop_mirror_normalize(x, mirror=fn.random.coin_flip(), mean=[7.0], std=[3.0], dtype=types.FLOAT16)


def expected(batches, **source):
    with augmented("cpu", **source) as pipe:
        return [pipe.run(x=b)[0].as_array() for b in batches]


@pytest.mark.parametrize("form", ["tensor", "rows", "strided", "host"])
@pytest.mark.parametrize("no_copy", [False, True])
def test_arrays_on_the_gpu_are_read_on_the_gpu(to_device, form, no_copy):
    batches = [images(seed) for seed in range(4)]
    want = expected(batches)
    give = {
        "tensor": to_device,
        "rows": lambda b: [to_device(row) for row in b],
        "strided": lambda b: to_device(np.repeat(b, 2, 2))[:, :, ::2],
        "host": lambda b: b,
    }[form]
    with augmented("gpu", no_copy=no_copy) as pipe:
        for batch, expect in zip(batches, want, strict=True):
            got = pipe.run(x=give(batch))[0]
            assert got.device == "gpu"
            np.testing.assert_array_equal(got.as_cpu().as_array(), expect)


def test_a_source_may_return_arrays_on_the_gpu(to_device):
    batches = [images(seed) for seed in range(6)]
    want = expected(batches)
    with augmented("gpu", source=lambda i: to_device(batches[i])) as pipe:
        for expect in want:
            np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), expect)


def test_rows_of_different_sizes(to_device):
    rows = [images(h, (h, h + 9, 3)) for h in range(12, 12 + ROWS)]
    want = expected([rows])[0]
    with augmented("gpu") as pipe:
        np.testing.assert_array_equal(pipe.run(x=[to_device(r) for r in rows])[0].as_cpu().as_array(), want)


def test_an_output_may_be_the_source_itself(to_device):
    @pipeline_def(batch_size=ROWS, num_threads=1, device_id=0)
    def passed():
        return fn.external_source(name="x", device="gpu")

    batch = images(3)
    with passed() as pipe:
        (got,) = pipe.run(x=to_device(batch))
        np.testing.assert_array_equal(got.as_cpu().as_array(), batch)
        (again,) = pipe.run(x=got) if to_device is not Interface else pipe.run(x=to_device(batch))
        np.testing.assert_array_equal(again.as_cpu().as_array(), batch)


def test_memory_stays_alive_until_its_batch_is_delivered(to_device):
    refs = []

    def source(i):
        data = to_device(images(i))
        refs.append(weakref.ref(data))
        return data

    with augmented("gpu", source=source, no_copy=True, batch=True) as pipe:
        for _ in range(8):
            pipe.run()
        alive = [ref() is not None for ref in refs]
        assert not any(alive[:5]), "delivered batches are released"


def test_arrays_are_copied_unless_no_copy_is_set(to_device):
    batch = images(1)
    want = expected([batch])[0]
    with augmented("gpu", prefetch_queue_depth=1) as pipe:
        source = to_device(batch.copy())
        pipe.feed_input("x", source)
        if to_device is Interface:
            source.array[:] = 0
        else:
            source.zero_()
        np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), want)


def test_arrays_of_a_cpu_source_must_be_in_host_memory(to_device):
    with augmented("cpu") as pipe, pytest.raises(DataError, match=r"expected data in host memory, got"):
        pipe.run(x=to_device(images()))


def test_arguments_that_the_cpu_reads_are_copied_to_host_memory(to_device):
    @pipeline_def(batch_size=ROWS, num_threads=1, device_id=0)
    def angles():
        angle = fn.external_source(name="angle", device="gpu", dtype=types.FLOAT, ndim=0)
        image = fn.external_source(name="image", device="gpu", dtype=types.UINT8, ndim=3)
        return fn.rotate(image, angle=angle)

    with angles() as pipe:
        good = np.linspace(0, 9, ROWS, dtype=np.float32)
        (wanted,) = pipe.run(image=to_device(images()), angle=good)
        (copied,) = pipe.run(image=to_device(images()), angle=to_device(good))
        for want, got in zip(wanted.as_cpu(), copied.as_cpu(), strict=True):
            np.testing.assert_array_equal(got, want)


def test_python_functions_read_copies_of_arrays_on_the_gpu(to_device):
    @pipeline_def(batch_size=ROWS, num_threads=1, device_id=0)
    def python():
        return fn.python_function(fn.external_source(name="x", device="gpu"), function=lambda x: x + 1)

    with python() as pipe:
        (found,) = pipe.run(x=to_device(images()))
    assert found.device == "gpu"
    for got, image in zip(found.as_cpu(), images(), strict=True):
        np.testing.assert_array_equal(got, image + 1)


def shown_by(x):
    return _native.gpu.exchange(x, _native.gpu.open_null())


def test_a_tensor_is_read_by_dlpacks_interface_in_c():
    """The C interface returns the same as the capsule, and keeps the tensor alive."""
    torch = pytest.importorskip("torch")
    whole = torch.arange(240, dtype=torch.int16).reshape(4, 5, 12)
    for x in (whole, whole[1:, ::2].transpose(0, 2), whole[0, 0, 3], whole[:0], whole.to(torch.bfloat16), whole > 7):
        *shown, owner = shown_by(x)
        *expected, _ = _native.gpu.read_dlpack(x.__dlpack__())
        assert shown == expected
        assert owner is x
        assert _native.gpu.place_of(x) == tuple(map(int, x.__dlpack_device__()))


def test_arrays_without_the_c_interface_are_read_through_the_capsule():
    torch = pytest.importorskip("torch")

    class Derived(torch.Tensor):
        """A derived tensor may be anything: its base class cannot answer for it."""

    for x in (torch.zeros(3).as_subclass(Derived), np.zeros(3), 7, torch.zeros(3).to_sparse()):
        assert shown_by(x) is None
        assert _native.gpu.place_of(x) is None
    assert _native.gpu.place_of(None) is None


def test_another_gpus_array_is_refused(emulated_gpu):
    with augmented("gpu", no_copy=True) as pipe, pytest.raises(DataError, match=r"expected an array on GPU -1 .* on 7"):
        pipe.run(x=OnCuda(images()))


@pytest.mark.parametrize(
    ("description", "text"), [({"mask": 1}, "without a mask"), ({"typestr": "<c8"}, "expected an array of numbers")]
)
def test_invalid_interfaces_are_refused(emulated_gpu, description, text):
    with augmented("gpu") as pipe, pytest.raises(DataError, match=text):
        pipe.run(x=Interface(images(), **description))


def test_the_limit_of_memory_holds_for_batches(emulated_gpu):
    text = r"at most 10000 bytes of the GPU's \(`gpu_memory_limit`\), got \d+ in use and \d+ more"
    with augmented("gpu", gpu_memory_limit=10_000) as pipe, pytest.raises(DataError, match=text):
        pipe.run(x=images())
    with augmented("gpu", gpu_memory_limit=100_000) as pipe:  # all memory of such a batch
        pipe.run(x=images())


@pytest.mark.parametrize("dtype", [np.uint8, "bfloat16"])
def test_arrays_of_outputs_render_in_notebooks(to_device, dtype):
    """A picture of an image; else the values, those of bfloat16 as numbers."""

    @pipeline_def(batch_size=ROWS, num_threads=1, device_id=0)
    def passed():
        x = fn.external_source(name="x", device="gpu")
        return x if dtype is np.uint8 else fn.cast(x, dtype=types.BFLOAT16)

    batch = images(3) if dtype is np.uint8 else np.arange(3 * ROWS, dtype=np.float32).reshape(ROWS, 3) / 2
    with passed() as pipe:
        (got,) = pipe.run(x=to_device(batch))
        whole, row = got.whole._repr_html_(), got[1]._repr_html_()
        if dtype is np.uint8:
            assert "DeviceArray(uint8 (5, 23, 31, 3), gpu)" in whole
            assert "DeviceArray(uint8 (23, 31, 3), gpu)" in row and "data:image/png" in row
            assert repr(got[0]) == "DeviceArray(uint8 (23, 31, 3), gpu)"
        else:
            assert "DeviceArray(bfloat16 (5, 3), gpu)" in whole
            assert "DeviceArray(bfloat16 (3,), gpu)" in row and "[1.5, 2, 2.5]" in row.replace(".0", "")
