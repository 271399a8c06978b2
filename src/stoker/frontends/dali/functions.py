# SPDX-License-Identifier: Apache-2.0
"""Operators by DALI's names: as functions (``fn.resize``) and as classes (``ops.Resize``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from ...contract.errors import ArgumentError, StokerError, UnsupportedError, did_you_mean, message
from .. import fn
from ..definition import current
from ..fn import find_nodes
from ..registry import find, names
from ..source_line import user_line
from .capsule_functions import also_on_gpu
from .catalogue import ALIASES, NAMES, REASONS, class_name, defaults
from .errors import error_class, raising_as_dali
from .nodes import NodeBuilder
from .type_names import BY_INTEGER, NO_TYPE

_KNOWN = NAMES | set(ALIASES)


def is_group(prefix: str) -> bool:
    """Return whether operators' names begin with ``prefix.``."""
    return any(n.startswith(prefix + ".") for n in {*_KNOWN, *names()})


def members(prefix: str) -> list[str]:
    """Return the names after a prefix ("" or "readers."): usable operators, and groups."""
    usable = {n for n in {*names(), *(a for a, b in ALIASES.items() if b in names())} if n.startswith(prefix)}
    return sorted({n[len(prefix) :].split(".")[0] for n in usable if not n[len(prefix) :].startswith("_")})


_ON_BOTH = "dl_tensor_python_function"  # the function of a GPU takes further arguments


def function(name: str) -> Callable[..., Any]:
    """Return ``fn.<name>``. An operator of DALI's that Stoker lacks is refused when it is called.

    Raises:
        AttributeError: neither library has the operator.
    """
    real = ALIASES.get(name, name)
    if real in names() and not real.startswith("_"):
        target: Any = fn
        for part in real.split("."):
            target = getattr(target, part)
        if real == _ON_BOTH:
            target = also_on_gpu(target)
        return _also_outside(_with_defaults(target, defaults(name)))
    if name in _KNOWN:
        return _refusing(name)
    hint = did_you_mean(name, _KNOWN)
    raise AttributeError(f"there is no operator `{name}`" + (f"; {hint}" if hint else ""))


def _with_defaults(function: Callable[..., Any], defaults: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function with DALI's meaning of arguments that are not given."""
    if not defaults:
        return function

    @functools.wraps(function)
    def call(*inputs: Any, **arguments: Any) -> Any:
        return function(*inputs, **{**defaults, **arguments})

    return call


def _also_outside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with a builder for nodes that are defined outside of a pipeline."""

    @functools.wraps(function)
    def call(*inputs: Any, **arguments: Any) -> Any:
        with raising_as_dali():
            dtype = arguments.get("dtype")
            if type(dtype) is int:  # DALI takes the integers of its types, too
                dtype = arguments["dtype"] = BY_INTEGER.get(dtype, dtype)
            if dtype is NO_TYPE:
                del arguments["dtype"]
            if current() is not None or any(True for _ in find_nodes(inputs, arguments)):
                return function(*inputs, **arguments)
            with NodeBuilder():
                return function(*inputs, **arguments)

    return call


def missing(name: str) -> StokerError:
    """Return the error for an operator of DALI's that Stoker lacks."""
    real = ALIASES.get(name, name)
    also = f" (`{real}` now)" if real != name else ""
    text = f"this operator of DALI's{also} is not in Stoker: {REASONS[real]}"
    hint = "docs/operators/index.md lists what there is"
    return error_class(UnsupportedError)(message(f"fn.{name}", text, source=user_line(), hint=hint))


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*inputs: Any, **arguments: Any) -> Any:
        raise missing(name)

    refuse.__name__ = refuse.__qualname__ = name.rsplit(".", 1)[-1]
    refuse.__doc__ = f"Not in Stoker: {REASONS[ALIASES.get(name, name)]}."
    return refuse


class FunctionGroup(ModuleType):
    """Group of operators such as ``fn.readers``: a module that finds its members by name."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"stoker.dali.fn.{prefix}", f"Operators of the group `{prefix}`.")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return look_up(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        return members(self._prefix + ".")


def look_up(name: str) -> Any:
    """Return an operator's function, or a group of operators."""
    if name.rsplit(".", 1)[-1].startswith("_"):
        raise AttributeError(name)
    if name not in _KNOWN and is_group(name):
        return _group(FunctionGroup, name)
    return function(name)


