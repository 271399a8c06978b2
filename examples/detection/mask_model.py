# SPDX-License-Identifier: Apache-2.0
"""Small detector with a branch of masks as in Mask R-CNN (He et al., 2017): regions of its features by roi_align."""

from __future__ import annotations

from typing import NamedTuple

import model as ssd
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stoker.torch import ops

from chain import SIZE  # isort: skip

GRID = 28  # pixels of a region's mask along an axis
_STRIDE = 4  # of the features that masks are made of
_WIDTH = 48


class Instances(NamedTuple):
    """Objects of an image, best first.

    Attributes:
        boxes: (K, 4) from 0 to 1.
        scores: (K,).
        labels: from 1, (K,).
        masks: (K, SIZE, SIZE), True within the object.
    """

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    masks: Tensor


class MaskSSD(ssd.SmallSSD):
    """SmallSSD with a mask of GRID x GRID pixels for each region and class.

    Args:
        classes: number of classes, without the background.
    """

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.fine, self.coarse = nn.Conv2d(32, _WIDTH, 1), nn.Conv2d(64, _WIDTH, 1)
        self.smooth = nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1)
        self.mask_head = nn.Sequential(
            nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1), nn.ReLU(inplace=True),
            nn.ConvTranspose2d(_WIDTH, _WIDTH, 2, 2), nn.ReLU(inplace=True), nn.Conv2d(_WIDTH, classes, 1),
        )  # fmt: skip

    def features(self, images: Tensor) -> Tensor:
        """Return features for masks (N, C, SIZE / 4, SIZE / 4)."""
        fine = self.stem[:2](images)
        coarse = self.stem[2:](fine)
        joined = self.fine(fine) + F.interpolate(self.coarse(coarse), scale_factor=2.0)
        return F.relu(self.smooth(joined))

    def masks(self, features: Tensor, boxes: list[Tensor]) -> Tensor:
        """Return logits (K, classes, GRID, GRID) for all boxes of all images; boxes are from 0 to 1."""
        pixels = [b * SIZE for b in boxes]
        half = (GRID // 2, GRID // 2)
        regions = ops.roi_align(features, pixels, half, 1 / _STRIDE, sampling_ratio=2, aligned=True)
        return self.mask_head(regions)

    @torch.no_grad()
    def instances(self, images: Tensor) -> list[Instances]:
        """Return the objects of each image (3, SIZE, SIZE)."""
        found = self.detect(images, least_score=0.1, most=20)
        logits = self.masks(self.features(images), [boxes for boxes, _, _ in found])
        parts = logits.split([len(boxes) for boxes, _, _ in found])
        return [
            Instances(boxes, scores, labels, pasted(own[torch.arange(len(own)), labels - 1].sigmoid(), boxes))
            for (boxes, scores, labels), own in zip(found, parts, strict=True)
        ]


def pasted(masks: Tensor, boxes: Tensor) -> Tensor:
    """Return masks (K, GRID, GRID) of regions as masks (K, SIZE, SIZE) of the image, True above one half."""
    x0, y0, x1, y1 = (boxes * SIZE).double().unbind(1)
    wide, high = GRID / (x1 - x0).clamp(min=1e-3), GRID / (y1 - y0).clamp(min=1e-3)
    zero = torch.zeros_like(wide)
    matrices = torch.stack([wide, zero, -x0 * wide, zero, high, -y0 * high], 1).reshape(-1, 2, 3)
    return ops.warp_affine(masks[:, None].contiguous(), matrices, (SIZE, SIZE))[:, 0] > 0.5


def mask_loss(model: MaskSSD, images: Tensor, boxes: list[Tensor], labels: list[Tensor], masks: list[Tensor]) -> Tensor:
    """Return the loss of the masks of the true boxes, moved a little, as detected boxes will be."""
    moved = []
    for own in boxes:
        sides = (own[:, 2:] - own[:, :2]).repeat(1, 2)
        moved.append((own + 0.08 * torch.randn_like(own) * sides).clamp(0, 1))
    logits = model.masks(model.features(images), moved)
    flat = torch.cat(list(masks)).float()[:, None]
    own_boxes = list((torch.cat(moved) * SIZE)[:, None].unbind())
    wanted = (ops.roi_align(flat, own_boxes, GRID, 1.0, sampling_ratio=2, aligned=True)[:, 0] >= 0.5).float()
    names = torch.cat([torch.atleast_1d(x) for x in labels]).long() - 1
    return F.binary_cross_entropy_with_logits(logits[torch.arange(len(names)), names], wanted)


def mask_overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the IoU of all pairs of masks (K, H, W) and (N, H, W)."""
    a, b = (x.reshape(len(x), SIZE * SIZE).astype(np.float32) for x in (a, b))
    both = a @ b.T
    return both / np.maximum(a.sum(1)[:, None] + b.sum(1)[None] - both, 1)
