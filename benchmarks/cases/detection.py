# SPDX-License-Identifier: Apache-2.0
"""Suppression of boxes and pooling of regions on tensors, one core; and the cost of a function on pixels in a chain."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Bar, Case, Contender, Loop, Unit
from benchmarks.data import Data

ORDER = 46
MS_PER_CALL = Unit("ms/call", lambda seconds: 1e3 * seconds)
MS_PER_IMAGE = Unit("ms/image", lambda seconds: 1e3 * seconds)
THRESHOLD = 0.5
CLASSES = 80
REGIONS, CHANNELS, BINS, SCALE = 1000, 256, 7, 1 / 16


def boxes_of(torch: Any, count: int) -> tuple[Any, Any, Any]:
    """Return boxes spread over 800 x 800 pixels, their scores, and labels."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 800, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(10, 110, (count, 2))], 1).astype(np.float32)
    scores, labels = rng.random(count, np.float32), rng.integers(0, CLASSES, count)
    return torch.from_numpy(boxes), torch.from_numpy(scores), torch.from_numpy(labels)


def _loop(call: Callable[[], Any]) -> Loop:
    def step() -> tuple[int, float]:
        result = call()
        return 1, float(result[(-1,) * result.ndim])  # `reshape` would copy images with channels last

    return Loop(step)


def run_nms(data: Data, *, count: int) -> Loop:
    """Keep the boxes that no better box overlaps."""
    import torch

    from stoker.torch import ops

    boxes, scores, _ = boxes_of(torch, count)
    return _loop(lambda: ops.nms(boxes, scores, THRESHOLD))


def run_batched_nms(data: Data, *, count: int) -> Loop:
    """Keep the boxes that no better box of the same label overlaps."""
    import torch

    from stoker.torch import ops

    boxes, scores, labels = boxes_of(torch, count)
    return _loop(lambda: ops.batched_nms(boxes, scores, labels, THRESHOLD))


def _regions(torch: Any) -> tuple[Any, Any]:
    features = torch.rand(1, CHANNELS, 50, 68, generator=torch.Generator().manual_seed(0))
    boxes, _, _ = boxes_of(torch, REGIONS)
    return features, torch.cat([torch.zeros(REGIONS, 1), boxes], 1)


def run_roi_align(data: Data) -> Loop:
    """Pool 1000 regions of 256 channels into 7 x 7 bins of 2 x 2 samples."""
    import torch

    from stoker.torch import ops

    features, regions = _regions(torch)
    return _loop(lambda: ops.roi_align(features, regions, BINS, SCALE, 2, True))


def run_roi_align_backward(data: Data) -> Loop:
    """Compute the gradient of these features."""
    import torch

    from stoker.torch import ops

    features, regions = _regions(torch)
    pooled = ops.roi_align(features.requires_grad_(), regions, BINS, SCALE, 2, True)
    gradient = torch.rand(pooled.shape, generator=torch.Generator().manual_seed(1))
    return _loop(lambda: torch.autograd.grad(pooled, features, gradient, retain_graph=True)[0])


MATRIX = [[0.9, 0.1, 3.0], [-0.08, 1.05, -5.0]]


def _image() -> Any:
    return np.random.default_rng(0).integers(0, 256, (720, 1280, 3), dtype=np.uint8)


def run_warp(data: Data) -> Loop:
    """Warp an image of 1280 x 720 with channels last, linear, as a tensor."""
    import torch

    from stoker.torch import ops

    images = torch.from_numpy(_image())[None].permute(0, 3, 1, 2)
    matrices = torch.tensor([MATRIX])
    return _loop(lambda: ops.warp_affine(images, matrices))


def run_warp_opencv(data: Data) -> Loop:
    """Warp the same image with OpenCV, on one thread."""
    import cv2

    cv2.setNumThreads(1)
    image, matrix = _image(), np.array(MATRIX)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return _loop(lambda: cv2.warpAffine(image, matrix, (1280, 720), flags=flags, borderMode=cv2.BORDER_CONSTANT))


