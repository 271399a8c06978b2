# SPDX-License-Identifier: Apache-2.0
"""torch functions that move the pixels of a lazy tensor: windows, mirrors, frames.

A window of a tensor shares the tensor's memory, so a change of one is visible in the other. The windows of a lazy
tensor know each other (:class:`~.tensor.SharedWindows`). Before one of them is changed or materialized, all windows
that are still in use are materialized as windows of one plain tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..ir import recipe, steps
from ..ir.recipe import Node, Patch
from ..ir.rows import LazyRow
from ..ir.tables import VALUES, identity_table
from . import floats
from .tensor import (
    LazyTensor,
    Recorders,
    copy_layout,
    is_lazy,
    leading_shape,
    make_like,
    make_window,
    materialize_shared,
    query_layout,
    record_deferred,
)

# Native numbers of borders by torch's and torchvision's names (native/shared/border.hpp).
BORDERS = {"reflect": 0, "symmetric": 1, "replicate": 3, "edge": 3}


def byte_node(row: LazyRow) -> Node | None:
    """Return the node of the row's bytes; None if its values are not bytes, or patched."""
    if row.patches or row.node.op == recipe.RAW:
        return None
    if row.table is identity_table(row.node.channels):
        return row.node
    if row.table.values.dtype != torch.uint8:
        return None
    return row.node.then(steps.Map(row.table.values.numpy().reshape(-1)))


def add_step(x: LazyTensor, step: Callable[[Node], Node]) -> LazyTensor | None:
    """Return all images after a step on their bytes; None if they are not bytes."""
    nodes = [byte_node(row) for row in x._rows]
    if any(node is None for node in nodes):
        return None
    result = [step(node) for node in nodes if node is not None]
    return make_like(x, [LazyRow(node, identity_table(node.channels)) for node in result], leading_shape(x))


def move_pixels(x: LazyTensor, step: Callable[[Node], Node]) -> LazyTensor | None:
    """Return all images after a step that only moves pixels, and commutes with the table; None if not recorded."""
    if any(row.patches or row.node.op == recipe.RAW for row in x._rows):
        return None
    return make_like(x, [row._replace(node=step(row.node)) for row in x._rows], leading_shape(x))


def _or_not_implemented(result: LazyTensor | None) -> Any:
    return NotImplemented if result is None else result


def _get_item(func: Any, args: Any, kwargs: Any) -> Any:
    x, index = args
    if not is_lazy(x) or kwargs:
        return NotImplemented
    count = leading_shape(x)[0] if type(index) is int and leading_shape(x) else 0
    if count and -count <= index < count:
        deferred = record_deferred(func, args, kwargs) if count > 1 else NotImplemented
        if deferred is not NotImplemented:  # a collation goes on with single images of a batch
            return deferred
        return _one_of_first_axis(x, index % count)
    window = _window(index, tuple(x.shape))
    if window is None or any(row.patches or row.node.op == recipe.RAW for row in x._rows):
        return NotImplemented
    left, top, right, bottom = window
    size = (right - left, bottom - top)
    if size == x._rows[0].node.size:
        return make_window(x, x._rows, window, leading_shape(x))
    rows = [row._replace(node=row.node.then(steps.Crop(*window), size)) for row in x._rows]
    return make_window(x, rows, window, leading_shape(x))


def _one_of_first_axis(x: LazyTensor, number: int) -> Any:
    count = len(x._rows) // leading_shape(x)[0]
    width, height = x._rows[0].node.size
    rows = x._rows[number * count : (number + 1) * count]
    return make_window(x, rows, (0, 0, width, height), leading_shape(x)[1:], image=number * count)


def _slices(index: Any, shape: tuple[int, ...]) -> list[tuple[int, int, int]] | None:
    """Return start, end and step along every axis; None if the index has anything but slices with plain numbers."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not all(p is Ellipsis or (isinstance(p, slice) and _is_plain_slice(p)) for p in parts):
        return None
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    rest = parts[at + 1 :]
    left_out = len(shape) - at - len(rest)
    if left_out < 0 or Ellipsis in rest:
        return None
    full = [*parts[:at], *[slice(None)] * left_out, *rest]
    return [part.indices(n) for part, n in zip(full, shape, strict=True)]


def _is_plain_slice(part: slice) -> bool:
    return all(x is None or type(x) is int for x in (part.start, part.stop, part.step))


def _window(index: Any, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Return (x0, y0, x1, y1) if the index is a window of all images; otherwise None."""
    found = _slices(index, shape)
    if found is None or any(step != 1 for _, _, step in found):
        return None
    whole = all((first, end) == (0, n) for (first, end, _), n in zip(found[:-2], shape[:-2], strict=True))
    (top, bottom, _), (left, right, _) = found[-2:]
    return (left, top, right, bottom) if whole and left < right and top < bottom else None


