# SPDX-License-Identifier: Apache-2.0
"""Reads through bounce buffers, on a device that copies as late as it may."""

from __future__ import annotations

from pathlib import Path

from checked_programs import ADDRESSES, THREADS, check_program

from native_layers import NATIVE


def sources() -> list[Path]:
    own = Path(__file__).resolve().with_name("bounce_reads.cpp")
    return [own, NATIVE / "gpu" / "bounce_reads.cpp", NATIVE / "gpu" / "null.cpp", NATIVE / "io" / "files.cpp"]


def test_buffers_and_memory_wait_for_copies(tmp_path: Path) -> None:
    check_program(tmp_path, sources(), *ADDRESSES)


def test_threads_do_not_race(tmp_path: Path) -> None:
    check_program(tmp_path, sources(), *THREADS)
