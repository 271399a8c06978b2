# SPDX-License-Identifier: Apache-2.0
"""Windows of a tensor: the rules for cutting them out, also where a window exceeds the tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, coordinate, load, select, uniform
from ...contract.step import Interpolator, Value, ViewOp
from ...contract.types import DType
from ..generic.cast import cast_array, number_in

Windows = Mapping[int, tuple[Scalar, Scalar]]  # axis -> (start, extent)

# Types that the interpolator moves. Other types are converted to one that holds all of their values.
MOVED = (DType.UINT8, DType.UINT16, DType.INT16, DType.INT32, DType.FLOAT)
_CARRIER = {
    DType.BOOL: DType.UINT8, DType.INT8: DType.INT16, DType.UINT32: DType.INT32,
    DType.FLOAT16: DType.FLOAT, DType.BFLOAT16: DType.FLOAT,
}  # fmt: skip


class BoundsArguments(Operator):
    """Arguments for windows that exceed the data."""

    out_of_bounds_policy = arg(
        "str", "error", choices=("error", "pad", "trim_to_shape"),
        doc="error: such a window is an error; pad: what lies outside is `fill_values`; trim_to_shape: it is cut off.",
    )  # fmt: skip
    fill_values = arg("float", (0.0,), many=True, doc='For "pad": one value, or one per channel.')


class OutputTypeArguments(Operator):
    """Element type of the output, also under DALI's former names."""

    gives_bfloat16 = takes_bfloat16 = True
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    output_dtype = arg("dtype", None, doc="Former name of `dtype`.")
    image_type = arg("image_type", None, doc="Accepted; has no effect.")


def output_type(args: Any, default: DType) -> DType:
    """Return the element type given by `dtype` or its former name. ``args`` holds constants by name."""
    asked = args("dtype") if args("dtype") is not None else args("output_dtype")
    return default if asked is None else DType(asked)


def take(c: Lowering, x: Value, windows: Windows) -> Value:
    """Cut the window out of ``x``, by the node's policy."""
    policy = c.const("out_of_bounds_policy")
    if policy == "trim_to_shape":
        windows = {axis: _trimmed(start, extent, x.shape[axis]) for axis, (start, extent) in windows.items()}
    if policy != "pad" or _is_inside(x, windows):
        return c.slice(x, windows)
    fills = c.const("fill_values")
    if len(fills) == 1:
        return pad(c, x, windows, fills[0])
    at, count = _channels(c, x, fills)
    inside = lies_inside(c, x, windows)
    # Pixels outside have no value. Their coordinates identify them.
    program = [
        select(inside, load(x.dtype, 0, k), uniform(number_in(fill, x.dtype), x.dtype))
        for k, fill in enumerate(fills[:count])
    ]
    return c.channelled(pad(c, x, windows, 0.0), program, at)


def _trimmed(start: Scalar, extent: Scalar, n: Scalar) -> tuple[Scalar, Scalar]:
    first = ex.clamp(start, 0, n)
    return first, ex.maximum(ex.clamp(start + extent, 0, n) - first, 0)


def _is_inside(x: Value, windows: Windows) -> bool:
    """Return whether the window certainly lies inside."""
    limits = [(s, e, x.shape[axis]) for axis, (s, e) in windows.items()]
    return all(all(map(ex.is_static, limit)) and 0 <= limit[0] <= limit[0] + limit[1] <= limit[2] for limit in limits)


def _channels(c: Lowering, x: Value, fills: Sequence[float]) -> tuple[int, int]:
    """Return the channel axis and the number of channels, which must equal the number of fill values."""
    at = c.axis(x, "C")
    c.require(
        ex.equal(x.shape[at], len(fills)), "expected one of `fill_values`, or one per channel ({1}), got {0}",
        len(fills), x.shape[at],
    )  # fmt: skip
    if len(fills) > 16:
        raise UnsupportedError(f"`{c.scope.operator.name}`: expected at most 16 `fill_values`, got {len(fills)}")
    return at, len(fills)


def lies_inside(c: Lowering, x: Value, windows: Windows) -> Px:
    """Return the condition that an element of the window lies inside ``x``."""
    inside = uniform(1, DType.BOOL)
    for axis, (start, _) in windows.items():
        # Beyond 2**31 the sum wraps to a negative number, which is outside too.
        at = coordinate(axis) + start
        inside = binary("and", inside, binary("and", binary("ge", at, 0), binary("lt", at, x.shape[axis])))
    return inside


