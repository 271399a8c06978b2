# SPDX-License-Identifier: Apache-2.0
"""Base class of lazy tensors: a lazy tensor becomes a plain one, in place, where nothing can be recorded.

All names of the tensor then show a plain tensor. So results, errors, shared memory, gradients and changes in place are
torch's own.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch


class LazyMeta(torch._C._TensorMeta):
    """Metaclass of lazy tensors: objects of the represented class count as instances (``isinstance(y, type(x))``)."""

    represented_class: type[torch.Tensor]

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.represented_class)


class LazyBase(torch.Tensor, metaclass=LazyMeta):
    """Tensor without values of its own; :meth:`materialize` computes them."""

    represented_class: type[torch.Tensor] = torch.Tensor
    own_attributes: tuple[str, ...] = ()  # attributes that a plain tensor does not have

    @abstractmethod
    def materialize(self) -> torch.Tensor:
        """Return the plain tensor. It is computed at most once."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Materialize the tensors of a call that went around ``__torch_function__`` (a C++ extension)."""
        return call_materialized(func, args, kwargs or {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return become_plain(self).__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(become_plain(self))

    def __deepcopy__(self, memo: Any) -> Any:
        return become_plain(self).__deepcopy__(memo)  # type: ignore[no-untyped-call]

    def _get_class(self) -> Any:
        return self.represented_class

    def _set_class(self, kind: type) -> None:
        become_plain(self).__class__ = kind

    __class__ = property(_get_class, _set_class)


_CLASS: Any = object.__dict__["__class__"]


def set_class(x: LazyBase, kind: type) -> None:
    """Set the class of a lazy tensor, without materializing."""
    _CLASS.__set__(x, kind)


def protect(x: torch.Tensor) -> None:
    """Let C++ code that reads the missing memory of ``x`` raise an error."""
    torch._C._set_throw_on_mutable_data_ptr(x)


def become_plain(x: LazyBase) -> torch.Tensor:
    """Turn a lazy tensor into a plain one, in place, and return it.

    If C++ code refers to the lazy tensor, the result is another tensor with the same memory.
    """
    values = x.materialize()
    kind = x.represented_class
    with torch._C.DisableTorchFunctionSubclass():
        is_shared = x._use_count() > 1  # type: ignore[attr-defined]
    alias = share_memory_of(values)
    if is_shared:
        return alias if kind is torch.Tensor else alias.as_subclass(kind)
    attributes = vars(x)
    for name in x.own_attributes:
        attributes.pop(name, None)
    torch._C._swap_tensor_impl(x, alias)
    set_class(x, kind)
    return x


def share_memory_of(values: torch.Tensor) -> torch.Tensor:
    """Return a new tensor with the memory of ``values``: a view if ``values`` is one."""
    if values._is_view():
        return values.as_strided(values.shape, values.stride(), values.storage_offset())
    return without_base(values)


def without_base(values: torch.Tensor) -> torch.Tensor:
    """Return a tensor with the memory of ``values`` that is no view, so that it may be detached in place."""
    alias = torch.empty(0, dtype=values.dtype, device=values.device)
    return alias.set_(values.untyped_storage(), values.storage_offset(), values.shape, values.stride())


def call_materialized(func: Any, args: Any, kwargs: Any) -> Any:
    """Run ``func`` on materialized arguments."""
    return func(*map(materialize_nested, args), **{k: materialize_nested(v) for k, v in kwargs.items()})


def run_materialized(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace a function by one that materializes its arguments; see :func:`call_materialized`."""
    return call_materialized(func, args, kwargs)


def materialize_nested(x: Any) -> Any:
    """Return an argument with materialized tensors, also inside lists, tuples and dictionaries."""
    if issubclass(type(x), LazyBase):
        return become_plain(x)
    if type(x) in (list, tuple):
        return type(x)(materialize_nested(y) for y in x)
    if type(x) is dict:
        return {key: materialize_nested(y) for key, y in x.items()}
    return x
