# SPDX-License-Identifier: Apache-2.0
"""Arguments of operators that change the shape of a tensor."""

from __future__ import annotations

from ...contract.argument import arg
from ...contract.operator import Operator


class ShapeArguments(Operator):
    """Arguments for the shape of the output, and the names of its axes."""

    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Extents; one may be -1.")
    rel_shape = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Extents as shares of the input's; one may be negative.",
    )
    src_dims = arg(
        "int",
        None,
        many=True,
        per_axis=True,
        doc="Axes of the input whose extents are taken; -1: a new axis of extent 1.",
    )
    layout = arg("str", None, doc="Names of the output's axes.")
