# SPDX-License-Identifier: Apache-2.0
"""Line of the user's code that is running. Nodes record it, and errors show it."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..contract.errors import SourceLine
from ..contract.warning import warn, warn_at_line

# Files whose lines no user has written: those of this package, and modules that are part of the interpreter, such as
# `<frozen runpy>`, which runs `python -m stoker.command`.
_NOT_USERS = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<frozen ")


def user_line() -> SourceLine | None:
    """Return the innermost line outside this package and the interpreter; None if there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_USERS):
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno) if frame else None


def warn_user(text: str) -> None:
    """Issue a RuntimeWarning at the user's line, independent of the call depth in this package."""
    warn_at(user_line(), text)


def warn_at(line: SourceLine | None, text: str) -> None:
    """Issue a RuntimeWarning at a line of the user's code, if it is known."""
    if line is None:
        warn(text, stacklevel=2)
    else:
        warn_at_line(text, line.file, line.line)
