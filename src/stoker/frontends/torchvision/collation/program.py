# SPDX-License-Identifier: Apache-2.0
"""Program of a collation: calls on lazy tensors, which torch replays where the batch is made.

A :class:`Program` is a list of calls in order. Arguments and results of a call are numbered *slots*. A slot that is no
call's result is a *leaf*, a lazy tensor. Calls are replayed literally, so torch itself handles shared memory and
changes in place. A program contains only functions whose values do not depend on torch's number of threads.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from ..materialize.materialization import Take
from ..tensors.tensor import LazyTensor, leading_shape, materialize

_T = torch.Tensor

FACTORIES: dict[str, Any] = {n: getattr(torch, n) for n in ("empty", "zeros", "ones", "full")}
_IN_PLACE = "copy_ fill_ zero_ add_ sub_ mul_ __iadd__ __isub__ __imul__ __setitem__"
_VIEWS = "__getitem__ unbind select narrow reshape view unsqueeze squeeze permute transpose movedim detach"
_VALUES = "roll flip clone contiguous add sub mul neg __add__ __radd__ __sub__ __mul__ __rmul__ float half double to"
_JOINED = "stack cat"
_ROUNDED = "round byte"
_BY_ROWS = (
    "clone contiguous add sub mul add_ sub_ mul_ __add__ __radd__ __sub__ __mul__ __rmul__ __iadd__ __isub__ __imul__"
)
_IN_WINDOWS = ("__getitem__", "__setitem__")
_CHUNK = 1 << 18  # elements per chunk of rows, which stay in a core's cache


def _methods(names: str) -> dict[str, Any]:
    return {name: getattr(_T, name) for name in names.split() if hasattr(_T, name)}


FUNCTIONS: dict[str, Any] = (
    FACTORIES
    | _methods(f"{_IN_PLACE} {_VIEWS} {_VALUES} {_ROUNDED}")
    | {name: getattr(torch, name) for name in _JOINED.split()}
    | {"torch.round": torch.round}  # the form with an ``out`` argument
)
NAMES: dict[Any, str] = {
    getattr(torch, name): name for name in f"{_VIEWS} {_VALUES}".split() if hasattr(torch, name) and hasattr(_T, name)
} | {function: name for name, function in FUNCTIONS.items()}
IN_PLACE = frozenset(_IN_PLACE.split())
_ROWS = frozenset(_BY_ROWS.split())


class Slot(int):
    """Number of a tensor of a program."""


_numbers = itertools.count()


def new_slot() -> Slot:
    """Return a slot that no program of this process uses."""
    return Slot(next(_numbers))


class Call(NamedTuple):
    """A call of a torch function. Slots represent tensors in its arguments."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[Slot, ...]  # empty for a call that changes an argument


