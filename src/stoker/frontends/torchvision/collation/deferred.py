# SPDX-License-Identifier: Apache-2.0
"""Deferred tensors: results of a collation on lazy tensors, recorded as calls and computed where the batch is made.

While a script's own collation function runs, its calls on lazy tensors, and on the large tensors that it fills with
them, are recorded as a :class:`~.program.Program`. torch's own functions give shapes, types and errors, on tensors of
the meta device. Calls that are not recorded materialize their tensors.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from .. import counts, recording
from ..proxy_names import named_after
from ..tensors import bounds, tensor
from ..tensors.lazy_base import LazyBase, call_materialized, protect, set_class
from ..tensors.tensor import QUERIES, LazyTensor, is_lazy, leading_shape
from . import padded
from .meta_results import BY_VALUE, CACHED, META, can_cast_result, has_rows_in_range, meta_result
from .program import FACTORIES, IN_PLACE, NAMES, Call, Program, Slot, new_slot

_LARGE = 4096  # elements; smaller new tensors (labels) are plain ones
_PLAIN = frozenset({int, float, bool, type(None), slice, torch.dtype, type(Ellipsis)})


class _ThreadState(threading.local):
    is_collating = False
    is_on_gpu = False


_thread = _ThreadState()


@named_after(torch.Tensor)
class DeferredTensor(LazyBase):
    """Proxy of the value that a program's slot holds after the last call."""

    _program: Program
    _slot: Slot
    _meta: torch.Tensor
    _materialized: torch.Tensor | None
    own_attributes = ("_program", "_slot", "_meta", "_materialized", "_bounds")
    _bounds: bounds.Bounds | None = None  # of its values, if no other tensor may change them; see `tensors/bounds.py`

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record ``func``, or run the program and then ``func``."""
        kwargs = kwargs or {}
        if func in QUERIES:
            return tensor.query(func, args, kwargs)
        result = record(func, args, kwargs)
        if result is not NotImplemented:
            return result
        counts.add(counts.TORCH)
        return call_materialized(func, args, kwargs)

    def materialize(self) -> torch.Tensor:
        """Return the plain tensor; the program runs now if it has not."""
        if self._materialized is None:
            self._program.run()
        assert self._materialized is not None
        return self._materialized

    def as_lazy(self) -> LazyTensor | None:
        """Return the lazy tensor that the slot turned out to hold; None if it holds another value."""
        return self._program.leaves.get(self._slot) if self._materialized is None else None


def _new_deferred(of: Program, slot: Slot, meta: torch.Tensor) -> DeferredTensor:
    result: DeferredTensor = torch.Tensor._make_wrapper_subclass(
        DeferredTensor, meta.shape, strides=meta.stride(), storage_offset=meta.storage_offset(), dtype=meta.dtype
    )
    protect(result)
    _defer(result, of, slot, meta)
    return result


def _defer(x: Any, of: Program, slot: Slot, meta: torch.Tensor) -> None:
    x._program, x._slot, x._meta, x._materialized = of, slot, meta, None
    of.add_waiter(x)
    recording.track(x)


def _unpickle_deferred(of: Program, slot: int, shape: Any, strides: Any, dtype: torch.dtype) -> DeferredTensor:
    return _new_deferred(of, Slot(slot), torch.empty_strided(shape, strides, dtype=dtype, device=META))


def reduce_deferred(x: DeferredTensor) -> Any:
    """Return the pickled form: the program and the slot, or the equal lazy or plain tensor."""
    if x._materialized is None:
        padded.simplify(x._program)
    lazy = x.as_lazy()
    if x._materialized is not None or lazy is not None:
        return _itself, (x._materialized if lazy is None else lazy,)
    return _unpickle_deferred, (x._program, int(x._slot), tuple(x.shape), x.stride(), x.dtype)


def _itself(x: Any) -> Any:
    return x


# ---- recording ----


class _LeafLink:
    """Link from a lazy tensor to the program that it is a leaf of."""

    def __init__(self, x: LazyTensor, program: Program) -> None:
        self.slot = new_slot()
        self.meta = torch.empty(tuple(x.shape), dtype=x.dtype, device=META)
        self.program = weakref.ref(program)  # its deferred tensors keep the program alive
        program.leaves[self.slot] = x


class _NotRecorded(Exception):
    """A call or argument cannot be recorded."""


class _CallRecorder:
    """Recorder of one call: it converts the arguments and finds the program."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self._metas: dict[int, torch.Tensor] = {}

    def noted(self, x: Any) -> Any:
        """Return an argument in recorded form."""
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
        if type(x) is DeferredTensor and x._materialized is None and not x._program.is_closed:
            self._join(x._program)
            self._metas[id(x)] = x._meta
            return x._slot
        if is_lazy(x):
            return self._leaf(x)
        if type(x) is not torch.Tensor or x.device.type != "cpu" or x.layout != torch.strided or x.requires_grad:
            raise _NotRecorded
        if x.numel() > _LARGE and (self.program is None or not self.program.leaves):
            raise _NotRecorded  # recording gains nothing for large tensors without images
        self._metas[id(x)] = torch.empty_like(x, device=META)
        return x.clone()  # a copy: its owner may change it later

    def _leaf(self, x: Any) -> Slot:
        known: _LeafLink | None = x._leaf_link
        program = known.program() if known is not None else None
        if known is None or program is None:
            if x._shared_windows is not None and not x._shared_windows.is_alone(x):  # another window may change it
                raise _NotRecorded
            program = self.program or Program()
            known = x._leaf_link = _LeafLink(x, program)
        self._join(program)
        self._metas[id(x)] = known.meta
        return known.slot

    def _join(self, other: Program) -> None:
        if self.program is None:
            self.program = other
        elif other is not self.program:
            self.program.join(other)

    def meta(self, x: Any) -> Any:
        """Return an argument as a tensor of the meta device."""
        if isinstance(x, torch.Tensor):
            return self._metas[id(x)]
        if isinstance(x, (tuple, list)):
            return type(x)(self.meta(y) for y in x) if type(x) in (tuple, list) else tuple(x)
        return x

    def may_change(self, x: Any) -> bool:
        """Return whether ``x`` is recorded and may be changed. A leaf with its memory is replaced by a copy."""
        if self.program is None or type(x) not in (DeferredTensor, LazyTensor):
            return False
        mine = _storage_id(self._metas[id(x)])
        leaf = next((y for y in self.program.leaves.values() if _storage_id(y._leaf_link.meta) == mine), None)
        if leaf is not None and (type(leaf) is not LazyTensor or leaf._is_cut):
            return False
        if leaf is not None:
            _replace_by_copy(leaf, self.program)
        return True


