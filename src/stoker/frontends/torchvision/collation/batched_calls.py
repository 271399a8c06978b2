# SPDX-License-Identifier: Apache-2.0
"""Batched calls: calls that a collation repeats for each image become calls on batches of images.

timm's collations mix image by image. They make five calls per image, and each call is a launch if batches are made on a
GPU. The calls are batched if they differ only in their images.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .program import FACTORIES, IN_PLACE, Call, Program, Slot, new_slot

# Functions whose result on a batch is the batch of their results on single images.
_NAMES = (
    "clone add sub mul neg float half double byte add_ sub_ mul_ __add__ __sub__ __mul__ __iadd__ __isub__ __imul__ "
    "torch.round"
)
_BY_IMAGE = frozenset(_NAMES.split())
_PLAIN = (int, float, bool, type(None), type(Ellipsis), torch.dtype)
_IMAGE_AXES = 3


class _NotBatchable(Exception):
    """The calls differ between images."""


class _Image(NamedTuple):
    """Image of a batch of input images."""

    batch: Slot
    number: int


class _CallResult(NamedTuple):
    """Result of a call for the same image."""

    number: int


class _Target(NamedTuple):
    """The image's row of the output batch."""


class _Start(NamedTuple):
    """Calls that precede those of the images."""

    images: dict[Slot, _Image]
    factory: Call  # of the output batch
    rows: int  # of the output batch
    rest: list[Call]

    @classmethod
    def of(cls, program: Program) -> _Start:
        images: dict[Slot, _Image] = {}
        factories: list[Call] = []
        calls = iter(program.calls)
        for call in itertools.takewhile(_is_at_start, program.calls):
            next(calls)
            if call.name in FACTORIES:
                factories.append(call)
                continue
            leaf = program.leaves.get(call.args[0])
            if leaf is None or leaf.ndim != 1 + _IMAGE_AXES:
                raise _NotBatchable
            images |= {slot: _Image(call.args[0], number) for number, slot in enumerate(call.outputs)}
        shape = factories[0].args[0] if len(factories) == 1 and factories[0].args else None
        if not images or not isinstance(shape, tuple) or len(shape) != 1 + _IMAGE_AXES or shape[0] < 2:
            raise _NotBatchable
        return cls(images, factories[0], int(shape[0]), list(calls))


def _is_at_start(call: Call) -> bool:
    return call.name in FACTORIES or (call.name == "unbind" and len(call.args) == 1 and not call.kwargs)


class _OneImage:
    """Calls for one image: what they do (``steps``), independent of the image, and which images they read."""

    def __init__(self, calls: Sequence[Call], number: int, start: _Start) -> None:
        self._start = start
        self._number = number
        self._slots: dict[Slot, _CallResult | _Target] = {}
        self._own: set[int] = set()  # numbers of results that own their memory
        self.taken: list[_Image] = []
        self.steps = [self._step(call) for call in calls]

    def _step(self, call: Call) -> tuple[Any, ...]:
        target = self._start.factory.outputs[0]
        if not call.args:
            raise _NotBatchable
        if call.name in ("__getitem__", "__setitem__") and call.args[0] == target:
            return self._put(call)
        number = len(self._slots)
        changed = [call.args[0]] if call.name in IN_PLACE else []
        changed += [call.kwargs["out"]] if "out" in call.kwargs else []
        if not all(self._may_change(slot) for slot in changed):
            raise _NotBatchable
        if call.name in ("__getitem__", "__setitem__"):
            self._check_window(call.args[1])
        elif call.name not in _BY_IMAGE:
            raise _NotBatchable
        step = (call.name, self._args(call.args), tuple((k, self._arg(v)) for k, v in call.kwargs.items()))
        for slot in call.outputs:
            self._slots[slot] = _CallResult(number)
        if call.outputs and call.name != "__getitem__":
            self._own.add(number)
        return (*step, len(call.outputs))

    def _put(self, call: Call) -> tuple[Any, ...]:
        if type(call.args[1]) is not int or call.args[1] != self._number or call.kwargs:
            raise _NotBatchable
        if call.name == "__getitem__":
            self._slots[call.outputs[0]] = _Target()
            return (call.name, _Target(), (), 1)
        return (call.name, _Target(), self._arg(call.args[2]), 0)

    def _may_change(self, slot: Any) -> bool:
        result = self._slots.get(slot)
        return isinstance(result, _Target) or (result is not None and result.number in self._own)

    def _check_window(self, index: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) > _IMAGE_AXES or not all(isinstance(part, slice) for part in parts):
            raise _NotBatchable

    def _args(self, args: Any) -> tuple[Any, ...]:
        return tuple(self._arg(x) for x in args)

    def _arg(self, x: Any) -> Any:
        if type(x) is Slot:
            if x in self._slots:
                return self._slots[x]
            if x not in self._start.images:
                raise _NotBatchable
            self.taken.append(self._start.images[x])
            return ("image", self.taken[-1].batch)
        if isinstance(x, tuple):
            return self._args(x)
        if isinstance(x, slice):
            return ("slice", self._args((x.start, x.stop, x.step)))
        if not isinstance(x, _PLAIN):
            raise _NotBatchable
        return (type(x), x.hex() if isinstance(x, float) else x)  # the hex form distinguishes zeros by sign


