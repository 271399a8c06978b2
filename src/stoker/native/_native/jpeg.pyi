# SPDX-License-Identifier: Apache-2.0
"""JPEG decoding."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

def jpeg_info(data: bytes) -> dict[str, Any]: ...
def plain_header(head: bytes) -> tuple[int, int, int, int] | None: ...
def jpeg_decode(
    data: bytes,
    window: tuple[int, int, int, int] | None = None,
    format: Literal["RGB", "BGR", "GRAY", "YCbCr", "ANY", "PLANES"] = "RGB",
    scale: Literal[1, 2, 4, 8] = 1,
) -> tuple[npt.NDArray[np.uint8], Literal["ok", "truncated", "corrupt", "unsupported"]]: ...
def jpeg_check(data: bytes, max_pixels: int, max_scan_pixels: int = 0) -> dict[str, Any]: ...
def count_scans(data: bytes) -> int: ...
def too_many_scans(data: bytes, width: int, height: int, max_scan_pixels: int) -> str: ...
def jpeg_ticks(data: bytes) -> dict[str, int]: ...
def jpeg_decode_into(
    data: bytes,
    out: npt.NDArray[np.uint8],
    window: tuple[int, int, int, int] | None = None,
    format: Literal["RGB", "BGR", "GRAY", "YCbCr", "ANY", "PLANES"] = "RGB",
    scale: Literal[1, 2, 4, 8] = 1,
) -> Literal["ok", "truncated", "corrupt", "unsupported"]: ...