def _replace_by_copy(leaf: Any, program: Program) -> None:
    """Turn a leaf into a deferred tensor that begins as a copy of it, and that all its owners may change."""
    known: _LeafLink = leaf._leaf_link
    images = LazyTensor(leaf._rows, leading_shape(leaf))
    for name in list(vars(leaf)):
        delattr(leaf, name)
    set_class(leaf, DeferredTensor)
    mine = _storage_id(known.meta)
    if any(_storage_id(deferred._meta) == mine for deferred in program.waiters()):  # windows of the leaf show the copy
        del program.leaves[known.slot]
        images._leaf_link = _LeafLink(images, program)
        program.calls.insert(0, Call("clone", (images._leaf_link.slot,), {}, (known.slot,)))
        _defer(leaf, program, known.slot, known.meta)
        return
    program.leaves[known.slot], images._leaf_link = images, known
    copy = new_slot()
    program.calls.append(Call("clone", (known.slot,), {}, (copy,)))
    _defer(leaf, program, copy, torch.empty_like(known.meta))


def _storage_id(meta: torch.Tensor) -> int:
    return int(meta.untyped_storage()._cdata)


def record(func: Any, args: Any, kwargs: Any) -> Any:
    """Record a call, if a collation runs and the call can be recorded."""
    if not _thread.is_collating:
        return NotImplemented
    if func in _LIKE:
        return _record_like(func, args, kwargs)
    name = NAMES.get(func)
    if name is None or (_thread.is_on_gpu and not _is_equal_on_gpu(name, args, kwargs)):
        return NotImplemented
    args, kwargs = (
        _copy_read_windows(_to_python_numbers(args, name), name),
        {key: _to_python_numbers(value) for key, value in kwargs.items()},
    )
    try:
        recorder, recorded = _record_arguments(args, kwargs)
    except _NotRecorded:
        return NotImplemented
    try:
        result = meta_result(name, recorder.meta(args), {key: recorder.meta(value) for key, value in kwargs.items()})
    except Exception:  # noqa: BLE001 - torch raises the error again, with values
        return NotImplemented
    if not has_rows_in_range(name, args):
        return NotImplemented
    changed = kwargs.get("out", args[0] if name in IN_PLACE else None)
    if changed is None:
        assert recorder.program is not None
        return _with_bounds(_append_call(recorder.program, name, recorded, result), name, args)
    was_leaf = type(changed) is LazyTensor
    if not (can_cast_result(name, args) and recorder.may_change(changed)):
        return NotImplemented
    if was_leaf:
        recorder, recorded = _record_arguments(args, kwargs)
    assert recorder.program is not None
    recorder.program.calls.append(Call(name, *recorded, ()))
    changed._bounds = bounds.result_bounds(name, [_bounds_of(args[0])]) if name == "torch.round" else None
    return None if name == "__setitem__" else changed


