# SPDX-License-Identifier: Apache-2.0
"""Compiler of scalar expressions to straight-line code, which the run loop evaluates per row
(``native/plan/scalar.hpp``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contract.expr import Expr, Scalar, identity, parts
from ..contract.scalar import CODE, LEAVES


class Compiler:
    """Compiler of scalars to straight-line code. Equal expressions share one register."""

    def __init__(self, value_index: Callable[[int], int]) -> None:
        self.code: list[tuple[int, int, int, int]] = []
        self.consts: list[float] = []
        self._index = value_index
        self._known: dict[Any, int] = {}

    def register(self, x: Scalar) -> int:
        """Return the register that holds ``x``."""
        key = identity(x)
        known = self._known.get(key)
        if known is not None:
            return known
        missing: list[Scalar] = [*parts(x, self._known)] or [x]
        for part in missing:
            self._known[identity(part)] = self._emit(part)
        return self._known[key]

    def _emit(self, x: Scalar) -> int:
        """Return the register of a scalar whose operands have theirs, but for numbers."""
        if not isinstance(x, Expr):
            self.consts.append(float(x))
            instruction = (CODE["const"], len(self.consts) - 1, 0, 0)
        elif x.op == "frame":
            instruction = (CODE["frame"], 0, 0, 0)
        elif x.op in LEAVES:
            value, *rest = x.args
            instruction = (CODE[x.op], self._index(value), *[*rest, 0, 0][:2])
        else:
            registers = [self._known[a.key] if isinstance(a, Expr) else self.register(a) for a in x.args]
            a, b, c = (*registers, 0, 0)[:3]
            instruction = (CODE[x.op], a, b, c)
        self.code.append(instruction)
        return len(self.code) - 1
