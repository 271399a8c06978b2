# SPDX-License-Identifier: Apache-2.0
"""Tensors that a collation makes of lazy ones: recorded as calls of torch's functions, done where the batch is made.

While a collation function of a script's own runs, what it asks of lazy tensors, and of the large tensors that it makes
to put them into, becomes a :class:`~.program.Program`. Shapes, types and errors are those of torch's own functions,
which run on tensors without values. What is not recorded makes the tensors real at once, as everywhere.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from . import bounds, counts, padded, tensor
from .likeness import named_after
from .program import FACTORIES, IN_PLACE, NAMES, Call, Program, Slot, a_slot
from .tensor import ASKS, LazyTensor, is_lazy, lead_of
from .unmade import Unmade, as_real
from .without_values import BY_VALUE, META, REMEMBERED, fits, is_within, result_of

_LARGE = 4096  # elements; smaller tensors that a collation makes (labels) are torch's
_PLAIN = frozenset({int, float, bool, type(None), slice, torch.dtype, type(Ellipsis)})


class _Now(threading.local):
    collating = False
    elsewhere = False


_now = _Now()


@named_after(torch.Tensor)
class Later(Unmade):
    """What a program will have put into a slot when all its calls are done."""

    _program: Program
    _slot: Slot
    _meta: torch.Tensor
    _real: torch.Tensor | None
    _bounds: bounds.Bounds | None = None  # of its values, if nobody else may change them; see `bounds.py`

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record ``func``, or run the program and then ``func``."""
        kwargs = kwargs or {}
        if func in ASKS:
            return tensor.asked(func, args, kwargs)
        result = record(func, args, kwargs)
        if result is not NotImplemented:
            return result
        counts.add(counts.TORCH)
        return as_real(func, args, kwargs)

    def as_made(self) -> torch.Tensor:
        """The tensor itself; the program is run now if it was not before."""
        if self._real is None:
            self._program.run()
        assert self._real is not None
        return self._real

    def as_lazy(self) -> LazyTensor | None:
        """The lazy tensor that it turned out to be, if it did."""
        return self._program.leaves.get(self._slot) if self._real is None else None


def _later(of: Program, slot: Slot, meta: torch.Tensor) -> Later:
    made: Later = torch.Tensor._make_wrapper_subclass(
        Later, meta.shape, strides=meta.stride(), storage_offset=meta.storage_offset(), dtype=meta.dtype
    )
    _begin(made, of, slot, meta)
    return made


def _begin(x: Any, of: Program, slot: Slot, meta: torch.Tensor) -> None:
    x._program, x._slot, x._meta, x._real = of, slot, meta, None
    of.await_by(x)


def _travelled(of: Program, slot: int, shape: Any, strides: Any, dtype: torch.dtype) -> Later:
    return _later(of, Slot(slot), torch.empty_strided(shape, strides, dtype=dtype, device=META))


def reduce_later(x: Later) -> Any:
    """How it travels between processes: with its program, or as the lazy tensor that it is."""
    if x._real is None:
        padded.simplify(x._program)
    lazy = x.as_lazy()
    if x._real is not None or lazy is not None:
        return _itself, (x._real if lazy is None else lazy,)
    return _travelled, (x._program, int(x._slot), tuple(x.shape), x.stride(), x.dtype)


def _itself(x: Any) -> Any:
    return x


# ---- recording ----


class _Leaf:
    """What a lazy tensor knows of the program that it is a leaf of."""

    def __init__(self, x: LazyTensor, program: Program) -> None:
        self.slot = a_slot()
        self.meta = torch.empty(tuple(x.shape), dtype=x.dtype, device=META)
        self.program = weakref.ref(program)  # which those keep that wait for it
        program.leaves[self.slot] = x


class _NotRecorded(Exception):
    """Something cannot be written down."""


