# SPDX-License-Identifier: Apache-2.0
"""Pipelines of GPU benchmarks, with the same source for Stoker and DALI, and the consumer of their outputs."""

from __future__ import annotations

import os
from typing import Any

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
BATCH = 256
DEPTH = 5  # prefetched batches
INDEX_BYTES = 1 << 28  # bytes that later epochs may use for the index
CHAIN, DECODE = "chain", "decode"


def library(name: str) -> Any:
    """Return ``fn``, ``types`` and ``pipeline_def`` of Stoker or DALI."""
    if name == "stoker":
        import stoker

        return stoker
    from nvidia import dali

    return dali


def make_pipeline(
    name: str,
    kind: str,
    files: list[str],
    device: str,
    threads: int,
    depth: int,
    load: float | str = 1.0,
    index: int = 0,
    index_path: str | None = None,
    passes: frozenset[str] | None = None,
    **decoder: Any,
) -> Any:
    """Return the training chain, or decoding only.

    Options of Stoker only: ``load`` is the fraction of rows that the GPU decodes, ``index`` the bytes for data about
    files, ``index_path`` its place on disk, ``passes`` the enabled passes over the plan, or all.
    """
    lib = library(name)
    fn, types = lib.fn, lib.types
    on_gpu = device == "gpu"

    own = {"gpu_decoder_load": load, "gpu_jpeg_index": index, "gpu_jpeg_index_path": index_path, "passes": passes}

    @lib.pipeline_def(  # type: ignore[untyped-decorator]
        batch_size=BATCH, num_threads=threads, device_id=0 if on_gpu else None, seed=7, prefetch_queue_depth=depth,
        **(own if name == "stoker" else {}),
    )  # fmt: skip
    def define() -> Any:
        data, labels = fn.readers.file(files=files, labels=list(range(len(files))), random_shuffle=True, name="Reader")
        where = "mixed" if on_gpu else "cpu"
        if kind == DECODE:
            return fn.decoders.image(data, device=where, output_type=types.RGB, **decoder), labels
        x = fn.decoders.image_random_crop(data, device=where, output_type=types.RGB, **decoder)
        x = fn.resize(x, resize_x=224, resize_y=224)
        x = fn.crop_mirror_normalize(
            x, mean=MEAN, std=STD, mirror=fn.random.coin_flip(), dtype=types.FLOAT16, output_layout="CHW"
        )
        return x, labels

    pipeline = define()
    pipeline.build()
    return pipeline


def consume(outputs: Any, total: Any) -> None:
    """Sum some elements of the first output on the GPU, without waiting."""
    import torch

    first = outputs[0]
    if hasattr(first, "as_tensor"):  # DALI's
        arrays = [first.as_tensor()] if first.is_dense_tensor() else [first[i] for i in range(4)]
    else:
        arrays = [first] if first.is_dense else [first[i] for i in range(4)]
    for part in map(torch.from_dlpack, arrays):
        total += part.reshape(-1)[::509].sum(dtype=torch.float64)


def make_augmentation(depth: int) -> Any:
    """Return an augmentation of one tensor of images that is on the GPU."""
    import torch

    images = torch.randint(0, 256, (BATCH, 375, 500, 3), dtype=torch.uint8, device="cuda")
    return augment(images, len(os.sched_getaffinity(0)), depth)


def augment(images: Any, threads: int, depth: int) -> Any:
    """Return the augmentation of ``images``, which are fed for every batch."""
    from stoker import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=0, seed=7, prefetch_queue_depth=depth)
    def define() -> Any:
        x = fn.external_source(source=lambda i: images, device="gpu", no_copy=True, layout="HWC")
        x = fn.random_resized_crop(x, size=(224, 224))
        x = fn.rotate(x, angle=fn.random.uniform(range=(-30.0, 30.0)), keep_size=True, fill_value=0)
        x = fn.color_twist(
            x, brightness=fn.random.uniform(range=(0.6, 1.4)), contrast=fn.random.uniform(range=(0.6, 1.4)),
            saturation=fn.random.uniform(range=(0.6, 1.4)), hue=fn.random.uniform(range=(-20.0, 20.0)),
        )  # fmt: skip
        return fn.crop_mirror_normalize(
            x, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT16, output_layout="CHW"
        )

    return define()
