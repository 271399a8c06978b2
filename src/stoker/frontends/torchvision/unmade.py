# SPDX-License-Identifier: Apache-2.0
"""What all tensors that record have in common: how torch gets them where nothing can be recorded."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch


class Unmade(torch.Tensor):
    """A tensor without values of its own, which :meth:`as_made` makes."""

    @abstractmethod
    def as_made(self) -> torch.Tensor:
        """The tensor as an operation that is not recorded gets it; made now if it was not before."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """What comes here went around ``__torch_function__`` (a C++ extension): the tensors are made."""
        return as_real(func, args, kwargs or {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.as_made().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self.as_made())

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return self.as_made().clone()


def as_real(func: Any, args: Any, kwargs: Any) -> Any:
    """Run ``func`` on tensors that are made."""
    return func(*map(made, args), **{k: made(v) for k, v in kwargs.items()})


def with_made(func: Any, *args: Any, **kwargs: Any) -> Any:
    """As :func:`as_real`, in place of ``func`` itself."""
    return as_real(func, args, kwargs)


def made(x: Any) -> Any:
    """An argument of a function with tensors that are made; in lists, tuples and dictionaries too."""
    if isinstance(x, Unmade):
        return x.as_made()
    if type(x) in (list, tuple):
        return type(x)(made(y) for y in x)
    if type(x) is dict:
        return {key: made(y) for key, y in x.items()}
    return x