class Program:
    """Calls on lazy tensors, and the deferred tensors that wait for their results."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.leaves: dict[Slot, LazyTensor] = {}
        self.private_leaves: set[Slot] = set()  # leaves that the batch itself does not contain
        self._waiting: list[weakref.ref[Any]] = []
        self.is_run = False
        self.is_closed = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_program, (self.calls, self.leaves)

    # ---- deferred tensors ----

    def add_waiter(self, deferred: Any) -> None:
        """Add a deferred tensor, which receives its slot's value after the last call."""
        self._waiting.append(weakref.ref(deferred))

    def waiters(self) -> list[Any]:
        """Return the deferred tensors that still exist."""
        return [deferred for reference in self._waiting if (deferred := reference()) is not None]

    def join(self, other: Program) -> None:
        """Append the calls of another program, because a call uses tensors of both."""
        self.calls += other.calls
        self.leaves |= other.leaves
        for leaf in other.leaves.values():
            if leaf._leaf_link is not None:
                leaf._leaf_link.program = weakref.ref(self)
        for deferred in other.waiters():
            deferred._program = self
            self.add_waiter(deferred)

    def stack_equal_leaves(self, apart: set[int]) -> None:
        """Stack single images of one shape and type into one leaf, except for those of ``apart``."""
        kinds: dict[Any, list[Slot]] = {}
        for slot, leaf in self.leaves.items():
            if (
                type(leaf) is LazyTensor
                and not leading_shape(leaf)
                and leaf._materialized is None
                and id(leaf) not in apart
            ):
                kinds.setdefault((tuple(leaf.shape), leaf.dtype), []).append(slot)
        for slots in kinds.values():
            if len(slots) > 1:
                batch = new_slot()
                self.leaves[batch] = LazyTensor([self.leaves.pop(slot)._rows[0] for slot in slots], (len(slots),))
                self.calls.insert(0, Call("unbind", (batch,), {}, tuple(slots)))

    def close(self) -> None:
        """Record no further calls."""
        self.is_closed = True
        for leaf in self.leaves.values():
            leaf._leaf_link = None

    # ---- replay ----

    def run(self, take: Take | None = None, *, keep: bool = False) -> None:
        """Replay all calls; materialize the leaves first if necessary.

        Args:
            take: allocates memory for the results.
            keep: whether the program keeps its leaves.

        Raises:
            OSError: a file of a leaf cannot be decoded.
        """
        if self.is_run:
            return
        self.close()
        values = {slot: materialize(leaf) for slot, leaf in self.leaves.items()}
        wanted = self.waiters()
        slots = list({deferred._slot: None for deferred in wanted})
        size = self._count_rows(slots) if all(v.device.type == "cpu" for v in values.values()) else None
        results = self._run_whole(values, slots) if size is None else self._run_by_rows(values, slots, size, take)
        self.is_run = True
        for deferred in wanted:
            deferred._materialized = results[deferred._slot]
        self.calls = []
        for slot in self.private_leaves:
            self.leaves[slot]._materialized = _RELEASED
        if not keep:
            self.leaves = {}

    def _run_whole(self, values: dict[Slot, torch.Tensor], wanted: list[Slot]) -> dict[Slot, torch.Tensor]:
        last = {slot: at for at, call in enumerate(self.calls) for slot in (*slots_of(call), *call.outputs)}
        device = next((v.device for v in values.values()), None)
        for at, call in enumerate(self.calls):
            _execute(call, values, device)
            for slot in {*slots_of(call), *call.outputs}:
                if last[slot] == at and slot not in wanted:
                    del values[slot]
        return values

    def _count_rows(self, wanted: list[Slot]) -> int | None:
        """Return the number of rows if every call maps rows to the same rows, or reorders a leaf's rows; else None."""
        counts = {leading_shape(leaf) for leaf in self.leaves.values()}
        shows = {slot for call in self.calls if call.name in ("__getitem__", "contiguous") for slot in call.outputs}
        if len(counts) != 1 or () in counts or any(slot in self.leaves or slot in shows for slot in wanted):
            return None  # results that share memory must still share it afterwards
        return counts.pop()[0] if all(self._is_by_rows(call) for call in self.calls) else None

    def _is_by_rows(self, call: Call) -> bool:
        if self._moves_rows(call):
            return True
        if call.name in _IN_WINDOWS:
            index = call.args[1]
            return isinstance(index, tuple) and len(index) == 3 and index[0] is Ellipsis
        return call.name in _ROWS and not call.kwargs and all(type(a) in (Slot, int, float) for a in call.args)

    def _moves_rows(self, call: Call) -> bool:
        """Return whether a call reorders whole rows of a leaf."""
        if call.name not in _ORDERS or call.kwargs or len(call.args) != 2 + (call.name == "roll"):
            return False
        leaf = self.leaves.get(call.args[0]) if type(call.args[0]) is Slot else None
        return leaf is not None and _is_order(call.name, call.args[1:], leading_shape(leaf))

    def _run_by_rows(
        self, values: dict[Slot, torch.Tensor], wanted: list[Slot], count: int, take: Take | None
    ) -> dict[Slot, torch.Tensor]:
        """Replay a few rows at a time, so that intermediate values stay in a core's cache."""
        step = max(1, _CHUNK // max(1, max(v.numel() for v in values.values()) // count))
        results: dict[Slot, torch.Tensor] = {}
        for first in range(0, count, step):
            end = min(first + step, count)
            now = {slot: value[first:end] for slot, value in values.items()}
            for call in self.calls:
                if self._moves_rows(call):
                    now[call.outputs[0]] = _ORDERS[call.name](values[call.args[0]], call.args[1], first, end)
                else:
                    _execute(call, now, None)
            for slot in wanted:
                if slot not in results:
                    results[slot] = _allocate((count, *now[slot].shape[1:]), now[slot].dtype, now[slot].device, take)
                results[slot][first:end] = now[slot]
        return results


_RELEASED = torch.empty(0)


def _unpickle_program(calls: list[Call], leaves: dict[Slot, LazyTensor]) -> Program:
    program = Program()
    program.calls, program.leaves = calls, leaves
    return program


def _is_order(name: str, how: Any, lead: tuple[int, ...]) -> bool:
    if name == "__getitem__":
        return isinstance(how[0], torch.Tensor) and how[0].dtype == torch.int64 and tuple(how[0].shape) == lead
    return how in (((1, 0),) if name == "roll" else ((0,), ((0,),), ([0],)))


def _roll_rows(value: torch.Tensor, how: Any, first: int, end: int) -> torch.Tensor:
    return value[first - 1 : end - 1].clone() if first else torch.cat([value[-1:], value[: end - 1]])


def _flip_rows(value: torch.Tensor, how: Any, first: int, end: int) -> torch.Tensor:
    return value[len(value) - end : len(value) - first].flip(0)


def _pick_rows(value: torch.Tensor, how: Any, first: int, end: int) -> torch.Tensor:
    return value[how[first:end]]


# Functions that return a range of reordered rows of a leaf, as new memory.
_ORDERS: dict[str, Any] = {"roll": _roll_rows, "flip": _flip_rows, "__getitem__": _pick_rows}


def _allocate(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, take: Take | None) -> torch.Tensor:
    if take is None or device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device)
    return take(math.prod(shape) * dtype.itemsize).view(dtype).view(shape)


def _execute(call: Call, values: dict[Slot, torch.Tensor], device: torch.device | None) -> None:
    kwargs = {name: _fill_slots(value, values, device) for name, value in call.kwargs.items()}
    if call.name in FACTORIES and device is not None:
        kwargs["device"] = device
    result = FUNCTIONS[call.name](*(_fill_slots(a, values, device) for a in call.args), **kwargs)
    if call.outputs:
        results = result if isinstance(result, (tuple, list)) else (result,)
        values.update(zip(call.outputs, results, strict=True))


def _fill_slots(x: Any, values: dict[Slot, torch.Tensor], device: torch.device | None) -> Any:
    if type(x) is Slot:
        return values[x]
    if type(x) in (tuple, list):
        return type(x)(_fill_slots(y, values, device) for y in x)
    return x.to(device) if isinstance(x, torch.Tensor) and device is not None and device.type != "cpu" else x


def slots_of(call: Call) -> Iterator[Slot]:
    """Return the slots of a call's arguments."""
    return _slots((call.args, tuple(call.kwargs.values())))


def _slots(x: Any) -> Iterator[Slot]:
    if type(x) is Slot:
        yield x
    elif type(x) in (tuple, list):
        for y in x:
            yield from _slots(y)
