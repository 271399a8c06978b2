# SPDX-License-Identifier: Apache-2.0
"""Pipelines that the tests in this folder share, and functions to compare their batches."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from stoker import Operator, Pipeline, RowContext, Spec, fn, pipeline_def, register
from stoker.types import DType

ROOT = Path(__file__).resolve().parents[2]
Row = tuple[bytes, ...]


def run_interrupted(pipe: Pipeline, after_s: float) -> tuple[Any, bool]:
    """Return a batch while Ctrl-C arrives after ``after_s``, and whether it was interrupted.

    The batch is None if the interrupt left it in the pipeline. An interrupt between the return of ``run`` and the
    assignment of its result loses the batch. Only separate programs, which handle SIGALRM as SIGINT, call it.
    """
    got = None
    try:
        signal.setitimer(signal.ITIMER_REAL, after_s)
        got = pipe.run()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return got, True
    return got, False


def files_of(root: Path) -> list[str]:
    """Return all files under a folder, in order."""
    return sorted(str(p) for p in root.rglob("*") if p.is_file())


def baseline_of(root: Path) -> list[str]:
    """Return the files that need no Python code: sequential JPEG."""
    found = []
    for file in files_of(root):
        with Image.open(file) as image:
            if not image.info.get("progressive"):
                found.append(file)
    return found


@pipeline_def(batch_size=5, num_threads=2, seed=7)
def training(files: list[str], size: int = 16, shuffle: bool = True, **reader: Any) -> Any:
    """Return random crops of images as float32 CHW, with the number of the file as the label."""
    jpegs, labels = fn.readers.file(files=files, random_shuffle=shuffle, name="Reader", **reader)
    images = fn.decoders.image_random_crop(jpegs)
    images = fn.resize(images, resize_x=size, resize_y=size)
    images = fn.crop_mirror_normalize(images, mean=[120.0], std=[60.0], mirror=fn.random.coin_flip())
    return images, labels


@pipeline_def(batch_size=5, num_threads=2, seed=7)
def decoding(files: list[str], **reader: Any) -> Any:
    """Return whole images of different sizes, in order, with the number of the file."""
    jpegs, labels = fn.readers.file(files=files, **reader)
    return fn.decoders.image(jpegs), labels


@pipeline_def(batch_size=5, num_threads=2, seed=7)
def clips(files: list[str], **reader: Any) -> Any:
    """Return shuffled and mirrored clips of videos, with the number of the file and the first frame."""
    video, label, first = fn.readers.video(
        filenames=files, labels=[], sequence_length=3, step=2, random_shuffle=True, enable_frame_num="scalar", **reader
    )
    return fn.flip(video, horizontal=fn.random.coin_flip()), fn.cat(label, first)


class Count(Operator, name="test_count"):
    """Running sum of the labels: a state that every batch changes, and that depends on the order of the batches."""

    stateful = True

    def infer(self, c: Any, label: Any) -> Spec:
        return Spec(DType.INT64, (1,))

    def init(self) -> dict[str, int]:
        return {"rows": 0, "sum": 0}

    def reference(self, row: RowContext, label: Any) -> Any:
        row.state["rows"] += 1
        row.state["sum"] += row.state["rows"] * int(label[0])
        return np.asarray([row.state["sum"]], np.int64)


register(Count)


@pipeline_def(batch_size=5, num_threads=2, seed=7)
def counting_rows(files: list[str]) -> Any:
    """Return running sums of a stateful operator."""
    _, labels = fn.readers.file(files=files, random_shuffle=True)
    return fn.test_count(labels), labels


def rows_of(outputs: Any) -> list[Row]:
    """Return the rows of a batch as bytes."""
    return [tuple(np.asarray(x).tobytes() for x in row) for row in zip(*outputs, strict=True)]


def labels_of(outputs: Any) -> list[int]:
    """Return the labels of the rows: the last output."""
    return [int(np.asarray(x).reshape(-1)[0]) for x in outputs[-1]]


def stream(pipe: Pipeline, count: int) -> list[Row]:
    """Return at least ``count`` rows, epoch after epoch, and close the pipeline."""
    rows: list[Row] = []
    with pipe:
        while len(rows) < count:
            rows += rows_of(pipe.run())
    return rows


def environment(**more: str) -> dict[str, str]:
    """Return the environment for a separate Python process with the import path of this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]), **more}


def epoch(pipe: Pipeline) -> Iterator[tuple[list[Row], dict[str, Any]]]:
    """Yield the batches of the rest of an epoch, each with the state after it."""
    while (delivered := pipe.next()) is not None:
        yield rows_of(delivered.outputs), pipe.get_state()
