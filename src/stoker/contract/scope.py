# SPDX-License-Identifier: Apache-2.0
"""Access to the node that is being lowered: its arguments and draws, and checks on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from . import expr as ex
from .errors import ArgumentError, show_number
from .expr import Expr, Scalar
from .operator import Operator
from .step import Check, Value


def _filled(text: str, values: tuple[Scalar, ...]) -> str:
    """Return a text with its values. A text without any may hold braces: an argument's, for example."""
    return text.format(*map(show_number, values)) if values else text


class Scope:
    """Node that is being lowered, with its arguments, draws and conditions."""

    def __init__(
        self,
        operator: Operator,
        args: Mapping[str, Any],
        edges: Mapping[str, Value],
        node: int,
        draw: int = 0,
        guards: tuple[tuple[int, bool], ...] = (),
        device: str | None = None,
    ) -> None:
        self.operator = operator
        self.args = args
        self.edges = edges
        self.node = node
        self.draw = draw
        self.guards = guards
        self.device = device  # that the user has requested
        self.checks: list[Check] = []


class Scoped(ABC):
    """Context of one node at a time. All methods refer to that node."""

    def __init__(self) -> None:
        self._scope: Scope | None = None
        self._numbers: dict[int, list[Any]] = {}  # elements of small constants, by value
        self._fixed: dict[int, int] = {}  # numbers of elements that are required of all rows, by value

    @property
    def scope(self) -> Scope:
        assert self._scope is not None, "outside of a node"
        return self._scope

    def given(self, name: str) -> bool:
        """Return whether the argument has a value: a constant that is not None, or a node."""
        return name in self.scope.edges or self.scope.args.get(name) is not None

    def scope_given(self, name: str) -> bool:
        """Return whether the argument differs from its default."""
        default = self.scope.operator.all_arguments()[name].convert_default()
        return name in self.scope.edges or self.scope.args.get(name) != default

    def const(self, name: str) -> Any:
        """Return a constant argument."""
        if name in self.scope.edges:
            raise ArgumentError(f"`{self.scope.operator.name}`: argument `{name}` must be a constant, got a node")
        return self.scope.args.get(name)

    def pass_on(self, name: str) -> Any:
        """Return an argument in the given form (constant or value), to pass it to another operator."""
        return self.scope.edges.get(name, self.scope.args.get(name))

    def scalar(self, name: str, index: int = 0) -> Scalar:
        """Return element ``index`` of a numeric argument. A single element serves all indices."""
        edge = self.scope.edges.get(name)
        if edge is not None:
            self._require_one(name, edge)
            count = self.count(edge)
            if count is not None:
                self._require_element(name, 0 if count == 1 else index, count)
            elif index and not edge.per_frame:
                return Expr("elem_or_only", edge.id, index)
            return self.element(edge, index)
        value = self.scope.args[name]
        if isinstance(value, tuple):
            at = index if len(value) > 1 else 0
            self._require_element(name, at, len(value))
            return value[at]  # type: ignore[no-any-return]
        return value  # type: ignore[no-any-return]

    def _require_element(self, name: str, at: int, count: int) -> None:
        if at >= count:
            text = f"expected at least {at + 1} numbers as `{name}`" if at else f"expected a number as `{name}`"
            raise ArgumentError(f"`{self.scope.operator.name}`: {text}, got {count or 'an empty list'}")

    def _require_one(self, name: str, edge: Value) -> None:
        """Require that a node used as one number has one element."""
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
        """Return element ``index`` (row-major) of a small tensor; of the current frame if the tensor is per frame."""
        count = self.count(value)
        if value.per_frame and count is None:
            names = (name for name, edge in self.scope.edges.items() if edge.id == value.id)
            count = self.fixed_count(value, next(names, "numbers"))
        at = 0 if count == 1 else index
        known = self._numbers.get(value.id)
        if known is not None and at < len(known):
            return known[at]  # type: ignore[no-any-return]
        return Expr("elem", value.id, at, count if value.per_frame else 0)

    @abstractmethod
    def fixed_count(self, value: Value, name: str) -> int:
        """Return the size of a small tensor (per frame, if it is per frame) that all rows have."""

    def length(self, name: str) -> int | None:
        """Return the length of a numeric argument (per frame, if it is per frame); None if it is known only at run
        time.
        """
        edge = self.scope.edges.get(name)
        if edge is None:
            value = self.scope.args.get(name)
            return len(value) if isinstance(value, tuple) else 1
        return self.count(edge)

    def expect_one_or_each(self, name: str, axes: int) -> None:
        """Require that a numeric argument has one number, or one for each of ``axes`` axes (per frame, if it is per
        frame).
        """
        edge, count = self.scope.edges.get(name), self.length(name)
        if count is None and edge is not None and edge.per_frame:
            count = self.fixed_count(edge, name)
        text = f"expected one number as `{name}`, or one for each of {{0}} axes, got {{1}}"
        if count is None and edge is not None:
            actual = Expr("count", edge.id)
            self.require(ex.either(ex.equal(actual, 1), ex.equal(actual, axes)), text, axes, actual)
        else:
            self.expect(count in (None, 1, axes), text, axes, count or 0)

    def count(self, value: Value) -> int | None:
        """Return the size of a small tensor (per frame, if it is per frame); None if it is known only at run time."""
        known = ex.product(value.shape[1:] if value.per_frame else value.shape)
        return self._fixed.get(value.id) if known is None else known

    @property
    def draw(self) -> tuple[int, bool, int]:
        """Return (draw id, whether the node has its own seed, seed) of the node."""
        seed = self.scope.args.get("seed")
        if seed is None or seed < 0:
            return self.scope.draw, False, 0
        return self.scope.draw, True, int(seed)

    def require(self, condition: Scalar, text: str, *values: Scalar) -> None:
        """Require ``condition``. ``text`` refers to ``values`` as {0}, {1}...

        Raises at plan time if it is known to fail.
        """
        if ex.is_static(condition):
            if not condition and not any(isinstance(v, Expr) for v in values) and not self.scope.guards:
                raise ArgumentError(f"`{self.scope.operator.name}`: {_filled(text, values)}")
            if condition:
                return
        self.scope.checks.append(Check(condition, text, values, self.scope.node))

    def expect(self, holds: bool, text: str, *values: Scalar) -> None:
        """Require a type, rank or axis at plan time, even in a branch that no row may take (see :meth:`require`)."""
        if not holds:
            raise ArgumentError(f"`{self.scope.operator.name}`: {_filled(text, values)}")
