#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the indexes of operators and codecs: the module of each class, so that no class is imported before its use.

``tools/index.py`` writes them, ``tools/index.py --check`` fails if one is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "stoker"
TARGETS = {"operator": (SOURCE / "ops" / "_index.py", ("ops", "readers")),
           "codec": (SOURCE / "codecs" / "_index.py", ("codecs",))}  # fmt: skip
DECLARATION = re.compile(r'^class (\w+)\([\w., ]+, name="([\w.]+)"\)', re.MULTILINE)


def index(kind: str, folders: Sequence[str]) -> dict[str, str]:
    """Return name -> module:class of all declarations in the folders."""
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*.py")):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            for cls, name in DECLARATION.findall(path.read_text()):
                if name in found:
                    sys.exit(f"{kind} {name!r} is declared in {found[name]} and in {module}:{cls}")
                found[name] = f"{module}:{cls}"
    return dict(sorted(found.items()))


def text(kind: str, folders: Sequence[str]) -> str:
    """Return the index as Python source."""
    lines = "".join(f'    "{name}": "{where}",\n' for name, where in index(kind, folders).items())
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        f'"""Modules of all {kind}s. Written by tools/index.py."""\n\n'
        f"INDEX: dict[str, str] = {{\n{lines}}}\n"
    )


if __name__ == "__main__":
    for kind, (target, folders) in TARGETS.items():
        new = text(kind, folders)
        if "--check" not in sys.argv:
            target.write_text(new)
        elif not target.exists() or target.read_text() != new:
            sys.exit(f"{target.relative_to(SOURCE.parents[1])} is out of date: run tools/index.py")
