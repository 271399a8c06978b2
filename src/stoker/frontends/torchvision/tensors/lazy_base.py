# SPDX-License-Identifier: Apache-2.0
"""Base class of lazy tensors: materialization where nothing can be recorded."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch


class LazyBase(torch.Tensor):
    """Tensor without values of its own; :meth:`materialize` computes them."""

    @abstractmethod
    def materialize(self) -> torch.Tensor:
        """Return the plain tensor, for operations that are not recorded. It is computed at most once."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Materialize the tensors of a call that went around ``__torch_function__`` (a C++ extension)."""
        return call_materialized(func, args, kwargs or {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.materialize().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self.materialize())

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return self.materialize().clone()


def call_materialized(func: Any, args: Any, kwargs: Any) -> Any:
    """Run ``func`` on materialized arguments."""
    return func(*map(materialize_nested, args), **{k: materialize_nested(v) for k, v in kwargs.items()})


def run_materialized(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace a function by one that materializes its arguments; see :func:`call_materialized`."""
    return call_materialized(func, args, kwargs)


def materialize_nested(x: Any) -> Any:
    """Return an argument with materialized tensors, also inside lists, tuples and dictionaries."""
    if isinstance(x, LazyBase):
        return x.materialize()
    if type(x) in (list, tuple):
        return type(x)(materialize_nested(y) for y in x)
    if type(x) is dict:
        return {key: materialize_nested(y) for key, y in x.items()}
    return x
