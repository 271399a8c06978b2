# SPDX-License-Identifier: Apache-2.0
"""Baseline JPEG decoding."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

def jpeg_info(data: bytes) -> dict[str, Any]: ...
def jpeg_decode(
    data: bytes,
    window: tuple[int, int, int, int] | None = None,
    format: Literal["RGB", "BGR", "GRAY", "YCbCr", "ANY"] = "RGB",
) -> tuple[npt.NDArray[np.uint8], Literal["ok", "truncated", "corrupt", "unsupported"]]: ...
