# SPDX-License-Identifier: Apache-2.0
"""Arguments of operators and readers that resize."""

from __future__ import annotations

from .argument import arg
from .operator import Operator
from .types import InterpType


class FilterArguments(Operator):
    """Arguments for interpolation."""

    gives_bfloat16 = takes_bfloat16 = True
    interp_type = arg(
        "interp",
        InterpType.INTERP_LINEAR,
        per_row=True,
        doc="Filter for shrinking and enlarging, one of `types.INTERP_*`.",
    )
    min_filter = arg("interp", None, per_row=True, doc="Filter for shrinking.")
    mag_filter = arg("interp", None, per_row=True, doc="Filter for enlarging.")
    antialias = arg("bool", True, doc="Widen the filter when shrinking, as Pillow does.")
    minibatch_size = arg("int", 32, doc="Accepted.")
    temp_buffer_hint = arg("int", 0, doc="Accepted; memory is planned.")


class ResizeArguments(FilterArguments):
    """The output size and the region of a resize."""

    size = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0: not "
        "given.",
    )
    resize_x = arg("float", None, per_row=True, doc="Output width in pixels; 0: not given.")
    resize_y = arg("float", None, per_row=True, doc="Output height in pixels; 0: not given.")
    resize_shorter = arg(
        "float", None, per_row=True, doc="Output length of the shorter side in pixels; keeps the aspect ratio."
    )
    resize_longer = arg(
        "float", None, per_row=True, doc="Output length of the longer side in pixels; keeps the aspect ratio."
    )
    resize_z = arg("float", None, per_row=True, doc="Output depth of a volume in pixels; 0: not given.")
    max_size = arg(
        "float", None, many=True, per_axis=True, doc="Limit of the output size in pixels, one or one per axis."
    )
    mode = arg(
        "str", "default", choices=("default", "stretch", "not_larger", "not_smaller"),
        doc="default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent; "
        "not_larger, not_smaller: keep the aspect ratio within or around the size.",
    )  # fmt: skip
    subpixel_scale = arg(
        "bool", False,
        doc="True adapts the region, about its centre, so that the scale is that of the unrounded size.",
    )  # fmt: skip
    roi_start = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Region's (y, x) or (z, y, x) start in the input, in pixels.",
    )
    roi_end = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.",
    )
    roi_relative = arg(
        "bool", False, doc="Whether the region is in shares of the input's extents (0 to 1) instead of pixels."
    )