def batch_calls(program: Program) -> None:
    """Replace the calls of ``program`` by calls on batches, if they are the same for every image."""
    try:
        start = _Start.of(program)
        calls = _batched_calls(start)
    except _NotBatchable:
        return
    kept = set(program.leaves) | {start.factory.outputs[0]}
    if all(deferred._slot in kept for deferred in program.waiters()):
        program.calls = [start.factory, *calls]


def _batched_calls(start: _Start) -> list[Call]:
    length, rest = divmod(len(start.rest), start.rows)
    if rest or not length:
        raise _NotBatchable
    parts = [start.rest[at : at + length] for at in range(0, len(start.rest), length)]
    images = [_OneImage(part, number, start) for number, part in enumerate(parts)]
    if any(image.steps != images[0].steps for image in images):
        raise _NotBatchable
    calls: list[Call] = []
    batches: list[Slot] = []
    for takes in zip(*(image.taken for image in images), strict=True):
        batches.append(new_slot())
        index = _index([image.number for image in takes])
        calls.append(Call("__getitem__", (takes[0].batch, index), {}, (batches[-1],)))
    return calls + _Rewriting(start, batches).calls_of(parts[0])


def _index(numbers: list[int]) -> Any:
    """Return an index for these rows: a slice if the rows allow one."""
    step = numbers[1] - numbers[0]
    if step > 0 and numbers == list(range(numbers[0], numbers[-1] + 1, step)):
        return slice(numbers[0], numbers[-1] + 1, step)
    return torch.tensor(numbers)


class _Rewriting:
    """Rewriting of one image's calls as calls on batches."""

    def __init__(self, start: _Start, batches: list[Slot]) -> None:
        self._images = start.images
        self._target = start.factory.outputs[0]
        self._batches = iter(batches)  # in the order of the images in the calls
        self._targets: set[Slot] = {self._target}

    def calls_of(self, calls: Sequence[Call]) -> list[Call]:
        """Return the rewritten calls."""
        return [result for call in calls if (result := self._call(call)) is not None]

    def _call(self, call: Call) -> Call | None:
        if call.args[0] == self._target and call.name in ("__getitem__", "__setitem__"):
            if call.name == "__getitem__":
                self._targets.add(call.outputs[0])
                return None
            if type(call.args[2]) is Slot and call.args[2] in self._targets:  # the value is the row itself
                return None
            return Call("__setitem__", (self._target, slice(None), self._arg(call.args[2])), {}, ())
        args = tuple(self._arg(x) for x in call.args)
        kwargs = {name: self._arg(x) for name, x in call.kwargs.items()}
        if call.name in ("__getitem__", "__setitem__"):
            parts = args[1] if isinstance(args[1], tuple) else (args[1],)
            args = (args[0], (slice(None), *parts), *args[2:])
        return Call(call.name, args, kwargs, call.outputs)

    def _arg(self, x: Any) -> Any:
        if type(x) is Slot:
            if x in self._images:
                return next(self._batches)
            return self._target if x in self._targets else x
        return x
