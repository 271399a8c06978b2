# SPDX-License-Identifier: Apache-2.0
"""Small single-shot detector, its loss, its detections and their average precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stoker import eager
from stoker.torch import ops

from chain import GRIDS, RATIOS, VARIANCES, anchors  # isort: skip

_PER_CELL = len(RATIOS) + 1


def _block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class SmallSSD(nn.Module):
    """Detector for images of 96 x 96: features with 12, 6 and 3 cells along an axis, four anchors in each cell.

    Args:
        classes: number of classes, without the background.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(_block(3, 16, 2), _block(16, 32, 2), _block(32, 64, 2), _block(64, 64, 1))
        widths = (64, 96, 96)
        self.stages = nn.ModuleList([nn.Identity(), *(_block(a, b, 2) for a, b in itertools.pairwise(widths))])
        self.heads = nn.ModuleList([nn.Conv2d(w, _PER_CELL * (classes + 5), 3, 1, 1) for w in widths])
        self.register_buffer("anchors", torch.from_numpy(anchors()))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return offsets (N, M, 4) and logits (N, M, classes + 1) for images (N, 3, 96, 96)."""
        x, found = self.stem(images), []
        for stage, head, (cells, _) in zip(self.stages, self.heads, GRIDS, strict=True):
            x = stage(x)
            assert x.shape[-1] == cells
            out = head(x).permute(0, 2, 3, 1)
            found.append(out.reshape(len(images), cells * cells * _PER_CELL, self.classes + 5))
        whole = torch.cat(found, 1)
        return whole[..., :4], whole[..., 4:]

    @torch.no_grad()
    def detect(self, images: Tensor, least_score: float = 0.05, most: int = 50) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return for each image boxes (K, 4) from 0 to 1, scores and labels from 1, best first."""
        offsets, logits = self(images)
        centre, size = (self.anchors[:, :2] + self.anchors[:, 2:]) / 2, self.anchors[:, 2:] - self.anchors[:, :2]
        variance = offsets.new_tensor(VARIANCES)
        middle = offsets[..., :2] * variance[:2] * size + centre
        half = (offsets[..., 2:] * variance[2:]).exp() * size / 2
        boxes = torch.cat([middle - half, middle + half], -1).clamp(0, 1)
        found = []
        for own, scores in zip(boxes, logits.softmax(-1), strict=True):
            at, label = torch.nonzero(scores[:, 1:] > least_score, as_tuple=True)
            score = scores[at, label + 1]
            kept = ops.batched_nms(own[at].contiguous(), score, label, 0.45)[:most]
            found.append((own[at][kept], score[kept], label[kept] + 1))
        return found


def loss(offsets: Tensor, logits: Tensor, targets: Tensor, labels: Tensor) -> Tensor:
    """Return SSD's loss: offsets of matched anchors, and classes with three times as many of the worst other ones."""
    labels = labels.long()
    matched = labels > 0
    count = matched.sum().clamp(min=1)
    place = F.smooth_l1_loss(offsets[matched], targets[matched], reduction="sum")
    entropy = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)
    others = entropy.detach().masked_fill(matched, -1)
    rank = others.argsort(1, descending=True).argsort(1)
    worst = rank < (3 * matched.sum(1, keepdim=True)).clamp(min=3)
    return (place + entropy[matched | worst].sum()) / count


def box_overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the IoU of all pairs of boxes (K, 4) and (N, 4)."""
    return np.asarray(eager.box_iou(a.astype(np.float32), b.astype(np.float32)))


def average_precision(
    found: list,
    truth: list,
    classes: int,
    threshold: float,
    overlap: Callable[[np.ndarray, np.ndarray], np.ndarray] = box_overlap,
) -> float:
    """Return the mean over classes of the area under precision over recall, for one threshold of the IoU.

    Args:
        found: for each image objects (boxes or masks), scores and labels, NumPy arrays.
        truth: for each image objects and labels.
        classes: number of classes; labels begin at 1.
        threshold: least IoU of a hit. Each true object is hit once, by the detection with the highest score.
        overlap: function that returns the IoU of all pairs of two sets of objects.
    """
    results = []
    for label in range(1, classes + 1):
        hits, total = [], 0
        for (objects, scores, labels), (own, names) in zip(found, truth, strict=True):
            wanted = own[names == label]
            total += len(wanted)
            mine = labels == label
            if not mine.any():
                continue
            iou = overlap(objects[mine], wanted)
            free = np.ones(len(wanted), bool)
            for score, row in sorted(zip(scores[mine], iou, strict=True), key=lambda pair: -pair[0]):
                best = int(np.argmax(np.where(free, row, -1))) if len(row) else 0
                hit = bool(len(row)) and free[best] and row[best] >= threshold
                free[best : best + 1] &= not hit
                hits.append((float(score), bool(hit)))
        if not total:
            continue
        right = np.cumsum([hit for _, hit in sorted(hits, key=lambda pair: -pair[0])])
        precision = right / np.arange(1, len(right) + 1)
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        recall = np.concatenate([[0], right / total])
        results.append(float(np.sum(np.diff(recall) * envelope)) if len(right) else 0.0)
    return float(np.mean(results)) if results else 0.0