# Functions that read values and return new memory.
_READING_NAMES = "roll flip clone add sub mul neg __add__ __radd__ __sub__ __mul__ __rmul__"
_READING = frozenset(_READING_NAMES.split())


def _copy_read_windows(args: Any, name: str) -> Any:
    """Return the arguments with copies of windows that are only read, because their memory may change."""
    first = 0 if name in _READING else 2 if name == "__setitem__" else 1 if name in IN_PLACE else len(args)
    return tuple(_copy_window(x) if at >= first else x for at, x in enumerate(args))


def _copy_window(x: Any) -> Any:
    is_window = (
        type(x) is LazyTensor and x._materialized is None and x._leaf_link is None and x._shared_windows is not None
    )
    return LazyTensor(list(x._rows), leading_shape(x)) if is_window and not x._shared_windows.is_alone(x) else x


def _is_equal_on_gpu(name: str, args: Any, kwargs: Any) -> bool:
    """Return whether a GPU gives the same result as the CPU: floats that become integers must fit into bytes."""
    whole = name == "byte" or any(
        isinstance(x, torch.dtype) and not x.is_floating_point for x in (*args, *kwargs.values())
    )
    return not whole or not args[0].dtype.is_floating_point or bounds.fits_bytes(_bounds_of(args[0]))


def _bounds_of(x: Any) -> bounds.Bounds | None:
    if type(x) is DeferredTensor:
        return bounds.BYTES if x.dtype == torch.uint8 else x._bounds
    if is_lazy(x):
        return bounds.image_bounds(x)
    return (float(x), float(x)) if isinstance(x, (int, float)) else None


def _with_bounds(result: Any, name: str, args: Any) -> Any:
    """Return a call's result with its bounds if it owns its memory; otherwise forget all bounds."""
    if name in CACHED:
        if _thread.is_on_gpu:
            operands = args[:1] if name in BY_VALUE else args
            result._bounds = bounds.result_bounds(name, [_bounds_of(x) for x in operands])
        return result
    if name in ("float", "double") and args[0].dtype == torch.uint8:
        result._bounds = bounds.BYTES
        return result
    for x in args:
        if type(x) is DeferredTensor:
            x._bounds = None
    return result


