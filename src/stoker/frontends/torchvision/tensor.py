# SPDX-License-Identifier: Apache-2.0
"""Tensors that record: an image on its way into a batch, with the operations that are still to be done.

What is done to values is recorded in `pointwise.py`, what moves pixels in `views.py`. Anything that is not recorded
makes the tensor real (`making.py`), and from then on it is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from . import counts, early, recipe
from .likeness import named_after
from .making import Making
from .recipe import Node
from .rows import LazyRow
from .tables import Table, first_table
from .unmade import Unmade, as_real, made


class Within(NamedTuple):
    """The memory that a window shows, as torch would have it."""

    size: tuple[int, int]  # (width, height)
    left: int
    top: int
    by_pixel: bool  # a pixel's channels lie beside each other
    turned: bool  # columns lie where rows do


Like = tuple[int, tuple[int, int], torch.dtype]  # channels, (width, height), type of the values


@named_after(torch.Tensor)
class LazyTensor(Unmade):
    """Images that are not made yet, ``(..., channels, height, width)``; torch's tensor in all that can be asked of it.

    ``_rows`` are the images in order, ``_lead`` the axes before those of the images, ``_real`` the tensor once it has
    been made.
    """

    _rows: Sequence[LazyRow]
    _lead: tuple[int, ...]
    _real: torch.Tensor | None
    _shares: Shares | None
    _within: Within | None = None  # of a window
    _by_pixel = False  # torch's has a pixel's channels beside each other; sums and vectors follow what memory is like
    _turned = False  # torch's has its columns where others have rows
    _unordered = False  # made of several that have: which order torch's memory has is not followed
    _later: Any = None  # the program that it is a leaf of, while a collation runs; see `later.py`
    _arrived: Any = None  # what a worker has found out for the GPU; see `grouping.py`

    @staticmethod
    def __new__(cls, rows: Sequence[LazyRow], lead: tuple[int, ...], like: Like | None = None) -> LazyTensor:
        if like is None:  # told where the rows are not to be looked at
            node, table, _ = rows[0]
            like = node.channels, node.size, table.values.dtype
        channels, (width, height), dtype = like
        shape = (*lead, channels, height, width)
        self: LazyTensor = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)
        recipe.untrack(rows)
        self._rows = rows
        self._lead = lead
        self._real = None
        self._shares = None
        return self

    @property
    def _is_cut(self) -> bool:
        """Whether torch's would show a part of its memory alone."""
        return self._within is not None and self._within.size != self._rows[0].node.size

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record ``func``, or make its tensors real and run it."""
        kwargs = kwargs or {}
        if func in ASKS:
            return asked(func, args, kwargs)
        record = RECORDED.get(func)
        if record is not None and not _is_awaited(args):
            result = record(func, args, kwargs)
            if result is not NotImplemented:
                return result
        result = _defer(func, args, kwargs)
        if result is not NotImplemented:
            return result
        counts.add(counts.TORCH)
        return as_real(func, args, kwargs)

    def as_made(self) -> torch.Tensor:
        """As :func:`real`."""
        return real(self)

    def as_subclass(self, cls: Any) -> Any:
        """As torch's; between tensors and torchvision's images it is recorded."""
        lazy = LazyTensor if cls is torch.Tensor else IMAGES.get(cls)
        if self._real is not None or lazy is None:
            return real(self).as_subclass(cls)
        width, height = self._rows[0].node.size
        return like_memory(self, window_of(self, self._rows, (0, 0, width, height), lead_of(self), lazy))


def asked(func: Any, args: Any, kwargs: Any) -> Any:
    """What a tensor that records answers without its values; one that has been made answers itself, as it may have
    become another one since."""
    x = args[0] if args else None
    is_made = getattr(x, "_real", None)
    if is_made is not None:
        return func(is_made, *args[1:], **kwargs)
    if func in _OF_MEMORY and isinstance(x, LazyTensor) and (x._by_pixel or x._turned or x._within is not None):
        return func(_laid_out(x, "meta"), *args[1:], **kwargs)
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def like_memory(x: LazyTensor, made: Any) -> Any:
    """``made``, whose memory torch would lay out as that of ``x``."""
    made._by_pixel, made._turned, made._unordered = x._by_pixel, x._turned, x._unordered
    return made


def _not_deferred(func: Any, args: Any, kwargs: Any) -> Any:
    return NotImplemented


_defer: Callable[[Any, Any, Any], Any] = _not_deferred


def defer(record: Callable[[Any, Any, Any], Any]) -> None:
    """``record`` is asked about functions that are not recorded here; see `later.py`."""
    global _defer
    _defer = record


def _is_awaited(args: Any) -> bool:
    """Whether calls that are written down are to find the first argument as it is now."""
    x = args[0] if args else None
    return isinstance(x, LazyTensor) and x._later is not None and x._later.program() is not None


def image_tensor(node: Node, table: Table | None = None) -> LazyTensor:
    """One image as ``(channels, height, width)``; uint8 without a table."""
    return LazyTensor([LazyRow(node, table or first_table(node.channels))], ())


def by_pixel(x: Any) -> Any:
    """An image that torch has as Pillow's memory, turned."""
    x._by_pixel = True
    return x


