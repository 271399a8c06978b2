#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the classes of recorded steps from the table in ``shared/recipe_ops.hpp``, with which native code is compiled.

``tools/steps.py`` writes them, ``tools/steps.py --check`` fails if the file is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src" / "stoker"
TABLE = SOURCE / "native" / "shared" / "recipe_ops.hpp"
TARGET = SOURCE / "frontends" / "torchvision" / "ir" / "steps.py"
ROW = re.compile(r'X\((\w+), (-?\d+), (true|false), "([^"]*)"\)\s*\\?\s*/\* (.*?) \*/')
FIELD = re.compile(r"(\w+)(?:\[(\d+)\]|(\*))?(?::(\w+))?")
TYPES = {
    None: "int",
    "int": "int",
    "float": "float",
    "table": "Any",
    "image": "Any",
    "image_and_table": "tuple[Any, Any]",
}


class Field(NamedTuple):
    """Parameters with one name: ``size`` of them; 0 for a variable number."""

    name: str
    size: int
    type: str
    is_array: bool


class Row(NamedTuple):
    """A step of the table."""

    name: str
    on_gpu: bool
    fields: list[Field]
    doc: str


def rows(text: str) -> list[Row]:
    """Return the table's steps in order; a step's number is its position."""
    found = []
    for name, count, on_gpu, fields, doc in ROW.findall(text):
        each = [FIELD.fullmatch(word) for word in fields.split()]
        if None in each:
            sys.exit(f"{name}: expected `name`, `name[n]` or `name*`, each with `:type` or none, got {fields!r}")
        parsed = [
            Field(m[1], 0 if m[3] else int(m[2] or 1), TYPES[m[4]], bool(m[2] or m[3])) for m in each if m is not None
        ]
        total = -1 if any(not field.size for field in parsed) else sum(field.size for field in parsed)
        if total != int(count):
            sys.exit(f"{name}: expected the names of {count} parameters, got {fields!r}")
        found.append(Row(name, on_gpu == "true", parsed, doc or "No parameters"))
    return found


def declaration(row: Row) -> str:
    """Return the class of a step."""
    lines = [f"class {row.name}(NamedTuple):", f'    """{row.doc[0].upper()}{row.doc[1:]}."""', ""]
    slices, at = [], 0
    for field in row.fields:
        if not field.size:
            lines.append(f"    {field.name}: tuple[{field.type}, ...]")
        elif not field.is_array:
            lines.append(f"    {field.name}: {field.type}")
        else:
            lines += [f"    {field.name}_{i}: {field.type}" for i in range(field.size)]
            slices += [
                "", "    @property", f"    def {field.name}(self) -> tuple[{field.type}, ...]:",
                f'        """Return the {field.size} numbers as a tuple."""',
                f"        return self[{at}:{at + field.size}]",
            ]  # fmt: skip
        at += field.size
    return "\n".join(lines + slices).rstrip() + "\n"


def constant(name: str) -> str:
    """Return a step's name in the form of a constant."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def text(table: list[Row]) -> str:
    """Return the Python source."""
    names = [row.name for row in table]
    numbers = "".join(f"{constant(name)} = {number}\n" for number, name in enumerate(names))
    on_gpu = "".join(f"    {constant(row.name)},\n" for row in table if row.on_gpu)
    classes = "".join(f"    {name},\n" for name in names)
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        '"""Recorded steps, by their native numbers and with named parameters. Written by tools/steps.py."""\n\n'
        "from __future__ import annotations\n\nfrom typing import Any, NamedTuple\n\n"
        + numbers
        + "\n\n"
        + "\n\n".join(declaration(row) for row in table)
        + f"\n\n# Classes by number.\nCLASSES: tuple[type[tuple[Any, ...]], ...] = (\n{classes})\n"
        + f"\n# Steps that a GPU supports.\nON_GPU: tuple[int, ...] = (\n{on_gpu})\n"
    )


if __name__ == "__main__":
    new = text(rows(TABLE.read_text(encoding="utf-8")))
    if "--check" not in sys.argv:
        TARGET.write_text(new, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != new:
        sys.exit(f"{TARGET.relative_to(SOURCE.parents[1])} is out of date: run tools/steps.py")
