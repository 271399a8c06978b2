# SPDX-License-Identifier: Apache-2.0
"""Text forms of tensors and lists of tensors, laid out as DALI prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract.types import DType
from .type_names import DALIDataType

_EDGE = 2  # items at each end of what is abbreviated
_MOST_ELEMENTS = 1000  # more are abbreviated
_MOST_SHAPES, _MOST_EXTENTS = 16, 100
_WIDEST_SHAPES = 75  # characters of shapes on one line
_INDENT = " " * 4


def tensor_text(kind: str, array: Any, dtype: DType | DALIDataType, layout: str, shape: Sequence[int],
                device: str | None = None) -> str:  # fmt: skip
    """Return a tensor as text.

    Args:
        kind: name of the class.
        array: the elements, to show them; None to leave them out.
        dtype: element type.
        layout: axis names.
        shape: extents.
        device: "cpu" or "gpu"; by default that of the class.
    """
    data = [] if array is None else [np.array2string(array, prefix=_INDENT, edgeitems=_EDGE)]
    return _call(kind, [*data, *_facts(kind, dtype, layout, device), f"shape={tuple(shape)}"])


def list_text(
    kind: str, rows: list[Any] | None, dtype: DType | DALIDataType, layout: str, shapes: Sequence[Sequence[int]],
    device: str | None = None,
) -> str:  # fmt: skip
    """Return a list of tensors as text.

    Args:
        kind: name of the class.
        rows: the rows, to show their elements; None to leave them out.
        dtype: element type.
        layout: axis names of a row.
        shapes: extents of every row.
        device: "cpu" or "gpu"; by default that of the class.
    """
    data = [] if rows is None else [f"[{_rows_text(rows)}]"]
    return _call(kind, [*data, *_facts(kind, dtype, layout, device), f"num_samples={len(shapes)}",
                        f"shape=[{_shapes_text(shapes)}]"])  # fmt: skip


def _call(kind: str, parts: list[str]) -> str:
    inside = f",\n{_INDENT}".join(parts)
    return f"{kind}(\n{_INDENT}{inside})"


def _facts(kind: str, dtype: DType | DALIDataType, layout: str, device: str | None) -> list[str]:
    names = [f'layout="{layout}"'] if layout else []
    place = ("gpu" if kind.endswith("GPU") else "cpu") if device is None else device
    return [f"dtype=DALIDataType.{dtype.name}", *names, f'device="{place}"']


def _rows_text(rows: list[Any]) -> str:
    elements = sum(max(x.size, 1) for x in rows)
    is_long = len(rows) > 2 * _EDGE + 1 and elements > _MOST_ELEMENTS
    shown = [*rows[:_EDGE], *rows[-_EDGE:]] if is_long else rows
    texts = [np.array2string(np.asarray(x), prefix=_INDENT, edgeitems=_EDGE) for x in shown]
    if is_long:
        texts.insert(_EDGE, "...")
    rank = np.ndim(rows[0]) if rows else 0
    return (", " if not rank else ",\n" + "\n" * (rank - 1) + _INDENT).join(texts)


def _shapes_text(shapes: Sequence[Sequence[int]]) -> str:
    count = len(shapes)
    is_long = count > _MOST_SHAPES or (count > 2 * _EDGE + 1 and count * len(shapes[0]) > _MOST_EXTENTS)
    texts = [str(tuple(s)) for s in shapes]
    if is_long:
        texts = [*texts[:_EDGE], "...", *texts[-_EDGE:]]
    line = ", ".join(texts)
    return line if len(line) <= _WIDEST_SHAPES else f", \n{_INDENT}{' ' * len('shape=[')}".join(texts)
