#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print the requirements that ``pyproject.toml`` states, one per line: ``tools/needs.py build run test``.

``build`` are the build system's, ``run`` the package's own, all others the extras of that name. So that the Makefile
can install them apart from the package, and ``pyproject.toml`` stays the only place that names them.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

# scikit-build-core asks for these when it builds in isolation; here it must find them installed.
BUILD_TOOLS = ("cmake>=3.21", "ninja>=1.11")


def needs(groups: list[str]) -> list[str]:
    """The requirements of all ``groups``."""
    stated = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    known = {
        "build": [*stated["build-system"]["requires"], *BUILD_TOOLS],
        "run": stated["project"]["dependencies"],
        **stated["project"]["optional-dependencies"],
    }
    unknown = [group for group in groups if group not in known]
    if unknown:
        sys.exit(f"tools/needs.py: expected {', '.join(known)}, got {', '.join(unknown)}")
    return [requirement for group in groups for requirement in known[group]]


if __name__ == "__main__":
    print("\n".join(needs(sys.argv[1:])))
