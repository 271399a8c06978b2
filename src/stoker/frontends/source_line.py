# SPDX-License-Identifier: Apache-2.0
"""The line of the user's code that is running: nodes remember it, errors name it."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from ..contract.errors import Source

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_line() -> Source | None:
    """The innermost line outside of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Source(frame.f_code.co_filename, frame.f_lineno) if frame else None


def warn_user(text: str) -> None:
    """A RuntimeWarning at the user's line, however deep in this package it is noticed."""
    line = user_line()
    if line is None:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, RuntimeWarning, line.file, line.line)
