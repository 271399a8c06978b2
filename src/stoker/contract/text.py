# SPDX-License-Identifier: Apache-2.0
"""Text of files, as it may be printed: names and contents are untrusted, and a terminal obeys control characters."""

from __future__ import annotations

import os
import re
from typing import Any

# Control characters of C0 and C1, line separators, and marks that reorder text.
_CONTROLS = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069"
_IN_LINES = re.compile(f"[{_CONTROLS}\ud800-\udfff]")
_IN_NAMES = re.compile(f"[\\t\\n{_CONTROLS}\ud800-\udfff]")


def printable(name: str | os.PathLike[str]) -> str:
    """Return a name in one line without control characters; bytes that are no UTF-8 are shown in hexadecimal."""
    return _IN_NAMES.sub(_escaped, os.fspath(name))


def printable_lines(text: str) -> str:
    """Return a text without control characters other than tabs and line feeds."""
    return _IN_LINES.sub(_escaped, text)


def brief(value: Any, limit: int = 80) -> str:
    """Return the ``repr`` of any value for a message: one line, shortened, and never an error."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a user's `__repr__` may raise anything; a list may contain itself too deep
        text = f"<{type(value).__name__}>"
    text = printable(" ".join(text.split()))
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def reason_of(error: BaseException) -> str:
    """Return the text of any exception for a message, or the name of its type. Never raises."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's `__str__` may raise anything
        text = ""
    return printable_lines(text) or type(error).__name__


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that Python could not decode (surrogateescape)
        return f"\\x{code - 0xDC00:02x}"
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
