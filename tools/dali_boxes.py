# SPDX-License-Identifier: Apache-2.0
"""Operators of boxes and polygons of NVIDIA DALI and of Stoker on the same inputs.

``PYTHON tools/dali_boxes.py``: PYTHON is an interpreter with nvidia-dali (a CPU is enough). The program stores the
inputs and DALI's outputs in tests/compat/dali_boxes.npz, with which tests/compat/test_dali_boxes.py compares. Windows
that DALI draws are stored with the boxes that it keeps in them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).resolve().parents[1] / "tests" / "compat" / "dali_boxes.npz"
ROWS = 96  # of a case with draws

Build = Callable[[Any, dict[str, Any]], Any]  # fn, inputs -> outputs


def _encoder(boxes: str, **arguments: Any) -> Build:
    def build(fn: Any, x: dict[str, Any]) -> Any:
        return fn.box_encoder(x[boxes], x[f"{boxes} labels"], anchors=ANCHORS.reshape(-1).tolist(), **arguments)

    return build


def _rotate(boxes: str, **arguments: Any) -> Build:
    return lambda fn, x: fn.bbox_rotate(x[boxes], x[f"{boxes} labels"], **arguments)


# Name: the operators, and the largest difference from DALI's numbers.
CASES: dict[str, tuple[Build, float]] = {
    "box_encoder": (_encoder("boxes"), 0.0),
    "box_encoder, low criteria": (_encoder("boxes", criteria=0.1), 0.0),
    "box_encoder, boxes outside of all anchors": (_encoder("far"), 0.0),
    "box_encoder, no boxes": (_encoder("none"), 0.0),
    "box_encoder, equal boxes": (_encoder("equal"), 0.0),
    "box_encoder, offsets": (
        _encoder("boxes", offset=True, scale=300.0, means=[0.1, 0.0, 0.2, 0.0], stds=[0.1, 0.1, 0.2, 0.2]), 2e-5
    ),
    **{
        f"bbox_rotate, {mode}, {angle:g}": (_rotate("boxes", angle=angle, input_shape=[100, 80], mode=mode), 1e-6)
        for mode in ("expand", "fixed", "halfway")
        for angle in (30.0, 90.0, -117.5)
    },
    "bbox_rotate, keep_size": (_rotate("boxes", angle=50.0, input_shape=[100, 80, 3], keep_size=True), 1e-6),
    "bbox_rotate, high threshold": (
        _rotate("boxes", angle=50.0, input_shape=[100, 80], keep_size=True, remove_threshold=0.95), 1e-6
    ),
    "bbox_rotate, size": (_rotate("boxes", angle=20.0, input_shape=[100, 80], size=[60.0, 70.0]), 1e-6),
    "bbox_rotate, WH": (_rotate("boxes", angle=20.0, input_shape=[100, 80], shape_layout="WH"), 1e-6),
    "bbox_rotate, extents": (_rotate("extents", angle=20.0, input_shape=[100, 80], bbox_layout="xyWH"), 1e-6),
    "bbox_rotate, pixels": (
        _rotate("pixels", angle=20.0, input_shape=[100, 80], bbox_normalized=False, keep_size=True), 1e-4
    ),
    "select_masks": (
        lambda fn, x: fn.segmentation.select_masks(x["ids"], x["polygons"], x["vertices"], reindex_masks=True), 0.0
    ),
    "select_masks, own numbers": (
        lambda fn, x: fn.segmentation.select_masks(x["ids"], x["polygons"], x["vertices"]), 0.0
    ),
}  # fmt: skip

# Arguments of random_bbox_crop, by the name of its boxes.
CROPS: dict[str, tuple[str, dict[str, Any]]] = {
    "ssd": (
        "boxes",
        {"thresholds": [0.0, 0.1, 0.3, 0.5, 0.7, 0.9], "scaling": [0.3, 1.0], "aspect_ratio": [0.5, 2.0],
         "num_attempts": 50},
    ),
    "pruned by area": (
        "boxes",
        {"thresholds": [0.0], "scaling": [0.3, 0.6], "aspect_ratio": [0.5, 2.0], "num_attempts": 50,
         "allow_no_crop": False, "bbox_prune_threshold": 0.3},
    ),
    "pruned without area": (
        "boxes",
        {"thresholds": [0.0], "scaling": [0.3, 0.6], "aspect_ratio": [0.5, 2.0], "num_attempts": 50,
         "allow_no_crop": False, "bbox_prune_threshold": 0.0},
    ),
    "fixed": ("boxes", {"crop_shape": [40, 30], "input_shape": [100, 80], "allow_no_crop": False}),
    "fixed, larger": ("boxes", {"crop_shape": [140, 30], "input_shape": [100, 80], "allow_no_crop": False}),
    "extents": (
        "extents",
        {"thresholds": [0.1], "scaling": [0.3, 1.0], "aspect_ratio": [0.5, 2.0], "num_attempts": 50,
         "allow_no_crop": False, "ltrb": False, "threshold_type": "overlap", "all_boxes_above_threshold": False},
    ),
}  # fmt: skip


def _made_anchors() -> Any:
    rng = np.random.default_rng(1)
    corners = rng.uniform(0, 0.7, (60, 2))
    return np.concatenate([corners, corners + rng.uniform(0.05, 0.3, (60, 2))], 1).astype(np.float32)


ANCHORS = _made_anchors()


def make_inputs() -> dict[str, Any]:
    """Return named boxes with labels, and polygons."""
    rng = np.random.default_rng(3)
    boxes = np.clip(ANCHORS[rng.integers(0, 60, 12)] + rng.normal(0, 0.03, (12, 4)), 0, 1).astype(np.float32)
    boxes = boxes[(boxes[:, 2:] - boxes[:, :2] > 0.02).all(1)][:7]
    extents = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
    found = {
        "boxes": boxes,
        "extents": extents,
        "pixels": boxes * np.array([80, 100, 80, 100], np.float32),
        "far": np.array([[2, 2, 3, 3], [1.5, 0.1, 1.7, 0.4]], np.float32),
        "equal": np.repeat(ANCHORS[[3, 9]], 3, 0),
        "none": np.zeros((0, 4), np.float32),
    }
    labels = {f"{name} labels": np.arange(1, len(x) + 1, dtype=np.int32) for name, x in found.items()}
    polygons = np.array([[4, 0, 3], [1, 3, 7], [2, 7, 10]], np.int32)  # one polygon of each mask: DALI loses others
    vertices = rng.uniform(0, 9, (10, 2)).astype(np.float32)
    return {**found, **labels, "ids": np.array([2, 4], np.int32), "polygons": polygons, "vertices": vertices}


def run(module: str, build: Build, inputs: dict[str, Any], rows: int = 1) -> list[list[Any]]:
    """Return the rows of each output. ``module`` is nvidia.dali or stoker.dali."""
    dali = importlib.import_module(module)
    fn = importlib.import_module(f"{module}.fn")

    @dali.pipeline_def(batch_size=rows, num_threads=1, device_id=None, seed=5)  # type: ignore[untyped-decorator]
    def pipe() -> Any:
        def fed(x: Any) -> Any:
            return fn.external_source(source=lambda: [x] * rows)

        return tuple(build(fn, {name: fed(x) for name, x in inputs.items()}))

    running = pipe()
    running.build()
    return [[np.array(output.at(i)) for i in range(rows)] for output in running.run()]


def run_case(module: str, name: str, inputs: dict[str, Any]) -> list[Any]:
    """Return the outputs of a case."""
    return [rows[0] for rows in run(module, CASES[name][0], inputs)]


def run_crops(module: str, name: str, inputs: dict[str, Any]) -> list[list[Any]]:
    """Return anchors, shapes, boxes and numbers of boxes of many windows."""
    boxes, arguments = CROPS[name]
    return run(module, lambda fn, x: fn.random_bbox_crop(x[boxes], output_bbox_indices=True, **arguments), inputs, ROWS)


def main() -> None:
    inputs = make_inputs()
    stored = {f"in:{name}": x for name, x in inputs.items()}
    for name in CASES:
        stored |= {f"out:{name}:{i}": x for i, x in enumerate(run_case("nvidia.dali", name, inputs))}
    for name in CROPS:
        anchors, shapes, boxes, numbers = run_crops("nvidia.dali", name, inputs)
        stored |= {f"crop:{name}:anchors": np.stack(anchors), f"crop:{name}:shapes": np.stack(shapes)}
        stored |= {f"crop:{name}:boxes": np.concatenate(boxes), f"crop:{name}:numbers": np.concatenate(numbers)}
        stored[f"crop:{name}:counts"] = np.array([len(x) for x in boxes])
    np.savez_compressed(RECORD, **stored)


if __name__ == "__main__":
    main()
