# SPDX-License-Identifier: Apache-2.0
"""Launcher of ``ranks.py`` under torchrun, and checks of the batches of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from stoker import Launch
from tests.gpu.ranks import BATCH, shard

ROOT = Path(__file__).resolve().parents[2]


def launch(count: int, files: list[str], folder: Path, *more: str) -> list[Any]:
    """Return the results of ``count`` processes; with a folder of emulated kernels, these see no GPU."""
    (folder / "files").write_text("\n".join(files))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    command += ["-m", "tests.gpu.ranks", str(folder / "files"), str(folder), *more]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    if more:
        env["CUDA_VISIBLE_DEVICES"] = ""
    done = subprocess.run(
        command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
    )
    assert done.returncode == 0, done.stdout
    return [np.load(folder / f"rank{rank}.npz") for rank in range(count)]


def check(results: list[Any], files: list[str]) -> None:
    """Check that the shards together are the epoch, once, with the CPU's bits, and that the models are equal."""
    labels = np.concatenate([r["labels"] for r in results])
    assert sorted(labels) == list(range(len(files)))
    for rank, result in enumerate(results):
        with shard(files, Launch(rank, len(results), rank), "cpu") as pipe:
            at = 0
            while at < len(result["labels"]):
                images, wanted = (out.as_array() for out in pipe.run())
                images, wanted = images[: len(result["labels"]) - at], wanted[: len(result["labels"]) - at]
                np.testing.assert_array_equal(result["images"][at : at + BATCH], images)
                np.testing.assert_array_equal(result["labels"][at : at + BATCH], wanted.ravel())
                at += BATCH
        np.testing.assert_array_equal(result["weights"], results[0]["weights"])
        assert len(result["losses"]) and np.isfinite(result["losses"]).all()
    assert len(results) == 1 or not np.array_equal(results[0]["losses"], results[1]["losses"])
