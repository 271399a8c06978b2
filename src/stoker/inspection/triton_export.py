# SPDX-License-Identifier: Apache-2.0
"""The command ``stoker triton-export``: the pipeline in a user's Python file as a model of Triton Inference Server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..contract.errors import StokerError
from ..contract.text import printable_lines
from ..frameworks._triton import export
from .pipeline_file import find_pipelines, missing_arguments, parse_arguments

_DESCRIPTION = """\
Write the pipeline of a Python file as a model of Triton's Python backend.

The file is executed as your own program: export only files that you trust. It must leave a pipeline, or a
@pipeline_def function, in a variable; of several, the one with the decorator @stoker.triton.autoserialize is taken.
"""


def main(argv: list[str]) -> int:
    """Run the command and return its exit status: 0: written, 1: the pipeline fails, 2: wrong file or arguments."""
    known = parser().parse_intermixed_args(argv)
    try:
        arguments = parse_arguments(known.argument)
        found = _chosen(find_pipelines(known.file, known.name))
    except (FileNotFoundError, StokerError) as error:
        return _fail(str(error), 2)
    if len(found) != 1:
        there = f"found {', '.join(found)}: choose one with --name" if found else "found none"
        return _fail(f"expected one pipeline or @pipeline_def function, {there}", 2)
    ((name, value),) = found.items()
    missing = missing_arguments(value, arguments)
    if missing or (arguments and not callable(value)):
        fault = f"expected values for {missing} of {name}, as NAME=VALUE" if missing else f"{name} takes no arguments"
        return _fail(fault, 2)
    try:
        pipe = value(**arguments) if callable(value) else value
        with pipe:
            folder = export(
                pipe, known.repository, known.model or name, known.outputs.split(",") if known.outputs else None,
                version=known.version, instances=known.instances, max_queue_delay_us=known.delay,
            )  # fmt: skip
    except (StokerError, OSError) as error:
        return _fail(f"{name}: {error}", 1)
    print(
        printable_lines(f"{folder}: written. Start the server with `tritonserver --model-repository={folder.parent}`")
    )
    return 0


def _chosen(found: dict[str, Any]) -> dict[str, Any]:
    """Return the marked pipeline functions if there are several."""
    marked = {k: v for k, v in found.items() if getattr(v, "_is_autoserialize", False)}
    return marked if len(found) > 1 and marked else found


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(
        prog="stoker triton-export", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="PIPELINE.py", help="Python file with a pipeline; it is run")
    parser.add_argument("repository", type=Path, metavar="REPOSITORY", help="folder of models; it is made if missing")
    parser.add_argument("argument", nargs="*", metavar="NAME=VALUE", help="arguments of the pipeline function")
    parser.add_argument("--name", help="variable with the pipeline, if there are several")
    parser.add_argument("--model", help="name of the model; by default the variable's name")
    parser.add_argument("--outputs", help="names of the outputs, separated by commas")
    parser.add_argument("--version", type=int, default=1, help="version of the model")
    parser.add_argument("--instances", type=int, default=1, help="number of processes that run the model")
    parser.add_argument("--delay", type=int, default=0, help="microseconds to wait for further requests of a batch")
    return parser


def _fail(text: str, status: int) -> int:
    print(f"stoker triton-export: {printable_lines(text)}", file=sys.stderr)
    return status
