# SPDX-License-Identifier: Apache-2.0
"""``if`` on nodes: run-time support for converted functions while they define a pipeline.

:mod:`.rewriting` turns ``if``, ``and``, ``or``, ``not``, conditional expressions and chained comparisons into calls of
this module. With ordinary Python values they keep their usual meaning. With a node, both branches are defined. The
nodes of a branch carry the condition (they run for the rows where it holds), and every variable that the branches leave
different becomes a merge of both values.
"""

from __future__ import annotations

import enum
import functools
import inspect
import operator as op
import os
import re
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ..contract.errors import ArgumentError, message
from ..graph.node import Edge
from .data_node import Builder, DataNode
from .rewriting import RESULT, rewrite
from .source_line import user_line


class Unbound:
    """Marker for a variable without a value while branches are merged."""


UNBOUND = Unbound()
_OWN = __package__.split(".")[0]
_PLAIN = (bool, int, float, complex, str, bytes, enum.Enum)
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "Lt": op.lt, "LtE": op.le, "Gt": op.gt, "GtE": op.ge, "Eq": op.eq, "NotEq": op.ne, "Is": op.is_,
    "IsNot": op.is_not, "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip


@contextmanager
def _guarded(builder: Builder, condition: Edge, wanted: bool) -> Iterator[None]:
    """Add a guard to nodes that are created inside: they run where the condition is as wanted."""
    outer, builder.guards = builder.guards, (*builder.guards, (condition, wanted))
    try:
        yield
    finally:
        builder.guards = outer


def _condition(x: DataNode, *, negate: bool = False) -> DataNode:
    return x.builder.call("_condition", [x], {"negate": negate})  # type: ignore[no-any-return]