_groups: dict[tuple[type, str], Any] = {}


def _group(kind: type[ModuleType], prefix: str) -> Any:
    return _groups.setdefault((kind, prefix), kind(prefix))


def modules(kind: type[ModuleType]) -> dict[str, Any]:
    """Return the groups of DALI's operators as modules by name, for ``import stoker.dali.fn.readers``."""
    prefixes = {name.rpartition(".")[0] for name in _KNOWN} | {"experimental.inputs", "io"}
    return {f"{one.__name__}": one for one in (_group(kind, prefix) for prefix in sorted(prefixes) if prefix)}


# ---- classes ----


class OperatorClass:
    """Operator whose arguments are given once: ``resize = ops.Resize(size=(9, 9)); resize(images)``."""

    operator = ""

    def __init__(self, *positional: Any, **arguments: Any) -> None:
        of = find(ALIASES.get(self.operator, self.operator))
        if of.name != _ON_BOTH:
            with raising_as_dali():
                for name in arguments:
                    if name not in of.all_arguments() and name not in of.named_inputs:
                        of.bind({name: None})  # raises, with the nearest name
        self._positional = positional
        self._arguments = arguments

    @property
    def device(self) -> str:
        return str(self._arguments.get("device") or "cpu")

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Add a node with these inputs; arguments given here may be nodes."""
        twice = sorted(set(arguments) & set(self._arguments))
        if twice:
            raise error_class(ArgumentError)(
                message(
                    self.operator, f"argument `{twice[0]}` is given to the class and to the call", source=user_line()
                )
            )
        return function(self.operator)(*self._positional, *inputs, **{**self._arguments, **arguments})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._arguments.items())})"


_classes: dict[str, type[OperatorClass]] = {}


def _by_class(prefix: str, names_of: Iterable[str]) -> dict[str, str]:
    group = prefix.rstrip(".")
    return {class_name(n): n for n in names_of if n.rpartition(".")[0] == group and not n.startswith("_")}


def operator_class(prefix: str, name: str) -> Any:
    """Return ``ops.<prefix><name>``: a class, or a group of classes.

    Raises:
        UnsupportedError: DALI has it, Stoker has not.
        AttributeError: neither library has it.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    group = prefix + name
    if group in _classes:
        return _classes[group]
    if is_group(group):
        return _group(ClassGroup, group)
    known = _by_class(prefix, {*_KNOWN, *names()})
    if name not in known:
        hint = did_you_mean(name, known)
        raise AttributeError(f"there is no class `ops.{group}`" + (f"; {hint}" if hint else ""))
    operator = known[name]
    if ALIASES.get(operator, operator) not in names():
        raise missing(operator)
    documentation = function(operator).__doc__
    made = type(name, (OperatorClass,), {"operator": operator, "__doc__": documentation})
    return _classes.setdefault(group, made)


class ClassGroup(ModuleType):
    """Group of operator classes such as ``ops.readers``: a module that finds its members by name."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"stoker.dali.ops.{prefix}", f"Operators of the group `{prefix}` as classes.")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return operator_class(self._prefix + ".", name)

    def __dir__(self) -> list[str]:
        return class_members(self._prefix + ".")


def class_members(prefix: str) -> list[str]:
    """Return the classes and groups after a prefix."""
    usable = [n for n in {*names(), *ALIASES} if ALIASES.get(n, n) in names()]
    groups = [m for m in members(prefix) if is_group(prefix + m)]
    return sorted([*_by_class(prefix, usable), *groups])


class Compose:
    """Sequence of operators: ``ops.Compose([decode, resize])(jpegs)``."""

    def __init__(self, op_list: Iterable[Callable[..., Any]]) -> None:
        self._steps = list(op_list)

    def __call__(self, *inputs: Any) -> Any:
        """Add the nodes of all operators."""
        outputs: Any = inputs
        for step in self._steps:
            outputs = step(*outputs) if isinstance(outputs, (tuple, list)) else step(outputs)
        return outputs[0] if isinstance(outputs, tuple) and len(outputs) == 1 else outputs
