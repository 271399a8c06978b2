# SPDX-License-Identifier: Apache-2.0
"""Eager calls on a GPU: on the null device with emulated kernels, they have the bits of the CPU."""

from __future__ import annotations

import threading
from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import ArgumentError, Batch, Pipeline, UnsupportedError, eager, fn, types
from stoker.device.gpu import Gpu
from stoker.frontends import eager as calls
from stoker.frontends.eager_gpu import GPUS

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, (h, h + 7, 3), np.uint8) for h in (23, 31, 40)]


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(request: pytest.FixtureRequest, folder: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))
    GPUS.close()
    calls._prepare.cache_clear()
    yield
    calls._prepare.cache_clear()
    GPUS.close()


def host(x: Any) -> np.ndarray:
    """Return a copy of the elements of an array in the GPU's memory."""
    return np.frombuffer(x.to_host(), types.DALIDataType(x.dtype).numpy).reshape(x.shape)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("resize", {"size": (12, 9)}),
        ("rotate", {"angle": 30.0, "fill_value": 4}),
        ("flip", {}),
        ("gaussian_blur", {"window_size": 5}),
        ("crop_mirror_normalize", {"crop": (10, 10), "mean": [1.0], "std": [2.0]}),
        ("transpose", {"perm": [2, 0, 1]}),
        ("cast", {"dtype": types.FLOAT}),
        ("reductions.mean", {}),
        ("reshape", {"shape": [-1, 3]}),
        ("noise.gaussian", {"stddev": 9.0, "seed": 5}),
    ],
)
def test_results_have_the_bits_of_the_cpu(name: str, arguments: dict[str, Any]) -> None:
    call = eager
    for part in name.split("."):
        call = getattr(call, part)
    want = call(IMAGES, **arguments)
    got = call(IMAGES, device="gpu", **arguments)
    assert (got.device, got.layout, got.dtype) == ("gpu", want.layout, want.dtype)
    images = Batch([eager.copy(x, device="gpu") for x in IMAGES], types.UINT8, device="gpu")
    again = call(images, device="gpu", **arguments)
    for batch in (got, again):
        for row, expected in zip(batch.as_cpu(), want, strict=True):
            np.testing.assert_array_equal(row, expected)
    np.testing.assert_array_equal(host(call(IMAGES[0], device="gpu", device_id=0, **arguments)), want[0])


def test_arguments_may_differ_per_row() -> None:
    angles = Batch([np.float32(10), np.float32(20), np.float32(30)], types.FLOAT)
    got, want = eager.rotate(IMAGES, angle=angles, device="gpu"), eager.rotate(IMAGES, angle=angles)
    for row, expected in zip(got.as_cpu(), want, strict=True):
        np.testing.assert_array_equal(row, expected)


def test_calls_follow_one_another_in_the_gpus_memory() -> None:
    small = eager.resize(IMAGES, size=(16, 12), device="gpu")
    assert small.is_dense and small.device == "gpu"
    got = eager.crop_mirror_normalize(small, mean=[9.0], std=[3.0], device="gpu")
    want = eager.crop_mirror_normalize(eager.resize(IMAGES, size=(16, 12)), mean=[9.0], std=[3.0])
    np.testing.assert_array_equal(got.as_cpu().as_array(), want.as_array())


def test_random_numbers_without_inputs_are_those_of_the_cpu() -> None:
    arguments = {"range": (0.0, 9.0), "shape": [4], "seed": 7}
    (want,) = calls.batches_of("random.uniform", [], dict(arguments), 3)
    (got,) = calls.batches_of("random.uniform", [], {**arguments, "device": "gpu"}, 3)
    assert got.device == "gpu"
    np.testing.assert_array_equal(got.as_cpu().as_array(), want.as_array())


def test_data_that_the_cpu_reads_are_copied_to_it() -> None:
    index = eager.copy(np.int64(2), device="gpu")
    (got,) = calls.batches_of("_index", [IMAGES, index], {"spec": "i", "device": "gpu"}, 3)
    for row, image in zip(got.as_cpu(), IMAGES, strict=True):
        np.testing.assert_array_equal(row, image[2])


