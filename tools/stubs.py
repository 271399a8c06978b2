#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ``src/stoker/frontends/fn.pyi``, from which editors and type checkers know ``fn``'s operators.

``tools/stubs.py`` writes it, ``tools/stubs.py --check`` fails if it is out of date.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Mapping

import operators
from operators import ROOT, default, documentation, is_required, value_text
from stoker.contract.argument import Argument
from stoker.contract.operator import Operator

TARGET = ROOT / "src" / "stoker" / "frontends" / "fn.pyi"

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""``fn``: operators as functions on nodes. Written by tools/stubs.py."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ..contract.types import DType, ImageType, InterpType
from .constants import Constant
from .data_node import DataNode

Input: TypeAlias = DataNode | Constant | npt.ArrayLike
DTypeLike: TypeAlias = DType | npt.DTypeLike

'''
# Operators that users register have no declaration here.
TAIL = "def __getattr__(name: str) -> Any: ...\n"

_KINDS = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "dtype": "DTypeLike",
    "image_type": "ImageType",
    "interp": "InterpType",
    "object": "Any",
}
_ENUM_PREFIX = {"dtype": "DType.", "image_type": "ImageType.", "interp": "InterpType."}
_PATH_LIKE = ("file", "root", "path")


def annotation(name: str, argument: Argument) -> str:
    """Return the type of one argument."""
    if argument.kind == "object":
        return "Any"
    base = _KINDS[argument.kind]
    if argument.choices and argument.kind == "str":
        base = f"Literal[{', '.join(map(value_text, argument.choices))}]"
    elif argument.kind == "str" and any(part in name for part in _PATH_LIKE):
        base = "str | PathLike[str]"
    parts = [base]
    if argument.many:
        element = f"{base} | DataNode" if argument.per_row else base
        parts.append(f"Sequence[{element}]")
        if argument.kind in ("int", "float"):
            parts.append("npt.NDArray[np.generic]")
    if argument.per_row:
        parts.append("DataNode")
    if not is_required(argument) and default(argument) is None:
        parts.append("None")
    return " | ".join(parts)


def parameter(name: str, argument: Argument) -> str:
    """Return one argument with its type and default."""
    text = f"{name}: {annotation(name, argument)}"
    if is_required(argument):
        return text
    value = value_text(default(argument), _ENUM_PREFIX.get(argument.kind, ""))
    return f"{text} = {value if len(value) <= 60 else '...'}"


def _positional(operator: type[Operator]) -> list[str]:
    own = operators.inputs(operator)
    fixed = [p for p in own if p.kind is not p.VAR_POSITIONAL]
    texts = [f"{p.name}: Input{'' if p.default is inspect.Parameter.empty else ' = ...'}" for p in fixed]
    rest = [f"*{p.name}: Input" for p in own if p.kind is p.VAR_POSITIONAL]
    return [*texts, *(["/"] if texts else []), *(rest or ["*"])]


def _result(count: int | None) -> str:
    return "DataNode" if count is None else f"tuple[{', '.join(['DataNode'] * count)}]"


def _docstring(operator: type[Operator]) -> str:
    own = {k: a.doc for k, a in operator.all_arguments().items() if a.doc and not a.doc.startswith("Accepted")}
    lines = [documentation(operator), "", "Args:"]
    for name, doc in (*operator.named_inputs.items(), *own.items()):
        text = f"{name}: {doc}"
        lines += textwrap.wrap(text, 108, initial_indent="    ", subsequent_indent="        ")
    quoted = "\n".join(lines).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{quoted}\n"""'


def function(operator: type[Operator], *, in_group: bool) -> str:
    """Return the declaration of one operator; two declarations if an argument determines a call's number of nodes."""
    arguments = dict(sorted(operator.all_arguments().items(), key=lambda item: not is_required(item[1])))
    parameters = {name: parameter(name, argument) for name, argument in arguments.items()}
    for name in operator.named_inputs:
        kind = "Sequence[Input]" if name in operator.listed_inputs else "Input"
        parameters[name] = f"{name}: {kind} | None = None"
    # The inputs that a call names determine its number of nodes.
    usual = "Any" if operator.named_inputs else _result(operators.outputs(operator))
    decorators = ["@staticmethod"] if in_group else []
    choice = operators.deciding(operator)
    if choice is None:
        return _definition(operator, decorators, parameters, usual)
    name, other = choice
    preset = value_text(arguments[name].convert_default())
    if arguments[name].kind == "bool":
        kind, result = f"Literal[{other}]", _result(operators.outputs(operator, **{name: other}))
    else:
        kind, result = "int", "tuple[DataNode, ...]"
    first = parameters | {name: f"{name}: {'None' if preset == 'None' else f'Literal[{preset}]'} = {preset}"}
    second = parameters | {name: f"{name}: {kind}"}
    decorators.insert(0, "@overload")
    return "\n".join(_definition(operator, decorators, p, r) for p, r in ((first, usual), (second, result)))


def _definition(operator: type[Operator], decorators: list[str], parameters: Mapping[str, str], result: str) -> str:
    # The argument that determines the number of results has no default in one of two declarations, so it is keyword-
    # only there.
    choice = operators.deciding(operator)
    lead = [name for name in operator.positional if choice is None or name != choice[0]]
    named = [text for name, text in parameters.items() if name not in lead]
    first = [*(parameters[name] for name in lead), "*"] if lead else _positional(operator)
    body = "".join(f"    {p},\n" for p in (*first, *named))
    head = "".join(f"{d}\n" for d in decorators)
    name = operator.name.rsplit(".", 1)[-1]
    return f"{head}def {name}(\n{body}) -> {result}:\n{textwrap.indent(_docstring(operator), '    ')}\n    ...\n"


def _tree(found: Mapping[str, type[Operator]], prefix: str = "") -> str:
    """Return functions first, then groups as classes."""
    here = {name: op for name, op in found.items() if name.startswith(prefix)}
    direct = [op for name, op in here.items() if "." not in name[len(prefix) :]]
    groups = sorted({name[len(prefix) :].split(".")[0] for name in here if "." in name[len(prefix) :]})
    parts = [function(op, in_group=bool(prefix)) for op in direct]
    for group in groups:
        inner = textwrap.indent(_tree(found, f"{prefix}{group}."), "    ", lambda line: bool(line.strip()))
        parts.append(f"class {group}:\n{inner}")
    return "\n".join(parts)


def main() -> int:
    return operators.write_or_check({TARGET: HEAD + _tree(operators.public()) + "\n" + TAIL}, "make generate")


if __name__ == "__main__":
    sys.exit(main())
