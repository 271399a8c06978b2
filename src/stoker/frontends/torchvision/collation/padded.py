# SPDX-License-Identifier: Apache-2.0
"""Batches that a collation fills image by image, turned into lazy batches like those of ``torch.stack``.

An image that is smaller than its row of the batch gets a frame of the batch's fill value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..ir import recipe, steps
from ..ir.rows import LazyRow
from ..tensors.tensor import LazyTensor, leading_shape
from ..tensors.views import make_patch
from .program import FACTORIES, IN_PLACE, Call, Program, Slot, slots_of

_VIEWS = ("__getitem__", "unbind")


class _Region(NamedTuple):
    """Part of a batch: all of it, or a window ``(top, left, bottom, right)`` of one row."""

    batch: Slot
    row: int | None
    window: tuple[int, int, int, int]


class _Batch:
    """New tensor with one value everywhere."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, fill: Any, call: int) -> None:
        self.shape = shape
        self.dtype = dtype
        self.fill = fill  # None: uninitialized
        self.rows: dict[int, tuple[LazyTensor, int, int]] = {}  # image, top and left by row
        self.calls = [call]
        self.is_read = False


class _BatchFinder:
    """Interpreter of a program's calls that finds batches into which images are copied."""

    def __init__(self, program: Program) -> None:
        self._leaves = program.leaves
        self.batches: dict[Slot, _Batch] = {}
        self._regions: dict[Slot, _Region] = {}
        for at, call in enumerate(program.calls):
            if not self._follow(at, call):
                for slot in (*slots_of(call), *call.outputs):
                    self._give_up(slot)

    def give_up_part(self, slot: Slot) -> None:
        """Give up the batch of which a part is used by itself."""
        if slot in self._regions and self._regions[slot].row is not None:
            self._give_up(slot)

    def _give_up(self, slot: Slot) -> None:
        place = self._regions.get(slot)
        if place is not None:
            self.batches.pop(place.batch, None)

    def _follow(self, at: int, call: Call) -> bool:
        """Return whether a call is understood. The tensors of any other call are given up."""
        if call.name in FACTORIES:
            self._begin(at, call)
            return True
        place = self._regions.get(call.args[0]) if call.args and type(call.args[0]) is Slot else None
        batch = self.batches.get(place.batch) if place is not None else None
        if place is None or batch is None:
            return self._reads(call)
        if call.name in _VIEWS:
            return self._view(at, call, place, batch)
        if call.name in IN_PLACE and not call.kwargs:
            return self._set(at, call, place, batch)
        return self._reads(call)

    def _begin(self, at: int, call: Call) -> None:
        slot = call.outputs[0]
        result = FACTORIES[call.name](*call.args, **call.kwargs, device="meta")
        shape = tuple(result.shape)
        if len(shape) != 4:
            return
        fill = {"empty": None, "zeros": 0, "ones": 1}.get(call.name)
        if call.name == "full":
            fill = call.kwargs.get("fill_value", call.args[1] if len(call.args) > 1 else None)
        self.batches[slot] = _Batch(shape, result.dtype, fill, at)
        self._regions[slot] = _Region(slot, None, (0, 0, *shape[2:]))

    def _reads(self, call: Call) -> bool:
        """Return whether a call only reads whole batches, which may not change afterwards."""
        places = [self._regions[slot] for slot in slots_of(call) if slot in self._regions]
        if any(place.row is not None for place in places) or (call.name in (*_VIEWS, *IN_PLACE) and places):
            return not any(place.batch in self.batches for place in places)
        for place in places:
            if place.batch in self.batches:
                if call.name not in _READERS:
                    return False
                self.batches[place.batch].is_read = True
        return True

    def _view(self, at: int, call: Call, place: _Region, batch: _Batch) -> bool:
        if batch.is_read:
            return False
        if place.row is None and call.name != "__getitem__":
            if call.kwargs or call.args[1:] not in ((), (0,)) or call.name != "unbind":
                return False
            parts: list[_Region | None] = [place._replace(row=row) for row in range(batch.shape[0])]
        else:
            parts = [_cut_region(call, place, batch)]
        for slot, part in zip(call.outputs, parts, strict=True):
            if part is None:
                return False
            self._regions[slot] = part
        batch.calls.append(at)
        return True

    def _set(self, at: int, call: Call, place: _Region, batch: _Batch) -> bool:
        value = call.args[-1]
        if batch.is_read:
            return False
        if call.name in ("fill_", "zero_"):
            if place.row is not None or batch.rows:
                return False
            batch.fill = 0 if call.name == "zero_" else value
        elif not self._is_image_copy(call, place, batch, value):
            return False
        batch.calls.append(at)
        return True

    def _is_image_copy(self, call: Call, place: _Region, batch: _Batch, value: Any) -> bool:
        """Return whether a call copies an image to its region and does nothing else."""
        if call.name == "__setitem__":
            there = _cut_region(call, place, batch)
            # ``batch[i] += image`` ends with an assignment of the row to itself
            return there is not None and (self._regions.get(value) == there or self._put(there, batch, value))
        if len(call.args) != 2 or place.row is None:
            return False
        if call.name in ("add_", "__iadd__"):
            if type(batch.fill) is not int or batch.fill != 0 or batch.dtype.is_floating_point:
                return False
        elif call.name != "copy_":
            return False
        return self._put(place, batch, value)

    def _put(self, place: _Region, batch: _Batch, value: Any) -> bool:
        """Record an image in its region, if it fits; return whether it did."""
        image = self._leaves.get(value) if type(value) is Slot else None
        if image is None or leading_shape(image) or image.dtype != batch.dtype or place.row is None:
            return False
        top, left, bottom, right = place.window
        if tuple(image.shape) != (batch.shape[1], bottom - top, right - left) or place.row in batch.rows:
            return False
        full = (bottom - top, right - left) == batch.shape[2:]
        if not full and (batch.fill is None or image._rows[0].node.op == recipe.RAW):
            return False
        batch.rows[place.row] = (image, top, left)
        return True


