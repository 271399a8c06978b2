# SPDX-License-Identifier: Apache-2.0
"""Checksums of OpenCV's results, for operators that have its bits.

``PYTHON tools/opencv_values.py``: PYTHON is an interpreter with OpenCV and NumPy. The program writes
tests/compat/opencv_values.json, with which the tests compare, so that they do not need OpenCV.
"""

from __future__ import annotations

import importlib
import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).resolve().parents[1] / "tests" / "compat" / "opencv_values.json"
SIZES = ((1, 1), (1, 7), (9, 2), (40, 33), (21, 130))
BORDERS = {"constant": 0, "replicate": 1, "reflect": 2, "reflect_101": 4}  # with OpenCV's numbers

Call = Callable[[Any, Any], Any]  # takes the library and the image
CASES: dict[str, tuple[str, Call, Call]] = {}  # name -> (kind of image, OpenCV's call, Stoker's call with `eager`)


def images(kind: str) -> Iterator[Any]:
    """Yield images of a type, such as "uint8" or "uint8 gray"."""
    rng = np.random.default_rng(20)
    dtype, *more = kind.split()
    for height, width in SIZES:
        shape = (height, width) if "gray" in more else (height, width, 3)
        noise = rng.normal(110, 60, shape)
        smooth = 40 * np.sin(np.arange(width) / 9.0)
        image = noise + (smooth if "gray" in more else smooth[:, None])
        if dtype == "uint8":
            yield np.clip(image, 0, 255).astype(np.uint8)
        else:
            yield (image * 90).astype(dtype) if dtype != "uint16" else np.clip(image * 250, 0, 65535).astype(dtype)


def checksums(kind: str, call: Callable[[Any], Any]) -> list[int]:
    """Return the checksum of each result."""
    return [zlib.crc32(np.ascontiguousarray(call(image)).tobytes()) for image in images(kind)]


def morphology(name: str, kind: str, size: tuple[int, int], border: str, **more: Any) -> None:
    def theirs(cv2: Any, x: Any) -> Any:
        options = {"anchor": more.get("anchor", (-1, -1)), "iterations": more.get("iterations", 1)}
        return getattr(cv2, name)(x, np.ones(size[::-1], np.uint8), borderType=BORDERS[border], **options)

    def ours(eager: Any, x: Any) -> Any:
        return getattr(eager.experimental, name)(x, mask_size=size, border_mode=border, **more)

    text = "".join(f", {key} {value}" for key, value in more.items())
    CASES[f"{name} {size[0]}x{size[1]}, {border}, {kind}{text}"] = (kind, theirs, ours)


def median(side: int, kind: str) -> None:
    def ours(eager: Any, x: Any) -> Any:
        return eager.experimental.median_blur(x, window_size=side)

    CASES[f"median {side}, {kind}"] = (kind, lambda cv2, x: cv2.medianBlur(x, side), ours)


def laplacian(side: int) -> None:
    def ours(eager: Any, x: Any, **more: Any) -> Any:
        smoothing = {"smoothing_size": 1} if side == 1 else {}
        return eager.laplacian(x, window_size=max(side, 3), **smoothing, **more)

    name = f"laplacian {side}"
    CASES[name] = ("uint8", lambda cv2, x: cv2.Laplacian(x, cv2.CV_8U, ksize=side), ours)
    CASES[f"{name}, float32"] = (
        "uint8",
        lambda cv2, x: cv2.Laplacian(x, cv2.CV_32F, ksize=side),
        lambda eager, x: ours(eager, x, dtype="float32"),
    )


def clahe(tiles: tuple[int, int], limit: float, kind: str) -> None:
    def theirs(cv2: Any, x: Any) -> Any:
        own = cv2.createCLAHE(limit, tiles)
        if x.ndim == 2:
            return own.apply(x)
        lab = cv2.cvtColor(x, cv2.COLOR_RGB2Lab)
        lab[..., 0] = own.apply(np.ascontiguousarray(lab[..., 0]))
        return cv2.cvtColor(lab, cv2.COLOR_Lab2RGB)

    def ours(eager: Any, x: Any) -> Any:
        return eager.clahe(x, tiles_x=tiles[0], tiles_y=tiles[1], clip_limit=limit)

    CASES[f"clahe {tiles[0]}x{tiles[1]}, {limit}, {kind}"] = (kind, theirs, ours)


def debayer(position: tuple[int, int], name: str, code: str, kind: str) -> None:
    def enough(x: Any) -> Any:
        return x if min(x.shape) > 2 else np.resize(x, (4, 6))

    def ours(eager: Any, x: Any) -> Any:
        return eager.debayer(enough(x), blue_position=position, algorithm=name)

    CASES[f"debayer {position}, {name}, {kind}"] = (
        kind,
        lambda cv2, x: cv2.demosaicing(enough(x), getattr(cv2, code)),
        ours,
    )


def add_cases() -> None:
    for operator in ("dilate", "erode"):
        for at, border in enumerate(BORDERS):
            for size in ((1, 1), (3, 3), (5, 1), (2, 7), (9, 12), (31, 4)):
                morphology(operator, ("uint8", "uint16", "int16", "float32")[at], size, border)
        morphology(operator, "uint8", (4, 3), "reflect", anchor=(3, 0))
        morphology(operator, "uint8", (3, 4), "constant", anchor=(0, 3), iterations=3)
        morphology(operator, "uint8 gray", (5, 5), "replicate", iterations=2)
    for side in (3, 5, 7, 15, 21):
        for kind in ("uint8", "uint16", "float32") if side < 7 else ("uint8",):
            median(side, kind)
    for side in (1, 3, 5, 7, 9):
        laplacian(side)


def add_tables_and_mosaics() -> None:
    for tiles in ((1, 1), (8, 8), (3, 5), (2, 16)):
        for limit in (0.0, 0.01, 2.0, 40.0):
            for kind in ("uint8", "uint8 gray"):
                clahe(tiles, limit, kind)
    for position, pattern in {(0, 0): "BG", (0, 1): "GB", (1, 0): "GR", (1, 1): "RG"}.items():
        for name, code in {"bilinear_ocv": "2RGB", "edgeaware_ocv": "2RGB_EA", "gray_ocv": "2GRAY"}.items():
            for kind in ("uint8 gray", "uint16 gray"):
                debayer(position, name, f"COLOR_Bayer{pattern}{code}", kind)
        debayer(position, "vng_ocv", f"COLOR_Bayer{pattern}2RGB_VNG", "uint8 gray")


add_cases()
add_tables_and_mosaics()


def main() -> None:
    cv2: Any = importlib.import_module("cv2")
    cv2.setNumThreads(1)
    found = {name: checksums(kind, partial(theirs, cv2)) for name, (kind, theirs, _) in CASES.items()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    RECORD.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
