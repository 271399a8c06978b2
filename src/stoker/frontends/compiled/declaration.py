# SPDX-License-Identifier: Apache-2.0
"""Declarations of operators in C++, as text.

::

    Maximum over a window.
    input image: uint8 | uint16 | float32 (h, w, c)
    output: like image
    argument radius: int = 1. Pixels on each side.
    check radius >= 0: expected `radius` of at least 0
    draws

The lines before the first keyword are the documentation. Extents are names, numbers or, alone, ``...`` for any rank. A
name that occurs again must have the same value. Extents of outputs may be expressions of names and arguments.
``count <= EXPRESSION`` as the first extent of an output declares that the code sets it (``st_row.set_count``).
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...contract import expr as ex
from ...contract.argument import REQUIRED, Argument
from ...contract.errors import ArgumentError
from ...contract.text import brief
from ...contract.types import DType

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_INPUT = re.compile(r"input\s+(\w+)\s*:\s*([^()]+?)\s*\(([^()]*)\)\s*\Z")
_LIKE = re.compile(r"output(?:\s+\w+)?\s*:\s*like\s+(\w+)\s*\Z")
_OUTPUT = re.compile(r"output(?:\s+\w+)?\s*:\s*(\w+|type of \w+)\s*\((.*)\)\s*\Z")
_ARGUMENT = re.compile(r"argument\s+(\w+)\s*:\s*(float|int|bool)\s*(?:=\s*([^.\s]+(?:\.\d+)?))?\s*(?:\.\s*(.*))?\Z")
_CHECK = re.compile(r"check\s+(.+?)\s*:\s+(.+)\Z")
_KEYWORDS = ("input", "output", "argument", "check", "draws")
_MOST_RANK = 7


@dataclass(frozen=True)
class DeclaredInput:
    """Input: its element types, and its extents; None for any rank."""

    name: str
    types: tuple[DType, ...]
    extents: tuple[str, ...] | None


@dataclass(frozen=True)
class DeclaredOutput:
    """Output. ``like`` is the number of the input whose type (and, without extents, shape) it has, or -1.

    ``extents`` are expressions. With ``counted``, the first one is the bound of the extent that the code sets.
    """

    like: int
    dtype: DType | None
    extents: tuple[ast.expr, ...] | None
    counted: bool = False


@dataclass
class Declaration:
    """Parsed declaration."""

    doc: str = ""
    inputs: list[DeclaredInput] = field(default_factory=list)
    outputs: list[DeclaredOutput] = field(default_factory=list)
    arguments: dict[str, Argument] = field(default_factory=dict)
    checks: list[tuple[ast.expr, str]] = field(default_factory=list)
    draws: bool = False

    def input_number(self, name: str) -> int:
        """Return the number of an input by its name."""
        for i, x in enumerate(self.inputs):
            if x.name == name:
                return i
        raise ArgumentError(f"expected the name of an input, got {name!r}; inputs come before outputs")


def parse(text: str, name: str) -> Declaration:
    """Parse a declaration.

    Args:
        text: the declaration.
        name: name of the operator, for messages.

    Raises:
        ArgumentError: the text is no declaration; the message has the line.
    """
    found = Declaration()
    doc: list[str] = []
    for line in map(str.strip, text.splitlines()):
        keyword = re.split(r"[\s:]", line, maxsplit=1)[0]
        if keyword not in _KEYWORDS:
            if line and (found.inputs or found.outputs or found.arguments):
                expected = ", ".join(_KEYWORDS)
                raise ArgumentError(f"`{name}`: declaration {line!r}: expected a line that begins with {expected}")
            doc.append(line)
            continue
        try:
            _LINES[keyword](found, line)
        except ArgumentError as error:
            raise ArgumentError(f"`{name}`: declaration {line!r}: {error}") from None
    found.doc = "\n".join(doc).strip() or f"Operator {name} in C++."
    if not found.inputs or not found.outputs:
        raise ArgumentError(f"`{name}`: expected a declaration with an input and an output, got {brief(text)}")
    counted = [o.counted for o in found.outputs]
    if any(counted) and not all(counted):
        raise ArgumentError(f"`{name}`: expected `count` for all outputs or for none")
    return found


def _input(d: Declaration, line: str) -> None:
    match = _INPUT.match(line)
    if match is None:
        raise ArgumentError("expected `input NAME: TYPE | TYPE (EXTENT, EXTENT)`")
    name, kinds, extents = match.groups()
    if any(x.name == name for x in d.inputs) or name in d.arguments:
        raise ArgumentError(f"{name} is declared twice")
    types = tuple(map(_type, kinds.split("|"))) if kinds != "any" else tuple(DType)
    items = [e.strip() for e in extents.split(",") if e.strip()]
    if items == ["..."]:
        d.inputs.append(DeclaredInput(name, types, None))
        return
    wrong = next((e for e in items if not (_NAME.match(e) or e.isdigit())), None)
    if wrong is not None or len(items) > _MOST_RANK:
        raise ArgumentError(f"expected at most {_MOST_RANK} extents that are names or numbers, or `...`, got {extents}")
    d.inputs.append(DeclaredInput(name, types, tuple(items)))


def _output(d: Declaration, line: str) -> None:
    like = _LIKE.match(line)
    if like is not None:
        d.outputs.append(DeclaredOutput(d.input_number(like.group(1)), None, None))
        return
    match = _OUTPUT.match(line)
    if match is None:
        raise ArgumentError("expected `output: like INPUT` or `output: TYPE (EXTENT, EXTENT)`")
    kind, extents = match.groups()
    number = d.input_number(kind.removeprefix("type of ")) if kind.startswith("type of ") else -1
    parsed = expression(f"({extents},)" if extents.strip() else "()")
    assert isinstance(parsed, ast.Tuple)
    items, counted = list(parsed.elts), False
    if items and isinstance(items[0], ast.Compare):
        first = items[0]
        if not (isinstance(first.left, ast.Name) and first.left.id == "count" and isinstance(first.ops[0], ast.LtE)):
            raise ArgumentError("expected `count <= BOUND` as an extent that the code sets")
        items[0], counted = first.comparators[0], True
    if len(items) > _MOST_RANK:
        raise ArgumentError(f"expected at most {_MOST_RANK} extents, got {len(items)}")
    d.outputs.append(DeclaredOutput(number, None if number >= 0 else _type(kind), tuple(items), counted))


def _argument(d: Declaration, line: str) -> None:
    match = _ARGUMENT.match(line)
    if match is None:
        raise ArgumentError("expected `argument NAME: float = DEFAULT. TEXT`, with float, int or bool")
    name, kind, default, doc = match.groups()
    if name in d.arguments or any(x.name == name for x in d.inputs):
        raise ArgumentError(f"{name} is declared twice")
    value: Any = REQUIRED
    if default is not None:
        try:
            value = {"true": True, "false": False}[default.lower()] if kind == "bool" else float(default)
            value = int(value) if kind == "int" and float(value).is_integer() else value
        except (KeyError, ValueError):
            raise ArgumentError(f"expected a default of type {kind}, got {default}") from None
    d.arguments[name] = Argument(kind, doc or "Argument of the operator.", value, per_row=True)


def _check(d: Declaration, line: str) -> None:
    match = _CHECK.match(line)
    if match is None:
        raise ArgumentError("expected `check CONDITION: text`")
    d.checks.append((expression(match.group(1)), match.group(2)))


def _draws(d: Declaration, line: str) -> None:
    if line != "draws":
        raise ArgumentError("expected `draws` alone")
    d.draws = True


_LINES = {"input": _input, "output": _output, "argument": _argument, "check": _check, "draws": _draws}


def _type(name: str) -> DType:
    try:
        return DType.of(name.strip())
    except Exception:  # noqa: BLE001 - unknown names raise several kinds of errors
        raise ArgumentError(f"expected an element type such as uint8 or float32, got {name.strip()!r}") from None


def expression(text: str) -> ast.expr:
    """Return the parsed expression.

    Raises:
        ArgumentError: the text is no expression.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ArgumentError(f"expected an expression of names and numbers, got {text!r}") from None


