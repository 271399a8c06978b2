# SPDX-License-Identifier: Apache-2.0
"""Kernel of Triton for ``test_gpu_functions.py``; Triton reads its source from a file."""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply by three."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 3 * tl.load(x + at, at < count), at < count)