_READERS = frozenset(("roll", "flip", "clone", "add", "sub", "mul", "__add__", "__sub__", "__mul__", "__rmul__"))


def _cut_region(call: Call, place: _Region, batch: _Batch) -> _Region | None:
    """Return the part of a batch that an index selects, if it is a window of all channels of one row."""
    index = call.args[1]
    parts = list(index) if isinstance(index, tuple) else [index]
    row = place.row
    if row is None:
        if not parts or type(parts[0]) is not int:
            return None
        row = parts.pop(0) % batch.shape[0]
    elif place.window != (0, 0, *batch.shape[2:]):
        return None
    window = _parse_window(parts, batch.shape[1:])
    return None if window is None else _Region(place.batch, row, window)


def _parse_window(parts: list[Any], shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Return ``(top, left, bottom, right)`` of a window of all channels; None for other indices."""
    if parts.count(Ellipsis) == 1:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    parts += [slice(None)] * (len(shape) - len(parts))
    if len(parts) != len(shape) or not all(type(p) is slice for p in parts):
        return None
    found = [p.indices(n) for p, n in zip(parts, shape, strict=True)]
    if found[0] != (0, shape[0], 1) or any(step != 1 or a >= b for a, b, step in found):
        return None
    return found[1][0], found[2][0], found[1][1], found[2][1]


def simplify(program: Program) -> None:
    """Close a program, and turn batches that consist of images into leaves."""
    if program.is_closed or program.is_run:
        return
    program.close()
    reading = _BatchFinder(program)
    for deferred in program.waiters():
        reading.give_up_part(deferred._slot)
    done: set[int] = set()
    for slot, batch in reading.batches.items():
        if len(batch.rows) == batch.shape[0]:
            rows = [_frame_row(*batch.rows[i], batch) for i in range(batch.shape[0])]
            program.leaves[slot] = LazyTensor(rows, (batch.shape[0],))
            done.update(batch.calls)
    if done:
        program.calls = [call for at, call in enumerate(program.calls) if at not in done]
        used = {slot for call in program.calls for slot in slots_of(call)} | {w._slot for w in program.waiters()}
        program.leaves = {slot: leaf for slot, leaf in program.leaves.items() if slot in used}


def _frame_row(image: LazyTensor, top: int, left: int, batch: _Batch) -> LazyRow:
    """Return an image's row, with strips of the fill value around it."""
    row = image._rows[0]
    channels, height, width = batch.shape[1:]
    inner_width, inner_height = row.node.size
    bottom, right = top + inner_height, left + inner_width
    if (inner_height, inner_width) == (height, width):
        return row
    pad = steps.FloatPad if row.node.is_float else steps.Pad
    node = row.node.then(pad(left, top, height, width, 0, 0, 0), (width, height))
    patches = [patch._replace(window=_move_window(patch.window, top, left)) for patch in row.patches]
    one = torch.empty((), dtype=batch.dtype)
    for y0, y1, x0, x1 in (
        (0, top, 0, width), (bottom, height, 0, width), (top, bottom, 0, left), (top, bottom, right, width),
    ):  # fmt: skip
        if y0 < y1 and x0 < x1:
            patches.append(make_patch((0, channels, y0, y1, x0, x1), batch.fill, one))
    return LazyRow(node, row.table, tuple(patches))


def _move_window(window: tuple[int, ...], top: int, left: int) -> Any:
    c0, c1, y0, y1, x0, x1 = window
    return c0, c1, y0 + top, y1 + top, x0 + left, x1 + left
