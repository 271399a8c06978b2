# SPDX-License-Identifier: Apache-2.0
"""Scalar expressions: extents, windows and kernel parameters, symbolic at plan time and native at run time.

An operator computes its output size or its window with ordinary arithmetic and the functions of this module. Numbers
give a number. If an operand is an :class:`Expr`, the result is an :class:`Expr` too. The planner turns it into scalar
code that the run loop evaluates for every row without Python (``native/plan/scalar.hpp``). All values are doubles:
integers are exact up to 2**53.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Container, Iterable
from typing import Any, TypeGuard

from .._import_lock import TABLE_LOCK
from .scalar import EVALUATE, LEAVES

_alive: weakref.WeakValueDictionary[tuple[Any, ...], Expr] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%"}
_TEXT = 80  # maximum number of parts in the text of an expression
_EXACT = 1 << 53  # up to here doubles represent all integers
_NO_VALUES: frozenset[int] = frozenset()


class Expr:
    """Node of a scalar expression.

    Equal expressions are one object, on all threads. Expressions share their parts so often that walking or comparing
    them as trees would take exponential time.

    Attributes:
        op: the operation, a name of OPS.
        args: operands. For dim, elem and count: the value's id and the position in it.
        number: unique number of the expression.
        key: the result of :func:`identity`.
        reads: ids of the values that the expression depends on.
        elements: ids of the values whose elements it reads; of the others it reads extents.
        by_frame: whether the expression differs from frame to frame.
    """

    __slots__ = ("__weakref__", "args", "by_frame", "elements", "key", "number", "op", "reads")
    op: str
    args: tuple[Any, ...]
    number: int
    key: tuple[int, int, str]
    reads: frozenset[int]
    elements: frozenset[int]
    by_frame: bool

    def __new__(cls, op: str, *args: Any) -> Expr:
        args = tuple([a if isinstance(a, Expr) else _plain(a) for a in args])
        key = (op, *[a.key if isinstance(a, Expr) else identity(a) for a in args])
        known = _alive.get(key)
        if known is not None:
            return known
        self = super().__new__(cls)
        self.op, self.args = op, args
        self.reads = self.elements = _NO_VALUES
        if op in LEAVES:
            self.reads = frozenset(args[:1])
            if op in ("elem", "elem_or_only"):
                self.elements = self.reads
            self.by_frame = op == "elem" and bool(args[2])
        else:
            self.by_frame = op == "frame"
            for a in args:
                if isinstance(a, Expr):
                    self.reads |= a.reads
                    self.elements |= a.elements
                    self.by_frame |= a.by_frame
        with TABLE_LOCK:  # the table's `setdefault` is not atomic
            known = _alive.get(key)
            if known is not None:
                return known
            self.number = next(_numbers)
            self.key = (1, self.number, "")
            _alive[key] = self
        return self

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self._text([_TEXT])

    def _text(self, left: list[int]) -> str:
        """Return the formula, up to ``left[0]`` parts."""
        left[0] -= 1
        if left[0] < 0:
            return "..."
        if self.op == "dim":
            return f"%{self.args[0]}.shape[{self.args[1]}]"
        if self.op == "elem_or_only":
            return f"%{self.args[0]}[{self.args[1]} or the only one]"
        if self.op == "elem":
            at = f"{self.args[1]}" + (f"+{self.args[2]}*frame" if self.args[2] else "")
            return f"%{self.args[0]}[{at}]"
        parts = [a._text(left) if isinstance(a, Expr) else repr(a) for a in self.args]
        if self.op in _SIGNS:
            return f"({parts[0]} {_SIGNS[self.op]} {parts[1]})"
        return f"{self.op}({', '.join(parts)})"

    def __bool__(self) -> bool:
        raise TypeError("this value is known only at run time: use where(condition, a, b) instead of `if`")

    def __add__(self, o: Scalar) -> Any:
        return _binary("add", self, o)

    def __radd__(self, o: Scalar) -> Any:
        return _binary("add", o, self)

    def __sub__(self, o: Scalar) -> Any:
        return _binary("sub", self, o)

    def __rsub__(self, o: Scalar) -> Any:
        return _binary("sub", o, self)

    def __mul__(self, o: Scalar) -> Any:
        return _binary("mul", self, o)

    def __rmul__(self, o: Scalar) -> Any:
        return _binary("mul", o, self)

    def __truediv__(self, o: Scalar) -> Any:
        return _binary("div", self, o)

    def __rtruediv__(self, o: Scalar) -> Any:
        return _binary("div", o, self)

    def __floordiv__(self, o: Scalar) -> Any:
        return _binary("floordiv", self, o)

    def __rfloordiv__(self, o: Scalar) -> Any:
        return _binary("floordiv", o, self)

    def __mod__(self, o: Scalar) -> Any:
        return _binary("mod", self, o)

    def __neg__(self) -> Any:
        return _unary("neg", self)

    def __lt__(self, o: Scalar) -> Any:
        return _binary("lt", self, o)

    def __le__(self, o: Scalar) -> Any:
        return _binary("le", self, o)

    def __gt__(self, o: Scalar) -> Any:
        return _binary("gt", self, o)

    def __ge__(self, o: Scalar) -> Any:
        return _binary("ge", self, o)

    def __eq__(self, o: object) -> Any:
        return _binary("eq", self, o)

    def __ne__(self, o: object) -> Any:
        return _binary("ne", self, o)

    def __and__(self, o: Scalar) -> Any:
        return _binary("and", self, o)

    def __rand__(self, o: Scalar) -> Any:
        return _binary("and", o, self)

    def __or__(self, o: Scalar) -> Any:
        return _binary("or", self, o)

    def __ror__(self, o: Scalar) -> Any:
        return _binary("or", o, self)


Scalar = int | float | bool | Expr


def same(a: Any, b: Any) -> bool:
    """Return whether two scalars are certainly equal: equal numbers, or the same expression."""
    if isinstance(a, Expr) or isinstance(b, Expr):
        return a is b
    return bool(a == b)


def identity(x: Scalar) -> Any:
    """Return a hashable, sortable key that only equal scalars share. 0.0 and -0.0 have different keys."""
    if isinstance(x, Expr):
        return x.key
    return (0, x, "") if x and x == x else (0, 0, repr(float(x)))


def _plain(x: Any) -> int | float:
    """Return a whole number as an int, so that the double 8.0 is written 8."""
    if type(x) is int and -_EXACT <= x <= _EXACT:
        return x
    x = float(x)
    return int(x) if x.is_integer() and (x or math.copysign(1, x) > 0) else x


def is_static(x: Any) -> TypeGuard[int | float]:
    """Return whether ``x`` is a number that is known at plan time."""
    return not isinstance(x, Expr)


def product(extents: Iterable[Scalar]) -> int | None:
    """Return the number of elements; None if an extent is known only at run time."""
    known = list(extents)
    numbers = [int(e) for e in known if is_static(e)]
    return math.prod(numbers) if len(numbers) == len(known) else None


def _fold(op: str, *args: Any) -> Any:
    for a in args:
        if isinstance(a, Expr):
            return Expr(op, *args)
    return EVALUATE[op](*args) if op in EVALUATE else Expr(op, *args)


def _binary(op: str, a: Any, b: Any) -> Any:
    if op == "add" and is_static(a) and a == 0:
        return b
    if op in ("add", "sub") and is_static(b) and b == 0:
        return a
    if op in ("mul", "div") and is_static(b) and b == 1:
        return a
    if op == "mul" and is_static(a) and a == 1:
        return b
    if op == "sub" and same(a, b) and isinstance(a, Expr) and _finite(a):
        return 0
    return _fold(op, a, b)


def _finite(e: Any) -> bool:
    """Require a finite number. Extents must be finite; arbitrary elements need not be."""
    if not isinstance(e, Expr):
        return bool(math.isfinite(e))
    return e.op in ("dim", "count", "frame") or (e.op in ("add", "sub", "mul") and all(_finite(a) for a in e.args))


def _unary(op: str, a: Any) -> Any:
    return _fold(op, a)


def minimum(a: Scalar, b: Scalar) -> Any:
    """Return the smaller value; ``a`` if the values are equal."""
    return _fold("min", a, b)


def maximum(a: Scalar, b: Scalar) -> Any:
    """Return the larger value; ``a`` if the values are equal."""
    return _fold("max", a, b)


def floor(a: Scalar) -> Any:
    """Return the next whole number below. Infinities and NaN stay."""
    return _unary("floor", a)


def ceil(a: Scalar) -> Any:
    """Return the next whole number above. Infinities and NaN stay."""
    return _unary("ceil", a)


def absolute(a: Scalar) -> Any:
    """Return the absolute value."""
    return _unary("abs", a)


def trunc(a: Scalar) -> Any:
    """Round towards zero."""
    return _unary("trunc", a)


def round_even(a: Scalar) -> Any:
    """Round half to even."""
    return _unary("round_even", a)


def round_away(a: Scalar) -> Any:
    """Round half away from zero, as DALI rounds sizes and windows."""
    return _unary("round_away", a)


def sqrt(a: Scalar) -> Any:
    """Return the square root; NaN for negative numbers."""
    return _unary("sqrt", a)


def exp(a: Scalar) -> Any:
    """Return the exponential as an expression, even for a number.

    The native exp gives the same bits on every machine; Python's does not.
    """
    return Expr("exp", a)


def log(a: Scalar) -> Any:
    """Return the natural logarithm as an expression, even for a number (see :func:`exp`)."""
    return Expr("log", a)


def sin(a: Scalar) -> Any:
    """Return the sine as an expression, even for a number (see :func:`exp`)."""
    return Expr("sin", a)


def cos(a: Scalar) -> Any:
    """Return the cosine as an expression, even for a number (see :func:`exp`)."""
    return Expr("cos", a)


def equal(a: Scalar, b: Scalar) -> Any:
    """Return whether the values are equal. :func:`same` compares expressions instead."""
    return _fold("eq", a, b)


def different(a: Scalar, b: Scalar) -> Any:
    """Return whether the values differ."""
    return _fold("ne", a, b)


def both(a: Scalar, b: Scalar) -> Any:
    """Return the logical and."""
    if is_static(a):
        return b if a else False
    if is_static(b):
        return a if b else False
    return _fold("and", a, b)


def either(a: Scalar, b: Scalar) -> Any:
    """Return the logical or."""
    if is_static(a):
        return True if a else b
    if is_static(b):
        return True if b else a
    return _fold("or", a, b)


def negate(a: Scalar) -> Any:
    """Return the logical not."""
    return _unary("not", a)


def isfinite(a: Scalar) -> Any:
    """Return whether the value is neither infinite nor NaN."""
    return _unary("isfinite", a)


def float32(a: Scalar) -> Any:
    """Return the value rounded to the nearest float32."""
    return _unary("float32", a)


def where(condition: Scalar, a: Scalar, b: Scalar) -> Any:
    """Return ``a`` if the condition holds, else ``b``."""
    if is_static(condition):
        return a if condition else b
    if same(a, b):
        return a
    return Expr("where", condition, a, b)


def clamp(x: Scalar, low: Scalar, high: Scalar) -> Any:
    """Return ``x`` limited to ``low``..``high``."""
    return minimum(maximum(x, low), high)


def parts(x: Scalar, known: Container[Any] = ()) -> list[Expr]:
    """Return all distinct parts of ``x`` except ``known`` ones, operands first.

    The walk is not recursive: formulas of long operator chains are deeper than Python's stack.
    """
    if not isinstance(x, Expr) or x.key in known:
        return []
    found = {x.number: x}
    todo = [x]
    while todo:
        part = todo.pop()
        if part.op in LEAVES:
            continue
        for a in part.args:
            if isinstance(a, Expr) and a.number not in found and a.key not in known:
                found[a.number] = a
                todo.append(a)
    return [found[number] for number in sorted(found)]  # an expression is created after its operands


def substitute(x: Scalar, change: Callable[[Expr], Scalar | None]) -> Any:
    """Return ``x`` with leaves (dim, elem, count) replaced by the result of ``change``, where that is not None."""
    new: dict[int, Any] = {}
    for part in parts(x):
        if part.op in LEAVES:
            other = change(part)
            new[part.number] = part if other is None else other
            continue
        args = [new[a.number] if isinstance(a, Expr) else a for a in part.args]
        if all(a is b for a, b in zip(args, part.args, strict=True)):
            new[part.number] = part
        else:
            new[part.number] = where(*args) if part.op == "where" else _fold(part.op, *args)
    return new[x.number] if isinstance(x, Expr) else x


def leaves(x: Any, found: set[int]) -> set[int]:
    """Return the ids of the values that ``x`` reads."""
    if isinstance(x, Expr):
        found |= x.reads
    return found
