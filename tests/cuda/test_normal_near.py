# SPDX-License-Identifier: Apache-2.0
"""Approximate numbers of the normal distribution, from which a GPU rounds most elements: their error."""

from __future__ import annotations

from pathlib import Path

from checked_programs import ADDRESSES, check_program

HERE = Path(__file__).resolve().parent


def test_errors_are_below_the_bound(tmp_path: Path) -> None:
    check_program(tmp_path, [HERE / "normal_near.cpp"], *ADDRESSES)