class BranchRuntime:
    """Helper that a converted function calls, with the data for its error messages."""

    UNBOUND = UNBOUND
    locals = staticmethod(locals)

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert
        self.lost: dict[str, str] = {}  # variables without a value after an `if`, with the reason

    def branch(
        self, condition: Any, names: tuple[str, ...], forbidden: tuple[str, int] | None, places: tuple[str, ...]
    ) -> PythonBranch | NodeBranch:
        """Begin an ``if``.

        Args:
            condition: the condition.
            names: the variables that its branches assign.
            forbidden: an effect of its branches that needs a Python condition, and the line.
            places: the attributes and elements that its branches assign.
        """
        if not isinstance(condition, DataNode):
            return PythonBranch(bool(condition))
        if forbidden is not None:
            what, line = forbidden
            raise ArgumentError(
                message("if", f"expected branches that assign variables, got {what} in line {line}", source=user_line(),
                        hint="Both branches of a condition on a node are executed; assign to a variable instead")
            )  # fmt: skip
        return NodeBranch(condition, names, self.lost, places)

    def all(self, *values: Callable[[], Any]) -> Any:
        """Evaluate ``a and b and ...``."""
        return self._logic(values, True)

    def any(self, *values: Callable[[], Any]) -> Any:
        """Evaluate ``a or b or ...``."""
        return self._logic(values, False)

    def _logic(self, values: Sequence[Callable[[], Any]], wanted: bool) -> Any:
        first = values[0]()
        if len(values) == 1:
            return first
        if not isinstance(first, DataNode):
            return self._logic(values[1:], wanted) if bool(first) == wanted else first
        builder, condition = first.builder, _condition(first)
        with _guarded(builder, condition.edge, wanted):
            rest = self._logic(values[1:], wanted)
            rest = _condition(rest) if isinstance(rest, DataNode) else bool(rest)
        pair = (rest, False) if wanted else (True, rest)
        return builder.call("_merge", [condition, *pair], {})

    def invert(self, x: Any) -> Any:
        """Evaluate ``not x``."""
        return _condition(x, negate=True) if isinstance(x, DataNode) else not x

    def choose(self, condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        """Evaluate ``a if condition else b``."""
        if not isinstance(condition, DataNode):
            return a() if condition else b()
        branch = NodeBranch(condition, ("",), self.lost)
        for there, value in ((True, a), (False, b)):
            with branch.side(there):
                branch.complete({"": value()})
        merged = branch.merged("")
        if merged is UNBOUND:
            raise ArgumentError(message("if", self.lost[""], source=user_line()))
        return merged

    def chain(self, names: tuple[str, ...], first: Any, *others: Callable[[], Any]) -> Any:
        """Evaluate ``a < b < c``. Each operand is evaluated once, and only if needed."""
        left = first
        terms: list[Callable[[], Any]] = []

        def term(name: str, value: Callable[[], Any]) -> bool | DataNode:
            nonlocal left
            before, left = left, value()
            return _COMPARE[name](before, left)  # type: ignore[no-any-return]

        terms = [functools.partial(term, name, value) for name, value in zip(names, others, strict=True)]
        return self.all(*terms)

    def callee(self, function: Any) -> Any:
        """Return the function to call. In functions of the user, and in all that get nodes, conditions may be nodes."""
        if isinstance(function, functools.partial):
            return functools.partial(self.callee(function.func), *function.args, **function.keywords)
        method = _method_of(function)
        if method is None:
            return function
        converted = self._convert(method)
        if converted is method:
            return function
        if _is_users(method):
            return converted

        def call(*args: Any, **kwargs: Any) -> Any:
            return (converted if _has_node((*args, *kwargs.values())) else function)(*args, **kwargs)

        return call


_LIBRARIES = tuple(sysconfig.get_path(key) + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib"))


def _method_of(function: Any) -> Any:
    """Return a function in Python as it is, and an object's ``__call__`` as a method; None if there is neither."""
    if type(getattr(function, "__func__", function)) is types.FunctionType:
        return function
    classes = () if isinstance(function, type) else type(function).__mro__
    call = next((vars(kind)["__call__"] for kind in classes if "__call__" in vars(kind)), None)
    return types.MethodType(call, function) if type(call) is types.FunctionType else None


def _is_users(function: Any) -> bool:
    """Return whether a function may create nodes that it does not get: it is no library's, or its module has Stoker."""
    function = getattr(function, "__func__", function)
    if not function.__code__.co_filename.startswith(_LIBRARIES):
        return True
    modules = (getattr(x, "__name__", "") for x in list(function.__globals__.values()) if type(x) is types.ModuleType)
    return any(name.startswith(_OWN) for name in modules)


def _has_node(values: Sequence[Any]) -> bool:
    parts = (x if isinstance(x, (list, tuple)) else (x,) for x in values)
    return any(isinstance(x, DataNode) for part in parts for x in part)


class PythonBranch:
    """``if`` on a Python value: one branch is executed, as in plain Python."""

    on_node = False

    def __init__(self, truth: bool) -> None:
        self._truth = truth

    def takes(self, there: bool) -> bool:
        """Return whether the branch is executed."""
        return self._truth == there

    def save(self, variables: Mapping[str, Any], *places: Callable[[], Any]) -> None:
        """Remember the variables before the branches."""

    def complete(self, variables: Mapping[str, Any], *places: Callable[[], Any]) -> None:
        """Remember the variables at the end of a branch."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class NodeBranch:
    """``if`` on a node: both branches are executed, one after the other."""

    on_node = True

    def __init__(
        self, condition: DataNode, names: tuple[str, ...], lost: dict[str, str], places: tuple[str, ...] = ()
    ) -> None:
        self._builder = condition.builder
        self._condition = _condition(condition)
        self._names = names
        self._places = places
        self._lost = lost
        self._line = user_line()
        self._before: dict[str, Any] = {}
        self._after: dict[bool, dict[str, Any]] = {}
        self._side = True

    def takes(self, there: bool) -> bool:
        """Return True: both branches are executed."""
        self._side = there
        return True

    def save(self, variables: Mapping[str, Any], *places: Callable[[], Any]) -> None:
        """Remember the variables before the branches, and what the functions ``places`` read."""
        self._before = self._values(variables, places)

    def complete(self, variables: Mapping[str, Any], *places: Callable[[], Any]) -> None:
        """Remember the variables at the end of a branch, and what the functions ``places`` read."""
        self._after[self._side] = self._values(variables, places)

    def _values(self, variables: Mapping[str, Any], places: Sequence[Callable[[], Any]]) -> dict[str, Any]:
        values = {n: variables.get(n, UNBOUND) for n in self._names}
        for name, read in zip(self._places, places, strict=False):
            try:
                values[name] = read()
            except (AttributeError, LookupError, NameError):
                values[name] = UNBOUND
        return values

    def side(self, there: bool) -> NodeBranch:
        """Return the context manager of one branch."""
        self._side = there
        return self

    def __enter__(self) -> None:
        self._outer = self._builder.guards
        self._builder.guards = (*self._outer, (self._condition.edge, self._side))

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._builder.guards = self._outer
        if kind is None and self._side not in self._after:
            raise ArgumentError(
                message("if", "expected the branch to be executed to its end, got a `return`, `break` or `continue` in "
                        "a loop, `with` or `try`", source=self._line,
                        hint="Both branches of a condition on a node are executed; assign to a variable instead")
            )  # fmt: skip

    def old(self, name: str) -> Any:
        """Return the variable's value before the branches."""
        return self._before[name]

    def merged(self, name: str) -> Any:
        """Return the variable's value after both branches; UNBOUND if it has none."""
        self._lost.pop(name, None)
        a, b = self._after.get(True, self._before)[name], self._after.get(False, self._before)[name]
        merged = self._merge(name, a, b)
        if merged is UNBOUND and name in self._places:  # an attribute without a value would surprise other code
            raise ArgumentError(f"`{name}`: {self._lost[name]}")
        return merged

    def _merge(self, name: str, a: Any, b: Any) -> Any:
        if a is b:
            return a
        if isinstance(a, DataNode) and isinstance(b, DataNode) and a.edge == b.edge:
            return a
        if type(a) is type(b):
            if isinstance(a, (list, tuple)) and len(a) == len(b):
                parts = [self._merge(name, x, y) for x, y in zip(a, b, strict=True)]
                return UNBOUND if any(p is UNBOUND for p in parts) else _like(a, parts)
            if isinstance(a, dict) and a.keys() == b.keys():
                merged = {k: self._merge(name, x, b[k]) for k, x in a.items()}
                return UNBOUND if any(p is UNBOUND for p in merged.values()) else merged
            if isinstance(a, _PLAIN) and a == b:
                return a
        if a is UNBOUND or b is UNBOUND:
            return self._lose(name, "it is assigned in one branch only")
        if not (_mergeable(a) and _mergeable(b)):
            kinds = " and ".join(repr(type(x).__name__) for x in (a, b))
            return self._lose(name, f"its values in the two branches cannot be put together ({kinds})")
        nodes = [x if isinstance(x, DataNode) else self._builder.constant(x, "if") for x in (a, b)]
        variable = name if name.isidentifier() else ""
        return self._builder.call("_merge", [self._condition, *nodes], {"variable": variable})

    def _lose(self, name: str, why: str) -> Unbound:
        self._lost[name] = f"expected a value for every row, got none: {why} (`if` at {self._line})"
        return UNBOUND


def _like(a: Any, parts: list[Any]) -> Any:
    if isinstance(a, list):
        return parts
    return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)


def _mergeable(x: Any) -> bool:
    return isinstance(x, (DataNode, bool, int, float, np.ndarray, np.generic)) or hasattr(x, "__stoker_constant__")


class _Conversions:
    """Cache of the converted forms of a pipeline function and of the functions that it calls."""

    def __init__(self) -> None:
        self.runtime = BranchRuntime(self._called)
        self._known: dict[Any, Any] = {}

    def _called(self, function: Any) -> Any:
        if isinstance(function, types.MethodType):
            inner = self._called(function.__func__)
            return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
        if function not in self._known:
            own = (function.__module__ or "").split(".")[0] == _OWN
            own = own or getattr(function, "stoker_converts", True) is False
            # A function without source stays unconverted. A node as a condition in it is then an error.
            self._known[function] = function if own else rewrite(function, self.runtime) or function
        return self._known[function]


F = TypeVar("F", bound=Callable[..., Any])


def do_not_convert(function: F) -> F:
    """Exclude a function from conversion in pipelines with conditionals.

    Args:
        function: the function; it is called as it is written.
    """
    function.stoker_converts = False  # type: ignore[attr-defined]
    return function


def convert(define: Callable[..., Any]) -> Callable[..., Any]:
    """Convert ``define`` to a function with conditions on nodes. Functions that it calls with nodes are converted too.

    Raises:
        ArgumentError: the source is not available (a lambda, code typed at Python's prompt), or the function is a
            generator.
    """
    conversions = _Conversions()
    name = getattr(define, "__name__", repr(define))
    if not isinstance(define, types.FunctionType) or name == "<lambda>":
        raise ArgumentError(
            f"`pipeline_def`: expected a function made with `def` for enable_conditionals=True, got {name}"
        )
    if inspect.isgeneratorfunction(define) or inspect.iscoroutinefunction(define):
        raise ArgumentError(f"`pipeline_def`: expected a function that returns the outputs, got `{name}`, which yields")
    converted = rewrite(define, conversions.runtime)
    if converted is None:
        raise ArgumentError(
            f"`pipeline_def`: expected a function whose source can be read for enable_conditionals=True; that of "
            f"`{name}` cannot (typed at Python's prompt, or made by `exec`). Put it into a file or a notebook cell"
        )

    @functools.wraps(define)
    def defined(*args: Any, **kwargs: Any) -> Any:
        try:
            return converted(*args, **kwargs)
        except NameError as error:
            found = re.search(r"variable '(\w+)'", str(error))
            why = conversions.runtime.lost.get(found[1]) if found else None
            if found is None or why is None:
                raise
            variable = "the pipeline's outputs" if found[1] == RESULT else f"`{found[1]}`"
            raise ArgumentError(f"{variable}: {why}") from error

    return defined
