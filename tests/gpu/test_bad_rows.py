# SPDX-License-Identifier: Apache-2.0
"""Bad files with the decoder on a GPU: replaced and skipped as on the CPU, also in torch's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stoker.torch import Loader
from tests.gpu.test_pipelines import decoding, equal, on_gpu, training
from tests.run.pipelines import files_of

BAD = {3: "cut", 4: "no image", 17: "missing", 30: "cut"}


@pytest.fixture(scope="module")
def files(images: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root, names = tmp_path_factory.mktemp("bad"), []
    good = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    for n in range(max(41, min(len(good), 200))):
        path = root / f"{n:03}.jpg"
        data = Path(good[n % len(good)]).read_bytes()
        kind = BAD.get(n)
        data = data[: len(data) // 2] if kind == "cut" else b"this is no photograph" if kind == "no image" else data
        if kind != "missing":
            path.write_bytes(data)
        names.append(str(path))
    return names


@pytest.mark.parametrize("policy", ["replace", "skip"])
@pytest.mark.parametrize("make", [training, decoding])
def test_batches_are_those_of_the_cpu(make: Any, policy: str, files: list[str]) -> None:
    settings = {"on_error": policy, "error_limit": 1.0, "batch_size": 7, "seed": 3}  # it decides on substitutes
    with on_gpu(make, files, **settings) as gpu, make(files, "cpu", **settings) as cpu:
        while (a := gpu.next()) is not None:
            b = cpu.next()
            assert b is not None and a.skipped == b.skipped
            for x, y in zip(gpu.execution.batches(a), cpu.execution.batches(b), strict=True):
                assert x.is_dense == y.is_dense
                equal(x, y)
        assert [e.index for e in sorted(gpu.errors, key=lambda e: e.key)] == list(BAD)
        assert [(e.index, e.substitute) for e in gpu.errors] == [(e.index, e.substitute) for e in cpu.errors]


@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_in_torchs_memory_beside_work_on_its_stream(policy: str, files: list[str]) -> None:
    settings = {"on_error": policy, "error_limit": 1.0, "batch_size": 7}
    gpu, cpu = Loader(on_gpu(training, files, **settings)), Loader(training(files, "cpu", **settings))
    weight = torch.randn(2048, 2048, device="cuda")
    copies = []
    try:
        for _ in range(2):
            for (x, y), (want, label) in zip(gpu, cpu, strict=True):
                for _ in range(10):
                    weight = weight @ weight * 1e-4  # later work in the stream waits for this
                copies.append((x.clone(), want, torch.equal(y, label)))
                del x
        torch.cuda.synchronize()
        for got, want, labels in copies:
            assert labels and got.device == torch.device("cuda", 0)
            np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())
    finally:
        gpu.close()
        cpu.close()
