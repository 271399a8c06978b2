# SPDX-License-Identifier: Apache-2.0
"""The command ``stoker preview``: a contact sheet of the pipeline in a user's Python file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..contract.errors import StokerError
from ..contract.text import printable, printable_lines
from .pipeline_file import find_pipelines, missing_arguments, parse_arguments

_DESCRIPTION = """\
Draw a contact sheet of the next samples of a pipeline.

The file is executed as your own program: preview only files that you trust. It must leave a pipeline, or a
@pipeline_def function, in a variable. Code under `if __name__ == "__main__":` does not run.
"""


def main(argv: list[str]) -> int:
    """Run the command and return its exit status: 0: drawn, 1: the pipeline fails, 2: wrong file or arguments."""
    known = parser().parse_intermixed_args(argv)
    try:
        arguments = parse_arguments(known.argument)
        found = find_pipelines(known.file, known.name)
        fault = _fault(found, arguments, known.name)
    except (FileNotFoundError, StokerError) as error:
        fault = str(error)
    if fault:
        return _fail(fault, 2)
    ((name, value),) = found.items()
    try:
        text = _preview(name, value, arguments, known.n, known.out)
    except StokerError as error:
        return _fail(f"{name}: {error}", 1)
    except OSError as error:
        return _fail(f"{known.out}: {error.strerror or error}", 2)
    except ValueError as error:  # Pillow knows no format of this name
        return _fail(f"{known.out}: {error}", 2)
    print(printable_lines(text))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(
        prog="stoker preview", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="PIPELINE.py", help="Python file with a pipeline; it is run")
    parser.add_argument("argument", nargs="*", metavar="NAME=VALUE", help="arguments of the pipeline function")
    parser.add_argument("-n", type=int, default=8, help="number of samples")
    parser.add_argument("-o", "--out", type=Path, default=Path("sheet.png"), help="image to write")
    parser.add_argument("--name", help="variable with the pipeline, if there are several")
    return parser


def _fail(text: str, status: int) -> int:
    print(f"stoker preview: {printable_lines(text)}", file=sys.stderr)
    return status


def _fault(found: dict[str, Any], arguments: dict[str, Any], name: str | None) -> str:
    """Return the reason why there is not exactly one pipeline to draw; "" if there is."""
    if not found:
        return f"expected a pipeline or @pipeline_def function{f' called {name!r}' if name else ''}, found none"
    if len(found) > 1:
        return f"expected one pipeline, found {', '.join(found)}: choose one with --name"
    ((key, value),) = found.items()
    if arguments and not callable(value):
        return f"expected no arguments for {key}, which is a pipeline and no function, got {', '.join(arguments)}"
    missing = missing_arguments(value, arguments)
    return f"expected values for {missing} of {key}, as NAME=VALUE after the file" if missing else ""


def _preview(name: str, value: Any, arguments: dict[str, Any], count: int, out: Path) -> str:
    """Draw the sheet, write it and return a description of what was drawn."""
    pipe = value(**arguments) if callable(value) else value
    try:
        line = repr(pipe)
        sheet = pipe.preview(count)
        sheet.save(out)
    finally:
        pipe.close()
    return f"{line}\nwritten to {printable(str(out))}, {sheet.width} x {sheet.height} pixels"
