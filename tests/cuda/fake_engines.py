# SPDX-License-Identifier: Apache-2.0
"""Fake JPEG engines for machines without them: a library over Pillow, whose pixels are wrong by a known amount."""

from __future__ import annotations

import ctypes
import gc
import io
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import fn, pipeline_def
from stoker.codecs.jpeg import engines as opening
from tests.idle_clock import HANG_S

HERE = Path(__file__).parent
OFF = 3  # levels by which some pixels of the fake are wrong
_DECODER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_size_t, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_size_t,
    ctypes.c_int,
)  # fmt: skip


def wrong(pixels: np.ndarray) -> np.ndarray:
    """Return pixels as the fake engines decode them: every fifth pixel of a line is off."""
    pixels_decoded = pixels.copy()
    part = pixels_decoded[:, ::5]
    part[...] = np.where(part > 255 - OFF, part - OFF, part + OFF)
    return pixels_decoded


def _decode(data: Any, size: int, to: Any, pitch: int, bgr: int) -> int:
    try:
        pixels = wrong(np.asarray(Image.open(io.BytesIO(ctypes.string_at(data, size))).convert("RGB")))
    except OSError:
        return 3
    out = np.ctypeslib.as_array(to, (len(pixels), pitch))
    out[:, : 3 * pixels.shape[1]] = pixels[..., :: -1 if bgr else 1].reshape(len(pixels), -1)
    return 0


_KEPT = _DECODER(_decode)


@pytest.fixture(scope="module")
def nvjpeg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nvjpeg") / "libnvjpeg.so"
    subprocess.run(
        ["g++", "-std=c++20", "-shared", "-fPIC", HERE / "fake_nvjpeg.cpp", "-o", path], check=True, timeout=HANG_S
    )
    return path


@pytest.fixture
def engines(nvjpeg: Path, emulated_gpu: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Yield a function that sets the library's answers: statuses of opening and decoding, the number of engines."""
    monkeypatch.setattr(opening, "find_library", lambda: str(nvjpeg))
    fake = ctypes.CDLL(str(nvjpeg))

    def answer(create: int = 0, decode: int = 0, count: int = 7) -> None:
        fake.fake_set(_KEPT, create, decode, count)

    answer()
    yield answer
    gc.collect()
    assert fake.fake_alive() == 0, "handles, states and parsers are released"


def image(seed: int, height: int = 24, width: int = 33) -> Image.Image:
    squares = np.random.default_rng(seed).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
    return Image.fromarray(squares.repeat(8, 0).repeat(8, 1)[:height, :width])


def save(folder: Path, name: str, picture: Image.Image, **options: Any) -> str:
    path = folder / f"{name}.jpg"
    picture.save(path, **{"format": "JPEG", "quality": 90, **options})
    return str(path)


def forty_files(folder: Path) -> list[str]:
    """Return forty files of different sizes, with three chroma samplings."""
    return [save(folder, f"{i:03}", image(i, 16 + i % 9, 17 + i % 13), subsampling=i % 3) for i in range(40)]


def turned_file(folder: Path, orientation: int) -> tuple[str, np.ndarray]:
    """Return a file of this orientation, and the pixels that the fake engines decode from it."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(folder, "turned", image(3, 29, 45), exif=exif, subsampling=0)
    turned = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}[orientation]  # Pillow's transpositions
    whole = Image.fromarray(wrong(exact_of(path)))
    return path, np.asarray(whole if turned is None else whole.transpose(Image.Transpose(turned)))


def exact_of(path: str) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


@pipeline_def(batch_size=8, num_threads=2, device_id=0, seed=7)
def decoding(files: list[str], device: str = "mixed", **how: Any) -> Any:
    data, _ = fn.readers.file(files=files)
    how = {"gpu_backend": "nvjpeg_hardware", "hw_decoder_load": 1.0, **how}
    return fn.decoders.image(data, device=device, **how)


def rows_of(pipe: Any, count: int) -> tuple[list[np.ndarray], Any]:
    """Return this many rows, and the report after them."""
    with pipe:
        rows: list[np.ndarray] = []
        while len(rows) < count:
            rows += [np.asarray(row) for row in pipe.run()[0].as_cpu()]
        return rows[:count], pipe.report()