class _Noting:
    """The tensors of one call."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self._metas: dict[int, torch.Tensor] = {}

    def noted(self, x: Any) -> Any:
        """An argument as it is written down."""
        if isinstance(x, torch.Tensor):
            return self._tensor(x)
        if isinstance(x, (tuple, list)):
            return (list if type(x) is list else tuple)(self.noted(y) for y in x)
        if type(x) is slice:
            return slice(*(self.noted(y) for y in (x.start, x.stop, x.step)))
        if type(x) not in _PLAIN:
            raise _NotRecorded
        return x

    def _tensor(self, x: Any) -> Any:
        if type(x) is Later and x._real is None and not x._program.is_closed:
            self._join(x._program)
            self._metas[id(x)] = x._meta
            return x._slot
        if is_lazy(x):
            return self._leaf(x)
        if type(x) is not torch.Tensor or x.device.type != "cpu" or x.layout != torch.strided or x.requires_grad:
            raise _NotRecorded
        if x.numel() > _LARGE and (self.program is None or not self.program.leaves):
            raise _NotRecorded  # of what has no image in it yet, nothing is gained
        self._metas[id(x)] = torch.empty_like(x, device=META)
        return x.clone()  # its owner may change it later

    def _leaf(self, x: Any) -> Slot:
        known: _Leaf | None = x._later
        program = known.program() if known is not None else None
        if known is None or program is None:
            if x._shares is not None and not x._shares.is_alone(x):  # others may change it
                raise _NotRecorded
            program = self.program or Program()
            known = x._later = _Leaf(x, program)
        self._join(program)
        self._metas[id(x)] = known.meta
        return known.slot

    def _join(self, other: Program) -> None:
        if self.program is None:
            self.program = other
        elif other is not self.program:
            self.program.join(other)

    def meta(self, x: Any) -> Any:
        """An argument for finding out shapes."""
        if isinstance(x, torch.Tensor):
            return self._metas[id(x)]
        if isinstance(x, (tuple, list)):
            return type(x)(self.meta(y) for y in x) if type(x) in (tuple, list) else tuple(x)
        return x

    def may_change(self, x: Any) -> bool:
        """Whether ``x`` is recorded; a leaf whose memory it is becomes a copy of what it was."""
        if self.program is None or type(x) not in (Later, LazyTensor):
            return False
        mine = _memory_of(self._metas[id(x)])
        leaf = next((y for y in self.program.leaves.values() if _memory_of(y._later.meta) == mine), None)
        if leaf is not None and (type(leaf) is not LazyTensor or leaf._is_cut):
            return False
        if leaf is not None:
            _copy(leaf, self.program)
        return True


def _copy(leaf: Any, program: Program) -> None:
    """Let what was a leaf be a tensor that begins as a copy of it, and may be changed, for everybody who has it."""
    known: _Leaf = leaf._later
    images = LazyTensor(leaf._rows, lead_of(leaf))
    for name in list(vars(leaf)):
        delattr(leaf, name)
    leaf.__class__ = Later
    mine = _memory_of(known.meta)
    if any(_memory_of(later._meta) == mine for later in program.waiting()):  # what shows it shows the copy
        del program.leaves[known.slot]
        images._later = _Leaf(images, program)
        program.calls.insert(0, Call("clone", (images._later.slot,), {}, (known.slot,)))
        _begin(leaf, program, known.slot, known.meta)
        return
    program.leaves[known.slot], images._later = images, known
    copy = a_slot()
    program.calls.append(Call("clone", (known.slot,), {}, (copy,)))
    _begin(leaf, program, copy, torch.empty_like(known.meta))


def _memory_of(meta: torch.Tensor) -> int:
    return int(meta.untyped_storage()._cdata)


def record(func: Any, args: Any, kwargs: Any) -> Any:
    """Write a call down, if a collation runs and it can be."""
    if not _now.collating:
        return NotImplemented
    if func in _LIKE:
        return _made_like(func, args, kwargs)
    name = NAMES.get(func)
    if name is None or (_now.elsewhere and not _is_alike_elsewhere(name, args, kwargs)):
        return NotImplemented
    args, kwargs = (
        _apart(_without_numpy(args, name), name),
        {key: _without_numpy(value) for key, value in kwargs.items()},
    )
    try:
        noting, noted = _noted(args, kwargs)
    except _NotRecorded:
        return NotImplemented
    try:
        result = result_of(name, noting.meta(args), {key: noting.meta(value) for key, value in kwargs.items()})
    except Exception:  # noqa: BLE001 - torch raises it once more, with values
        return NotImplemented
    if not is_within(name, args):
        return NotImplemented
    changed = kwargs.get("out", args[0] if name in IN_PLACE else None)
    if changed is None:
        assert noting.program is not None
        return _bounded(_given(noting.program, name, noted, result), name, args)
    was_leaf = type(changed) is LazyTensor
    if not (fits(name, args) and noting.may_change(changed)):
        return NotImplemented
    if was_leaf:
        noting, noted = _noted(args, kwargs)
    assert noting.program is not None
    noting.program.calls.append(Call(name, *noted, ()))
    changed._bounds = bounds.after(name, [_bounds_of(args[0])]) if name == "torch.round" else None
    return None if name == "__setitem__" else changed


# Functions that take values, and give memory of its own.
_READING_NAMES = "roll flip clone add sub mul neg __add__ __radd__ __sub__ __mul__ __rmul__"
_READING = frozenset(_READING_NAMES.split())


def _apart(args: Any, name: str) -> Any:
    """Arguments with copies of windows that are only read: what becomes of the memory that they show is no matter."""
    first = 0 if name in _READING else 2 if name == "__setitem__" else 1 if name in IN_PLACE else len(args)
    return tuple(_copied(x) if at >= first else x for at, x in enumerate(args))


def _copied(x: Any) -> Any:
    is_window = type(x) is LazyTensor and x._real is None and x._later is None and x._shares is not None
    return LazyTensor(list(x._rows), lead_of(x)) if is_window and not x._shares.is_alone(x) else x


def _is_alike_elsewhere(name: str, args: Any, kwargs: Any) -> bool:
    """Whether a GPU gives what the CPU does: of floats that become whole numbers, if these are bytes."""
    whole = name == "byte" or any(
        isinstance(x, torch.dtype) and not x.is_floating_point for x in (*args, *kwargs.values())
    )
    return not whole or not args[0].dtype.is_floating_point or bounds.fit_bytes(_bounds_of(args[0]))


def _bounds_of(x: Any) -> bounds.Bounds | None:
    if type(x) is Later:
        return bounds.BYTES if x.dtype == torch.uint8 else x._bounds
    if is_lazy(x):
        return bounds.of_images(x)
    return (float(x), float(x)) if isinstance(x, (int, float)) else None


def _bounded(made: Any, name: str, args: Any) -> Any:
    """What a call has given, with its bounds if it is memory of its own; else nobody's are known any more."""
    if name in REMEMBERED:
        if _now.elsewhere:
            operands = args[:1] if name in BY_VALUE else args
            made._bounds = bounds.after(name, [_bounds_of(x) for x in operands])
        return made
    if name in ("float", "double") and args[0].dtype == torch.uint8:
        made._bounds = bounds.BYTES
        return made
    for x in args:
        if type(x) is Later:
            x._bounds = None
    return made


