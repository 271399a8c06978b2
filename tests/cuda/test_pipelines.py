# SPDX-License-Identifier: Apache-2.0
"""Whole pipelines with their stages on the null device: the bits of the CPU for every graph."""

from __future__ import annotations

import emulated_stages
import numpy as np
import pytest

from stoker import fn, math, pipeline_def, types
from stoker.device.gpu import Gpu


@pytest.fixture(
    params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)],
)
def gpu(folder, monkeypatch, request):
    """Use the null device as GPU 0, unless there is a GPU."""
    opened = []
    if request.param == "cuda":
        return opened

    def open_null(number, memory_limit=None):
        opened.append(emulated_stages.EmulatedGpu(folder))
        return opened[-1]

    monkeypatch.setattr(Gpu, "open", staticmethod(open_null))
    return opened


def photographs(count):
    rng = np.random.default_rng(4)
    return [rng.integers(0, 256, (int(h), int(w), 3), np.uint8) for h, w in rng.integers(20, 60, (count, 2))]


@pipeline_def(batch_size=5, num_threads=2, seed=11)
def augmented(images, on_gpu):
    x = fn.external_source(source=lambda info: images[info.idx_in_epoch % len(images)], batch=False)
    x = fn.random_resized_crop(x, size=(24, 20), device="gpu" if on_gpu else "cpu")
    x = fn.rotate(x, angle=fn.random.uniform(range=(-40.0, 40.0)), keep_size=True, fill_value=7)
    x = fn.color_twist(x, brightness=fn.random.uniform(range=(0.6, 1.4)), saturation=0.7, contrast=1.2)
    normal = fn.crop_mirror_normalize(
        x, mirror=fn.random.coin_flip(), mean=[120.0, 110.0, 100.0], std=[60.0, 50.0, 55.0], dtype=types.FLOAT16
    )
    return (
        normal,
        fn.resize(x, resize_x=31, resize_y=9, interp_type=types.INTERP_LANCZOS3),
        fn.transpose(x, perm=[2, 0, 1]),
        fn.crop_mirror_normalize(x, mean=[99.0], std=[7.0], dtype=types.BFLOAT16, output_layout="HWC"),
    )


def test_an_augmentation_chain(gpu):
    images = photographs(17)
    with augmented(images, False) as pipe:
        want = [[o.as_array() for o in pipe.run()] for _ in range(4)]
    with augmented(images, True, device_id=0) as pipe:
        for batch in want:
            for got, expected in zip(pipe.run(), batch, strict=True):
                assert got.device != "cpu"
                np.testing.assert_array_equal(got.as_cpu().as_array(), expected)
    assert len(gpu) <= 1


def test_two_pipelines_together(gpu):
    images = photographs(17)
    with augmented(images, False) as pipe:
        want = [[np.asarray(o.as_array()) for o in pipe.run()] for _ in range(4)]
    with augmented(images, True, device_id=0) as one, augmented(images, True, device_id=0) as other:
        for batch in want:
            for outputs in (one.run(), other.run()):
                for got, expected in zip(outputs, batch, strict=True):
                    np.testing.assert_array_equal(got.as_cpu().as_array(), expected)


def test_memory_in_pieces_changes_nothing(folder, monkeypatch):
    """Memory tools need a separate allocation for each piece."""
    plain, apart = emulated_stages.EmulatedGpu(folder), emulated_stages.EmulatedGpu(folder)
    apart.device.separate_allocations = True
    images = photographs(17)
    got = []
    for gpu in (plain, apart):
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, memory_limit=None, gpu=gpu: gpu))
        with augmented(images, True, device_id=0) as pipe:
            got.append([[np.asarray(o.as_cpu().as_array()) for o in pipe.run()] for _ in range(3)])
    for one, other in zip(*got, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pipeline_def(batch_size=6, num_threads=2, seed=21)
def rotated(images, on_gpu, size, interpolation, fill):
    x = fn.external_source(source=lambda info: images[info.idx_in_epoch % len(images)], batch=False)
    x = fn.random_resized_crop(x, size=size, interp_type=interpolation, device="gpu" if on_gpu else "cpu")
    return fn.rotate(x, angle=fn.random.uniform(range=(-180.0, 180.0)), keep_size=True, **fill)


@pytest.mark.parametrize("fill", [{}, {"fill_value": 9}], ids=["edge", "fill"])
@pytest.mark.parametrize(("size", "interpolation"), [
    ((23, 21), types.INTERP_LINEAR), ((24, 32), types.INTERP_LINEAR), ((9, 33), types.INTERP_NN),
    ((2, 2), types.INTERP_LINEAR), ((1, 7), types.INTERP_LINEAR), ((40, 3), types.INTERP_LANCZOS3),
])  # fmt: skip
def test_an_image_that_is_rotated_after_it_was_resized(gpu, size, interpolation, fill):
    """A pixel takes 32 bits between the two steps. Rows have any width, also for images that are read byte by byte."""
    images = [*photographs(9), np.full((30, 40, 3), 255, np.uint8), np.zeros((3, 3, 3), np.uint8)]
    with rotated(images, False, size, interpolation, fill) as pipe:
        want = [pipe.run()[0].as_array() for _ in range(2)]
    with rotated(images, True, size, interpolation, fill, device_id=0) as pipe:
        for expected in want:
            np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), expected)


