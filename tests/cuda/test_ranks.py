# SPDX-License-Identifier: Apache-2.0
"""Two processes as torchrun starts them, each with a null device: shards, DDP, and the same bits."""

from __future__ import annotations

from pathlib import Path

from stoker import Launch
from tests.gpu import several
from tests.gpu.ranks import shard
from tests.run.pipelines import files_of


def test_ranks_share_an_epoch(emulated_gpu: None, jpegs: Path, folder: Path, tmp_path: Path) -> None:
    files = files_of(jpegs)[:8]
    with shard(files, Launch(), device_id=0) as pipe:
        pipe.run()  # so that the emulated kernels are compiled
    several.check(several.launch(2, files, tmp_path, str(folder)), files)
