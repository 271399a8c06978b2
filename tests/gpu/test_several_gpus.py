# SPDX-License-Identifier: Apache-2.0
"""Two GPUs in one machine: one process per GPU under torchrun, and both in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stoker import DeviceError, Launch
from stoker.native import _native
from stoker.torch import Loader
from tests.gpu import several
from tests.gpu.ranks import shard
from tests.run.pipelines import files_of

WHOLE = Launch()


@pytest.fixture(autouse=True)
def two_gpus() -> None:
    if _native.gpu.count_cuda() < 2:
        if os.environ.get("REQUIRE_GPUS") == "2":
            pytest.fail("there are no two CUDA devices, and REQUIRE_GPUS=2")
        pytest.skip("needs two GPUs")


@pytest.fixture
def files(images: Path) -> list[str]:
    found = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    return found[: len(found) // 2 * 2]


def equal(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.as_cpu().as_array(), b.as_cpu().as_array())


def test_a_process_for_each(files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path / "kernels"))
    several.check(several.launch(2, files, tmp_path), files)
    compiled = [line for path in tmp_path.glob("compiled*") for line in path.read_text().split()]
    assert compiled and len(set(compiled)) == len(compiled), "each kernel was compiled once between them"


@pytest.mark.parametrize("current", [0, 1])
def test_both_in_one_process(files: list[str], current: int) -> None:
    with torch.cuda.device(current):
        with (
            shard(files, WHOLE, device_id=0) as zero,
            shard(files, WHOLE, device_id=1) as one,
            shard(files, WHOLE, "cpu") as cpu,
        ):
            for _ in range(8):
                a, b, want = zero.run(), one.run(), cpu.run()
                for number, batch in enumerate((a, b)):
                    equal(batch[0], want[0])
                    assert torch.from_dlpack(batch[0]).device == torch.device("cuda", number)
                assert torch.cuda.current_device() == current
        assert torch.cuda.current_device() == current


def test_a_stream_of_the_second(files: list[str]) -> None:
    """Batches are kept, and another stream of their device reads them late, while later ones are computed."""
    stream = torch.cuda.Stream(1)
    with shard(files, WHOLE, device_id=1) as pipe, shard(files, WHOLE, "cpu") as cpu:
        sums, want = [], []
        with torch.cuda.device(1), torch.cuda.stream(stream):
            for images, labels in Loader(pipe):
                assert images.device == labels.device == torch.device("cuda", 1)
                torch.cuda._sleep(2_000_000)
                sums.append(images.double().sum((1, 2, 3)))
        for _ in range(-(-len(files) // pipe.batch_size)):
            want.append(cpu.run()[0].as_array().astype(np.float64).sum((1, 2, 3)))
        stream.synchronize()
    found = torch.cat(sums).cpu().numpy()
    np.testing.assert_allclose(found, np.concatenate(want)[: len(found)], rtol=1e-12)


@pytest.mark.parametrize("background", [None, False, True])
def test_pinned_batches_of_the_second_use_no_other(files: list[str], tmp_path: Path, background: bool | None) -> None:
    (tmp_path / "files").write_text("\n".join(files))
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.pinned", str(tmp_path / "files"), str(background)],
        cwd=several.ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_arrays_of_the_other_gpu(files: list[str]) -> None:
    """Arrays on another GPU than the pipeline's cause an error or are copied. They are never misread."""
    from stoker import DataError, fn, pipeline_def

    data = torch.arange(4 * 6, device="cuda:0", dtype=torch.uint8).reshape(4, 6)

    @pipeline_def(batch_size=4, num_threads=1, device_id=1)
    def fed() -> Any:
        return fn.external_source(source=lambda: data, device="gpu", no_copy=True) + 1

    with fed() as pipe:
        try:
            got = pipe.run()[0].as_cpu().as_array()
        except (DataError, DeviceError) as error:
            assert "GPU" in str(error)
        else:
            np.testing.assert_array_equal(got, data.cpu().numpy() + 1)


def test_a_missing_gpu(files: list[str]) -> None:
    count = _native.gpu.count_cuda()
    with pytest.raises(DeviceError, match=rf"below {count}.*got {count}"):
        shard(files, WHOLE, device_id=count).build()
