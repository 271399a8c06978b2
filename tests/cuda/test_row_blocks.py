# SPDX-License-Identifier: Apache-2.0
"""Thread blocks of rows: any number of rows and blocks, in launches that a GPU takes."""

from __future__ import annotations

from pathlib import Path

from checked_programs import ADDRESSES, check_program

HERE = Path(__file__).resolve().parent


def test_blocks_find_their_rows(tmp_path: Path) -> None:
    check_program(tmp_path, [HERE / "row_blocks.cpp"], *ADDRESSES, f"-I{HERE.parent / 'native'}")
