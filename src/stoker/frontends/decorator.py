# SPDX-License-Identifier: Apache-2.0
"""``pipeline_def``: turns a function that builds a graph into a function that makes pipelines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, overload

from .._import_lock import IMPORT_LOCK
from ..contract.errors import ArgumentError, did_you_mean
from .checks import ACCEPTED
from .pipeline import Pipeline

F = TypeVar("F", bound=Callable[..., Any])
_SETTINGS = frozenset(
    {p for p in inspect.signature(Pipeline.__init__).parameters if p not in ("self", "accepted")} | ACCEPTED
)


@overload
def pipeline_def(function: F) -> Callable[..., Pipeline]: ...
@overload
def pipeline_def(*, enable_conditionals: bool = False, **settings: Any) -> Callable[[F], Callable[..., Pipeline]]: ...
def pipeline_def(function: Any = None, *, enable_conditionals: bool = False, **settings: Any) -> Any:
    """Turn a function that builds a graph into a function that makes pipelines.

    Every argument of :class:`Pipeline` may be given here or in the call, which takes precedence. With
    ``enable_conditionals=True``, ``if``, ``and``, ``or`` and ``not`` in the function work on nodes, row by row.

    Args:
        function: the function that returns the outputs. Without it, the call returns a decorator.
        enable_conditionals: rewrite ``if``, ``and``, ``or`` and ``not`` in the function, so that they work on nodes.
        **settings: arguments of :class:`Pipeline`.

    Raises:
        ArgumentError: pipelines do not have the argument. In the call also: a value is invalid, or the function returns
            nothing.

    >>> @pipeline_def(batch_size=8, num_threads=2)
    ... def numbers():
    ...     return fn.random.uniform(range=[0, 1])
    """
    return define_as(Pipeline, function, enable_conditionals, settings)


def define_as(kind: Any, function: Any, enable_conditionals: bool, settings: Mapping[str, Any]) -> Any:
    """Apply :func:`pipeline_def` with pipelines of class ``kind``."""
    known = _settings_of(kind)
    for key in settings:
        if key not in known:
            raise ArgumentError(f"`pipeline_def`: unknown argument `{key}`; {did_you_mean(key, known)}".rstrip("; "))

    def decorate(define: Any) -> Any:
        signature = None if _takes_nothing(define) else inspect.signature(define)
        own = set(signature.parameters) if signature is not None else ()

        @functools.wraps(define)
        def make(*args: Any, **kwargs: Any) -> Pipeline:
            overrides = {k: kwargs.pop(k) for k in list(kwargs) if k in known and k not in own}
            conditional = kwargs.pop("enable_conditionals", enable_conditionals)
            if signature is not None or args or kwargs:
                (signature or inspect.signature(define)).bind(*args, **kwargs)
            pipe: Pipeline = kind(**{**settings, **overrides})
            pipe._name = define.__name__
            body = _with_conditionals(define) if conditional else define
            with pipe:
                outputs = body(*args, **kwargs)
            if outputs is None:
                raise ArgumentError(f"`{define.__name__}`: expected the pipeline's outputs to be returned, got None")
            pipe.set_outputs(outputs)
            return pipe

        make.is_pipeline_def = True  # type: ignore[attr-defined]
        return make

    return decorate if function is None else decorate(function)


def _takes_nothing(function: Any) -> bool:
    """Return whether a plain function has no parameters, in a fraction of the time of `inspect.signature`."""
    if type(function) is not FunctionType or function.__dict__:  # something may replace its signature
        return False
    code = function.__code__
    collects = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return not (code.co_argcount or code.co_kwonlyargcount or collects)


@functools.cache
def _settings_of(kind: Any) -> frozenset[str]:
    return _SETTINGS.union(inspect.signature(kind.__init__).parameters) - {"self", "settings", "accepted"}


def _with_conditionals(define: Any) -> Any:
    # A function of its own, so that `make` refers to no lock: a program's `make` is pickled with the globals it names.
    with IMPORT_LOCK:
        from .conditionals import convert

    return convert(define)
