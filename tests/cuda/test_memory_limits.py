# SPDX-License-Identifier: Apache-2.0
"""`gpu_memory_limit` to the byte: an allocation that fits is not refused for the needs of a later batch."""

from __future__ import annotations

from pathlib import Path

from checked_programs import ADDRESSES, check_program

from native_layers import NATIVE


def test_an_allocation_that_fits_succeeds(tmp_path: Path) -> None:
    native = [NATIVE / "gpu" / f"{name}.cpp" for name in ("memory", "null", "block_pool")]
    check_program(tmp_path, [Path(__file__).resolve().with_name("memory_limits.cpp"), *native], *ADDRESSES)
