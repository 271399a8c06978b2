# SPDX-License-Identifier: Apache-2.0
"""Code of the guide on servers, for the tests of several environments."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "servers.md"


def blocks_for(package: str) -> list[str]:
    """Return the page's blocks that need a package, after those that define the pipeline."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^<!-- needs: ([\w ]+) -->\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(found) == text.count("```python") and any(package in needs.split() for needs, _ in found)
    return [code for number, (needs, code) in enumerate(found) if not number or package in needs.split()]
