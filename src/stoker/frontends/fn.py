# SPDX-License-Identifier: Apache-2.0
"""``fn``: operators as functions on nodes, with the names and argument names of NVIDIA DALI.

``fn.resize(images, size=(224, 224))`` adds a node to the pipeline that is being defined. ``fn.readers.file`` and other
grouped operators are found by qualified name. For immediate calls on arrays see :mod:`stoker.eager`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..contract.errors import ArgumentError, StateError
from ..contract.operator import Operator
from .data_node import DataNode
from .definition import current
from .registry import attribute, find, is_built_in, members

_functions: dict[str, Any] = {}  # and groups; only built-in ones


def _get(name: str) -> Any:
    found = _functions.get(name)
    if found is None:
        found = attribute("fn", name, _get, _make_function)
        if is_built_in(name):
            return _functions.setdefault(name, found)
    return found


def _make_function(name: str) -> Any:
    operator = find(name)

    def function(*inputs: Any, **arguments: Any) -> Any:
        if operator.positional:
            inputs = _named(operator, inputs, arguments)
        builder = next((x.builder for x in find_nodes(inputs, arguments)), None) or current()
        if builder is None:
            if any(hasattr(x, "__array__") or hasattr(x, "__dlpack__") or isinstance(x, bytes) for x in inputs):
                raise ArgumentError(
                    f"`{name}`: expected a node inside of a pipeline definition, got {type(inputs[0]).__name__}. "
                    f"To run the operator on arrays, call `stoker.eager.{name}(...)`"
                )
            raise StateError(
                f"`fn.{name}` adds a node to a pipeline: call it inside of a function under @pipeline_def, "
                "or inside of `with pipeline:`"
            )
        return builder.call(name, inputs, arguments)

    function.__name__ = function.__qualname__ = name.rsplit(".", 1)[-1]
    function.__doc__ = operator.__doc__
    function.__module__ = "stoker.fn"
    return function


def _named(operator: type[Operator], inputs: tuple[Any, ...], arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Move positional arguments into ``arguments``."""
    names = operator.positional
    if len(inputs) > len(names):
        raise ArgumentError(f"`{operator.name}`: expected at most {len(names)} values by position, got {len(inputs)}")
    for name, value in zip(names, inputs, strict=False):
        if name in arguments:
            raise ArgumentError(f"`{operator.name}`: argument `{name}` is given twice")
        arguments[name] = value
    return ()


def find_nodes(inputs: Any, arguments: Any) -> Iterator[DataNode]:
    """Yield the nodes among the inputs and arguments of a call."""
    for x in (*inputs, *arguments.values()):
        if isinstance(x, DataNode):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from (i for i in x if isinstance(i, DataNode))


def __getattr__(name: str) -> Any:
    return _get(name)


def __dir__() -> list[str]:
    return members()
