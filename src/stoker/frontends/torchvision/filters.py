# SPDX-License-Identifier: Apache-2.0
"""Pillow's filters as recorded steps: the blurs, which are three passes of a box, or one."""

from __future__ import annotations

import math
from typing import Any

from PIL import ImageFilter

from . import recipe
from .recipe import Node

_BELL_PASSES = 3  # Pillow's
_MOST = 1000.0  # pixels; native/box_blur.hpp


def step_of(filter: Any, node: Node) -> Node | None:
    """What ``Image.filter`` of these pixels is; None if it is not recorded."""
    made = filter() if filter in (ImageFilter.GaussianBlur, ImageFilter.BoxBlur) else filter
    if type(made) is ImageFilter.GaussianBlur:
        return _blurred(node, made.radius, _BELL_PASSES, bell=True)
    if type(made) is ImageFilter.BoxBlur:
        return _blurred(node, made.radius, 1, bell=False)
    return None


def _blurred(node: Node, radius: Any, passes: int, *, bell: bool) -> Node | None:
    radii = (radius, radius) if isinstance(radius, (int, float)) else radius
    if not isinstance(radii, (list, tuple)) or len(radii) != 2 or not all(isinstance(r, (int, float)) for r in radii):
        return None
    across, down = map(float, radii)
    if not (math.isfinite(across) and math.isfinite(down)) or max(abs(across), abs(down)) > _MOST:
        return None
    if not bell and min(across, down) < 0:
        return None
    return node if across == down == 0 else node.then(recipe.BLUR, (across, down, passes, int(bell)))
