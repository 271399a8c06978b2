# SPDX-License-Identifier: Apache-2.0
"""The command ``stoker new-operator``: a package with an operator in C++ and CUDA, ready to build and test."""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from pathlib import Path

from .. import __version__
from ..contract.text import printable, printable_lines
from ..frontends import registry
from .operator_package import package_files

_NAME = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]\Z")
_MODULES = {*sys.stdlib_module_names, "numpy", "pytest", "setuptools", "stoker"}


def main(argv: list[str]) -> int:
    """Run the command and return its exit status: 0: written, 2: wrong name or folder."""
    known = parser().parse_args(argv)
    name = known.name
    if _NAME.match(name) is None or keyword.iskeyword(name) or "__" in name:
        return _fail(f"expected a name of small letters, digits and single underscores, got {name!r}")
    taken = "a built-in operator" if registry.is_built_in(name) else "a module of Python's" if name in _MODULES else ""
    if taken:
        return _fail(f"`{name}` is the name of {taken}; choose another one")
    folder = (known.folder or Path(name)).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return _fail(f"expected a new or empty folder, got {folder}")
    files = package_files(name, __version__, cuda=not known.without_cuda)
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"{printable(str(folder))}: {len(files)} files. Next:")
    print(printable_lines(f"  cd {folder}\n  pip install -e '.[test]'\n  pytest"))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    text = "write a package with an operator in C++ and CUDA: source, Python function, tests, benchmark, wheel, CI"
    parser = argparse.ArgumentParser(prog="stoker new-operator", description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument("name", metavar="NAME", help="name of the operator and the package, such as my_op")
    parser.add_argument("--folder", type=Path, help="folder of the package; by default the name")
    parser.add_argument("--without-cuda", action="store_true", help="leave the CUDA form out")
    return parser


def _fail(text: str) -> int:
    print(f"stoker new-operator: {printable_lines(text)}", file=sys.stderr)
    return 2