def _set_item(func: Any, args: Any, kwargs: Any) -> Any:
    """Record a value that is set in a window, as erasing does."""
    x, index, value = args
    if not issubclass(type(x), LazyTensor) or x._materialized is not None or len(x._rows) != 1 or leading_shape(x):
        return NotImplemented
    window = _window_to_set(index, tuple(x.shape))
    if window is None or not (
        isinstance(value, (int, float)) or (type(value) is torch.Tensor and not value.requires_grad)
    ):
        return NotImplemented
    room = torch.empty((), dtype=x.dtype).expand(tuple(x.shape))[index]  # raises torch's errors
    patch = make_patch(window, value, room)
    if materialize_shared(x):
        return NotImplemented
    row = x._rows[0]
    x._rows = [row._replace(patches=(*row.patches, patch))]
    return None


def _window_to_set(index: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return start and end along each axis of an index of slices; None if it is no window."""
    found = _slices(index, shape)
    if found is None or any(step != 1 for _, _, step in found):
        return None
    return tuple(edge for first, end, _ in found for edge in (first, max(first, end)))


def make_patch(window: Any, value: Any, room: torch.Tensor) -> Patch:
    """Return a patch of ``value`` over a window shaped like ``room``, with torch's conversion."""
    single = not isinstance(value, torch.Tensor) or value.numel() == 1
    values = torch.empty((1,) if single else tuple(room.shape), dtype=room.dtype)
    values[...] = value.detach().reshape(()) if single and isinstance(value, torch.Tensor) else value
    data = values.reshape(-1).view(torch.uint8).numpy()
    memory = np.zeros(-(-max(data.size, 1) // VALUES) * VALUES, np.uint8)  # the granularity of tables
    memory[: data.size] = data
    return Patch(window, single, memory)


def _flip(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    dims = kwargs.get("dims", args[1] if len(args) == 2 else args[1:])
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if not is_lazy(x) or set(kwargs) - {"dims"} or not all(type(d) is int for d in dims):
        return NotImplemented
    axes = sorted(d - x.ndim if d >= 0 else d for d in dims)
    kind = {(-1,): 0, (-2,): 1, (-2, -1): 3}.get(tuple(axes))
    if kind is None:
        return NotImplemented
    result = move_pixels(x, lambda node: node.then(steps.Transpose(kind)))
    return NotImplemented if result is None else copy_layout(x, result)


def _turn(func: Any, args: Any, kwargs: Any) -> Any:
    """Record ``rot90`` of the last two axes."""
    x, k, dims = (*args, *[None] * 3)[:3]
    k, dims = kwargs.get("k", 1 if k is None else k), kwargs.get("dims", dims)
    if not is_lazy(x) or set(kwargs) - {"k", "dims"} or type(k) is not int or dims is None:
        return NotImplemented
    if [d - x.ndim if d >= 0 else d for d in dims] != [-2, -1]:
        return NotImplemented
    kind = {1: 2, 2: 3, 3: 4}.get(k % 4)
    if kind is None:
        return NotImplemented
    result = move_pixels(x, lambda node: node.then(steps.Transpose(kind), _turned_size(node.size, k)))
    if result is None:
        return NotImplemented
    copy_layout(x, result)._is_turned ^= bool(k % 2)  # torch mirrors the memory, and returns its transpose
    result._is_view_in_torch = bool(k % 2)
    return result


def _turned_size(size: tuple[int, int], quarters: int) -> tuple[int, int]:
    return (size[1], size[0]) if quarters % 2 else size


def _pad(func: Any, args: Any, kwargs: Any) -> Any:
    x, pad, mode, value = bind_arguments(args, kwargs, {"input": None, "pad": None, "mode": "constant", "value": None})
    if not is_lazy(x) or not isinstance(pad, (list, tuple)) or len(pad) != 4:
        return NotImplemented
    if not all(type(n) is int and n >= 0 for n in pad) or not isinstance(mode, str):
        return NotImplemented
    if not (value is None or isinstance(value, (int, float))):
        return NotImplemented
    left, right, top, bottom = pad
    if mode == "constant":
        return _or_not_implemented(add_frame(x, (left, top, right, bottom), 0 if value is None else value))
    width, height = x._rows[0].node.size
    inside = max(left, right) < width and max(top, bottom) < height
    if mode not in ("reflect", "replicate") or (mode == "reflect" and not inside) or x.ndim not in (3, 4):
        return NotImplemented
    return _or_not_implemented(
        move_pixels(x, lambda node: pad_edges_node(node, (left, top, right, bottom), BORDERS[mode]))
    )


def add_frame(x: LazyTensor, sides: tuple[int, int, int, int], value: Any) -> LazyTensor | None:
    """Return all images in a frame of one value, or of one per channel; None if it is not recorded."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * 3
    if isinstance(value, (list, tuple)) and len(value) != x._rows[0].node.channels:
        return None
    if x.dtype == torch.float32:
        return floats.add_frame(x, sides, values)
    if x.dtype != torch.uint8 or not all(type(v) in (int, float) and 0 <= v <= 255 for v in values):
        return None
    color = tuple(int(v) for v in values)
    left, top = sides[:2]

    def step(node: Node) -> Node:
        size = _padded_size(node, sides)
        return node.then(steps.Pad(left, top, size[1], size[0], *color), size)

    return add_step(x, step)


def parse_padding(padding: Any) -> tuple[int, int, int, int] | None:
    """Return (left, top, right, bottom) of torchvision's ``padding``: one number, two (across and down) or four.

    None for other arguments, and for negative padding.
    """
    sides = (padding,) if isinstance(padding, int) else padding
    if not isinstance(sides, (list, tuple)) or len(sides) not in (1, 2, 4):
        return None
    left, top, right, bottom = (*sides, *sides, *sides, *sides)[:4]
    return (left, top, right, bottom) if all(type(n) is int and n >= 0 for n in sides) else None


def pad_edges_node(node: Node, sides: Sequence[int], border: int) -> Node:
    """Return a node with padded edges ``(left, top, right, bottom)``."""
    size = _padded_size(node, sides)
    return node.then(steps.PadEdges(sides[0], sides[1], size[1], size[0], border), size)


def _padded_size(node: Node, sides: Sequence[int]) -> tuple[int, int]:
    left, top, right, bottom = sides
    return (left + node.size[0] + right, top + node.size[1] + bottom)


def bind_arguments(args: Any, kwargs: Any, defaults: dict[str, Any]) -> list[Any]:
    """Return a function's arguments in order; [None, ...] if there are unknown ones."""
    if len(args) > len(defaults) or set(kwargs) - set(defaults):
        return [None] * len(defaults)
    arguments = dict(zip(defaults, args, strict=False)) | kwargs
    return [arguments.get(name, default) for name, default in defaults.items()]


def reshape(func: Any, args: Any, kwargs: Any) -> Any:
    """Record other axes before the images'."""
    x, *shape = args
    if not is_lazy(x) or kwargs:
        return NotImplemented
    shape = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else list(shape)
    if not all(type(n) is int for n in shape) or len(shape) < 3 or shape.count(-1) > 1:
        return NotImplemented
    known = math.prod(n for n in shape if n != -1)
    shape = [x.numel() // max(known, 1) if n == -1 else n for n in shape]
    if tuple(shape[-3:]) != tuple(x.shape[-3:]) or math.prod(shape) != x.numel():
        return NotImplemented
    return _with_leading_shape(x, tuple(shape[:-3]))


def _unsqueeze(func: Any, args: Any, kwargs: Any) -> Any:
    x, dim = bind_arguments(args, kwargs, {"input": None, "dim": None})
    if not is_lazy(x) or type(dim) is not int or dim not in (0, -x.ndim - 1):
        return NotImplemented
    result = _with_leading_shape(x, (1, *leading_shape(x)))
    result._is_by_pixel = False  # torch does not recognize the adjacent channels of a single image by its strides
    return result


def _squeeze(func: Any, args: Any, kwargs: Any) -> Any:
    x, dim = bind_arguments(args, kwargs, {"input": None, "dim": None})
    if not is_lazy(x) or type(dim) is not int or dim not in (0, -x.ndim) or leading_shape(x)[:1] != (1,):
        return NotImplemented
    return _with_leading_shape(x, leading_shape(x)[1:])


def _as_strided(func: Any, args: Any, kwargs: Any) -> Any:
    """Record a view with its current strides, by which torchvision marks the memory format of a single image."""
    defaults = {"input": None, "size": None, "stride": None, "storage_offset": None}
    x, size, strides, offset = bind_arguments(args, kwargs, defaults)
    lists = isinstance(size, (list, tuple)) and isinstance(strides, (list, tuple)) and len(size) == len(strides)
    if not is_lazy(x) or offset is not None or not lists or tuple(size) != tuple(x.shape):
        return NotImplemented
    if any(n > 1 and one != other for n, one, other in zip(size, strides, x.stride(), strict=True)):
        return NotImplemented
    result = _with_leading_shape(x, leading_shape(x))
    result._is_by_pixel = result._window_layout.by_pixel
    return result


def _new_like(func: Any, args: Any, kwargs: Any) -> Any:
    """Return a plain tensor of the shape and the memory layout of a lazy one: ``zeros_like`` and the like."""
    x, *values = args
    if not is_lazy(x) or set(kwargs) - {"dtype"}:
        return NotImplemented
    return func(query_layout(x), *values, **{"dtype": x.dtype, **kwargs}, device="cpu")


def _with_leading_shape(x: LazyTensor, lead: tuple[int, ...]) -> Any:
    width, height = x._rows[0].node.size
    return make_window(x, x._rows, (0, 0, width, height), lead)


_T = torch.Tensor
FUNCTIONS: Recorders = {
    _T.__getitem__: _get_item,
    _T.__setitem__: _set_item,
    **dict.fromkeys([_T.flip, torch.flip], _flip),
    **dict.fromkeys([_T.rot90, torch.rot90], _turn),
    **dict.fromkeys([_T.reshape, torch.reshape, _T.view], reshape),
    **dict.fromkeys([_T.as_strided, torch.as_strided], _as_strided),
    **dict.fromkeys([_T.unsqueeze, torch.unsqueeze], _unsqueeze),
    **dict.fromkeys([_T.squeeze, torch.squeeze], _squeeze),
    torch.nn.functional.pad: _pad,
    **dict.fromkeys([torch.zeros_like, torch.ones_like, torch.full_like, torch.empty_like], _new_like),
}
