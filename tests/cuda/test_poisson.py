# SPDX-License-Identifier: Apache-2.0
"""Thresholds from which a GPU draws shot noise of bytes: the numbers are those of the search."""

from __future__ import annotations

from pathlib import Path

from checked_programs import ADDRESSES, check_program

HERE = Path(__file__).resolve().parent


def test_thresholds_give_the_numbers_of_the_search(tmp_path: Path) -> None:
    check_program(tmp_path, [HERE / "poisson_thresholds.cpp"], *ADDRESSES)
