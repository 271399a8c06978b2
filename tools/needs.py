#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print sets of requirements from ``pyproject.toml``, one requirement per line: ``tools/needs.py build test``.

``build`` has the requirements of the build system, of the package and of its demonstration. All other sets are the
dependency groups of that name. ``NAME-no-deps`` may be missing: then it is empty.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

# scikit-build-core requests these tools when it builds in isolation; the Makefile builds without isolation.
BUILD_TOOLS = ("cmake>=3.21", "ninja>=1.11")


def needs(groups: list[str]) -> list[str]:
    """Return the requirements of all ``groups``."""
    stated = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    known = {
        "build": [
            *stated["build-system"]["requires"],
            *BUILD_TOOLS,
            *stated["project"]["dependencies"],
            *stated["project"]["optional-dependencies"]["demo"],
        ],
        **stated["dependency-groups"],
    }
    unknown = {group.removesuffix("-no-deps") for group in groups} - {name.removesuffix("-no-deps") for name in known}
    if unknown:
        sys.exit(f"tools/needs.py: expected {', '.join(known)}, got {', '.join(sorted(unknown))}")
    return [requirement for group in groups for requirement in known.get(group, [])]


if __name__ == "__main__":
    print("\n".join(needs(sys.argv[1:])))
