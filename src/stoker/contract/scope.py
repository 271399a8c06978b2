# SPDX-License-Identifier: Apache-2.0
"""The node that is being lowered: what an operator may ask about its arguments and draws, and what it checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import expr as ex
from .errors import ArgumentError, show_number
from .expr import Expr, Scalar
from .operator import Operator
from .step import Check, Value


class Scope:
    """The node that is being lowered: its arguments, draws and predicate."""

    def __init__(
        self,
        operator: Operator,
        args: Mapping[str, Any],
        edges: Mapping[str, Value],
        node: int,
        draw: int = 0,
        guards: tuple[tuple[int, bool], ...] = (),
    ) -> None:
        self.operator = operator
        self.args = args
        self.edges = edges
        self.node = node
        self.draw = draw
        self.guards = guards
        self.checks: list[Check] = []


class Scoped:
    """What does something for one node at a time. Its methods speak of that node."""

    def __init__(self) -> None:
        self._scope: Scope | None = None
        self._numbers: dict[int, list[Any]] = {}  # elements of small constants, by value

    @property
    def scope(self) -> Scope:
        assert self._scope is not None, "outside of a node"
        return self._scope

    def given(self, name: str) -> bool:
        """Whether the argument has a value (a constant that is not None, or a node)."""
        return name in self.scope.edges or self.scope.args.get(name) is not None

    def scope_given(self, name: str) -> bool:
        """Whether the argument differs from its default."""
        default = self.scope.operator.all_arguments()[name].convert_default()
        return name in self.scope.edges or self.scope.args.get(name) != default

    def const(self, name: str) -> Any:
        """A constant argument."""
        if name in self.scope.edges:
            raise ArgumentError(f"`{self.scope.operator.name}`: argument `{name}` must be a constant, got a node")
        return self.scope.args.get(name)

    def pass_on(self, name: str) -> Any:
        """An argument as it was given (constant or value), for another operator."""
        return self.scope.edges.get(name, self.scope.args.get(name))

    def scalar(self, name: str, index: int = 0) -> Scalar:
        """Element ``index`` of a numeric argument; a single element stands for all."""
        edge = self.scope.edges.get(name)
        if edge is not None:
            self._require_one(name, edge)
            return self.element(edge, index)
        value = self.scope.args[name]
        if isinstance(value, tuple):
            return value[index if len(value) > 1 else 0]  # type: ignore[no-any-return]
        return value  # type: ignore[no-any-return]

    def _require_one(self, name: str, edge: Value) -> None:
        """A node that stands for one number has one element."""
        if self.scope.operator.all_arguments()[name].many:
            return
        count = self.count(edge)
        if count is None and not edge.per_frame:
            condition = ex.equal(Expr("count", edge.id), 1)
            if not any(ex.same(c.condition, condition) for c in self.scope.checks):
                self.require(condition, f"expected one number as `{name}`, got {{0}}", Expr("count", edge.id))
        elif count not in (None, 1):
            raise ArgumentError(f"`{self.scope.operator.name}`: expected one number as `{name}`, got {count}")

    def element(self, value: Value, index: int = 0) -> Scalar:
        """Element ``index`` (in row-major order) of a small tensor; of the current frame if it is per frame."""
        inner = value.shape[1:] if value.per_frame else value.shape
        count = ex.product(inner)
        if value.per_frame and count is None:
            raise ArgumentError(f"`{self.scope.operator.name}`: a per-frame argument needs a fixed shape per frame")
        at = 0 if count == 1 else index
        known = self._numbers.get(value.id)
        if known is not None and at < len(known):
            return known[at]  # type: ignore[no-any-return]
        return Expr("elem", value.id, at, count if value.per_frame else 0)

    def length(self, name: str) -> int | None:
        """How many elements a numeric argument has (per frame, if it is per frame); None if only run time tells."""
        edge = self.scope.edges.get(name)
        if edge is None:
            value = self.scope.args.get(name)
            return len(value) if isinstance(value, tuple) else 1
        return self.count(edge)

    def count(self, value: Value) -> int | None:
        """How many elements a small tensor has (per frame, if it is per frame); None if only run time tells."""
        return ex.product(value.shape[1:] if value.per_frame else value.shape)

    @property
    def draw(self) -> tuple[int, bool, int]:
        """(draw id, own seed?, seed) of the node."""
        seed = self.scope.args.get("seed")
        if seed is None or seed < 0:
            return self.scope.draw, False, 0
        return self.scope.draw, True, int(seed)

    def require(self, condition: Scalar, text: str, *values: Scalar) -> None:
        """``condition`` must hold; ``text`` has {0}, {1}.. for ``values``. Raises at once if it is known to fail."""
        if ex.is_static(condition):
            if not condition and not any(isinstance(v, Expr) for v in values) and not self.scope.guards:
                raise ArgumentError(f"`{self.scope.operator.name}`: {text.format(*map(show_number, values))}")
            if condition:
                return
        self.scope.checks.append(Check(condition, text, values, self.scope.node))

    def expect(self, holds: bool, text: str, *values: Scalar) -> None:
        """As :meth:`require`, for types, ranks and axes: they must fit also in a branch that no row may take."""
        if not holds:
            raise ArgumentError(f"`{self.scope.operator.name}`: {text.format(*map(show_number, values))}")
