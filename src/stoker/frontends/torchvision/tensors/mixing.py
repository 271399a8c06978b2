# SPDX-License-Identifier: Apache-2.0
"""Weighted sums of views of one image, as in AugMix: recorded until they are converted to bytes."""

from __future__ import annotations

from typing import Any

import torch

from .. import counts, recording
from ..ir import recipe, steps
from ..ir.recipe import Node
from ..ir.rows import LazyRow
from ..ir.tables import Table, identity_table
from ..proxy_names import named_after
from . import pointwise
from .lazy_base import LazyBase, become_plain, call_materialized, protect, set_class
from .pointwise import map_rows
from .tensor import (
    LazyTensor,
    Recorders,
    image_tensor,
    is_lazy,
    leading_shape,
    make_like,
    materialize,
    materialize_shared,
)


@named_after(torch.Tensor)
class LazySum(LazyBase):
    """Sum of lazy images, float32 ``(..., channels, height, width)``: tables of the images' values, added in order.

    A lazy tensor becomes one when another lazy tensor is added to it in place.
    """

    _terms: list[tuple[Node, Table]]
    _lead: tuple[int, ...]
    _sum: torch.Tensor | None
    own_attributes = ("_terms", "_lead", "_sum")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record ``func``, or materialize the sum and run it."""
        kwargs = kwargs or {}
        x: Any = args[0] if args else None
        if issubclass(type(x), LazySum) and x._sum is None:
            if func in _QUESTIONS:
                with torch._C.DisableTorchFunctionSubclass():
                    return func(*args, **kwargs)
            if func is torch.Tensor.add_ and len(args) == 2 and not kwargs and x._can_add(args[1]):
                x._terms.append(_term(args[1]))
                return x
            if func in (torch.Tensor.reshape, torch.Tensor.view) and not kwargs:
                lead = x._lead_for(args[1:])
                if lead is not None:
                    return _new_sum(x._terms, lead)
            if func is torch.Tensor.to and (args[1:], kwargs) in _TO_BYTES:
                return x._to_bytes()
        counts.add(counts.TORCH)
        return call_materialized(func, args, kwargs)

    def _can_add(self, other: Any) -> bool:
        """Return whether ``other`` can be a further term."""
        return _is_term(other, self._terms[0][0]) and tuple(other.shape[:-3]) == self._lead

    def _lead_for(self, shape: tuple[Any, ...]) -> tuple[int, ...] | None:
        """Return the leading axes if ``shape`` only changes them; otherwise None."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else tuple(shape)
        node = self._terms[0][0]
        fits = wanted[-3:] == (node.channels, node.size[1], node.size[0]) and all(n == 1 for n in wanted[:-3])
        return wanted[:-3] if fits else None

    def _to_bytes(self) -> LazyTensor:
        (node, table), *others = self._terms
        mixed = node.then(steps.Mix(table, tuple(others)))
        return LazyTensor([LazyRow(mixed, identity_table(node.channels))], self._lead)

    def materialize(self) -> torch.Tensor:
        """Return the sum, computed by torch."""
        if self._sum is None:
            total: torch.Tensor | None = None
            for node, table in self._terms:
                term = materialize(image_tensor(node, table))
                total = term.clone() if total is None else total.add_(term)
            assert total is not None
            self._sum = total.view(*self._lead, *total.shape)
        return self._sum


def reduce_lazy_sum(x: LazySum) -> tuple[Any, ...]:
    """Return the pickled form of a sum: materialized, as a tensor."""
    return _itself, (become_plain(x),)


def _itself(x: torch.Tensor) -> torch.Tensor:
    return x


_T = torch.Tensor
_QUESTIONS = {_T.shape.__get__, _T.dtype.__get__, _T.device.__get__, _T.ndim.__get__, _T.size, _T.dim, _T.numel}  # type: ignore[attr-defined]
_TO_BYTES = [((torch.uint8,), {}), ((), {"dtype": torch.uint8})]


def _is_term(x: Any, like: Node) -> bool:
    """Return whether ``x`` is one float32 image that a table maps from the same file as ``like``."""
    if not is_lazy(x) or x.dtype != torch.float32 or len(x._rows) != 1:
        return False
    node, _, patches = x._rows[0]
    same = node.source is like.source and node.size == like.size and node.channels == like.channels
    return same and not patches and node.op != recipe.RAW and not node.is_float


def _term(x: LazyTensor) -> tuple[Node, Table]:
    node, table, _ = x._rows[0]
    return node, table


def _new_sum(terms: list[tuple[Node, Table]], lead: tuple[int, ...]) -> LazySum:
    node = terms[0][0]
    shape = (*lead, node.channels, node.size[1], node.size[0])
    result: LazySum = torch.Tensor._make_wrapper_subclass(LazySum, shape, dtype=torch.float32)
    protect(result)
    result._terms, result._lead, result._sum = list(terms), lead, None
    recording.track(result)
    return result


_add_values = pointwise.FUNCTIONS[_T.add_]
_multiply_values = pointwise.FUNCTIONS[_T.mul]


def _add_in_place(func: Any, args: Any, kwargs: Any) -> Any:
    """Add another lazy image in place: the tensor becomes a lazy sum."""
    x = args[0]
    two = len(args) == 2 and not kwargs and is_lazy(x) and is_lazy(args[1]) and len(x._rows) == 1
    if not two or not _is_term(x, x._rows[0].node) or not _is_term(args[1], x._rows[0].node):
        return _add_values(func, args, kwargs)
    if x.shape != args[1].shape or materialize_shared(x) or args[1] is x:
        return NotImplemented
    terms, lead = [_term(x), _term(args[1])], leading_shape(x)
    for name in x.own_attributes:
        vars(x).pop(name, None)
    set_class(x, LazySum)
    x._terms, x._lead, x._sum = terms, lead, None
    return x


def _multiply_by(func: Any, args: Any, kwargs: Any) -> Any:
    """Multiply a lazy tensor by a tensor of one number."""
    if len(args) == 2 and not kwargs and is_lazy(args[1]) and not issubclass(type(args[0]), LazyTensor):
        factor, x = args
        plain = type(factor) is torch.Tensor and factor.numel() == 1 and 0 < factor.ndim <= x.ndim
        if not plain or factor.requires_grad or factor.device.type != "cpu":
            return NotImplemented
        number = factor.detach().reshape(1, 1, 1).clone()
        rows = map_rows(x, ("times", number.dtype, number.item()), lambda values: number * values)
        return NotImplemented if rows is None else make_like(x, rows, leading_shape(x)).as_subclass(torch.Tensor)
    return _multiply_values(func, args, kwargs)


FUNCTIONS: Recorders = {
    _T.add_: _add_in_place,
    **dict.fromkeys([_T.mul, _T.__mul__, torch.mul, _T.__rmul__], _multiply_by),
}