# ---- what is recorded ----


def is_lazy(x: Any) -> bool:
    """Whether ``x`` is a tensor that records."""
    return isinstance(x, LazyTensor) and x._real is None


def _same(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    return x if isinstance(x, LazyTensor) and x._real is None and len(args) == 1 and not kwargs else NotImplemented


def _contiguous(func: Any, args: Any, kwargs: Any) -> Any:
    x = _same(func, args, kwargs)
    if x is NotImplemented or not (x._unordered or not asked(_T.is_contiguous, args, {})):
        return x
    made = of_rows(x, x._rows, lead_of(x))
    made._unordered = False
    return made


def _clone(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    if not isinstance(x, LazyTensor) or x._real is not None or len(args) > 1 or kwargs:
        return NotImplemented
    return like_memory(x, type(x)(x._rows, lead_of(x)))


# Lazy classes of torchvision's images, by what they stand for and by themselves; see `images.py`.
IMAGES: dict[Any, Any] = {}


def _stack(func: Any, args: Any, kwargs: Any) -> Any:
    tensors = args[0] if args else kwargs.get("tensors", ())
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    joined = join(tensors) if dim == 0 and len(args) <= 2 and not set(kwargs) - {"tensors", "dim", "out"} else None
    if joined is None or kwargs.get("out") is not None:
        return NotImplemented
    return joined


def join(tensors: Any) -> LazyTensor | None:
    """Tensors stacked along a new first axis, if at least one is lazy and all are alike."""
    if not isinstance(tensors, (list, tuple)):
        return None
    first = next((t for t in tensors if is_lazy(t)), None)
    if first is None:
        return None
    rows: list[LazyRow] = []
    like = _kind(first)
    for tensor in tensors:
        if is_lazy(tensor):
            if _kind(tensor) != like:
                return None
            rows += tensor._rows
        elif not isinstance(tensor, torch.Tensor) or tensor.shape != first.shape or tensor.dtype != first.dtype:
            return None
        elif tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.requires_grad:
            rows += _raw_rows(made(tensor), first._rows[0])
        else:
            return None
    return LazyTensor(rows, (len(tensors), *lead_of(first)))


def _kind(x: LazyTensor) -> tuple[Any, ...]:
    """Shape and type, without torch."""
    node, table, _ = x._rows[0]
    return x._lead, node.size, node.channels, table.values.dtype


def _raw_rows(tensor: torch.Tensor, like: LazyRow) -> list[LazyRow]:
    node, table, _ = like
    images = tensor.detach().reshape(-1, node.channels * node.size[0] * node.size[1])
    if not images.is_contiguous() or tensor.numel() == 0:
        images = images.contiguous()
    values = (row.view(torch.uint8).numpy() for row in images)
    return [LazyRow(Node.raw(data, node.size, node.channels), table) for data in values]


def lead_of(x: LazyTensor) -> tuple[int, ...]:
    """The axes before those of the images."""
    return x._lead


def functions(owner: Any, names: str) -> list[Any]:
    """Those of these names that this torch has."""
    return [getattr(owner, name) for name in names.split() if hasattr(owner, name)]


_T = torch.Tensor
_PROPERTIES = "shape dtype device ndim layout requires_grad is_cuda is_sparse is_quantized is_meta is_leaf grad_fn"
_QUESTIONS = "size dim numel nelement ndimension is_floating_point is_complex element_size stride is_contiguous __len__"
ASKS = {
    *(p.__get__ for p in functions(_T, _PROPERTIES)),
    *functions(_T, _QUESTIONS),
    *functions(torch, _QUESTIONS),
    _T.storage_offset,
}
_OF_MEMORY = functions(_T, "stride is_contiguous storage_offset")
# By function; `pointwise.py`, `views.py` and `mixing.py` add theirs.
RECORDED: dict[Any, Callable[[Any, Any, Any], Any]] = {
    _T.cpu: _same,
    _T.contiguous: _contiguous,
    **dict.fromkeys([_T.clone, torch.clone], _clone),
    torch.stack: _stack,
}


# ---- memory that several tensors show ----

Window = tuple[int, int, int, int]  # (x0, y0, x1, y1)


class Shares:
    """Lazy tensors that are windows of one memory: a change of one is seen in the others."""

    def __init__(self, root: LazyTensor) -> None:
        self._rows = list(root._rows)
        self._within = _memory_of(root)
        width, height = root._rows[0].node.size
        self._members: list[tuple[weakref.ref[LazyTensor], Window]] = []
        self.add(root, (0, 0, width, height))

    def add(self, tensor: LazyTensor, window: Window) -> None:
        """Another tensor over the memory."""
        tensor._shares = self
        self._members.append((weakref.ref(tensor), window))

    def window(self, tensor: LazyTensor) -> Window:
        """Where a member's pixels are."""
        return next(window for member, window in self._members if member() is tensor)

    def is_alone(self, tensor: LazyTensor) -> bool:
        """Whether no other member is in use any more."""
        return all(m is None or m is tensor for m in (member() for member, _ in self._members))

    def settle(self, tensor: LazyTensor) -> bool:
        """Make all members real if there are others than ``tensor``; else there is nothing to share any more."""
        alive = [(m, window) for member, window in self._members if (m := member()) is not None]
        for member, _ in alive:
            member._shares = None
        if all(member is tensor for member, _ in alive):
            return False
        root = LazyTensor(self._rows, (len(self._rows),))
        root._within = self._within
        Making([root]).run()
        memory = _lay_out(root)
        for member, (left, top, right, bottom) in alive:
            view = memory[..., top:bottom, left:right]
            member._real = view.view(*lead_of(member), *view.shape[1:])
        return True


def settled(x: LazyTensor) -> bool:
    """Before ``x`` is changed or made: whether it had to be made together with others of its memory."""
    return x._shares is not None and x._shares.settle(x)


def window_of(x: LazyTensor, rows: Sequence[LazyRow], window: Window, lead: tuple[int, ...], kind: Any = None) -> Any:
    """A tensor of ``rows`` that shows a window of the memory of ``x``."""
    shares = x._shares or Shares(x)
    left, top = shares.window(x)[:2]
    made = (kind or type(x))(list(rows), lead)
    within = _memory_of(x)
    made._within = within._replace(left=within.left + window[0], top=within.top + window[1])
    like_memory(x, made)
    shares.add(made, (left + window[0], top + window[1], left + window[2], top + window[3]))
    return made


def of_rows(x: LazyTensor, rows: list[LazyRow], lead: tuple[int, ...]) -> LazyTensor:
    """A tensor of the kind of ``x`` with memory of its own."""
    made = type(x)(rows, lead)
    made._unordered = x._unordered or (x._by_pixel and len(rows) > 1)
    return made


# ---- making them real ----


def _memory_of(x: LazyTensor) -> Within:
    return x._within or Within(x._rows[0].node.size, 0, 0, x._by_pixel, x._turned)


def _laid_out(x: LazyTensor, device: str) -> torch.Tensor:
    """A tensor whose memory is as torch's would be; nothing is said of its values."""
    (width, height), left, top, by_pixel, turned = _memory_of(x)
    node, table, _ = x._rows[0]
    lines = (width, height) if turned else (height, width)
    shape = (*lines, node.channels) if by_pixel else (node.channels, *lines)
    memory = torch.empty((len(x._rows), *shape), dtype=table.values.dtype, device=device)
    memory = memory.movedim(-1, -3) if by_pixel else memory
    memory = memory.mT if turned else memory
    window = memory[..., top : top + node.size[1], left : left + node.size[0]]
    return window.view(*lead_of(x), *window.shape[1:])


def _lay_out(x: LazyTensor) -> torch.Tensor:
    """What was made, where torch would have it in memory: sums follow that."""
    assert x._real is not None
    if x._is_cut or _memory_of(x).by_pixel or _memory_of(x).turned:
        x._real = _laid_out(x, "cpu").copy_(x._real)
    return x._real


def real(x: LazyTensor) -> torch.Tensor:
    """The tensor itself, made now on this thread if it was not before.

    Raises:
        OSError: a file cannot be decoded.
    """
    if x._later is not None:
        program, x._later = x._later.program(), None
        if program is not None:
            program.run()
    if x._real is None and not settled(x):
        counted = len(x._rows) == 1
        Making([x], begin=lambda node: early.from_made(node, counted=counted)).run()
        _lay_out(x)
    assert x._real is not None
    return x._real
