# SPDX-License-Identifier: Apache-2.0
"""Choice of the feeder for an ``external_source``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from ..contract.errors import ArgumentError
from ..contract.feed import BatchInfo, Feeder, SampleInfo
from ..contract.text import brief
from ._declared import Declared
from ._feeding import CallbackFeeder, Items, IterableFeeder, ManualFeeder, is_single_use
from ._parallel import ParallelCallbackFeeder, ParallelIterableFeeder

_MOST_PREFETCHED = 1 << 20
_PREFETCH_BATCHES = 2  # default number of batches that worker processes prefetch


def choose_feeder(args: Mapping[str, Any], declared: Declared) -> Feeder:
    """Return the feeder for ``source``.

    Raises:
        ArgumentError: no feeder supports the source or the arguments.
    """
    source, cycle = args["source"], _cycle(args["cycle"])
    if source is None:
        if cycle is not None or args["parallel"]:
            raise ArgumentError("expected a `source` with `cycle` or `parallel`, got none")
        name, copies = args["name"] or "name", not args["no_copy"]
        return ManualFeeder(declared, name, repeats=args["repeat_last"], waits=args["blocking"], copies=copies)
    ahead = _PREFETCH_BATCHES if args["prefetch_queue_depth"] is None else args["prefetch_queue_depth"]
    if not 1 <= ahead <= _MOST_PREFETCHED:
        raise ArgumentError(f"expected `prefetch_queue_depth` from 1 to {_MOST_PREFETCHED}, got {ahead}")
    by_batch = args["batch"] is not False
    if inspect.isgeneratorfunction(source) or _iterable(source):
        return _of_iterable(args, declared, cycle, by_batch=by_batch, ahead=ahead)
    if not callable(source):
        raise ArgumentError(f"expected an iterable or a function as `source`, got {type(source).__name__}")
    if cycle is not None:
        raise ArgumentError("`cycle` is for iterables, got a function, which raises StopIteration to end an epoch")
    return _of_function(args, declared, by_batch=by_batch, ahead=ahead)


def _of_iterable(
    args: Mapping[str, Any], declared: Declared, cycle: str | None, *, by_batch: bool, ahead: int
) -> Feeder:
    items = _items(args["source"], cycle)
    if args["parallel"]:
        return ParallelIterableFeeder(declared, items, by_batch=by_batch, ahead=ahead)
    return IterableFeeder(declared, items, by_batch=by_batch, copies=not args["no_copy"])


def _of_function(args: Mapping[str, Any], declared: Declared, *, by_batch: bool, ahead: int) -> Feeder:
    source = args["source"]
    make_argument = _argument_maker(source, args, by_batch)
    if not args["parallel"]:
        return CallbackFeeder(declared, source, make_argument, by_batch=by_batch, copies=not args["no_copy"])
    if make_argument is None:
        raise ArgumentError(
            "expected a function of one argument (what to make) as `source` with parallel=True, got one of none: "
            "its calls happen in several processes, in any order"
        )
    return ParallelCallbackFeeder(declared, source, make_argument, by_batch=by_batch, ahead=ahead)


def _iterable(source: Any) -> bool:
    if getattr(source, "ndim", None) == 0:  # an array without axes has the methods, which raise
        return False
    return isinstance(source, Iterable) or (hasattr(source, "__getitem__") and hasattr(source, "__len__"))


def _items(source: Any, cycle: str | None) -> Items:
    if inspect.isgeneratorfunction(source) and _count_positional(source)[1]:
        raise ArgumentError("expected a generator function without arguments as `source`")
    if is_single_use(source) and cycle in ("quiet", "raise"):
        raise ArgumentError(
            "expected an iterable that can begin again for `cycle`, got an iterator. Pass the iterable, or the "
            "generator function itself"
        )
    return Items(source, cycle)


def _cycle(value: Any) -> str | None:
    known = {None: None, False: "no", True: "quiet", "no": "no", "quiet": "quiet", "raise": "raise"}
    try:
        return known[value]
    except (KeyError, TypeError):
        raise ArgumentError(f'expected "no", "quiet" or "raise" as `cycle`, got {brief(value)}') from None


def _count_positional(function: Callable[..., Any]) -> tuple[int, int]:
    """Return the number of positional parameters of a function, and how many of them have no default."""
    if type(function) is FunctionType and not function.__dict__:  # nothing replaces its signature; 20 times faster
        count = function.__code__.co_argcount
        return count, count - len(function.__defaults__ or ())
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return 0, 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in kinds]
    return len(positional), sum(p.default is p.empty for p in positional)


def _argument_maker(function: Callable[..., Any], args: Mapping[str, Any], by_batch: bool) -> Callable[..., Any] | None:
    positional, required = _count_positional(function)
    if required > 1:
        raise ArgumentError(f"expected a function of no or one argument as `source`, got one of {required}")
    if required == 0 and not (args["pass_to_default"] and positional == 1):
        return None
    if not by_batch:
        return SampleInfo
    return make_batch_info if args["batch_info"] else get_batch_number


def make_batch_info(sample: int, row: int, batch: int, epoch: int) -> BatchInfo:
    """Return the argument of a batch callback with ``batch_info=True``."""
    return BatchInfo(batch, epoch)


def get_batch_number(sample: int, row: int, batch: int, epoch: int) -> int:
    """Return the argument of a batch callback without ``batch_info``."""
    return batch