@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR"])
@pytest.mark.parametrize("fill", [9.0, None])
def test_images_without_pixels(interp: str, fill: float | None) -> None:
    for shape in ((0, 5, 3), (5, 0, 3), (0, 0, 1)):
        for dtype in (np.uint8, np.float32):
            image, settings = np.zeros(shape, dtype), {"interp_type": interp, "fill_value": fill}
            for name, arguments in (
                ("warp_affine", {"matrix": (0.5, 0.1, 0, 0.2, 1.0, 0), "size": (4, 6), **settings}),
                ("warp_affine", {"matrix": (2.0, 0, 0, 0, 2.0, 0), "size": (4, 6), **settings}),
                ("rotate", {"angle": 30.0, "size": (4, 6), **settings}),
                ("rotate", {"angle": 30.0, **settings}),
            ):
                call = getattr(eager, name)
                want = call([image, image], **arguments)
                got = call([image, image], device="gpu", **arguments).as_cpu()
                assert got.shape() == want.shape()
                np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR"])
def test_resized_rows_without_pixels(interp: str) -> None:
    shapes = [(9, 8, 3), (0, 5, 3), (5, 0, 3), (0, 0, 3)]
    rows = [np.full(shape, 7 + i, np.uint8) for i, shape in enumerate(shapes)]

    def run(device_id: int | None) -> Any:
        pipe = Pipeline(batch_size=len(rows), num_threads=1, device_id=device_id)
        with pipe:
            x = fn.external_source(source=lambda: rows, layout="HWC", dtype=np.uint8, ndim=3)
            x = x if device_id is None else x.gpu()
            images = fn.resize(x, size=(4, 6), interp_type=interp, allow_empty=True)
            pipe.set_outputs(
                images, fn.brightness(fn.flip(images), brightness=2.0), fn.resize(x, resize_shorter=5, allow_empty=True)
            )
        with pipe:
            return pipe.run()

    for got, want in zip(run(0), run(None), strict=True):
        assert got.as_cpu().shape() == want.shape()
        for i in range(len(rows)):
            np.testing.assert_array_equal(got.as_cpu()[i], want[i])
    assert run(0)[0].shape() == [(4, 6, 3), (0, 6, 3), (4, 0, 3), (0, 0, 3)]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
def test_extremes_of_no_elements(dtype: Any) -> None:
    image = np.zeros((0, 5, 3), dtype)
    for call in (eager.reductions.max, eager.reductions.min):
        for axes in ([0], [1], [0, 1, 2]):
            np.testing.assert_array_equal(host(call(image, axes=axes, device="gpu")), call(image, axes=axes))


def test_tensors_of_eight_axes() -> None:
    x = np.arange(3 * 2**7, dtype=np.int32).reshape(3, *(2,) * 7)
    perm = [7, 2, 5, 0, 3, 6, 1, 4]
    rows = eager.transpose([x, x + 1], perm=perm, device="gpu").as_cpu()
    np.testing.assert_array_equal(rows[1], (x + 1).transpose(perm))
    np.testing.assert_array_equal(host(eager.cast(x, dtype=types.FLOAT, device="gpu")), x.astype(np.float32))


def test_threads_may_call_concurrently() -> None:
    want = eager.resize(IMAGES, size=(16, 12)).as_array()
    results: list[Any] = [None] * 4

    def call(i: int) -> None:
        results[i] = [eager.resize(IMAGES, size=(16, 12), device="gpu").as_cpu().as_array() for _ in range(5)]

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(result) == 5 and all((x == want).all() for x in result) for result in results)


def test_wrong_places_are_refused() -> None:
    on_gpu = eager.copy(IMAGES[0], device="gpu")
    for call, text in (
        (lambda: eager.flip(IMAGES[0], device="tpu"), "cpu, gpu or mixed"),
        (lambda: eager.flip(IMAGES[0], device=np.zeros(2, "u1,u1")), "cpu, gpu or mixed"),
        (lambda: eager.flip(IMAGES[0], device="gpu", device_id=-1), "number of a GPU"),
        (lambda: eager.flip(IMAGES[0], device_id=0), '`device_id` with `device="gpu"`'),
        (lambda: eager.flip([IMAGES[0], on_gpu], device="gpu"), "all samples in host memory, or all"),
    ):
        with pytest.raises(ArgumentError, match=text):
            call()
    with pytest.raises(UnsupportedError):
        eager.python_function(on_gpu, function=lambda x: x, device="gpu")