def pad(c: Lowering, x: Value, windows: Windows, fill: float) -> Value:
    """Cut the window out of ``x``, with ``fill`` outside of ``x``.

    A nearest-neighbour sample shifted by whole pixels. The part inside is cut out first, so that a decoder still
    produces only that part.
    """
    own, carrier = x.dtype, x.dtype if x.dtype in MOVED else _CARRIER.get(x.dtype)
    if carrier is None:
        raise UnsupportedError(
            f'`{c.scope.operator.name}`: out_of_bounds_policy="pad" takes types of up to 32 bits, got {own}. '
            "Cast the input first"
        )
    fill = float(_wrapped(number_in(fill, own), carrier))
    x, placed = _cut(c, x, windows)
    x = _as_type(c, x, carrier)
    layout = c.layout(x)
    if layout in ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW") and all(layout[axis] in "HW" for axis in placed):
        x = _shifted(c, x, placed, fill)
    else:
        for axis, place in placed.items():
            x = _shifted_axis(c, x, axis, place, fill)
    return _as_type(c, x, own)


def _cut(c: Lowering, x: Value, windows: Windows) -> tuple[Value, Windows]:
    """Return the part of the window inside ``x`` (at least one element), and the window's position relative to it."""
    inside, placed = {}, {}
    for axis, (start, extent) in windows.items():
        n = x.shape[axis]
        c.require(n > 0, "expected data with at least one element to pad, got an extent of {0}", n)
        c.require((extent >= 0) & (extent < 1 << 31), "expected a window of 0 to 2**31 elements, got {0}", extent)
        c.require((start > -(1 << 31)) & (start < 1 << 31), "expected a start of less than 2**31, got {0}", start)
        first = ex.clamp(start, 0, n - 1)
        inside[axis] = (first, ex.clamp(start + extent, first + 1, n) - first)
        placed[axis] = (start - first, extent)
    return c.slice(x, inside), placed


def _shifted(c: Lowering, x: Value, placed: Windows, fill: float) -> Value:
    layout = c.layout(x)
    (dy, height), (dx, width) = (placed.get(layout.index(name), (0, x.shape[layout.index(name)])) for name in "HW")
    return c.sample(x, Interpolator("affine", (1, 0, dx, 0, 1, dy, False, True, fill)), height, width)


def _shifted_axis(c: Lowering, x: Value, axis: int, place: tuple[Scalar, Scalar], fill: float) -> Value:
    """Shift any axis of any tensor, treated as the rows of an image."""
    order = [axis, *(i for i in range(x.rank) if i != axis)]
    others = [x.shape[i] for i in order[1:]]
    rest: Scalar = 1
    for extent in others:
        rest = rest * extent
    moved = c.permute(x, order)
    image = c.view(moved, [ViewOp("reshape", list=(x.shape[axis], rest))], layout="HW", may_copy=True)
    image = _shifted(c, image, {0: place}, fill)
    tall = c.view(image, [ViewOp("reshape", list=(place[1], *others))], layout="", may_copy=True)
    return c.permute(tall, [order.index(i) for i in range(x.rank)], layout=x.layout)


def _as_type(c: Lowering, x: Value, dtype: DType) -> Value:
    """Convert ``x`` to a type that holds its values, or modulo its width (uint32 as int32 and back)."""
    return x if x.dtype == dtype else c.pointwise([x], load(x.dtype).convert(dtype))


def _wrapped(value: float, dtype: DType) -> float:
    """Convert a number to another type, modulo its width."""
    if dtype.is_float:
        return value
    return np.asarray(int(value)).astype(dtype.numpy).item()  # type: ignore[no-any-return]


def round_away(x: float) -> int:
    """Round half away from zero."""
    return -math.floor(-x + 0.5) if x < 0 else math.floor(x + 0.5)


def cut_reference(row: RowContext, x: Any, windows: Mapping[int, tuple[int, int]], layout: str) -> Any:
    """Apply :func:`take` in NumPy: (start, extent) per axis."""
    out, mask = pad_reference(x, windows)
    policy = row["out_of_bounds_policy"]
    if policy == "trim_to_shape":
        for axis, (start, extent) in windows.items():
            n = x.shape[axis]
            x = np.take(x, np.arange(min(max(start, 0), n), min(max(start + extent, 0), n)), axis)
        return x
    if policy == "error":
        if not mask.all() or any(extent < 0 for _, extent in windows.values()):
            raise ValueError(f"expected a window inside the input, got {windows} of {x.shape}")
        return out
    fills = cast_array(np.asarray(row["fill_values"], np.float64), DType.of(x.dtype))
    if len(fills) > 1:
        fills = fills.reshape([-1 if name == "C" else 1 for name in layout])
    return np.where(mask, out, fills)


def pad_reference(x: Any, windows: Mapping[int, tuple[int, int]]) -> tuple[Any, Any]:
    """Return the window with undefined values outside the data, and a mask of elements inside."""
    mask = np.ones([1] * x.ndim, bool)
    for axis, (start, extent) in windows.items():
        at = np.arange(start, start + max(extent, 0))
        inside = ((at >= 0) & (at < x.shape[axis])).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        x = np.take(x, at.clip(0, x.shape[axis] - 1), axis)
        mask = mask & inside
    return x, np.broadcast_to(mask, x.shape)
