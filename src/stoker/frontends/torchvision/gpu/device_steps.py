# SPDX-License-Identifier: Apache-2.0
"""Last steps of images, computed by torch on a device other than CUDA, with the bits of the CPU.

The CPU decodes and computes all steps that add or multiply: kernels of another device would round them differently. The
steps after them that only move bytes run on the device: mirrors, quarter turns, frames of one colour, orders of
channels, a gray channel repeated three times, and the lookup of the values in tables. So the bytes of the images are
copied, a quarter of their values' size for float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ....contract.warning import warn
from .. import counts
from ..ir import recipe, steps
from ..ir.recipe import Node, Step
from ..ir.rows import LazyRow, RecordedTensor
from ..ir.tables import VALUES, Table, identity_table, storage_table
from ..materialize.materialization import Materialization, Take, apply_patches
from ..tensors.tensor import LazyTensor, is_lazy

Place = Callable[[torch.Tensor], torch.Tensor]  # copies a tensor to the device


def _transpose(x: torch.Tensor, p: steps.Transpose) -> torch.Tensor:
    return _TURNS[p.method](x)


# By Pillow's Transpose.
_TURNS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x.flip(-1),
    lambda x: x.flip(-2),
    lambda x: x.transpose(-1, -2).flip(-2),
    lambda x: x.flip((-2, -1)),
    lambda x: x.transpose(-1, -2).flip(-1),
    lambda x: x.transpose(-1, -2),
    lambda x: x.transpose(-1, -2).flip((-2, -1)),
)


def _pad(x: torch.Tensor, p: steps.Pad) -> torch.Tensor:
    channels, height, width = x.shape[-3:]
    fill = torch.tensor(p.fill[:channels], dtype=x.dtype).view(channels, 1, 1).to(x.device)
    framed = fill.expand(len(x), channels, p.height, p.width).clone()
    framed[..., p.top : p.top + height, p.left : p.left + width] = x
    return framed


_STEPS: dict[int, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    steps.TRANSPOSE: _transpose,
    steps.PAD: _pad,
    steps.SPREAD: lambda x, p: x.expand(-1, 3, -1, -1),
    steps.CHANNELS: lambda x, p: torch.stack([x[:, number] for number in p], 1),
}
Tail = tuple[tuple[int, Step], ...]  # steps on the device, with their numbers


def split_node(node: Node) -> tuple[Node, Tail]:
    """Return the last node that the CPU computes, and the steps after it."""
    tail: list[tuple[int, Step]] = []
    while node.parent is not None and node.op in _STEPS:
        tail.append((node.op, node.step))
        node = node.parent
    return node, tuple(reversed(tail))


class _Part(NamedTuple):
    """Images of one size that the CPU computes, as bytes, and their rows by the steps on the device."""

    images: LazyTensor
    rows: list[int]  # numbers of the images in the whole tensor
    groups: dict[Tail, list[int]]  # positions in ``images``


def _split(tensor: RecordedTensor) -> list[_Part] | None:
    """Return the parts of a tensor; None if the CPU computes it."""
    found: dict[Any, tuple[list[LazyRow], list[int], dict[Tail, list[int]]]] = {}
    gains = tensor.dtype != torch.uint8
    for number, row in enumerate(tensor._rows):
        if row.node.op == recipe.RAW or row.node.is_float:
            return None
        node, tail = split_node(row.node)
        gains = gains or bool(tail)
        rows, numbers, groups = found.setdefault((node.size, node.channels), ([], [], {}))
        groups.setdefault(tail, []).append(len(rows))
        rows.append(LazyRow(node, identity_table(node.channels)))
        numbers.append(number)
    if not gains:
        return None
    return [_Part(LazyTensor(rows, (len(rows),)), numbers, groups) for rows, numbers, groups in found.values()]


class DeviceSteps:
    """Steps on one device.

    Args:
        device: the device.
        place: copies a tensor there.
    """

    _lacking: frozenset[str] = frozenset()  # types of devices that have not all operators

    def __init__(self, device: torch.device, place: Place) -> None:
        self._device = device
        self._place = place

    def materialization(self, tensors: Sequence[RecordedTensor], take: Take | None = None) -> Materialization:
        """Return a materialization whose last steps run on the device, if it has the operators."""
        if self._device.type in DeviceSteps._lacking:
            return Materialization(tensors, take)
        return _DeviceMaterialization(tensors, take, self)

    def compute(self, tensor: RecordedTensor, parts: Sequence[_Part]) -> torch.Tensor:
        """Return a tensor on the device, from the bytes of its parts. The CPU computes it without the operators."""
        if self._device.type not in DeviceSteps._lacking:  # batches in flight when it was noticed
            try:
                return _compute(tensor, parts, self._place)
            except NotImplementedError as error:  # torch's error for a device that lacks the operator
                self._leave_to_the_cpu(str(error).splitlines()[0])
        return self._place(_compute(tensor, parts, lambda x: x))

    def _leave_to_the_cpu(self, text: str) -> None:
        DeviceSteps._lacking |= {self._device.type}
        warn(
            f"`stoker.torchvision.enable`: expected operators of {self._device.type!r} for `device_steps=True`, "
            f"got {text!r}. The CPU computes all steps, with the same values",
            stacklevel=2,
        )


class _DeviceMaterialization(Materialization):
    """Materialization whose last steps run on a device."""

    def __init__(self, tensors: Sequence[RecordedTensor], take: Take | None, device: DeviceSteps) -> None:
        self._device = device
        self._parts: list[tuple[RecordedTensor, list[_Part]]] = []
        others: list[RecordedTensor] = []
        for tensor in {id(t): t for t in tensors}.values():
            parts = _split(tensor) if is_lazy(tensor) else None
            if parts is None:
                others.append(tensor)
            else:
                self._parts.append((tensor, parts))
        super().__init__([*others, *(part.images for _, parts in self._parts for part in parts)], take)

    def finish(self, as_what: int | None = counts.NATIVE) -> None:
        """Complete a finished batch on the device; see :meth:`Materialization.finish`."""
        super().finish(as_what)
        for tensor, parts in self._parts:
            tensor._materialized = self._device.compute(tensor, parts)


def _compute(tensor: RecordedTensor, parts: Sequence[_Part], place: Place) -> torch.Tensor:
    images = _look_up(_join(tensor, parts, place), tensor)
    for number, row in enumerate(tensor._rows):
        if row.patches:
            apply_patches(images[number], row.patches)
    return images.view(tensor.shape)


def _join(tensor: RecordedTensor, parts: Sequence[_Part], place: Place) -> torch.Tensor:
    """Return the bytes of all images after their steps, on the device."""
    shape = (len(tensor._rows), *tensor.shape[-3:])
    out: torch.Tensor | None = None
    for part in parts:
        assert part.images._materialized is not None
        values = place(part.images._materialized)
        if out is None:
            # if all images have one size, those without steps stay where they are
            fits = len(parts) == 1 and values.shape == shape
            out = values if fits else torch.empty(shape, dtype=torch.uint8, device=values.device)
        for tail, positions in part.groups.items():
            if out is values and not tail:
                continue
            x = values[_index(positions, values)]
            for number, step in tail:
                x = _STEPS[number](x, step)
            out[_index([part.rows[i] for i in positions], out)] = x
    assert out is not None
    return out


def _index(numbers: list[int], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(numbers).to(like.device)


def _look_up(images: torch.Tensor, tensor: RecordedTensor) -> torch.Tensor:
    """Return the values of bytes, from the tables of their rows."""
    tables: dict[int, Table] = {}
    numbers = []  # the table of each row
    for node, table, _ in tensor._rows:
        stored = storage_table(node, table) or identity_table(node.channels)
        tables.setdefault(id(stored), stored)
        numbers.append(list(tables).index(id(stored)))
    channels = images.shape[1]
    if all(table is identity_table(channels) for table in tables.values()):
        return images
    values = torch.stack([table.values.view(-1, VALUES).expand(channels, VALUES) for table in tables.values()])
    values = values.to(images.device)
    first = _index(numbers, images).view(-1, 1, 1) * VALUES
    out = torch.empty(images.shape, dtype=tensor.dtype, device=images.device)
    for channel in range(channels):
        index = images[:, channel].long()
        out[:, channel] = values[:, channel].reshape(-1)[index if len(tables) == 1 else index + first]
    return out
