# SPDX-License-Identifier: Apache-2.0
"""JPEG 2000 by imagecodecs: pixels equal Pillow's, and other threads run while it decodes."""

from __future__ import annotations

import io
import threading
import time
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import DataError, eager, types
from stoker.ops.image import _jpeg2000, _pillow_decoding

FORMS: dict[str, dict[str, Any]] = {
    "reversible": {},
    "lossy": {"irreversible": True, "quality_mode": "rates", "quality_layers": [8]},
    "without transform": {"irreversible": True, "mct": 0},
    "codestream": {"no_jp2": True},
    "tiles": {"tile_size": (64, 64), "num_resolutions": 2},
    "layers": {"progression": "RPCL", "irreversible": True, "quality_mode": "dB", "quality_layers": [30, 40]},
}
MODES = {"RGB": 3, "L": 1, "LA": 2, "RGBA": 4, "I;16": 0}


def picture(height: int, width: int, mode: str) -> Image.Image:
    """Return a picture with edges and grain."""
    y, x = np.mgrid[:height, :width]
    grain = np.random.Generator(np.random.PCG64(height)).normal(0, 6, (height, width))
    parts = [128 + 90 * np.sin(x / (9 + k)) + 30 * np.cos(y / (5 + k)) + grain for k in range(MODES[mode] or 1)]
    values = np.stack(parts, -1).clip(0, 255).astype(np.uint8)
    if mode == "I;16":
        return Image.fromarray(values[..., 0].astype(np.uint16) * 257 + 3)
    return Image.fromarray(values[..., 0] if values.shape[2] == 1 else values)


def encoded(image: Image.Image, **options: Any) -> bytes:
    """Return a file."""
    file = io.BytesIO()
    image.save(file, "JPEG2000", **options)
    return file.getvalue()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (37, 53), (200, 301)])
def test_pixels_are_pillows(form: str, mode: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.frombuffer(encoded(picture(*size, mode), **FORMS[form]), np.uint8)
    with Image.open(io.BytesIO(data.tobytes())) as opened:
        wanted = np.asarray(opened)
        found = _jpeg2000.decode_jpeg2000(data, opened.mode)
    assert found is not None, "imagecodecs decodes it"
    np.testing.assert_array_equal(found, wanted)
    kinds = [types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA]
    got = [np.asarray(eager.decoders.image(data, output_type=kind)) for kind in kinds]
    monkeypatch.setattr(_pillow_decoding, "decode_jpeg2000", lambda data, mode: None)
    for kind, pixels in zip(kinds, got, strict=True):
        np.testing.assert_array_equal(pixels, np.asarray(eager.decoders.image(data, output_type=kind)))


def test_another_thread_runs_while_a_file_is_decoded() -> None:
    """Processor time is compared, because both threads wait while other programs run: next to a decoder that holds
    Python's lock, the thread gets less than a tenth of the decoder's time."""
    data = np.frombuffer(encoded(picture(1100, 1500, "RGB"), irreversible=True), np.uint8)
    eager.decoders.image(data)
    shares: list[float] = []
    while len(shares) < 5 and max(shares, default=0.0) < 0.2:
        shares.append(share_of_another_thread(data))
    assert max(shares) >= 0.2, shares


def share_of_another_thread(data: np.ndarray[Any, Any]) -> float:
    """Return the processor time of a thread that runs while a file is decoded, as a part of the decoder's."""
    spent: list[float] = []
    started, ended = threading.Event(), threading.Event()

    def watch() -> None:
        started.set()
        while not ended.is_set():
            pass
        spent.append(time.thread_time())

    begin = time.process_time()
    thread = threading.Thread(target=watch)
    thread.start()
    started.wait()
    eager.decoders.image(data)
    ended.set()
    thread.join()
    return spent[0] / (time.process_time() - begin - spent[0])


@pytest.mark.parametrize("end", [30, 100, 200, 3000])
def test_errors_of_damaged_files_are_pillows(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.frombuffer(encoded(picture(200, 301, "RGB"))[:end], np.uint8)

    def error() -> str:
        with pytest.raises(DataError) as raised:
            eager.decoders.image(data)
        return str(raised.value)

    got = error()
    monkeypatch.setattr(_pillow_decoding, "decode_jpeg2000", lambda data, mode: None)
    assert got == error()
