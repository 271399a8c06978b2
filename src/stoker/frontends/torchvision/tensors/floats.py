# SPDX-License-Identifier: Apache-2.0
"""Float images: steps that a table of 256 entries cannot describe, as scripts use them after ``ToTensor``.

A table maps 256 bytes. Steps that combine several values (resizing, blurring, colours) need floats: the first such step
converts the bytes, and the node's image consists of floats from that step on (:attr:`~.recipe.Node.is_float`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..ir import recipe, steps
from ..ir.recipe import Node
from ..ir.rows import LazyRow
from ..ir.tables import VALUES, Table
from ..reference.float_replay import ADD, AT_LEAST, AT_MOST, DIVIDE, FLOOR, MULTIPLY, SUBTRACT, SUBTRACT_FROM
from .tensor import LazyTensor, leading_shape, make_like

Operation = tuple[int, float, float, float]  # kind, and a number per channel


@functools.cache
def placeholder_table(channels: int) -> Table:
    """Return the placeholder table of a float image; only its type is used."""
    return Table(torch.zeros(channels, 1, VALUES))


def float_row(node: Node) -> LazyRow:
    """Return a row for a float image."""
    return LazyRow(node, placeholder_table(node.channels))


def float_node(row: LazyRow) -> Node | None:
    """Return the node of the row's floats; None if they are not float32, or patched."""
    if row.patches or row.node.op == recipe.RAW or row.table.values.dtype != torch.float32:
        return None
    return row.node if row.node.is_float else row.node.then(steps.Floats(row.table))


def are_floats(x: LazyTensor) -> bool:
    """Return whether all images are float32 images that steps can use."""
    return x.dtype == torch.float32 and not any(row.patches or row.node.op == recipe.RAW for row in x._rows)


def has_floats(x: LazyTensor) -> bool:
    """Return whether no table describes the values any more."""
    return any(row.node.is_float for row in x._rows)


def add_step(x: LazyTensor, step: Callable[[Node], Node]) -> LazyTensor | None:
    """Return all images after a step on their floats; None if they are not floats."""
    nodes = [float_node(row) for row in x._rows]
    if any(node is None for node in nodes):
        return None
    return make_like(x, [float_row(step(node)) for node in nodes if node is not None], leading_shape(x))


def add_operations(node: Node, operations: Sequence[Operation]) -> Node:
    """Return a float image after operations on its values. They are merged with preceding operations."""
    numbers = tuple(float(n) for operation in operations for n in operation)
    before = node.step
    if isinstance(before, steps.Pointwise) and node.parent is not None:
        node, numbers = node.parent, (*before.operations, *numbers)
    return node.then(steps.Pointwise(numbers))


def parse_operations(name: str, args: Sequence[Any], kwargs: Any, channels: int) -> list[Operation] | None:
    """Return the value operations of a call of torch's function; None if the call is not recorded."""
    name = name.strip("_")
    kinds = _UNARY.get(name)
    if kinds is not None:
        return kinds if not args and not kwargs else None
    if name == "clamp":
        return _limits(args, kwargs)
    kind = _BINARY.get(name)
    if kind is None or kwargs or len(args) != 1:
        return None
    numbers = _numbers(args[0], channels)
    return None if numbers is None else [(kind, *numbers)]


_UNARY: dict[str, list[Operation]] = {
    "float": [],
    "floor": [(FLOOR, 0.0, 0.0, 0.0)],
    "neg": [(MULTIPLY, -1.0, -1.0, -1.0)],
}
_BINARY = (
    dict.fromkeys(("add", "radd", "iadd"), ADD)
    | dict.fromkeys(("sub", "subtract", "isub"), SUBTRACT)
    | {"rsub": SUBTRACT_FROM}
    | dict.fromkeys(("mul", "multiply", "rmul", "imul"), MULTIPLY)
    | dict.fromkeys(("div", "divide", "true_divide", "truediv", "itruediv"), DIVIDE)
)
_MAX_EXACT_INT = 1 << 24  # float32 rounds larger integers


def _numbers(x: Any, channels: int) -> tuple[float, float, float] | None:
    """Return a number for each of three channels; None for unsupported operands."""
    if isinstance(x, torch.Tensor):
        if x.dtype != torch.float32 or x.numel() not in (1, channels):
            return None
        values = x.reshape(-1).tolist() * (3 // x.numel())
        return values[0], values[1], values[2]
    if (type(x) is int and abs(x) <= _MAX_EXACT_INT) or isinstance(x, float):
        value = float(np.float32(x))
        return value, value, value
    return None


def _limits(args: Sequence[Any], kwargs: Any) -> list[Operation] | None:
    if len(args) > 2 or set(kwargs) - {"min", "max"}:
        return None
    low, high = (*args, None, None)[:2]
    limits = ((AT_LEAST, kwargs.get("min", low)), (AT_MOST, kwargs.get("max", high)))
    found: list[Operation] = []
    for kind, limit in limits:
        if limit is None:
            continue
        numbers = None if isinstance(limit, torch.Tensor) else _numbers(limit, 3)
        if numbers is None or math.isnan(numbers[0]):
            return None
        found.append((kind, *numbers))
    return found


def add_frame(x: LazyTensor, sides: tuple[int, int, int, int], values: Sequence[Any]) -> LazyTensor | None:
    """Return all images in a frame ``(left, top, right, bottom)`` with one value per channel."""
    if not all(type(v) in (int, float) for v in values):
        return None
    color = [float(np.float32(v)) for v in values]
    left, top, right, bottom = sides

    def step(node: Node) -> Node:
        width, height = node.size[0] + left + right, node.size[1] + top + bottom
        return node.then(steps.FloatPad(left, top, height, width, *color), (width, height))

    rows = [_frame_bytes(row, sides, color) for row in x._rows]
    known = [row for row in rows if row is not None]
    return make_like(x, known, leading_shape(x)) if len(known) == len(rows) else add_step(x, step)


def _frame_bytes(row: LazyRow, sides: tuple[int, int, int, int], color: Sequence[float]) -> LazyRow | None:
    """Return the framed byte image if its table maps some byte to each of the frame's values; otherwise None."""
    if row.node.is_float or row.patches or row.node.op == recipe.RAW or row.table.values.dtype != torch.float32:
        return None
    found = []
    for values, wanted in zip(row.table.values.view(-1, VALUES).numpy(), color, strict=False):
        at = np.flatnonzero(values.view(np.uint32) == np.float32(wanted).view(np.uint32))
        if not at.size:
            return None
        found.append(int(at[0]))
    left, top, right, bottom = sides
    size = (left + row.node.size[0] + right, top + row.node.size[1] + bottom)
    params = (left, top, size[1], size[0], *(found * 3)[:3])
    return row._replace(node=row.node.then(steps.Pad(*params), size))
