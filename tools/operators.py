# SPDX-License-Identifier: Apache-2.0
"""Facts about an operator's class for the generators of stubs and pages."""

from __future__ import annotations

import enum
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stoker.contract.argument import REQUIRED, Argument
from stoker.contract.operator import Operator
from stoker.contract.types import DType, ImageType, InterpType
from stoker.frontends import registry

# Titles of families by the group of an operator's name or by the folder of its code.
_FAMILIES = {
    "readers": "Readers and sources",
    "decoders": "Decoders",
    "geometry": "Size, position and shape",
    "detection": "Boxes and regions",
    "image": "Images",
    "audio": "Audio",
    "features": "Front ends of speech models",
    "random": "Random numbers",
    "transforms": "Matrices",
    "reductions": "Reductions",
    "generic": "Arrays",
}

ROOT = Path(__file__).resolve().parent.parent


def public() -> dict[str, type[Operator]]:
    """Return all operators of Stoker that users call, by qualified name; a test may have registered others."""
    found = {name: registry.find(name) for name in registry.names() if not name.startswith("_")}
    return {name: one for name, one in found.items() if not one.hidden and one.__module__.startswith("stoker.")}


def families() -> dict[str, list[type[Operator]]]:
    """Return all operators that users call, by family: the group of their names, or the folder of their code."""
    found: dict[str, list[type[Operator]]] = {title: [] for title in _FAMILIES.values()}
    for operator in public().values():
        group, folder = operator.name.partition(".")[0], operator.__module__.split(".")[-2]
        found[_FAMILIES.get(group) or _FAMILIES[folder]].append(operator)
    return {title: operators for title, operators in found.items() if operators}


def documentation(operator: type[Operator]) -> str:
    """Return the docstring without its indentation."""
    return inspect.cleandoc(operator.__doc__ or "")


def inputs(operator: type[Operator]) -> list[inspect.Parameter]:
    """Return the operator's inputs, with the names in its own code."""
    low, high = operator.inputs
    if high == 0:
        return []
    for method in ("lower", "compose", "infer", "reference"):
        if getattr(operator, method) is not getattr(Operator, method):
            own = list(inspect.signature(getattr(operator, method)).parameters.values())[2:]
            if own:  # an input may have the name of an argument: it is positional
                taken = operator.all_arguments()
                if not any(p.kind is p.VAR_POSITIONAL for p in own):
                    own = own[:high]
                return [p.replace(name=f"{p.name}_input") if p.name in taken else p for p in own]
    kind = inspect.Parameter.POSITIONAL_ONLY if low == high == 1 else inspect.Parameter.VAR_POSITIONAL
    return [inspect.Parameter("x" if low == high == 1 else "inputs", kind)]


def outputs(operator: type[Operator], **changed: Any) -> int | None:
    """Return the number of nodes that a call returns with default arguments, except ``changed``; None for one."""
    arguments = {name: argument.convert_default() for name, argument in operator.all_arguments().items()}
    instance = operator()
    return instance.count_outputs(arguments | changed) if instance.returns_tuple(arguments | changed) else None


def deciding(operator: type[Operator]) -> tuple[str, Any] | None:
    """Return the argument that determines a call's number of nodes, with a value other than its default."""
    for name, argument in operator.arguments.items():
        if argument.kind not in ("bool", "int") or argument.many or argument.per_row:
            continue
        other = 2 if argument.kind == "int" else not argument.convert_default()
        if outputs(operator, **{name: other}) != outputs(operator):
            return name, other
    return None


def value_text(value: Any, prefix: str = "types.") -> str:
    """Return a constant as a user writes it: ``types.RGB``, ``(0.5, 1.0)``, ``numpy.arange(...)`` as its shape."""
    if isinstance(value, DType | ImageType | InterpType):
        return prefix + value.name
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, np.ndarray):
        return f"np.asarray({value.tolist()}, np.{value.dtype})" if value.size <= 16 else f"array{value.shape}"
    if isinstance(value, tuple | list):
        inner = ", ".join(value_text(v, prefix) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return json.dumps(value) if isinstance(value, str) else repr(value)


def default(argument: Argument) -> Any:
    """Return the default as users write it: a single number for a list of one."""
    value = argument.convert_default()
    if argument.many and isinstance(value, tuple) and len(value) == 1:
        return value[0]
    return value


def is_required(argument: Argument) -> bool:
    """Return whether a call must give the argument."""
    return argument.default is REQUIRED


def call(operator: type[Operator], arguments: Mapping[str, Any]) -> str:
    """Return one of the operator's cases as a call."""
    known = operator.all_arguments()
    fixed = [p.name for p in inputs(operator) if p.kind is not p.VAR_POSITIONAL]
    rest = [f"*{p.name}" for p in inputs(operator) if p.kind is p.VAR_POSITIONAL and operator.inputs[0] > len(fixed)]
    given = []
    for name, value in arguments.items():
        enumerated = name in known and known[name].kind in ("dtype", "image_type", "interp")
        given.append(f"{name}={value_text(_single(known[name].convert(value)) if enumerated else value)}")
    return f"fn.{operator.name}({', '.join([*fixed, *rest, *given])})"


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def markdown(text: str) -> str:
    """Return a docstring with its roles and double back-quotes converted to Markdown."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def write_or_check(files: Mapping[Path, str], command: str, stale: Callable[[], list[Path]] = list) -> int:
    """Write the files, or with ``--check`` report those that are out of date; return the exit status.

    Args:
        files: contents by path.
        command: the command that updates the files, for the message.
        stale: files that should not exist any more.
    """
    old = [p for p, text in files.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    gone = stale()
    if "--check" in sys.argv:
        for path in [*old, *gone]:
            print(f"{path.relative_to(ROOT)} is out of date: run {command}", file=sys.stderr)
        return 1 if old or gone else 0
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    for path in gone:
        path.unlink()
    return 0
