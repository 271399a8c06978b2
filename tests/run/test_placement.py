# SPDX-License-Identifier: Apache-2.0
"""Placement of operators, as far as a machine without a GPU can test it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DeviceError, Pipeline, UnsupportedError, fn, pipeline_def
from stoker.native import _native
from tests.run.pipelines import files_of

ABSENT = _native.gpu.count_cuda()  # the first number without a GPU


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def training(files: list[str], device: str) -> Any:
    data, labels = fn.readers.file(files=files)
    images = fn.decoders.image_random_crop(data, device="mixed" if device == "gpu" else "cpu")
    images = fn.resize(images, resize_x=32, resize_y=24)
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[3.0], std=[2.0])
    return images, labels.gpu() if device == "gpu" else labels


def test_a_missing_gpu_is_named(jpegs: Path) -> None:
    with pytest.raises(DeviceError, match=rf"^`.*`: GPU {ABSENT} cannot be used: .*made at .*\.py:\d+\. With"):
        training(files_of(jpegs), "gpu", device_id=ABSENT).build()


def test_a_pipeline_without_a_gpu_names_the_line(jpegs: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"the pipeline has none.*made at .*test_placement.py:\d+.*device_id=0"):
        training(files_of(jpegs), "gpu", device_id=None).build()


def test_without_a_gpu_the_cpu_gives_the_same(jpegs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(jpegs)
    with training(files, "cpu") as pipe:
        want = [[x.as_array() for x in pipe.run()] for _ in range(3)]
    monkeypatch.setenv("STOKER_WITHOUT_GPU", "cpu")
    pipe = training(files, "gpu", device_id=ABSENT)
    with pytest.warns(RuntimeWarning, match="no GPU is used: .* The results on the CPU are the same") as warned:
        pipe.build()
    assert warned[0].filename == __file__
    with pipe:
        for a, b in want:
            images, labels = pipe.run()
            np.testing.assert_array_equal(images.as_array(), a)
            np.testing.assert_array_equal(labels.as_array(), b)


def test_a_gpu_that_nothing_needs_is_not_opened(jpegs: Path) -> None:
    with training(files_of(jpegs), "cpu", device_id=ABSENT) as pipe:
        assert pipe.run()[0].device == "cpu"


@pytest.mark.parametrize("device_id", [-1, True, "0", 1.5, np.float32(1), np.bool_(True)])
def test_the_number_of_a_gpu_is_a_number(device_id: Any) -> None:
    with pytest.raises(ArgumentError, match='expected the number of a GPU as `device_id`, "auto" or None, got'):
        Pipeline(device_id=device_id)


def test_the_policy_without_a_gpu_is_checked() -> None:
    with pytest.raises(ArgumentError, match='expected `without_gpu` "error" or "cpu", got \'tpu\''):
        Pipeline(without_gpu="tpu")


def decoded(files: list[str]) -> Any:
    return fn.decoders.image(fn.readers.file(files=files)[0], device="mixed")


READ_ON_THE_CPU: dict[str, Callable[[list[str]], Any]] = {
    "python_function": lambda files: fn.python_function(decoded(files), function=lambda x: x + 1),
    "of declared types": lambda files: fn.python_function(
        decoded(files), function=lambda x: x + 1, output_dtypes="uint8", output_ndims=3
    ),
    "after more operators": lambda files: fn.python_function(fn.flip(decoded(files)) + 1, function=lambda x: x + 1),
    "sent to the GPU": lambda files: fn.python_function(fn.random.uniform().gpu(), function=lambda x: x + 1),
    "back to the CPU": lambda files: fn.flip(decoded(files), device="cpu"),
}


@pytest.mark.parametrize("name", READ_ON_THE_CPU)
def test_nodes_on_the_cpu_read_what_is_placed_on_a_gpu(jpegs: Path, name: str) -> None:
    """Without a GPU the same graph runs with the fallback; without the fallback, the graphs that need a GPU say so."""
    files = files_of(jpegs)

    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def graph() -> Any:
        return READ_ON_THE_CPU[name](files)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "there is no GPU")
        with graph(device_id=None, without_gpu="cpu") as pipe:
            assert len(pipe.run()[0]) == 2
    with pytest.raises(UnsupportedError, match="it is placed on a GPU, and the pipeline has none"):
        graph(device_id=None, without_gpu="error").run()


def test_python_beside_the_gpu_is_not_refused(jpegs: Path) -> None:
    """The CPU operator reads only data of the CPU; its results are sent to the GPU."""
    files = files_of(jpegs)

    @pipeline_def(batch_size=2, num_threads=1, without_gpu="cpu", device_id=None)
    def beside() -> Any:
        return fn.python_function(fn.random.uniform(), function=lambda x: x + 10).gpu(), decoded(files)

    with beside() as pipe:
        assert (pipe.run()[0].as_array() > 8).all()


def test_placing_data_changes_no_draw() -> None:
    @pipeline_def(batch_size=3, num_threads=1, seed=5)
    def drawn(on_gpu: bool) -> Any:
        x = fn.random.uniform()
        x = x.gpu() if on_gpu else x
        return x + fn.random.uniform()

    with drawn(False) as plain, drawn(True, device_id=None, without_gpu="cpu") as placed:
        np.testing.assert_array_equal(plain.run()[0].as_array(), placed.run()[0].as_array())


def test_nodes_have_a_device() -> None:
    with Pipeline(1, 1):
        x = fn.random.uniform()
        assert (x.device, x.gpu().device, (x.gpu() + 1).device, x.cpu().device) == ("cpu", "gpu", "gpu", "cpu")