def run_chain(data: Data, *, fused: bool) -> Loop:
    """Resize, crop and normalize 16 images, with or without a function on pixels between."""
    import stoker
    from stoker import fn, pipeline_def, types

    @stoker.fuse(name="benchmark_gain")
    def gain(p, strength: float = 0.5):  # type: ignore[no-untyped-def]
        return p.value * (1 - strength * 0.25)

    images = [np.random.default_rng(i).integers(0, 256, (375, 500, 3), dtype=np.uint8) for i in range(16)]

    @pipeline_def(batch_size=16, num_threads=1)
    def chain() -> Any:
        x = fn.external_source(lambda: images, dtype=types.UINT8, ndim=3, layout="HWC", no_copy=True)
        x = fn.resize(x, size=(224, 224))
        x = gain(x, strength=fn.random.uniform(range=(0, 1))) if fused else x
        return fn.crop_mirror_normalize(x, mean=[123.0] * 3, std=[58.0] * 3)

    pipe = chain()
    return _loop(lambda: np.asarray(pipe.run()[0][0]))


def write_annotations(files: list[str], folder: str) -> str:
    """Write annotations in COCO's form with random boxes, and return their path."""
    from PIL import Image

    images, boxes = [], []
    for i, file in enumerate(files):
        with Image.open(file) as image:
            width, height = image.size
        images.append({"id": i + 1, "file_name": file, "width": width, "height": height})
        rng = np.random.default_rng(i)
        for _ in range(int(rng.integers(1, 8))):
            w, h = rng.uniform(0.1, 0.6) * width, rng.uniform(0.1, 0.6) * height
            x, y = rng.uniform(0, width - w), rng.uniform(0, height - h)
            boxes.append({
                "id": len(boxes) + 1, "image_id": i + 1, "category_id": 1 + len(boxes) % CLASSES, "iscrowd": 0,
                "bbox": [float(v) for v in (x, y, w, h)], "area": float(w * h), "segmentation": [],
            })  # fmt: skip
    names = [{"id": k + 1, "name": str(k)} for k in range(CLASSES)]
    path = f"{folder}/annotations.json"
    with open(path, "w", encoding="utf-8") as written:
        json.dump({"categories": names, "images": images, "annotations": boxes}, written)
    return path


def _ssd_anchors() -> Any:
    """Return the 8,732 anchors of SSD300 (Liu et al., 2016) as left, top, right, bottom."""
    sides = (21, 45, 99, 153, 207, 261, 315)
    found = []
    for cells, side, larger, ratios in zip(
        (38, 19, 10, 5, 3, 1), sides[:-1], sides[1:], (2, 3, 3, 3, 2, 2), strict=True
    ):
        shapes = [(side, side), ((side * larger) ** 0.5,) * 2]
        for ratio in range(2, ratios + 1):
            root = ratio**0.5
            shapes += [(side * root, side / root), (side / root, side * root)]
        for y, x in np.ndindex(cells, cells):
            cx, cy = 300 * (x + 0.5) / cells, 300 * (y + 0.5) / cells
            found += [(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2) for w, h in shapes]
    return np.array(found, np.float32) / 300


def run_ssd(data: Data) -> Loop:
    """Read, crop, decode, resize, colour and normalize images for SSD300, and encode their boxes."""
    with tempfile.TemporaryDirectory() as folder:
        return _ssd_loop(write_annotations(data.files, folder))


