# SPDX-License-Identifier: Apache-2.0
"""Batches on a GPU in CuPy and JAX, and their arrays as the data of a pipeline, if these are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stoker import fn, pipeline_def, types
from stoker.torch import Loader
from tests.gpu.scaled import ROWS, images, scaled, want


def test_cupy_reads_and_gives_batches() -> None:
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with scaled() as pipe, stream:
        for seed in range(20):
            data = cupy.asarray(images(seed)) + cupy.uint8(0)  # just issued on the stream
            batch = pipe.run(x=data)[0]
            by_interface, by_dlpack = cupy.asarray(batch), cupy.from_dlpack(batch)
            assert by_interface.data.ptr == by_dlpack.data.ptr, "the same memory"
            np.testing.assert_array_equal(cupy.asnumpy(by_dlpack), want(images(seed)))


def test_jax_reads_and_gives_batches() -> None:
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.jax_arrays"], cwd=Path(__file__).parents[2], text=True, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )  # fmt: skip
    if done.returncode == 0 and done.stdout.splitlines()[-1] == "no GPU":
        pytest.skip("the installed JAX is built for the CPU alone, and shows no arrays on a GPU")
    assert done.returncode == 0 and "equal" in done.stdout, done.stdout[-3000:]


@pytest.mark.parametrize("no_copy", [True, False])
def test_a_slow_producer_is_awaited(no_copy: bool) -> None:
    weight = torch.randn(4096, 4096, device="cuda")
    side = torch.cuda.Stream()
    buffer = torch.zeros((ROWS, 20, 30, 3), dtype=torch.uint8, device="cuda")
    hosts = [torch.from_numpy(images(seed)).pin_memory() for seed in range(4)]
    with scaled(no_copy) as pipe, torch.cuda.stream(side):
        for seed, host in enumerate(hosts):
            for _ in range(20):
                weight = weight @ weight * 1e-4  # the next copy is delayed
            buffer.copy_(host, non_blocking=True)
            pipe.feed_input("x", buffer)
            if not no_copy:
                buffer.zero_()  # its owner may overwrite it
            np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), want(images(seed)))


def test_channels_last_tensors_on_the_gpu() -> None:
    batches = iter([torch.from_numpy(images(seed)).cuda() for seed in range(3)])

    @pipeline_def(batch_size=ROWS, num_threads=2, device_id=0)
    def define() -> Any:
        x = fn.external_source(source=batches, device="gpu", layout="HWC")
        return fn.crop_mirror_normalize(x, mean=[1.0, 2.0, 3.0], std=[2.0], dtype=types.FLOAT16, output_layout="HWC")

    loader = Loader(define(), memory_format="channels_last")
    for seed, x in enumerate(loader):
        assert x.is_cuda
        assert x.is_contiguous(memory_format=torch.channels_last)
        np.testing.assert_array_equal(x.permute(0, 2, 3, 1).cpu().numpy(), want(images(seed)))
    assert seed == 2
    loader.close()


def test_bfloat16_is_torchs() -> None:
    @pipeline_def(batch_size=ROWS, num_threads=2, device_id=0)
    def define(dtype: Any) -> Any:
        x = fn.external_source(name="x", device="gpu", layout="HWC")
        return fn.crop_mirror_normalize(x, mean=[100.0, 110.0, 120.0], std=[50.0, 60.0, 70.0], dtype=dtype)

    x = torch.from_numpy(images()).cuda()
    with define(types.BFLOAT16) as bf16, define(types.FLOAT) as f32:
        (got,), (expected,) = bf16.run(x=x), f32.run(x=x)
        tensor = torch.from_dlpack(got)
        assert tensor.dtype == torch.bfloat16
        assert torch.equal(tensor, torch.from_dlpack(expected).to(torch.bfloat16))
        assert not hasattr(got, "__cuda_array_interface__"), "which has no bfloat16"
