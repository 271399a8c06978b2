# SPDX-License-Identifier: Apache-2.0
"""One of several processes, each with its own GPU, as torchrun starts them: its batches, and a training step.

``python -m tests.gpu.ranks FILES FOLDER [EMULATED]``: FILES has a path per line; results go to FOLDER; with EMULATED, a
folder of compiled kernels, the GPUs are null devices.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from stoker import Launch, fn, pipeline_def, types
from stoker.device import compile as compiling
from stoker.torch import Loader

BATCH, SIZE, STEPS = 4, 24, 3


@pipeline_def(batch_size=BATCH, num_threads=2, seed=5)
def shard(files: list[str], launch: Launch | None, device: str = "mixed") -> Any:
    """Return the part that ``launch`` gives; None: that of the pipeline's ``shards``."""
    part = {} if launch is None else {"shard_id": launch.rank, "num_shards": launch.world_size}
    data, labels = fn.readers.file(
        files=files, labels=list(range(len(files))), random_shuffle=True, name="Reader", **part
    )
    images = fn.resize(fn.decoders.image_random_crop(data, device=device), resize_x=SIZE, resize_y=SIZE)
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[120.0], std=[60.0], dtype=types.FLOAT)
    return images, labels.gpu() if device == "mixed" else labels


def emulate(folder: Path) -> None:
    """Replace GPUs by null devices."""
    sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("cuda", "native")]
    import emulated_stages

    from stoker.device.gpu import Gpu

    Gpu.open = staticmethod(lambda number, memory_limit=None: emulated_stages.EmulatedGpu(folder))  # type: ignore[method-assign, assignment, misc]


def log_compilations(path: Path) -> None:
    """Record a line for each source that this process has compiled."""
    real = compiling._compile

    def logged(source: str, *rest: Any) -> bytes:
        with path.open("a") as file:
            file.write(compiling.key_of(source, 0, (0, 0)) + "\n")
        return real(source, *rest)

    compiling._compile = logged


def batches_of(pipe: Any) -> Any:
    """Yield (images, labels) as tensors. The memory of a null device is host memory, which is not "cuda" for torch."""
    if torch.cuda.is_available():
        yield from Loader(pipe)
        return
    for _ in range(-(-pipe.epoch_size("Reader") // pipe.reader_meta("Reader")["number_of_shards"] // BATCH)):
        images, labels = pipe.run()
        yield (
            torch.from_numpy(images.as_cpu().as_array()),
            torch.from_numpy(labels.as_cpu().as_array()).flatten().long(),
        )


def train(model: Any, images: Any, labels: Any) -> float:
    """Run one training step. Its gradients are the mean over all processes."""
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images.flatten(1)), labels % 7)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    return float(loss.detach())


def main(files: list[str], folder: Path) -> None:
    launch = Launch.from_environment()
    cuda = torch.cuda.is_available()
    place = torch.device("cuda", launch.local_rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(place)
        log_compilations(folder / f"compiled{launch.rank}")
    torch.distributed.init_process_group("nccl" if cuda else "gloo")
    torch.manual_seed(3)
    model = DistributedDataParallel(torch.nn.Linear(3 * SIZE * SIZE, 7).to(place))
    images, labels, losses = [], [], []
    with shard(files, None, shards="launcher") as pipe:  # and the GPU of this process
        for x, y in batches_of(pipe):
            assert x.device == place and y.device == place, (x.device, y.device, place)
            images.append(x.cpu())
            labels.append(y.cpu())
            if len(losses) < STEPS and len(x) == BATCH:
                losses.append(train(model, x, y))
        report = pipe.report()
        assert (report.assignment.shard, report.assignment.shards) == (launch.rank, launch.world_size)
        assert report.assignment.launcher == ("gpu", "shard") and "from the launcher; GPU " in str(report)
        if cuda:
            assert torch.cuda.current_device() == launch.local_rank == pipe.device_id == report.assignment.gpu
    weights = [p.detach().cpu().numpy().ravel() for p in model.parameters()]
    np.savez(
        folder / f"rank{launch.rank}.npz", images=torch.cat(images), labels=torch.cat(labels), losses=losses,
        weights=np.concatenate(weights),
    )  # fmt: skip
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) > 3:
        emulate(Path(sys.argv[3]))
    main(Path(sys.argv[1]).read_text().splitlines(), Path(sys.argv[2]))