def _noted(args: Any, kwargs: Any) -> tuple[_Noting, tuple[Any, Any]]:
    noting = _Noting()
    return noting, (noting.noted(args), {key: noting.noted(value) for key, value in kwargs.items()})


def _without_numpy(x: Any, name: str = "") -> Any:
    """NumPy's numbers as Python's, which torch takes them for; arrays of them where they say which rows."""
    if isinstance(x, (np.floating, np.integer)):
        return x.item()
    if type(x) in (tuple, list):
        return type(x)(_without_numpy(y, name) for y in x)
    if type(x) is slice:
        return slice(*(_without_numpy(y) for y in (x.start, x.stop, x.step)))
    if type(x) is np.ndarray and name == "__getitem__" and x.dtype.kind == "i":
        return torch.from_numpy(x.astype(np.int64))
    return x


def _given(into: Program, name: str, noted: tuple[Any, Any], result: Any) -> Any:
    metas = list(result) if isinstance(result, (tuple, list)) else [result]
    slots = tuple(a_slot() for _ in metas)
    into.calls.append(Call(name, *noted, slots))
    made = [_later(into, slot, meta) for slot, meta in zip(slots, metas, strict=True)]
    return made[0] if result is metas[0] else tuple(made)


# ---- tensors that a collation makes ----

_LIKE: dict[Any, str] = {
    torch.Tensor.new: "empty", torch.Tensor.new_empty: "empty", torch.Tensor.new_zeros: "zeros",
    torch.Tensor.new_ones: "ones", torch.Tensor.new_full: "full",
}  # fmt: skip
_MAKES: dict[Any, str] = {function: name for name, function in FACTORIES.items()}


def _made_like(func: Any, args: Any, kwargs: Any) -> Any:
    """``x.new_zeros(...)`` and the like."""
    x, *shape = args
    if not all(type(n) in (int, float, bool, tuple, list, torch.Size) for n in shape) or not shape:
        return NotImplemented
    return _make(_LIKE[func], tuple(shape), {"dtype": x.dtype, **kwargs})


def _make(name: str, args: Any, kwargs: Any) -> Any:
    if set(kwargs) - {"dtype", "size", "fill_value"}:
        return NotImplemented
    noting = _Noting()
    try:
        noted = noting.noted(args), {key: noting.noted(value) for key, value in kwargs.items()}
        result = FACTORIES[name](*args, **kwargs, device=META)
    except Exception:  # noqa: BLE001 - as above
        return NotImplemented
    if result.numel() <= _LARGE:
        return FACTORIES[name](*args, **kwargs)
    return _given(Program(), name, (noted[0], {**noted[1], "dtype": result.dtype}), result)


class _Making(TorchFunctionMode):
    """Within, large tensors that are made of nothing are recorded."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = _MAKES.get(func)
        if name is not None:
            made = _make(name, args, kwargs or {})
            if made is not NotImplemented:
                return made
        return func(*args, **(kwargs or {}))


class Collation:
    """A script's own collation, that records."""

    def __init__(self, function: Callable[[Any], Any], find: Callable[[Any], list[Any]], *, elsewhere: bool) -> None:
        self._function = function
        self._find = find
        self._elsewhere = elsewhere

    def __call__(self, batch: Any) -> Any:
        if _now.collating or not self._find(batch):
            return self._function(batch)
        _now.collating, _now.elsewhere = True, self._elsewhere
        try:
            with _Making():
                return self._function(batch)
        finally:
            _now.collating = False


tensor.defer(record)
