# SPDX-License-Identifier: Apache-2.0
"""The installed package has every header that its kernels for GPUs are compiled with."""

from __future__ import annotations

import re
from pathlib import Path

from stoker.device.compile import NATIVE

STANDARD = NATIVE / "cuda" / "std"


def included(path: Path) -> list[Path]:
    """Where the headers of one file are, or would be: quoted ones beside it, standard ones in the package's folder."""
    text = path.read_text(encoding="utf-8")
    quoted = [path.parent / name for name in re.findall(r'^ *#include "([^"]+)"', text, re.MULTILINE)]
    return quoted + [STANDARD / name for name in re.findall(r"^ *#include <([^>]+)>", text, re.MULTILINE)]


def test_no_header_is_left_out_of_the_package():
    known, left = set(), {p.resolve() for p in (NATIVE / "cuda").glob("*.[ch]*")}
    assert left
    while left:
        path = left.pop()
        known.add(path)
        for header in included(path):
            assert header.is_file(), f"{path.name} includes {header.name}, which is not installed: see pyproject.toml"
            left |= {header.resolve()} - known
