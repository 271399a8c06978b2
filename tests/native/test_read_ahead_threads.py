# SPDX-License-Identifier: Apache-2.0
"""Threads that read ahead, with ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

from checked_programs import THREADS, check_program

from native_layers import NATIVE


def test_rows_come_and_go_while_threads_read_ahead(tmp_path: Path) -> None:
    """The bound in bytes holds, released rows make room, errors end no thread, and ``close`` ends all of them."""
    own = Path(__file__).resolve().with_name("read_ahead_threads.cpp")
    check_program(tmp_path, [own, NATIVE / "io" / "read_ahead.cpp"], *THREADS)
