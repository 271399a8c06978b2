# SPDX-License-Identifier: Apache-2.0
"""Checks that the demonstration runs on the user's own files: exact decoding, exact resumption."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import ImageOps

from stoker import Batch, Pipeline, StokerError, eager

from .._image_formats import open_image


@dataclass
class Comparison:
    """Number of images that both libraries decoded, and the images that differ."""

    compared: int = 0
    different: list[Path] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)

    @property
    def equal(self) -> int:
        """Return the number of images with identical bits."""
        return self.compared - len(self.different)


def compare_with_pillow(
    files: Sequence[Path], *, seconds: float, threads: int, progress: Callable[[int], object]
) -> Comparison:
    """Decode files with Stoker and with Pillow, and compare the pixels, for at most ``seconds`` seconds."""
    result = Comparison()
    deadline = time.perf_counter() + seconds
    with ThreadPoolExecutor(threads) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns about large images
        for start in range(0, len(files), 16 * threads):
            portion = files[start : start + 16 * threads]
            for file, outcome in zip(portion, pool.map(_same, portion), strict=True):
                if isinstance(outcome, str):
                    result.failed.append((file, outcome))
                    continue
                result.compared += 1
                if not outcome:
                    result.different.append(file)
            progress(len(portion))
            if time.perf_counter() > deadline:
                break
    return result


def _same(file: Path) -> bool | str:
    """Return whether both libraries decode to the same pixels; a text says why one of them cannot."""
    try:
        mine = np.asarray(eager.decoders.image(file.read_bytes()))
        with open_image(file) as image:
            theirs = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except (StokerError, OSError, SyntaxError, ValueError) as error:
        return str(error).partition("\n")[0]
    return bool(np.array_equal(mine, theirs))


@dataclass(frozen=True)
class Resumption:
    """Checksums of the same batches, run without and with a stop in the middle."""

    batches: int
    stopped_after: int
    whole: int
    resumed: int

    @property
    def equal(self) -> bool:
        """Return whether the stop made no difference."""
        return self.whole == self.resumed


def stop_and_resume(make: Callable[[], Pipeline], batches: int) -> Resumption:
    """Run some batches without a stop, then again with a stop in the middle and a new pipeline that resumes from the
    token.
    """
    with make() as pipeline:
        whole = checksum(pipeline.run() for _ in range(batches))
    half = batches // 2
    with make() as pipeline:
        first = checksum(pipeline.run() for _ in range(half))
        token = pipeline.get_state()
    with make() as pipeline:
        pipeline.set_state(token)
        resumed = checksum((pipeline.run() for _ in range(batches - half)), first)
    return Resumption(batches, half, whole, resumed)


def checksum(batches: Iterable[Sequence[Batch]], start: int = 0) -> int:
    """Return the CRC-32 of all outputs of all batches, in order."""
    for outputs in batches:
        for output in outputs:
            start = zlib.crc32(np.ascontiguousarray(output.as_array()).data, start)
    return start