def _record_arguments(args: Any, kwargs: Any) -> tuple[_CallRecorder, tuple[Any, Any]]:
    recorder = _CallRecorder()
    return recorder, (recorder.noted(args), {key: recorder.noted(value) for key, value in kwargs.items()})


def _to_python_numbers(x: Any, name: str = "") -> Any:
    """Convert NumPy's numbers to Python's, which torch accepts, and arrays of row numbers to tensors."""
    if isinstance(x, (np.floating, np.integer)):
        return x.item()
    if type(x) in (tuple, list):
        return type(x)(_to_python_numbers(y, name) for y in x)
    if type(x) is slice:
        return slice(*(_to_python_numbers(y) for y in (x.start, x.stop, x.step)))
    if type(x) is np.ndarray and name == "__getitem__" and x.dtype.kind == "i":
        return torch.from_numpy(x.astype(np.int64))
    return x


def _append_call(into: Program, name: str, recorded: tuple[Any, Any], result: Any) -> Any:
    metas = list(result) if isinstance(result, (tuple, list)) else [result]
    slots = tuple(new_slot() for _ in metas)
    into.calls.append(Call(name, *recorded, slots))
    tensors = [_new_deferred(into, slot, meta) for slot, meta in zip(slots, metas, strict=True)]
    return tensors[0] if result is metas[0] else tuple(tensors)


# ---- new tensors of a collation ----

_LIKE: dict[Any, str] = {
    torch.Tensor.new: "empty", torch.Tensor.new_empty: "empty", torch.Tensor.new_zeros: "zeros",
    torch.Tensor.new_ones: "ones", torch.Tensor.new_full: "full",
}  # fmt: skip
_FACTORY_NAMES: dict[Any, str] = {function: name for name, function in FACTORIES.items()}


def _record_like(func: Any, args: Any, kwargs: Any) -> Any:
    """Record ``x.new_zeros(...)`` and the like."""
    x, *shape = args
    if not all(type(n) in (int, float, bool, tuple, list, torch.Size) for n in shape) or not shape:
        return NotImplemented
    return _record_factory(_LIKE[func], tuple(shape), {"dtype": x.dtype, **kwargs})


def _record_factory(name: str, args: Any, kwargs: Any) -> Any:
    if set(kwargs) - {"dtype", "size", "fill_value"}:
        return NotImplemented
    recorder = _CallRecorder()
    try:
        recorded = recorder.noted(args), {key: recorder.noted(value) for key, value in kwargs.items()}
        result = FACTORIES[name](*args, **kwargs, device=META)
    except Exception:  # noqa: BLE001 - torch raises the error again, with values
        return NotImplemented
    if result.numel() <= _LARGE:
        return FACTORIES[name](*args, **kwargs)
    return _append_call(Program(), name, (recorded[0], {**recorded[1], "dtype": result.dtype}), result)


class _FactoryMode(TorchFunctionMode):
    """Mode in which torch's factories record large new tensors."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = _FACTORY_NAMES.get(func)
        if name is not None:
            result = _record_factory(name, args, kwargs or {})
            if result is not NotImplemented:
                return result
        return func(*args, **(kwargs or {}))


class Collation:
    """Wrapper of a script's collation that records its calls."""

    def __init__(self, function: Callable[[Any], Any], find: Callable[[Any], list[Any]], *, is_on_gpu: bool) -> None:
        self._function = function
        self._find = find
        self._is_on_gpu = is_on_gpu

    def __call__(self, batch: Any) -> Any:
        if _thread.is_collating or not self._find(batch):
            return self._function(batch)
        _thread.is_collating, _thread.is_on_gpu = True, self._is_on_gpu
        try:
            with _FactoryMode():
                return self._function(batch)
        finally:
            _thread.is_collating = False


tensor.set_fallback_recorder(record)
