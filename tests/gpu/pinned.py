# SPDX-License-Identifier: Apache-2.0
"""Process of the second of two GPUs, with page-locked batches of a pipeline on the CPU; it must not use the first GPU.

``python -m tests.gpu.pinned FILES BACKGROUND``: FILES has a path per line; BACKGROUND is the loader's, as Python prints
it. A context on another process's GPU would take some 500 MB of its memory.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import torch

from stoker import Launch
from stoker.torch import Loader
from tests.gpu.ranks import shard


def main(files: list[str], background: bool | None) -> None:
    torch.cuda.set_device(1)
    count = 0
    with shard(files, Launch(), "cpu") as pipe:
        for images, labels in Loader(pipe, pin_memory=True, background=background):
            assert images.is_pinned() and labels.is_pinned()
            on_gpu = images.to("cuda", non_blocking=True)
            assert on_gpu.device == torch.device("cuda", 1)
            assert torch.equal(on_gpu.cpu(), images)
            count += len(images)
    assert count == len(files)
    contexts = [torch._C._cuda_hasPrimaryContext(number) for number in range(torch.cuda.device_count())]
    assert contexts[1] and contexts.count(True) == 1, f"contexts on GPUs {contexts}"


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_text().splitlines(), ast.literal_eval(sys.argv[2]))
