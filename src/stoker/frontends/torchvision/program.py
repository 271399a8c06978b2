# SPDX-License-Identifier: Apache-2.0
"""What a collation does with recorded images, written down to be done where the batch is made, by torch itself.

A :class:`Program` is a list of calls in order. What a call works on and what it gives are numbered *slots*; a slot that
no call gives is a *leaf*, a lazy tensor. Calls are replayed literally, so that memory which several tensors show, and
what is changed in place, is torch's own affair. Only functions stand in it whose values do not depend on how many
threads torch has.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from .making import Take
from .tensor import LazyTensor, lead_of, real

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
_CHUNK = 1 << 18  # elements that are worked on at a time: they stay in a core's cache


def _methods(names: str) -> dict[str, Any]:
    return {name: getattr(_T, name) for name in names.split() if hasattr(_T, name)}


FUNCTIONS: dict[str, Any] = (
    FACTORIES
    | _methods(f"{_IN_PLACE} {_VIEWS} {_VALUES} {_ROUNDED}")
    | {name: getattr(torch, name) for name in _JOINED.split()}
    | {"torch.round": torch.round}  # which has ``out``
)
NAMES: dict[Any, str] = {
    getattr(torch, name): name for name in f"{_VIEWS} {_VALUES}".split() if hasattr(torch, name) and hasattr(_T, name)
} | {function: name for name, function in FUNCTIONS.items()}
IN_PLACE = frozenset(_IN_PLACE.split())
_ROWS = frozenset(_BY_ROWS.split())


class Slot(int):
    """The number of a tensor of a program."""


_numbers = itertools.count()


def a_slot() -> Slot:
    """One that no program of this process has."""
    return Slot(next(_numbers))


class Call(NamedTuple):
    """One function of torch; slots stand for tensors in its arguments."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    gives: tuple[Slot, ...]  # none: it changes what it got


