# SPDX-License-Identifier: Apache-2.0
"""Warnings of Stoker. Their texts contain names of files, so control characters are escaped."""

from __future__ import annotations

import warnings

from .text import printable_lines


def warn(text: str, category: type[Warning] = RuntimeWarning, *, stacklevel: int = 1) -> None:
    """Issue a warning. A ``stacklevel`` of 1 is the line that calls this function."""
    warnings.warn(printable_lines(text), category, stacklevel=stacklevel + 1)


def warn_at_line(text: str, file: str, line: int) -> None:
    """Issue a RuntimeWarning at a line of the user's code."""
    warnings.warn_explicit(printable_lines(text), RuntimeWarning, file, line)
