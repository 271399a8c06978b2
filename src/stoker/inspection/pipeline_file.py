# SPDX-License-Identifier: Apache-2.0
"""Pipelines of a user's Python file, for the commands ``stoker show`` and ``stoker preview``.

The file is executed, as ``python FILE`` would do, but under another name than ``__main__``. So a training loop under
``if __name__ == "__main__":`` does not run.
"""

from __future__ import annotations

import ast
import inspect
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..contract.errors import ArgumentError
from ..contract.text import brief
from ..frontends.pipeline import Pipeline


def find_pipelines(path: Path, name: str | None = None) -> dict[str, Any]:
    """Execute a file and return its pipelines and ``pipeline_def`` functions by name, in the order of definition.

    Args:
        path: the file.
        name: only the pipeline of this name.

    Raises:
        FileNotFoundError: there is no such file, or it is not one of Python.
    """
    wanted = "expected a Python file with a pipeline"
    if path.is_dir():
        raise FileNotFoundError(f"{wanted}, got the folder {str(path)!r}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    with path.open("rb") as file:
        if b"\0" in file.read(4096):
            raise FileNotFoundError(f"{wanted}, got {str(path)!r}, which is no text")
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # modules next to the file; they may be imported when a pipeline runs, too
        sys.path.insert(0, folder)
    return {k: v for k, v in runpy.run_path(str(path)).items() if _is_pipeline(v) and name in (None, k)}


def missing_arguments(function: Any, given: Mapping[str, Any] | None = None) -> str:
    """Return the names of a function's required arguments that are not given, as text; "" for a pipeline."""
    if not callable(function):
        return ""
    parameters = inspect.signature(function).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return ", ".join(f"`{name}`" for name in needed if name not in (given or {}))


def parse_arguments(words: Sequence[str]) -> dict[str, Any]:
    """Return arguments written as ``name=value``. A value that is no Python literal is a text.

    Raises:
        ArgumentError: a word has another form.
    """
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise ArgumentError(f"expected arguments of the pipeline function as name=value, got {brief(word)}")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found[name] = text
    return found


def _is_pipeline(value: Any) -> bool:
    return isinstance(value, Pipeline) or getattr(value, "is_pipeline_def", False) is True
