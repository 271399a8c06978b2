# SPDX-License-Identifier: Apache-2.0
"""torchvision as a peer: its classification transforms on Pillow images, with any installed torch."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from benchmarks.data import Data

_MEAN, _STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
_ONE_ARGUMENT_OPERATORS = (
    "roi_align",
    "_roi_align_backward",
    "ps_roi_align",
    "_ps_roi_align_backward",
    "roi_pool",
    "_roi_pool_backward",
    "ps_roi_pool",
    "_ps_roi_pool_backward",
    "qroi_align",
    "deform_conv2d",
    "_deform_conv2d_backward",
)


def image_loader(data: Data, batch_size: int) -> Any:
    """Return a shuffling `DataLoader` in this process over random crops of the files, normalised, with their labels."""
    import torch

    declared = declare_operators(torch)
    from PIL import Image
    from torchvision import transforms

    transform = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(_MEAN, _STD),
        ]
    )

    class Images(torch.utils.data.Dataset[Any]):
        """Data set of the files; `keep` holds the declared operators."""

        keep = declared

        def __len__(self) -> int:
            return len(data.files)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            with Image.open(data.files[index]) as image:
                return transform(image.convert("RGB")), data.labels[index]

    torch.set_num_threads(1)
    return torch.utils.data.DataLoader(Images(), batch_size=batch_size, shuffle=True)


def declare_operators(torch: Any) -> Any:
    """Let a torchvision built for CUDA import with a CPU build of torch.

    Its native library cannot load there, and its Python side then misses the operators' declarations. The transforms
    on Pillow images call none of them.
    """
    if torch.version.cuda is not None or "+cpu" in metadata.version("torchvision"):
        return None
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor a, Tensor b, float c) -> Tensor")
    library.define("qnms(Tensor a, Tensor b, float c) -> Tensor")
    for name in _ONE_ARGUMENT_OPERATORS:
        library.define(f"{name}(Tensor a) -> Tensor")
    return library
