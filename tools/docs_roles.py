# SPDX-License-Identifier: Apache-2.0
"""Extension of griffe, which reads docstrings for the API reference: roles such as ``:class:`Batch``` become code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).resolve().parent))

from operators import markdown


class Roles(griffe.Extension):
    """Converts the roles in all docstrings to Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = _sessions(markdown(obj.docstring.value))


def _sessions(text: str) -> str:
    """Return a text with interactive sessions (``>>>``) as blocks of code."""
    return re.sub(r"^>>> .*(?:\n(?!\n).*)*", r"```pycon\n\g<0>\n```", text, flags=re.MULTILINE)
