# SPDX-License-Identifier: Apache-2.0
"""Images of any layout as frames, rows, columns and channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.step import Value

LAYOUTS = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")


def image_axes(c: Lowering, x: Value) -> tuple[int, int, int, int]:
    """Return the axes F, H, W and C; -1 for each that is missing."""
    layout = c.layout(x)
    if layout not in LAYOUTS:
        raise UnsupportedError(
            f"`{c.scope.operator.name}`: expected one of the layouts {', '.join(LAYOUTS)}, got {layout!r}"
        )
    frame, height, width, channel = (layout.find(name) for name in "FHWC")
    return frame, height, width, channel


def each_frame(x: Any, layout: str, function: Callable[[Any], Any]) -> Any:
    """Apply ``function`` to every frame as HWC, and restore the layout."""
    layout = layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
    order = [layout.index(name) for name in "FHWC" if name in layout]
    frames = np.transpose(x, order)
    if "C" not in layout:
        frames = frames[..., None]
    if "F" not in layout:
        frames = frames[None]
    result = np.stack([function(frame) for frame in frames])
    result = result if "F" in layout else result[0]
    result = result if "C" in layout else result[..., 0]
    return np.transpose(result, np.argsort(order))
