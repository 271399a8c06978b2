#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the type stubs of native kernels from their registrations (``native/kernels/registry.hpp``).

The whole of ``kernels.pyi`` is generated, and ``gpu.pyi`` from its marker on. ``--check`` fails if they are out of
date.
"""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from types import ModuleType

from operators import ROOT, write_or_check
from stoker.native import _native

STUBS = ROOT / "src" / "stoker" / "native" / "_native"
MARKER = "# ---- kernels: written by tools/kernel_stubs.py ----\n"
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""Constructors of the kernels of plans. Written by tools/kernel_stubs.py."""

from collections.abc import Sequence
from typing import Any, overload

import numpy.typing as npt

from stoker.native._native import FileTable, KeptBlocks, Kernel, Records

'''
_LINE = 120


def constructor(
    name: str, doc: str, result: str, parameters: Sequence[tuple[str, str, str]], overload: bool = False
) -> str:
    """Return the declaration of one constructor, as ruff formats it."""
    listed = [*(f"{p}: {kind}" for p, kind, _ in parameters), *(["/"] if parameters else [])]
    head = f"def {name}({', '.join(listed)}) -> {result}:"
    if len(head) > _LINE:
        inner = ", ".join(listed)
        lines = [inner] if len(inner) <= _LINE - 4 else [f"{text}," for text in listed]
        head = "\n".join([f"def {name}(", *(f"    {line}" for line in lines), f") -> {result}:"])
    documented = [f"    {p}: {text}" for p, _, text in parameters if text]
    body = [*textwrap.wrap(f'"""{doc}', _LINE - 4), *(["", "Args:", *documented, '"""'] if documented else [])]
    if not documented:
        body[-1] += '"""'
    decorator = "@overload\n" if overload else ""
    return decorator + head + "\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def constructors(module: ModuleType) -> str:
    """Return the declarations of all constructors of a module, by name."""
    listed = module.list_constructors()
    count = Counter(name for name, *_ in listed)
    return (
        "\n".join(
            constructor(name, doc, result, parameters, count[name] > 1) for name, doc, result, parameters in listed
        )
        + _common()
    )


def _common() -> str:
    check = constructor(
        "check_constants", "Raise TypeError unless the kernel `name` accepts `constants`.", "None",
        [("name", "str", ""), ("constants", "Sequence[object]", "")],
    )  # fmt: skip
    listed = constructor(
        "list_constructors", "List (name, doc, class, ((parameter, type, doc), ...)) of every constructor.",
        "list[tuple[str, str, str, tuple[tuple[str, str, str], ...]]]", []
    )  # fmt: skip
    return f"\n{check}\n{listed}"


def main() -> int:
    gpu = STUBS / "gpu.pyi"
    by_hand = gpu.read_text(encoding="utf-8").partition(MARKER)[0]
    files = {STUBS / "kernels.pyi": HEAD + constructors(_native.kernels)}
    files[gpu] = by_hand + MARKER + "\n" + constructors(_native.gpu)
    return write_or_check(files, "make generate")


if __name__ == "__main__":
    sys.exit(main())
