# SPDX-License-Identifier: Apache-2.0
"""Tensors of floats whose values no table gives any more: what scripts do behind ``ToTensor``.

A table says what 256 bytes become. Where values meet (sizes, blurs, colours), the bytes become floats first: from that
step on a node's image is one of floats (:attr:`~.recipe.Node.floats`), and so is all that is made of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from . import recipe
from .float_replay import ADD, AT_LEAST, AT_MOST, DIVIDE, FLOOR, MULTIPLY, SUBTRACT, SUBTRACT_FROM
from .recipe import Node
from .rows import LazyRow
from .tables import VALUES, Table
from .tensor import LazyTensor, lead_of, of_rows

Operation = tuple[int, float, float, float]  # its kind, and a number per channel


@functools.cache
def table(channels: int) -> Table:
    """What stands for the table of such an image: there is none, its type alone counts."""
    return Table(torch.zeros(channels, 1, VALUES))


def row_of(node: Node) -> LazyRow:
    """An image of floats."""
    return LazyRow(node, table(node.channels))


def node_of(row: LazyRow) -> Node | None:
    """The node whose image is the row's floats; None if these are none of float32, or patched."""
    if row.patches or row.node.op == recipe.RAW or row.table.values.dtype != torch.float32:
        return None
    return row.node if row.node.floats else row.node.then(recipe.FLOATS, (row.table,))


def are_floats(x: LazyTensor) -> bool:
    """Whether all its images are floats of float32 that steps can take."""
    return x.dtype == torch.float32 and not any(row.patches or row.node.op == recipe.RAW for row in x._rows)


def has_floats(x: LazyTensor) -> bool:
    """Whether a table no longer gives its values."""
    return any(row.node.floats for row in x._rows)


def stepped(x: LazyTensor, step: Callable[[Node], Node]) -> LazyTensor | None:
    """All images after a step on their floats; None if they are no floats."""
    nodes = [node_of(row) for row in x._rows]
    if any(node is None for node in nodes):
        return None
    return of_rows(x, [row_of(step(node)) for node in nodes if node is not None], lead_of(x))


def operated(node: Node, operations: Sequence[Operation]) -> Node:
    """An image of floats after operations on its values; they are done together with those before them."""
    numbers = tuple(float(n) for operation in operations for n in operation)
    if node.op == recipe.POINTWISE and node.parent is not None:
        node, numbers = node.parent, (*node.params[1:], *numbers)
    return node.then(recipe.POINTWISE, (len(numbers), *numbers))


def operations_of(name: str, args: Sequence[Any], kwargs: Any, channels: int) -> list[Operation] | None:
    """What a function of torch's, called so behind its tensor, does to values; None if it is not recorded."""
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
_MOST_WHOLE = 1 << 24  # larger ones float32 rounds


def _numbers(x: Any, channels: int) -> tuple[float, float, float] | None:
    """A number for each of three channels."""
    if isinstance(x, torch.Tensor):
        if x.dtype != torch.float32 or x.numel() not in (1, channels):
            return None
        values = x.reshape(-1).tolist() * (3 // x.numel())
        return values[0], values[1], values[2]
    if (type(x) is int and abs(x) <= _MOST_WHOLE) or isinstance(x, float):
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


def framed(x: LazyTensor, sides: tuple[int, int, int, int], values: Sequence[Any]) -> LazyTensor | None:
    """All images in a frame ``(left, top, right, bottom)`` of one value per channel."""
    if not all(type(v) in (int, float) for v in values):
        return None
    color = [float(np.float32(v)) for v in values]
    left, top, right, bottom = sides

    def step(node: Node) -> Node:
        width, height = node.size[0] + left + right, node.size[1] + top + bottom
        return node.then(recipe.FLOAT_PAD, (left, top, height, width, *color), (width, height))

    rows = [_framed_bytes(row, sides, color) for row in x._rows]
    known = [row for row in rows if row is not None]
    return of_rows(x, known, lead_of(x)) if len(known) == len(rows) else stepped(x, step)


def _framed_bytes(row: LazyRow, sides: tuple[int, int, int, int], color: Sequence[float]) -> LazyRow | None:
    """The same of an image whose table makes the frame's values of some bytes."""
    if row.node.floats or row.patches or row.node.op == recipe.RAW or row.table.values.dtype != torch.float32:
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
    return row._replace(node=row.node.then(recipe.PAD, params, size))
