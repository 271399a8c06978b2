# SPDX-License-Identifier: Apache-2.0
"""Guards of the compiler and the C library against overruns, in the built extension."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stoker.native import _native


@pytest.mark.skipif(_native.sanitized, reason="sanitizers intercept what the fortified functions replace")
def test_the_extension_is_built_with_guards() -> None:
    """The extension imports the guards of the C library: for the stack, and for copies into buffers of known size."""
    data = Path(_native.__file__).read_bytes()
    names = set(re.findall(rb"\0(__\w+)(?=\0)", data))
    assert b"__stack_chk_fail" in names
    assert {name for name in names if name.endswith(b"_chk")}, "no copy is checked: _FORTIFY_SOURCE is not on"