@pipeline_def(batch_size=3, num_threads=2, seed=12)
def warped(images, on_gpu):
    x = fn.external_source(source=lambda info: images[info.idx_in_epoch % len(images)], batch=False)
    shear = fn.transforms.shear(shear=fn.random.uniform(range=(-0.3, 0.3), shape=[2]))
    matrix = fn.transforms.combine(shear, fn.transforms.translation(offset=[3.0, -2.0]))
    x = fn.warp_affine(x, matrix=matrix, fill_value=9, inverse_map=False, device="gpu" if on_gpu else "cpu")
    return x, fn.warp_affine(x, matrix=matrix, interp_type=types.INTERP_NN, size=(12, 17))


def test_matrices_of_transforms(gpu):
    images = photographs(6)
    with warped(images, False) as pipe:
        want = [[np.asarray(row) for row in output] for output in pipe.run()]
    with warped(images, True, device_id=0) as pipe:
        for got, expected in zip(pipe.run(), want, strict=True):
            assert got.device != "cpu"
            for row, other in zip(got.as_cpu(), expected, strict=True):
                np.testing.assert_array_equal(np.asarray(row), other)


@pipeline_def(batch_size=3, num_threads=2)
def halves(rows, on_gpu):
    x = fn.external_source(
        source=lambda info: rows[info.idx_in_batch], batch=False, dtype=types.BFLOAT16, layout="HWC",
        device="gpu" if on_gpu else "cpu",
    )  # fmt: skip
    normal = fn.crop_mirror_normalize(x, mean=[1.5, 0.5, 2.0], std=[3.0], mirror=1, crop=(4, 5), dtype=types.FLOAT16)
    return fn.cast(x, dtype=types.FLOAT), fn.cast(x, dtype="int16"), normal, fn.flip(x, horizontal=1)


def test_inputs_of_bfloat16(gpu):
    """NumPy arrays contain its bits. The test tries all of them."""
    bits = np.random.default_rng(5).permutation(1 << 16)[: 3 * 9 * 7 * 3 * 50].astype(np.uint16)
    rows = list(bits.reshape(3, 9 * 50, 7, 3))
    compare_bits(halves, rows)


def compare_bits(define, rows):
    """Compare the results of ``define`` in bfloat16. Any NaN equals any NaN."""
    with define(rows, False) as cpu, define(rows, True, device_id=0) as pipe:
        for want, got in zip(cpu.run(), pipe.run(), strict=True):
            assert got.device != "cpu"
            for row, other in zip(got.as_cpu(), want, strict=True):
                a, b = np.array(row), np.array(other)
                if a.dtype == np.uint16:
                    a[(a & 0x7FFF) > 0x7F80] = b[(b & 0x7FFF) > 0x7F80] = 0x7FC0
                np.testing.assert_array_equal(a, b)


def bfloat16_rows(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 60, (3, 23, 7, 3)).astype(np.float32)
    x[rng.random(x.shape) < 0.03] = np.inf
    return list((x.view(np.uint32) >> 16).astype(np.uint16))


def of_bfloat16(rows, on_gpu):
    return fn.external_source(
        source=lambda info: rows[info.idx_in_batch], batch=False, dtype=types.BFLOAT16, layout="HWC",
        device="gpu" if on_gpu else "cpu",
    )  # fmt: skip


@pipeline_def(batch_size=3, num_threads=2)
def computed(rows, on_gpu):
    x = of_bfloat16(rows, on_gpu)
    rotated = fn.rotate(x, angle=30.0, fill_value=0.1, keep_size=True)
    return fn.brightness(rotated, brightness=1.3) * 3 - fn.cast(3, dtype="int16"), math.sqrt(x * x + 1) / (x - 2)


def test_arithmetic_of_bfloat16(gpu):
    compare_bits(computed, bfloat16_rows(6))


@pipeline_def(batch_size=3, num_threads=2)
def images_of_bfloat16(rows, on_gpu):
    x = of_bfloat16(rows, on_gpu)
    small, mirrored = fn.resize(x, size=(11, 14)), fn.flip(x, horizontal=1)
    padded = fn.crop(x, crop=(30, 9), out_of_bounds_policy="pad", fill_values=0.3)
    twisted = fn.color_twist(fn.reshape(x, shape=[23, 7, 3], layout="HWC"), hue=30.0, contrast=0.5)
    blurred = fn.gaussian_blur(small, sigma=0.9)
    return small, blurred, padded, twisted, fn.stack(x, mirrored, axis=1), x < mirrored, x // 3 + math.sin(x) % x


@pytest.mark.parametrize("gpu", [pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], indirect=True)
def test_images_of_bfloat16(gpu):
    """These cases take long to compile for the emulation, which tests the same kernels with other types."""
    compare_bits(images_of_bfloat16, bfloat16_rows(7))
