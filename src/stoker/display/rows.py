# SPDX-License-Identifier: Apache-2.0
"""HTML of an output's rows, or of one tensor: pictures of images, else values or statistics."""

from __future__ import annotations

from collections.abc import Sequence

from .html import figures, paragraph, table
from .pixels import Array, describe_values, draw_rows

SIDE = 128


def tensor_as_html(title: str, array: Array, layout: str) -> str:
    """Return one tensor with a title."""
    drawn = draw_rows([array], layout, SIDE)
    if drawn is None:
        return f"<div>{paragraph(title)}{paragraph(describe_values(array))}</div>"
    notes = [str(drawn.scale), *([drawn.remark] if drawn.remark else [])]
    return f"<div>{paragraph('; '.join([title, *notes]))}{figures(drawn.images, [''], SIDE)}</div>"


def rows_as_html(title: str, rows: Sequence[Array], names: Sequence[str], layout: str, left_out: int = 0) -> str:
    """Return rows with a title and a name each.

    Args:
        title: the line above them.
        rows: the rows to show.
        names: one name per row.
        layout: names of a row's axes.
        left_out: number of further rows, which are not shown.
    """
    drawn = draw_rows(rows, layout, SIDE) if rows else None
    notes = [f"{left_out:,} more rows"] if left_out else []
    if drawn is None:
        body = table(("row", "value"), [(n, describe_values(row)) for n, row in zip(names, rows, strict=True)])
    else:
        notes = [str(drawn.scale), *([drawn.remark] if drawn.remark else []), *notes]
        body = figures(drawn.images, names, SIDE)
    head = paragraph("; ".join([title, *notes]))
    return f"<div>{head}{body if rows else ''}</div>"
