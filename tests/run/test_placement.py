# SPDX-License-Identifier: Apache-2.0
"""Placement of operators, as far as a machine without a GPU can test it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DeviceError, Pipeline, UnsupportedError, fn, pipeline_def
from stoker.device.gpu import Gpu
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


def test_nodes_on_the_cpu_take_no_data_of_the_gpu() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def round_trip() -> Any:
        return fn.cast(fn.random.uniform().gpu(), dtype=np.uint8, device="cpu")

    with pytest.raises(UnsupportedError, match="a pipeline copies no data back to the CPU"):
        round_trip().build()


def decoded(files: list[str]) -> Any:
    return fn.decoders.image(fn.readers.file(files=files)[0], device="mixed")


def _counting(x: Any) -> Any:
    raise AssertionError("it is refused before it is called")


REFUSED: dict[str, Callable[[list[str]], Any]] = {
    "python_function": lambda files: fn.python_function(decoded(files), function=_counting),
    "of declared types": lambda files: fn.python_function(
        decoded(files), function=_counting, output_dtypes="uint8", output_ndims=3
    ),
    "after more operators": lambda files: fn.python_function(fn.flip(decoded(files)) + 1, function=_counting),
    "sent to the GPU": lambda files: fn.python_function(fn.random.uniform().gpu(), function=_counting),
    "back to the CPU": lambda files: fn.flip(decoded(files), device="cpu"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_graphs_that_a_gpu_refuses_are_refused_without_one(
    jpegs: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Refusals do not depend on the machine, so a script that runs without a GPU also runs with one."""
    monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: Gpu(_native.gpu.open_null(), 1 << 20)))
    files = files_of(jpegs)

    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def graph() -> Any:
        return REFUSED[name](files)

    texts = []
    for settings in ({"device_id": 0}, {"device_id": None, "without_gpu": "cpu"}, {"device_id": None}):
        with pytest.raises(UnsupportedError, match=r"GPU's memory.*made at .*Set `device=\"cpu\"`") as refused:
            graph(**settings).build()
        texts.append(str(refused.value))
    assert len(set(texts)) == 1


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