def make_ssd_chain(library: Any, annotations: str, device: str, *, encoder: str = "cpu", **settings: Any) -> Any:
    """Return the pipeline of SSD300's training chain, with the same source for Stoker and DALI.

    Args:
        library: `stoker`, or DALI's module.
        annotations: path of the annotations in COCO's form.
        device: "cpu" or "gpu", for images and outputs.
        encoder: "cpu" or "gpu", for `box_encoder`.
        settings: arguments of the pipeline.
    """
    fn, types = library.fn, library.types
    anchors = _ssd_anchors()

    @library.pipeline_def(seed=1, **settings)  # type: ignore[untyped-decorator]
    def chain() -> Any:
        files, boxes, labels = fn.readers.coco(
            file_root="/", annotations_file=annotations, ratio=True, ltrb=True, random_shuffle=True
        )
        anchor, shape, boxes, labels = fn.random_bbox_crop(
            boxes, labels, aspect_ratio=[0.5, 2.0], thresholds=[0, 0.1, 0.3, 0.5, 0.7, 0.9], scaling=[0.3, 1.0],
            bbox_layout="xyXY", num_attempts=50,
        )  # fmt: skip
        images = fn.decoders.image_slice(files, anchor, shape, device="mixed" if device == "gpu" else "cpu")
        images = fn.resize(images, size=(300, 300))
        images = fn.hsv(
            images, dtype=types.FLOAT, hue=fn.random.uniform(range=(-18, 18)),
            saturation=fn.random.uniform(range=(0.5, 1.5)),
        )  # fmt: skip
        images = fn.brightness_contrast(
            images, contrast_center=128, dtype=types.UINT8, brightness=fn.random.uniform(range=(0.875, 1.125)),
            contrast=fn.random.uniform(range=(0.5, 1.5)),
        )  # fmt: skip
        coin = fn.random.coin_flip()
        images = fn.crop_mirror_normalize(images, mirror=coin, mean=[123.0] * 3, std=[58.0] * 3)
        boxes = fn.bb_flip(boxes, ltrb=True, horizontal=coin)
        if encoder == "gpu":
            boxes, labels = boxes.gpu(), labels.gpu()
        encoded = fn.box_encoder(
            boxes, labels, anchors=anchors.ravel().tolist(), offset=True, stds=[0.1, 0.1, 0.2, 0.2], scale=300.0
        )
        return images, *((x.gpu() for x in encoded) if device != encoder else encoded)

    pipeline = chain()
    pipeline.build()  # reads the annotations
    return pipeline


def _ssd_loop(annotations: str) -> Loop:
    import stoker

    pipe = make_ssd_chain(stoker, annotations, "cpu", batch_size=8, num_threads=1)

    def step() -> tuple[int, float]:
        images, _, labels = pipe.run()
        return len(images), float(np.asarray(labels[0])[-1])

    return Loop(step)


def _absolute(name: str, title: str, function: str, limit: float, **options: Any) -> Case:
    bar = Bar(f"at most {limit:g} ms", "stoker", at_most=limit)
    contender = Contender("stoker", function, options, cores=1)
    return Case(f"detection-{name}", f"Detection: {title}", MS_PER_CALL, (contender,), (bar,), _NOTE, seconds=0.5)


_NOTE = "One core, tensors of float32 on the CPU. The results have the bits of torchvision's CPU kernels."

CASES = (
    _absolute("nms-1000", "nms of 1,000 boxes", "run_nms", 0.1, count=1000),
    _absolute("nms-10000", "nms of 10,000 boxes", "run_nms", 5.0, count=10_000),
    _absolute("batched-nms", "batched_nms of 10,000 boxes of 80 labels", "run_batched_nms", 3.0, count=10_000),
    _absolute("roi-align", "roi_align, 1000 regions of 256 x 7 x 7", "run_roi_align", 35.0),
    _absolute("roi-align-backward", "its gradient", "run_roi_align_backward", 22.0),
    Case(
        "detection-warp-affine", "warp_affine of 1280 x 720, uint8, linear", MS_PER_CALL,
        (
            Contender("stoker", "run_warp", cores=1),
            Contender("OpenCV", "run_warp_opencv", environment="peers", cores=1),
        ),
        (Bar("time of OpenCV's", "stoker", ("OpenCV",), at_most=1.0),),
        "One core. Stoker's pixels are those of Pillow; OpenCV rounds coordinates to 1/32 pixel.", seconds=0.5,
    ),
    Case(
        "detection-ssd", "Detection: SSD300's training chain", MS_PER_IMAGE, (Contender("stoker", "run_ssd", cores=1),),
        (Bar("at most 1.4 ms an image", "stoker", at_most=1.4),),
        "One core: COCO annotations, random_bbox_crop, decoding of the window, resize to 300 x 300, hsv, "
        "brightness_contrast, mirror, normalization, box_encoder with 8,732 anchors. Batches of 8.", seconds=1.0,
    ),
    Case(
        "fuse", "A function on pixels in a chain", MS_PER_CALL,
        (
            Contender("with the function", "run_chain", {"fused": True}, cores=1),
            Contender("without", "run_chain", {"fused": False}, cores=1),
        ),
        (Bar("time of the chain without it", "with the function", ("without",), at_most=1.1, goal=1.0),),
        "16 images of 500 x 375: resize to 224 x 224, a gain for each row, normalization.", seconds=0.5,
    ),
)  # fmt: skip
