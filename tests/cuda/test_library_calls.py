# SPDX-License-Identifier: Apache-2.0
"""Library work among the launches of a batch: each call in order, on the batch's stream."""

from __future__ import annotations

from pathlib import Path

from checked_programs import ADDRESSES, check_program

from native_layers import NATIVE


def test_calls_are_issued_in_their_places(tmp_path: Path) -> None:
    names = ("block_pool", "bounce_reads", "file_reads", "inputs", "memory", "null", "device_resources")
    gpu = [NATIVE / "gpu" / f"{name}.cpp" for name in names]
    plan = [NATIVE / "plan" / f"{name}.cpp" for name in ("check", "plan")]
    own = Path(__file__).resolve().with_name("library_calls.cpp")
    check_program(
        tmp_path, [own, *gpu, *plan, NATIVE / "io" / "files.cpp", NATIVE / "run" / "job_on_device.cpp"], *ADDRESSES
    )
