# SPDX-License-Identifier: Apache-2.0
"""The table of known JPEG files under several threads, with ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

from checked_programs import THREADS, check_program

from native_layers import NATIVE


def test_several_threads_find_files(tmp_path: Path) -> None:
    """One thread writes the entry of a file. All others see the whole entry or none, and packed entries round-trip."""
    own = Path(__file__).resolve().with_name("jpeg_index_threads.cpp")
    native = [NATIVE / "gpu_kernels" / f"{name}.cpp" for name in ("jpeg_index", "jpeg_index_store")]
    check_program(tmp_path, [own, *native], *THREADS)
