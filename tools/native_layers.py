#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of the native code, as ``src/stoker/native/CMakeLists.txt`` declares them.

``--check`` fails on an include that the table does not allow, an unplaced folder and an unlisted source file.
``--sources FOLDER...`` prints the source files of these libraries and of all that they depend on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

NATIVE = Path(__file__).resolve().parent.parent / "src" / "stoker" / "native"
# Folders that are no libraries: CUDA sources, which NVRTC compiles, and the extension module, which may include all.
DEVICE, MODULE, TYPES = "device", "bind", "_native"
ALL_OF_FOLDER = "*.cpp"  # in place of a list of source files
_LIBRARY = re.compile(r"^stoker_native_library\((?P<name>\w+)(?P<rest>[^)]*)\)", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_SUFFIXES = (".cpp", ".hpp", ".ipp", ".cuh")


@dataclass(frozen=True)
class Library:
    """One row of the table: the folders that it may include from, and its source files."""

    deps: tuple[str, ...]
    sources: tuple[str, ...]


def read_libraries(native: Path = NATIVE) -> dict[str, Library]:
    """Return the table, lower layers first."""
    found = {}
    for match in _LIBRARY.finditer((native / "CMakeLists.txt").read_text(encoding="utf-8")):
        before, _, sources = match["rest"].partition("SOURCES")
        listed = sources.split()
        if listed == [ALL_OF_FOLDER]:
            listed = sorted(p.name for p in (native / match["name"]).glob(ALL_OF_FOLDER))
        found[match["name"]] = Library(tuple(before.split()[1:]), tuple(listed))
    return found


def list_sources(folders: Sequence[str], native: Path = NATIVE) -> list[Path]:
    """Return the source files of ``folders`` and of all libraries that they depend on."""
    libraries = read_libraries(native)
    needed, waiting = set(), list(folders)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += libraries[name].deps
    return [native / name / source for name in libraries if name in needed for source in libraries[name].sources]


def find_faults(native: Path = NATIVE) -> Iterator[str]:
    """Yield one line for each violation of the table."""
    libraries = read_libraries(native)
    allowed = {name: {name, *library.deps} for name, library in libraries.items()}
    allowed |= {DEVICE: {DEVICE, "shared"}, MODULE: {MODULE, *libraries}}
    yield from _find_unordered(libraries)
    for folder in sorted(p for p in native.iterdir() if p.is_dir() and p.name not in (TYPES, "__pycache__")):
        if folder.name not in allowed:
            yield f"{folder.name}/: no stoker_native_library names this folder"
            continue
        for path in sorted(p for p in folder.iterdir() if p.suffix in _SUFFIXES):
            yield from _find_bad_includes(path, allowed[folder.name], native)
        if folder.name in libraries:
            yield from _find_unlisted(folder, libraries[folder.name])
    for path in sorted(p for p in native.iterdir() if p.suffix in _SUFFIXES):
        yield f"{path.name}: a file outside of all folders"


def _find_unordered(libraries: dict[str, Library]) -> Iterator[str]:
    names = list(libraries)
    for i, (name, library) in enumerate(libraries.items()):
        for dep in library.deps:
            if dep not in names[:i]:
                yield f"{name}: depends on {dep}, which is not declared before it"


def _find_bad_includes(path: Path, allowed: set[str], native: Path) -> Iterator[str]:
    where = path.relative_to(native)
    for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
        folder = name.partition("/")[0]
        if not (native / name).is_file():
            yield f'{where}: "{name}" is no file below native/; includes are relative to native/'
        elif folder not in allowed:
            yield f'{where}: "{name}" is not allowed here, only {", ".join(sorted(allowed))}'


def _find_unlisted(folder: Path, library: Library) -> Iterator[str]:
    present = {p.name for p in folder.glob("*.cpp")}
    for name in sorted(present - set(library.sources)):
        yield f"{folder.name}/{name}: not listed in CMakeLists.txt"
    for name in sorted(set(library.sources) - present):
        yield f"{folder.name}/{name}: listed in CMakeLists.txt, but there is no such file"


def main() -> int:
    if "--sources" in sys.argv:
        print("\n".join(map(str, list_sources(sys.argv[sys.argv.index("--sources") + 1 :]))))
        return 0
    if "--check" not in sys.argv:
        for name, library in read_libraries().items():
            print(f"{name:12} {len(library.sources):3} sources, includes {' '.join(library.deps) or 'nothing else'}")
        return 0
    faults = list(find_faults())
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
