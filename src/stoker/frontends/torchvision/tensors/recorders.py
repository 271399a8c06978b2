# SPDX-License-Identifier: Apache-2.0
"""Table of the torch functions that lazy tensors record."""

from __future__ import annotations

from . import mixing, pointwise, rearranged, resizes, tensor, views


def recorder_table() -> tensor.Recorders:
    """Return the recorder of each function. Entries of later modules precede, and may call, those of earlier ones."""
    return {
        **tensor.FUNCTIONS,
        **pointwise.FUNCTIONS,
        **views.FUNCTIONS,
        **resizes.FUNCTIONS,
        **mixing.FUNCTIONS,
        **rearranged.FUNCTIONS,
    }
