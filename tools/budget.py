#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print the lines per folder and the files above the wanted size; ``--check`` fails for files above the limit."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "benchmarks", "tools")
SUFFIXES = (".py", ".pyi", ".cpp", ".hpp", ".ipp", ".cuh", ".sh")
WANTED, LIMIT = 400, 800
GENERATED = "Written by tools/"


def sizes() -> dict[Path, int]:
    """Return the number of lines of every hand-written file."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8")
            if GENERATED not in text[:400]:
                found[path.relative_to(ROOT)] = text.count("\n")
    return found


def main() -> int:
    found = sizes()
    refused = {path: n for path, n in found.items() if n > LIMIT}
    if "--check" not in sys.argv:
        folders: Counter[str] = Counter()
        for path, n in found.items():
            folders["/".join(path.parts[:3] if path.parts[0] == "src" else path.parts[:1])] += n
        for folder, n in sorted(folders.items()):
            print(f"{n:7}  {folder}")
        print(f"{sum(folders.values()):7}  in all")
        for path, n in sorted(found.items(), key=lambda item: -item[1]):
            if n > WANTED:
                print(f"{n:7}  {path} (wanted: at most {WANTED})")
    for path, n in refused.items():
        print(f"{path}: {n} lines, at most {LIMIT} are allowed: split it", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