class Program:
    """Calls on lazy tensors, and the tensors that wait for them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.leaves: dict[Slot, LazyTensor] = {}
        self.only_here: set[Slot] = set()  # leaves that nobody waits for but the program
        self._waiting: list[weakref.ref[Any]] = []
        self.is_run = False
        self.is_closed = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.calls, self.leaves)

    # ---- who waits ----

    def await_by(self, later: Any) -> None:
        """``later`` wants what its slot holds after the last call."""
        self._waiting.append(weakref.ref(later))

    def waiting(self) -> list[Any]:
        """The tensors that are still wanted."""
        return [later for reference in self._waiting if (later := reference()) is not None]

    def join(self, other: Program) -> None:
        """Take over the calls of another one: a call works on tensors of both."""
        self.calls += other.calls
        self.leaves |= other.leaves
        for leaf in other.leaves.values():
            if leaf._later is not None:
                leaf._later.program = weakref.ref(self)
        for later in other.waiting():
            later._program = self
            self.await_by(later)

    def gather(self, apart: set[int]) -> None:
        """Let single images that are alike be rows of one leaf, which are made together, but for those of ``apart``."""
        kinds: dict[Any, list[Slot]] = {}
        for slot, leaf in self.leaves.items():
            if type(leaf) is LazyTensor and not lead_of(leaf) and leaf._real is None and id(leaf) not in apart:
                kinds.setdefault((tuple(leaf.shape), leaf.dtype), []).append(slot)
        for slots in kinds.values():
            if len(slots) > 1:
                batch = a_slot()
                self.leaves[batch] = LazyTensor([self.leaves.pop(slot)._rows[0] for slot in slots], (len(slots),))
                self.calls.insert(0, Call("unbind", (batch,), {}, tuple(slots)))

    def close(self) -> None:
        """Nothing is recorded in it from now on."""
        self.is_closed = True
        for leaf in self.leaves.values():
            leaf._later = None

    # ---- doing it ----

    def run(self, take: Take | None = None, *, keep: bool = False) -> None:
        """Do all calls, making the leaves first where nobody has.

        Args:
            take: memory for what is wanted.
            keep: the program goes on knowing its leaves.

        Raises:
            OSError: a file of a leaf cannot be decoded.
        """
        if self.is_run:
            return
        self.close()
        values = {slot: real(leaf) for slot, leaf in self.leaves.items()}
        wanted = self.waiting()
        slots = list({later._slot: None for later in wanted})
        size = self._rows(slots) if all(v.device.type == "cpu" for v in values.values()) else None
        results = self._whole(values, slots) if size is None else self._by_rows(values, slots, size, take)
        self.is_run = True
        for later in wanted:
            later._real = results[later._slot]
        self.calls = []
        for slot in self.only_here:
            self.leaves[slot]._real = _GIVEN_BACK
        if not keep:
            self.leaves = {}

    def _whole(self, values: dict[Slot, torch.Tensor], wanted: list[Slot]) -> dict[Slot, torch.Tensor]:
        last = {slot: at for at, call in enumerate(self.calls) for slot in (*slots_of(call), *call.gives)}
        device = next((v.device for v in values.values()), None)
        for at, call in enumerate(self.calls):
            _do(call, values, device)
            for slot in {*slots_of(call), *call.gives}:
                if last[slot] == at and slot not in wanted:
                    del values[slot]
        return values

    def _rows(self, wanted: list[Slot]) -> int | None:
        """How many rows there are if every call makes a row out of the same rows of others, or of rolled leaves."""
        counts = {lead_of(leaf) for leaf in self.leaves.values()}
        shows = {slot for call in self.calls if call.name in ("__getitem__", "contiguous") for slot in call.gives}
        if len(counts) != 1 or () in counts or any(slot in self.leaves or slot in shows for slot in wanted):
            return None  # what shows another one's memory is to do so afterwards
        return counts.pop()[0] if all(self._is_by_rows(call) for call in self.calls) else None

    def _is_by_rows(self, call: Call) -> bool:
        if self._moves_rows(call):
            return True
        if call.name in _IN_WINDOWS:
            index = call.args[1]
            return isinstance(index, tuple) and len(index) == 3 and index[0] is Ellipsis
        return call.name in _ROWS and not call.kwargs and all(type(a) in (Slot, int, float) for a in call.args)

    def _moves_rows(self, call: Call) -> bool:
        """Whether a call puts whole rows of a leaf into another order."""
        if call.name not in _ORDERS or call.kwargs or len(call.args) != 2 + (call.name == "roll"):
            return False
        leaf = self.leaves.get(call.args[0]) if type(call.args[0]) is Slot else None
        return leaf is not None and _is_order(call.name, call.args[1:], lead_of(leaf))

    def _by_rows(
        self, values: dict[Slot, torch.Tensor], wanted: list[Slot], count: int, take: Take | None
    ) -> dict[Slot, torch.Tensor]:
        """A few rows at a time, so that what is between is in a core's cache, and in no batch's memory."""
        step = max(1, _CHUNK // max(1, max(v.numel() for v in values.values()) // count))
        results: dict[Slot, torch.Tensor] = {}
        for first in range(0, count, step):
            end = min(first + step, count)
            now = {slot: value[first:end] for slot, value in values.items()}
            for call in self.calls:
                if self._moves_rows(call):
                    now[call.gives[0]] = _ORDERS[call.name](values[call.args[0]], call.args[1], first, end)
                else:
                    _do(call, now, None)
            for slot in wanted:
                if slot not in results:
                    results[slot] = _memory((count, *now[slot].shape[1:]), now[slot].dtype, now[slot].device, take)
                results[slot][first:end] = now[slot]
        return results


_GIVEN_BACK = torch.empty(0)


def _arrived(calls: list[Call], leaves: dict[Slot, LazyTensor]) -> Program:
    program = Program()
    program.calls, program.leaves = calls, leaves
    return program


def _is_order(name: str, how: Any, lead: tuple[int, ...]) -> bool:
    if name == "__getitem__":
        return isinstance(how[0], torch.Tensor) and how[0].dtype == torch.int64 and tuple(how[0].shape) == lead
    return how in (((1, 0),) if name == "roll" else ((0,), ((0,),), ([0],)))


def _rolled(value: torch.Tensor, how: Any, first: int, end: int) -> torch.Tensor:
    return value[first - 1 : end - 1].clone() if first else torch.cat([value[-1:], value[: end - 1]])


def _flipped(value: torch.Tensor, how: Any, first: int, end: int) -> torch.Tensor:
    return value[len(value) - end : len(value) - first].flip(0)


def _picked(value: torch.Tensor, how: Any, first: int, end: int) -> torch.Tensor:
    return value[how[first:end]]


# Some rows of what these make of a leaf, as memory of their own.
_ORDERS: dict[str, Any] = {"roll": _rolled, "flip": _flipped, "__getitem__": _picked}


def _memory(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, take: Take | None) -> torch.Tensor:
    if take is None or device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device)
    return take(math.prod(shape) * dtype.itemsize).view(dtype).view(shape)


def _do(call: Call, values: dict[Slot, torch.Tensor], device: torch.device | None) -> None:
    kwargs = {name: _filled(value, values, device) for name, value in call.kwargs.items()}
    if call.name in FACTORIES and device is not None:
        kwargs["device"] = device
    result = FUNCTIONS[call.name](*(_filled(a, values, device) for a in call.args), **kwargs)
    if call.gives:
        made = result if isinstance(result, (tuple, list)) else (result,)
        values.update(zip(call.gives, made, strict=True))


def _filled(x: Any, values: dict[Slot, torch.Tensor], device: torch.device | None) -> Any:
    if type(x) is Slot:
        return values[x]
    if type(x) in (tuple, list):
        return type(x)(_filled(y, values, device) for y in x)
    return x.to(device) if isinstance(x, torch.Tensor) and device is not None and device.type != "cpu" else x


def slots_of(call: Call) -> Iterator[Slot]:
    """The slots of a call's arguments."""
    return _slots((call.args, tuple(call.kwargs.values())))


def _slots(x: Any) -> Iterator[Slot]:
    if type(x) is Slot:
        yield x
    elif type(x) in (tuple, list):
        for y in x:
            yield from _slots(y)
