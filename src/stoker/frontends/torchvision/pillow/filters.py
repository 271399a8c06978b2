# SPDX-License-Identifier: Apache-2.0
"""Pillow's blurs as recorded steps: three passes of a box filter for ``GaussianBlur``, one for ``BoxBlur``."""

from __future__ import annotations

import math
from typing import Any

from PIL import ImageFilter

from ..ir import steps
from ..ir.recipe import Node

_BELL_PASSES = 3  # Pillow's
_MOST = 1000.0  # pixels; native/filter/box_blur.hpp


def filter_node(filter: Any, node: Node) -> Node | None:
    """Return the node of ``Image.filter`` on these pixels; None if it is not recorded."""
    result = filter() if filter in (ImageFilter.GaussianBlur, ImageFilter.BoxBlur) else filter
    if type(result) is ImageFilter.GaussianBlur:
        return _blur_node(node, result.radius, _BELL_PASSES, bell=True)
    if type(result) is ImageFilter.BoxBlur:
        return _blur_node(node, result.radius, 1, bell=False)
    return None


def _blur_node(node: Node, radius: Any, passes: int, *, bell: bool) -> Node | None:
    radii = (radius, radius) if isinstance(radius, (int, float)) else radius
    if not isinstance(radii, (list, tuple)) or len(radii) != 2 or not all(isinstance(r, (int, float)) for r in radii):
        return None
    across, down = map(float, radii)
    if not (math.isfinite(across) and math.isfinite(down)) or max(abs(across), abs(down)) > _MOST:
        return None
    if not bell and min(across, down) < 0:
        return None
    return node if across == down == 0 else node.then(steps.Blur(across, down, passes, int(bell)))
