# SPDX-License-Identifier: Apache-2.0
"""Lazy tensors: images on their way into a batch, with the operations recorded so far.

`pointwise.py` records operations on values, `views.py` those that move pixels. A function that is not recorded
materializes the tensor (`materialize/materialization.py`), which is a plain one from then on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .. import counts, recording
from ..ir import recipe
from ..ir.recipe import Node
from ..ir.rows import LazyRow
from ..ir.tables import Table, identity_table
from ..materialize import eager
from ..materialize.materialization import Materialization
from ..proxy_names import named_after
from .lazy_base import LazyBase, become_plain, call_materialized, materialize_nested, protect, without_base


class WindowLayout(NamedTuple):
    """Layout of the memory that a window shows, as torch would have it."""

    size: tuple[int, int]  # (width, height)
    left: int
    top: int
    by_pixel: bool  # a pixel's channels are adjacent
    turned: bool  # rows and columns are exchanged in memory
    image: int = 0  # number of the first image in memory


Like = tuple[int, tuple[int, int], torch.dtype]  # channels, (width, height), type of the values


@named_after(torch.Tensor)
class LazyTensor(LazyBase):
    """Images that are not materialized yet, ``(..., channels, height, width)``, with all properties of a torch tensor.

    ``_rows`` are the images in order, ``_lead`` the axes before those of the images. ``_materialized`` is the plain
    tensor once it is computed.
    """

    _rows: Sequence[LazyRow]
    _lead: tuple[int, ...]
    _materialized: torch.Tensor | None
    is_counted = True
    _shared_windows: SharedWindows | None
    _window_layout: WindowLayout | None = None  # of a window
    _is_by_pixel = False  # a pixel's channels are adjacent in torch's memory, on which its sums depend
    _is_view_in_torch = False  # torch's tensor is a view, which cannot be detached in place
    _is_turned = False  # rows and columns are exchanged in torch's memory
    _is_unordered = False  # made of several such images, whose order in torch's memory is not tracked
    _leaf_link: Any = None  # link to the program that it is a leaf of, during a collation; see `collation/deferred.py`
    _worker_groups: Any = None  # groups that a worker has made for the GPU; see `gpu/grouping.py`
    own_attributes = (
        "_rows", "_lead", "_materialized", "_shared_windows", "_window_layout", "_is_by_pixel", "_is_turned",
        "_is_unordered", "_is_view_in_torch", "_leaf_link", "_worker_groups",
    )  # fmt: skip

    @staticmethod
    def __new__(cls, rows: Sequence[LazyRow], lead: tuple[int, ...], like: Like | None = None) -> LazyTensor:
        if like is None:  # given by callers that must not unpickle the rows
            node, table, _ = rows[0]
            like = node.channels, node.size, table.values.dtype
        channels, (width, height), dtype = like
        shape = (*lead, channels, height, width)
        self: LazyTensor = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)
        protect(self)
        recipe.untrack(rows)
        self._rows = rows
        self._lead = lead
        self._materialized = None
        self._shared_windows = None
        recording.track(self)
        return self

    @property
    def _is_cut(self) -> bool:
        """Return whether torch's tensor would show only a part of its memory."""
        return self._window_layout is not None and self._window_layout.size != self._rows[0].node.size

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record ``func``, or materialize its tensors and run it."""
        kwargs = kwargs or {}
        if func in QUERIES:
            return query(func, args, kwargs)
        record = _recorders.get(func)
        if record is not None and not _is_leaf(args):
            result = record(func, *_bind_first(args, kwargs))
            if result is not NotImplemented:
                return result
        result = _record_fallback(func, args, kwargs)
        if result is not NotImplemented:
            return result
        counts.add(counts.TORCH)
        return call_materialized(func, args, kwargs)

    def materialize(self) -> torch.Tensor:
        """Return the materialized tensor; see :func:`materialize`."""
        return materialize(self)

    def as_subclass(self, cls: Any) -> Any:
        """Change the class like torch; changes between tensors and torchvision's images are recorded."""
        lazy = LazyTensor if cls is torch.Tensor else IMAGES.get(cls)
        if self._materialized is not None or lazy is None:
            return become_plain(self).as_subclass(cls)
        width, height = self._rows[0].node.size
        return copy_layout(self, make_window(self, self._rows, (0, 0, width, height), leading_shape(self), lazy))


