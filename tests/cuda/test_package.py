# SPDX-License-Identifier: Apache-2.0
"""The installed package has every header that its GPU kernels include."""

from __future__ import annotations

import re
from pathlib import Path

from stoker.device.compile import NATIVE

STANDARD = NATIVE / "device" / "std"


def included(path: Path) -> list[Path]:
    """Return the paths of the headers of a file: quoted ones below `native`, standard ones in the package's folder."""
    text = path.read_text(encoding="utf-8")
    quoted = [NATIVE / name for name in re.findall(r'^ *#include "([^"]+)"', text, re.MULTILINE)]
    return quoted + [STANDARD / name for name in re.findall(r"^ *#include <([^>]+)>", text, re.MULTILINE)]


def test_no_header_is_left_out_of_the_package():
    known, left = set(), {p.resolve() for p in (NATIVE / "device").glob("*.[ch]*")}
    assert left
    while left:
        path = left.pop()
        known.add(path)
        for header in included(path):
            assert header.is_file(), f"{path.name} includes {header.name}, which is not installed: see pyproject.toml"
            left |= {header.resolve()} - known
