#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ``src/stoker/ops/_index.py``: where each operator's class is, so that none is imported before it is used.

``tools/index.py`` writes it, ``tools/index.py --check`` fails if it is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "stoker"
TARGET = SOURCE / "ops" / "_index.py"
DECLARATION = re.compile(r'^class (\w+)\([\w., ]+, name="([\w.]+)"\)', re.MULTILINE)


def index() -> dict[str, str]:
    """Qualified name -> module:class."""
    found: dict[str, str] = {}
    for folder in ("ops", "readers"):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            for cls, name in DECLARATION.findall(path.read_text()):
                if name in found:
                    sys.exit(f"operator {name!r} is declared in {found[name]} and in {module}:{cls}")
                found[name] = f"{module}:{cls}"
    return dict(sorted(found.items()))


def text() -> str:
    lines = "".join(f'    "{name}": "{where}",\n' for name, where in index().items())
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        '"""Where each operator is declared. Written by tools/index.py."""\n\n'
        f"INDEX: dict[str, str] = {{\n{lines}}}\n"
    )


if __name__ == "__main__":
    new = text()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != new:
            sys.exit("src/stoker/ops/_index.py is out of date: run tools/index.py")
    else:
        TARGET.write_text(new)
