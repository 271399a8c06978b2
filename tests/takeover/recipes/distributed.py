# SPDX-License-Identifier: Apache-2.0
"""Two processes with half of the data each: ``torchrun --nproc-per-node 2 tests/takeover/recipes/distributed.py
FILES``.

``--stoker`` adds the two lines. The first process prints digests of the batches of each process in two epochs, and the
number of images that were computed natively.
"""

from __future__ import annotations

import hashlib
import json
import sys

import torch

import tests.takeover.declared  # noqa: F401

if "--stoker" in sys.argv:
    import stoker.torchvision

    stoker.torchvision.enable()

import torchvision.datasets as datasets  # isort: skip
import torchvision.transforms as transforms  # isort: skip
from torch.utils.data import DataLoader, DistributedSampler


def main(root: str) -> None:
    """Load two epochs."""
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(3 + torch.distributed.get_rank())
    dataset = datasets.ImageFolder(
        root,
        transforms.Compose(
            [transforms.RandomResizedCrop(160), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        ),
    )
    sampler: DistributedSampler[int] = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=2)
    digest = hashlib.sha256()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            digest.update(images.numpy().tobytes() + labels.numpy().tobytes())
    report(digest.hexdigest())


def report(digest: str) -> None:
    """Collect the digests of all processes, and print them."""
    from stoker.frontends.torchvision import counts

    total = counts.totals()
    own = (digest, int(total[counts.NATIVE]), int(total.sum()))
    everyone = [own] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everyone, own)
    if torch.distributed.get_rank() == 0:
        digests, native, all_counts = zip(*everyone, strict=True)
        print(json.dumps({"digests": digests, "native": sum(native), "counted": sum(all_counts)}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
