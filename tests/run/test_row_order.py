# SPDX-License-Identifier: Apache-2.0
"""Rows of a batch run largest first if their sizes are known. Only the time depends on this."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from stoker import fn, pipeline_def
from stoker.ops.image import _pillow_decoding

SIDES = (20, 90, 5, 60, 33, 120, 47, 8)


def qoi(side: int) -> bytes:
    """Return a file that Pillow decodes, so that the order is visible. Its noise makes its size grow with the side."""
    pixels = np.random.default_rng(side).integers(0, 256, (side, side), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert("RGB").save(file, "QOI")
    return file.getvalue()


FILES = [qoi(side) for side in SIDES]
LARGEST_FIRST = sorted((len(data) for data in FILES), reverse=True)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the sizes of the files that Pillow decodes, in order."""
    sizes: list[int] = []
    decode = _pillow_decoding.pillow_decode

    def recording_decode(data: npt.NDArray[np.uint8], *rest: Any) -> npt.NDArray[np.uint8]:
        sizes.append(len(data))
        return decode(data, *rest)

    monkeypatch.setattr(_pillow_decoding, "pillow_decode", recording_decode)
    return sizes


def test_files_run_largest_first_once_their_sizes_are_known(tmp_path: Path, opened: list[int]) -> None:
    files = []
    for i, data in enumerate(FILES):
        files.append(tmp_path / f"{i}.qoi")
        files[-1].write_bytes(data)

    @pipeline_def(batch_size=len(FILES), num_threads=1, seed=1, prefetch_queue_depth=1)
    def decoding() -> Any:
        jpegs, labels = fn.readers.file(files=[str(f) for f in files], labels=list(range(len(files))))
        return fn.decoders.image(jpegs), labels

    with decoding() as pipe:
        for _ in range(3):
            images, labels = pipe.run()
            assert [np.asarray(label).item() for label in labels] == list(range(len(FILES)))
            assert [len(np.asarray(image)) for image in images] == list(SIDES)
    # The header read yields the sizes.
    assert opened[: 3 * len(FILES)] == 3 * LARGEST_FIRST


def test_fed_files_run_largest_first(opened: list[int]) -> None:
    @pipeline_def(batch_size=len(FILES), num_threads=1, seed=1, prefetch_queue_depth=1)
    def decoding() -> Any:
        batch = [np.frombuffer(data, np.uint8) for data in FILES]
        return fn.decoders.image(fn.external_source(source=lambda: batch, dtype="uint8", ndim=1))

    with decoding() as pipe:
        for _ in range(3):
            (images,) = pipe.run()
            assert [len(np.asarray(image)) for image in images] == list(SIDES)
    # Of the batch that was requested last: the next one may have started.
    assert opened[2 * len(FILES) : 3 * len(FILES)] == LARGEST_FIRST