def _bind_first(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of a call with its first tensor by position."""
    if args or "input" not in kwargs:
        return args, kwargs
    return (kwargs["input"],), {name: value for name, value in kwargs.items() if name != "input"}


def query(func: Any, args: Any, kwargs: Any) -> Any:
    """Return a property of a lazy tensor without materializing; a materialized one answers itself."""
    x: Any = args[0] if args else None
    if getattr(x, "_materialized", None) is not None:
        return func(become_plain(x), *args[1:], **kwargs)
    if (
        func in _LAYOUT_QUERIES
        and issubclass(type(x), LazyTensor)
        and (x._is_by_pixel or x._is_turned or x._window_layout is not None)
    ):
        return func(_empty_like_torch(x, "meta"), *args[1:], **kwargs)
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def copy_layout(x: LazyTensor, result: Any) -> Any:
    """Mark ``result`` as having the memory layout of ``x``, and return it."""
    result._is_by_pixel, result._is_turned, result._is_unordered = x._is_by_pixel, x._is_turned, x._is_unordered
    return result


def _no_fallback(func: Any, args: Any, kwargs: Any) -> Any:
    return NotImplemented


_record_fallback: Callable[[Any, Any, Any], Any] = _no_fallback


def set_fallback_recorder(record: Callable[[Any, Any, Any], Any]) -> None:
    """Set the recorder of functions that this package does not record; see `collation/deferred.py`."""
    global _record_fallback
    _record_fallback = record


def record_deferred(func: Any, args: Any, kwargs: Any) -> Any:
    """Record a call in the program of the collation that runs; NotImplemented if there is none."""
    return _record_fallback(func, args, kwargs)


def _is_leaf(args: Any) -> bool:
    """Return whether the first argument is a leaf of a program, whose calls need its current value."""
    x: Any = args[0] if args else None
    return issubclass(type(x), LazyTensor) and x._leaf_link is not None and x._leaf_link.program() is not None


def image_tensor(node: Node, table: Table | None = None) -> LazyTensor:
    """Return one image as ``(channels, height, width)``; uint8 without a table."""
    return LazyTensor([LazyRow(node, table or identity_table(node.channels))], ())


def mark_by_pixel(x: Any) -> Any:
    """Mark an image whose torch tensor is Pillow's memory, permuted; return it."""
    x._is_by_pixel = x._is_view_in_torch = True
    return x


# ---- recorded functions ----


def is_lazy(x: Any) -> bool:
    """Return whether ``x`` is a lazy tensor that is not materialized."""
    return issubclass(type(x), LazyTensor) and x._materialized is None


def _same(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    return (
        x
        if issubclass(type(x), LazyTensor) and x._materialized is None and len(args) == 1 and not kwargs
        else NotImplemented
    )


def _as_tensor(func: Any, args: Any, kwargs: Any) -> Any:
    """Record ``as_tensor`` without a conversion, which returns its argument."""
    asked = {name: value for name, value in kwargs.items() if value is not None}
    return NotImplemented if asked else _same(func, args, {})


def _without_gradient(func: Any, args: Any, kwargs: Any) -> Any:
    """Record ``requires_grad_(False)``, which changes nothing."""
    asked = kwargs.get("requires_grad", args[1] if len(args) == 2 else True)
    return _same(func, args[:1], {}) if asked is False and len(args) + len(kwargs) == 2 else NotImplemented


def _contiguous(func: Any, args: Any, kwargs: Any) -> Any:
    x = _same(func, args, kwargs)
    if x is NotImplemented or not (x._is_unordered or not query(_T.is_contiguous, args, {})):
        return x
    result = make_like(x, x._rows, leading_shape(x))
    result._is_unordered = False
    return result


def _as_index(func: Any, args: Any, kwargs: Any) -> Any:
    if is_lazy(args[0]):
        refuse_index(args[0])
    return NotImplemented


def refuse_index(x: torch.Tensor) -> None:
    """Raise torch's error if a lazy tensor is no index, without materializing.

    torch asks every argument in place of integers for its index before it reports an error about its class.
    """
    if x.numel() != 1 or x.is_floating_point():
        _T.__index__(torch.empty(0, dtype=x.dtype))


def _clone(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    if not issubclass(type(x), LazyTensor) or x._materialized is not None or len(args) > 1 or kwargs:
        return NotImplemented
    return copy_layout(x, type(x)(x._rows, leading_shape(x)))


# Lazy classes of torchvision's images, by the represented class and by themselves; see `images.py`.
IMAGES: dict[Any, Any] = {}


def _stack(func: Any, args: Any, kwargs: Any) -> Any:
    tensors = args[0] if args else kwargs.get("tensors", ())
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    joined = (
        stack_lazy(tensors) if dim == 0 and len(args) <= 2 and not set(kwargs) - {"tensors", "dim", "out"} else None
    )
    if joined is None or kwargs.get("out") is not None:
        return NotImplemented
    return joined


def stack_lazy(tensors: Any) -> LazyTensor | None:
    """Return tensors stacked along a new first axis, if at least one is lazy and all are alike; otherwise None."""
    if not isinstance(tensors, (list, tuple)):
        return None
    first = next((t for t in tensors if is_lazy(t)), None)
    if first is None:
        return None
    rows: list[LazyRow] = []
    like = _stack_key(first)
    for tensor in tensors:
        if is_lazy(tensor):
            if _stack_key(tensor) != like:
                return None
            rows += tensor._rows
        elif not isinstance(tensor, torch.Tensor) or tensor.shape != first.shape or tensor.dtype != first.dtype:
            return None
        elif tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.requires_grad:
            rows += _raw_rows(materialize_nested(tensor), first._rows[0])
        else:
            return None
    return LazyTensor(rows, (len(tensors), *leading_shape(first)))


def _stack_key(x: LazyTensor) -> tuple[Any, ...]:
    """Return shape and type, without torch."""
    node, table, _ = x._rows[0]
    return x._lead, node.size, node.channels, table.values.dtype


def _raw_rows(tensor: torch.Tensor, like: LazyRow) -> list[LazyRow]:
    node, table, _ = like
    images = tensor.detach().reshape(-1, node.channels * node.size[0] * node.size[1])
    if not images.is_contiguous() or tensor.numel() == 0:
        images = images.contiguous()
    values = (row.view(torch.uint8).numpy() for row in images)
    return [LazyRow(Node.raw(data, node.size, node.channels), table) for data in values]


def leading_shape(x: LazyTensor) -> tuple[int, ...]:
    """Return the axes before those of the images."""
    return x._lead


def existing_functions(owner: Any, names: str) -> list[Any]:
    """Return the functions of these names that this version of torch has."""
    return [getattr(owner, name) for name in names.split() if hasattr(owner, name)]


_T = torch.Tensor
_PROPERTIES = "shape dtype device ndim layout requires_grad is_cuda is_sparse is_quantized is_meta is_leaf grad_fn"
_QUERY_NAMES = (
    "size dim numel nelement ndimension is_floating_point is_complex element_size stride is_contiguous __len__"
)
QUERIES = {
    *(p.__get__ for p in existing_functions(_T, _PROPERTIES)),
    *existing_functions(_T, _QUERY_NAMES),
    *existing_functions(torch, _QUERY_NAMES),
    _T.storage_offset,
}
_LAYOUT_QUERIES = existing_functions(_T, "stride is_contiguous storage_offset")
Recorders = dict[Any, Callable[[Any, Any, Any], Any]]  # recorders by torch's function
FUNCTIONS: Recorders = {
    _T.cpu: _same,
    torch.as_tensor: _as_tensor,
    _T.requires_grad_: _without_gradient,
    _T.contiguous: _contiguous,
    _T.__index__: _as_index,
    **dict.fromkeys([_T.clone, torch.clone], _clone),
    torch.stack: _stack,
}
_recorders: Recorders = FUNCTIONS


def set_recorders(table: Recorders) -> None:
    """Set the functions that lazy tensors record; the whole table is in `recorders.py`."""
    global _recorders
    _recorders = table


# ---- shared memory ----

Window = tuple[int, int, int, int]  # (x0, y0, x1, y1)


class SharedWindows:
    """Lazy tensors that are windows of one memory: a change of one is visible in the others."""

    def __init__(self, root: LazyTensor) -> None:
        self._rows = list(root._rows)
        self._window_layout = _layout_of(root)
        width, height = root._rows[0].node.size
        self._members: list[tuple[weakref.ref[LazyTensor], Window, int]] = []
        self.add(root, (0, 0, width, height), 0)

    def add(self, tensor: LazyTensor, window: Window, image: int) -> None:
        """Add a tensor over the memory, whose first image has the number ``image``."""
        tensor._shared_windows = self
        self._members.append((weakref.ref(tensor), window, image))

    def window(self, tensor: LazyTensor) -> tuple[Window, int]:
        """Return the window of a member's pixels, and the number of its first image."""
        return next((window, image) for member, window, image in self._members if member() is tensor)

    def is_alone(self, tensor: LazyTensor) -> bool:
        """Return whether no other member is in use any more."""
        return all(m is None or m is tensor for m in (member() for member, *_ in self._members))

    def materialize_members(self, tensor: LazyTensor) -> bool:
        """Materialize all members if others than ``tensor`` are in use, and end the sharing; return whether it did."""
        alive = [(m, window, image) for member, window, image in self._members if (m := member()) is not None]
        for member, *_ in alive:
            member._shared_windows = None
        if all(member is tensor for member, *_ in alive):
            return False
        root = LazyTensor(self._rows, (len(self._rows),))
        root._window_layout = self._window_layout
        Materialization([root]).run()
        memory = _apply_layout(root)
        for member, (left, top, right, bottom), image in alive:
            view = memory[image : image + len(member._rows), ..., top:bottom, left:right]
            member._materialized = view.view(*leading_shape(member), *view.shape[1:])
        return True


def materialize_shared(x: LazyTensor) -> bool:
    """Materialize ``x`` with all windows of its memory, if there are others; return whether it did."""
    return x._shared_windows is not None and x._shared_windows.materialize_members(x)


def make_window(
    x: LazyTensor, rows: Sequence[LazyRow], window: Window, lead: tuple[int, ...], kind: Any = None, image: int = 0
) -> Any:
    """Return a tensor of ``rows`` that shows a window of the memory of ``x``, from the image of number ``image`` on."""
    shares = x._shared_windows or SharedWindows(x)
    (left, top, *_), first = shares.window(x)
    result = (kind or type(x))(list(rows), lead)
    within = _layout_of(x)
    layout = within._replace(left=within.left + window[0], top=within.top + window[1], image=within.image + image)
    result._window_layout = layout
    copy_layout(x, result)._is_view_in_torch = True
    shares.add(result, (left + window[0], top + window[1], left + window[2], top + window[3]), first + image)
    return result


def make_like(x: LazyTensor, rows: list[LazyRow], lead: tuple[int, ...]) -> LazyTensor:
    """Return a tensor of the class of ``x`` with memory of its own."""
    result = type(x)(rows, lead)
    result._is_unordered = x._is_unordered or (x._is_by_pixel and len(rows) > 1)
    return result


# ---- materialization ----


def _layout_of(x: LazyTensor) -> WindowLayout:
    return x._window_layout or WindowLayout(x._rows[0].node.size, 0, 0, x._is_by_pixel, x._is_turned)


def _empty_like_torch(x: LazyTensor, device: str) -> torch.Tensor:
    """Return an uninitialized tensor with torch's memory layout."""
    (width, height), left, top, by_pixel, turned, image = _layout_of(x)
    image = image if device == "meta" else 0  # materialized alone
    node, table, _ = x._rows[0]
    lines = (width, height) if turned else (height, width)
    shape = (*lines, node.channels) if by_pixel else (node.channels, *lines)
    memory = torch.empty((image + len(x._rows), *shape), dtype=table.values.dtype, device=device)[image:]
    memory = memory.movedim(-1, -3) if by_pixel else memory
    memory = memory.mT if turned else memory
    window = memory[..., top : top + node.size[1], left : left + node.size[0]]
    lead = leading_shape(x)
    if by_pixel and not lead:
        return window[0]  # `view` would change the strides of axes of one element
    return window.view(*lead, *window.shape[1:])


def query_layout(x: LazyTensor) -> torch.Tensor:
    """Return a tensor without values that has torch's memory layout."""
    return _empty_like_torch(x, "meta")


def _apply_layout(x: LazyTensor) -> torch.Tensor:
    """Return the result in torch's memory layout, on which sums depend."""
    assert x._materialized is not None
    if x._is_cut or _layout_of(x).by_pixel or _layout_of(x).turned:
        x._materialized = _empty_like_torch(x, "cpu").copy_(x._materialized)
    if x._is_view_in_torch == (x._materialized._base is None):
        x._materialized = (
            x._materialized.view_as(x._materialized) if x._is_view_in_torch else without_base(x._materialized)
        )
    return x._materialized


def materialize(x: LazyTensor) -> torch.Tensor:
    """Return the plain tensor, computed on this thread if necessary.

    Raises:
        OSError: a file cannot be decoded.
    """
    if not issubclass(type(x), LazyTensor):  # it has become plain
        return x
    if x._leaf_link is not None:
        program, x._leaf_link = x._leaf_link.program(), None
        if program is not None:
            program.run()
    if x._materialized is None and not materialize_shared(x):
        counted = len(x._rows) == 1
        Materialization([x], begin=lambda node: eager.reuse_pixels(node, counted=counted)).run()
        _apply_layout(x)
    assert x._materialized is not None
    return x._materialized
