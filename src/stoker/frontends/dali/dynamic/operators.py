# SPDX-License-Identifier: Apache-2.0
"""Operators of the imperative mode by DALI's names: functions on tensors and batches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ....contract.errors import ArgumentError, UnsupportedError, did_you_mean
from ...registry import find, names
from ..catalogue import ALIASES, NAMES, class_name, defaults
from ..errors import error_class
from ..functions import is_group, missing
from .generators import RNG, get_default_rng
from .sources import Reader
from .tensors import call

PACKAGE = "stoker.dali.experimental.dynamic"


def operator(name: str) -> Callable[..., Any]:
    """Return the function of an operator.

    Raises:
        AttributeError: neither library has it, or it belongs into a pipeline.
        UnsupportedError: DALI has it, Stoker has not.
    """
    real = ALIASES.get(name, name)
    if real not in names() or real.startswith("_"):
        if name in NAMES or name in ALIASES:
            raise missing(name)
        hint = did_you_mean(name, names())
        raise AttributeError(f"there is no operator `{name}`" + (f"; {hint}" if hint else ""))
    if find(real).is_source:
        raise AttributeError(f"`{name}` is a source: use a class of `readers`, or `ExternalSource`")
    return _function(name, real)


@functools.cache
def _function(asked: str, name: str) -> Callable[..., Any]:
    """Return the function of an operator, with the defaults of the name by which the caller asks for it."""
    draws, kept = find(name).draws, defaults(asked)

    def function(*inputs: Any, batch_size: int | None = None, device: Any = None, rng: Any = None, **arguments: Any
                 ) -> Any:  # fmt: skip
        given = {**kept, **arguments}
        if "seed" in given or (rng is not None and not draws):
            wrong = "seed" if "seed" in given else "rng"
            text = "pass `rng=RNG(seed)`" if draws else "it draws nothing"
            raise error_class(ArgumentError)(f"`{name}`: got an unexpected argument `{wrong}`: {text}")
        if draws:
            given["seed"] = _seed(name, rng)
        return call(name, inputs, given, batch_size, device)

    function.__name__ = function.__qualname__ = name.rsplit(".", 1)[-1]
    function.__doc__ = find(name).__doc__
    function.__module__ = PACKAGE
    return function


def _seed(name: str, rng: Any) -> int:
    if rng is not None and not isinstance(rng, RNG):
        raise error_class(ArgumentError)(f"`{name}`: expected an `RNG` as `rng`, got {type(rng).__name__}")
    draw = get_default_rng() if rng is None else rng
    return draw() << 32 | draw()


class Group(ModuleType):
    """Group of operators such as ``decoders``, which finds its members by name."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"{PACKAGE}.{prefix}", f"Operators of the group `{prefix}`.")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return member(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        start = self._prefix + "."
        return sorted({n[len(start) :].split(".")[0] for n in names() if n.startswith(start)})


class ReaderGroup(Group):
    """Group of readers: classes."""

    def __getattr__(self, name: str) -> Any:
        return reader_class(f"{self._prefix}.", name)

    def __dir__(self) -> list[str]:
        start = self._prefix + "."
        return sorted(class_name(n) for n in names() if n.startswith(start))


@functools.cache
def group(prefix: str) -> Group:
    """Return a group of operators."""
    return (ReaderGroup if prefix.rsplit(".", 1)[-1] == "readers" else Group)(prefix)


def member(name: str) -> Any:
    """Return an operator's function, or a group of operators."""
    if name.rsplit(".", 1)[-1].startswith("_"):
        raise AttributeError(name)
    if name not in NAMES and name not in ALIASES and is_group(name):
        return group(name)
    return operator(name)


@functools.cache
def reader_class(prefix: str, name: str) -> type[Reader]:
    """Return the class of a reader.

    Raises:
        AttributeError: neither library has it.
        UnsupportedError: DALI has it, Stoker has not.
    """
    known = {class_name(n): n for n in {*NAMES, *names()} if n.startswith(prefix)}
    if name not in known:
        raise AttributeError(f"there is no reader `{name}`")
    operator = known[name]
    if operator not in names():
        raise missing(operator)
    if not find(operator).is_source:
        raise error_class(UnsupportedError)(f"`{operator}` reads nothing by itself; use it in a pipeline")
    return type(name, (Reader,), {"operator": operator, "__doc__": find(operator).__doc__, "__module__": PACKAGE})


def modules() -> dict[str, ModuleType]:
    """Return the groups by the names of their modules."""
    prefixes = {name.rpartition(".")[0] for name in NAMES} | {"experimental.readers", "io"}
    own = {"", "random", "experimental.inputs"}
    return {f"{PACKAGE}.{prefix}": group(prefix) for prefix in sorted(prefixes - own)}