_BINARY: dict[type, Any] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b, ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Eq: ex.equal,
    ast.NotEq: ex.different,
}  # fmt: skip
_FUNCTIONS: dict[str, Any] = {
    "min": ex.minimum,
    "max": ex.maximum,
    "floor": ex.floor,
    "ceil": ex.ceil,
    "where": ex.where,
}


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression, symbolic if names are.

    Args:
        node: the expression.
        names: extents and arguments.

    Raises:
        ArgumentError: the expression has an unknown name or another operation than arithmetic and comparisons.
    """
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ArgumentError(f"expected one of the names {', '.join(names)}, got {node.id!r}")
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](evaluate(node.left, names), evaluate(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return 0 - evaluate(node.operand, names)
    if isinstance(node, ast.Compare) and all(type(op) in _BINARY for op in node.ops):
        values = [evaluate(x, names) for x in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return functools.reduce(ex.both, [_BINARY[type(op)](a, b) for op, a, b in pairs])
    if isinstance(node, ast.BoolOp):
        join = ex.both if isinstance(node.op, ast.And) else ex.either
        return functools.reduce(join, [evaluate(x, names) for x in node.values])
    return _call(node, names)


def _call(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of a call of a function."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        count = {"floor": 1, "ceil": 1, "where": 3}.get(node.func.id, 2)
        if len(node.args) == count and not node.keywords:
            return _FUNCTIONS[node.func.id](*(evaluate(x, names) for x in node.args))
    raise ArgumentError(f"expected arithmetic and comparisons of names and numbers, got {ast.unparse(node)!r}")
