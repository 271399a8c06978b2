# SPDX-License-Identifier: Apache-2.0
"""Warning about GPUDirect Storage that has failed, so that the fallback is not silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract.warning import warn

if TYPE_CHECKING:
    from ..native import _native


class CuFileWatch:
    """Warns once, after the first batch for which cuFile has failed (``STOKER_GDS=auto``; "on" raises an error).

    Args:
        reads: reads of the pipeline's GPU; None without a GPU.
    """

    def __init__(self, reads: _native.gpu.FileReads | None) -> None:
        self._reads = reads

    def check(self) -> None:
        """Warn if cuFile has failed since the last call. Call it after each batch."""
        if self._reads is None or not self._reads.has_failed:
            return
        reason = self._reads.report()[3]
        self._reads = None
        warn(
            f"GPUDirect Storage: {reason}. Later files go through page-locked memory; STOKER_GDS=off does so from the "
            "beginning, and STOKER_GDS=on makes this an error",
            stacklevel=3,
        )
