# SPDX-License-Identifier: Apache-2.0
"""Pixel expressions: the per-element meaning of an operator, written once for every machine.

An operator builds a tree of :class:`Px` out of loads, uniforms (per-row numbers), coordinates and typed operations.
Fusion joins trees; :func:`compile_program` turns them into the register program that ``native/pixel/pixel.cpp``
runs. Types are semantic (:class:`DType`): integers wrap in their own width, FLOAT16 and BFLOAT16 are computed in
float32 and rounded after every operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .expr import Expr, Scalar, identity
from .scalar import EVALUATE
from .types import DType

COMPARISONS = {"eq": "Eq", "ne": "Ne", "lt": "Lt", "le": "Le", "gt": "Gt", "ge": "Ge"}
BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "idiv": "IDiv", "mod": "IMod", "fmod": "FMod",
    "pow": "Pow", "ipow": "IPow", "min": "Min", "max": "Max", "and": "And", "or": "Or", "xor": "Xor", "shl": "Shl",
    "shr": "Shr", "atan2": "Atan2", **COMPARISONS,
}  # fmt: skip
UNARY = {
    "neg": "Neg", "abs": "Abs", "not": "Not", "floor": "Floor", "ceil": "Ceil", "trunc": "Trunc", "round": "Round",
    "sqrt": "Sqrt", "rsqrt": "Rsqrt", "cbrt": "Cbrt", "exp": "Exp", "log": "Log", "log2": "Log2", "log10": "Log10",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
}  # fmt: skip
# Operations that read a 64-bit register as unsigned have separate op codes.
UNSIGNED = {
    "IDiv": "UDiv", "IMod": "UMod", "IPow": "UPow", "Min": "UMin", "Max": "UMax", "Shr": "UShr", "Lt": "ULt",
    "Le": "ULe", "Gt": "UGt", "Ge": "UGe",
}  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class Px:
    """Typed pixel expression.

    ``op``: load, uniform, coordinate, random, normal, table, entry, cast, convert, select, or a name of BINARY or
    UNARY.
    """

    op: str
    dtype: DType
    args: tuple[Px, ...] = ()
    port: int = 0  # of a load or a table, or the axis of a coordinate
    channel: int = -1  # of a load; -1: the lane's own element
    value: Scalar = 0  # of a uniform

    def __add__(self, o: Px | Scalar) -> Px:
        return binary("add", self, o)

    def __sub__(self, o: Px | Scalar) -> Px:
        return binary("sub", self, o)

    def __mul__(self, o: Px | Scalar) -> Px:
        return binary("mul", self, o)

    def __truediv__(self, o: Px | Scalar) -> Px:
        return binary("div", self, o)

    def cast(self, dtype: DType) -> Px:
        """Convert to another type: round half to even, saturate, NaN becomes 0."""
        return self if dtype == self.dtype else Px("cast", dtype, (self,))

    def convert(self, dtype: DType) -> Px:
        """Convert to another integer type modulo its width, as in C. Floats are cast (:meth:`cast`)."""
        if dtype == self.dtype:
            return self
        if self.dtype.is_float or dtype.is_float or dtype == DType.BOOL:
            return self.cast(dtype)
        return Px("convert", dtype, (self,))


def load(dtype: DType, port: int = 0, channel: int = -1) -> Px:
    """Load an element of input ``port``: of ``channel``, or at the lane's own position."""
    return Px("load", dtype, port=port, channel=channel)


def uniform(value: Scalar, dtype: DType = DType.FLOAT) -> Px:
    """Return a number that is constant within a row (or frame)."""
    return Px("uniform", dtype, value=value)


def coordinate(axis: int) -> Px:
    """Return the index along an axis of the iteration space, INT32. Along the frame axis it is constant within a frame.

    A stage's iteration space is the space of its outputs after ``post``. Passes that change the space rewrite the
    coordinates (:func:`on_axes`), so that the value stays the index in the space where it was written.
    """
    return Px("coordinate", DType.INT32, port=axis)


def random(element: Px, key: Px, stream: Px) -> Px:
    """Return 32 random bits for each element, INT32: a function of the element's number and the stream's name.

    All operands are INT32. The two halves of the name are words of the row's draw (``ops/random/_elements.py``). The
    function is Philox (``native/shared/element_random.hpp``).
    """
    return Px("random", DType.INT32, (element, key, stream))


def normal(element: Px, key: Px, stream: Px) -> Px:
    """Return a number from the standard normal distribution for each element, FLOAT.

    The operands are those of :func:`random`. The function is in ``native/shared/element_normal.hpp``.
    """
    return Px("normal", DType.FLOAT, (element, key, stream))


def lookup(dtype: DType, port: int, index: Px, length: Scalar) -> Px:
    """Return element ``index`` (INT32) of input ``port``, a table of one axis; 0 if it has no such element.

    Args:
        dtype: element type of the table.
        port: number of the input. Nothing else uses it.
        index: number of the element.
        length: number of elements that the table has at least.
    """
    return Px("entry", dtype, (index, uniform(length, DType.INT32), Px("table", dtype, port=port)))


def tables_of(outputs: Sequence[Px]) -> set[int]:
    """Return the inputs that the expressions use as tables."""
    found: set[int] = set()
    seen: set[int] = set()
    for x in outputs:
        visit(x, lambda n: found.add(n.port) if n.op == "table" else None, seen)
    return found


def on_axes(x: Px, axes: Sequence[Px], memo: dict[int, Px] | None = None) -> Px:
    """Return ``x`` in another iteration space. ``axes`` gives each axis's coordinate in terms of the new space."""
    return rewrite(x, lambda n: axes[n.port] if n.op == "coordinate" else None, memo)


def coordinates_of(outputs: Sequence[Px]) -> set[int]:
    """Return the axes whose coordinates the expressions use."""
    found: set[int] = set()
    seen: set[int] = set()
    for x in outputs:
        visit(x, lambda n: found.add(n.port) if n.op == "coordinate" else None, seen)
    return found


def binary(op: str, a: Px, b: Px | Scalar) -> Px:
    """Apply ``op`` to two values of one type. Comparisons return BOOL."""
    if not isinstance(b, Px):
        b = uniform(b, a.dtype)
    if a.dtype != b.dtype:
        raise TypeError(f"{op}: operands of one type expected, got {a.dtype} and {b.dtype}")
    return Px(op, DType.BOOL if op in COMPARISONS else a.dtype, (a, b))


def unary(op: str, a: Px) -> Px:
    """Apply ``op`` (a key of UNARY) to one value."""
    return Px(op, a.dtype, (a,))


def select(condition: Px, a: Px, b: Px) -> Px:
    """Return ``a`` where the condition holds, else ``b``. Both are computed."""
    return Px("select", a.dtype, (condition, a, b))


def rewrite(x: Px, change: Callable[[Px], Px | None], memo: dict[int, Px] | None = None) -> Px:
    """Return ``x`` with leaves replaced by the result of ``change``, where that is not None."""
    memo = {} if memo is None else memo
    known = memo.get(id(x))
    if known is not None:
        return known
    if not x.args:
        new = change(x) or x
    else:
        args = tuple(rewrite(a, change, memo) for a in x.args)
        changed = any(a is not b for a, b in zip(args, x.args, strict=True))
        new = Px(x.op, x.dtype, args, x.port, x.channel, x.value) if changed else x
    memo[id(x)] = new
    return new


def visit(x: Px, see: Callable[[Px], None], seen: set[int] | None = None) -> None:
    """Call ``see`` once for every part of ``x``, operands first."""
    seen = set() if seen is None else seen
    if id(x) in seen:
        return
    seen.add(id(x))
    for a in x.args:
        visit(a, see, seen)
    see(x)


def describe(x: Px) -> str:
    """Return a short, unambiguous text of the expression."""
    if x.op == "load":
        return f"${x.port}" + (f".{x.channel}" if x.channel >= 0 else "")
    if x.op == "uniform":
        return f"{x.value!r}:{x.dtype}"
    if x.op == "coordinate":
        return f"@{x.port}"
    if x.op == "table":
        return f"${x.port}[]"
    suffix = f"<{x.dtype}>" if x.op in ("cast", "convert") else ""
    return f"{x.op}{suffix}({', '.join(map(describe, x.args))})"


_REGISTER = {
    DType.UINT32: 1,
    DType.UINT64: 1,
    DType.INT64: 1,
    DType.FLOAT16: 2,
    DType.BFLOAT16: 2,
    DType.FLOAT: 2,
    DType.FLOAT64: 3,
}
_ROUNDED = {DType.FLOAT16, DType.BFLOAT16}
_SMALL = {DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.UINT32, DType.BOOL}

Instruction = tuple[int, int, int, int, int, int, int, int, int, int, int]


def register_type(dtype: DType) -> int:
    """Return the register type as ``pixel::type_of`` numbers it: I32 0, I64 1, F32 2, F64 3."""
    return _REGISTER.get(dtype, 0)


_OF_ROWS = frozenset({"add", "sub", "mul", "neg"})


def _computed(op: str, operands: Sequence[Any]) -> Scalar:
    """Return an operation on scalars without simplifications, which may change the sign of a zero."""
    known = not any(isinstance(a, Expr) for a in operands)
    return EVALUATE[op](*operands) if known else Expr(op, *operands)


class _Program:
    """Emitter of instructions for expressions; equal subtrees are computed once."""

    def __init__(self, op_codes: dict[str, int], inputs: int) -> None:
        self.ops = op_codes
        self.inputs = inputs
        self.coordinates: list[int] = []
        self.code: list[Instruction] = []
        self.uniforms: list[Scalar] = []
        self._by_id: dict[int, tuple[int, bool]] = {}
        self._numbers: dict[int, Scalar | None] = {}
        self._by_key: dict[Any, tuple[int, bool]] = {}

    def emit(self, op: str, dtype: DType, *, type_: int | None = None, from_: int = 0, operands: Sequence[Any] = (),
             port: int = 0, channel: int = 0) -> int:  # fmt: skip
        regs = [r for r, _ in operands] + [0] * (3 - len(operands))
        flags = sum(1 << i for i, (_, is_uniform) in enumerate(operands) if is_uniform)
        dst = len(self.code)
        kind = register_type(dtype) if type_ is None else type_
        self.code.append((self.ops[op], kind, from_, int(dtype), dst, regs[0], regs[1], regs[2], flags, port, channel))
        return dst

    def uniform(self, value: Scalar) -> int:
        for i, known in enumerate(self.uniforms):
            if identity(known) == identity(value):  # 0.0 and -0.0 differ
                return i
        self.uniforms.append(value)
        return len(self.uniforms) - 1

    def value(self, x: Px) -> tuple[int, bool]:
        known = self._by_id.get(id(x))
        if known is not None:
            return known
        number = self._number(x) if x.args else None
        if number is not None:
            return self._by_id.setdefault(id(x), (self.uniform(number), True))
        port = x.args[2].port if x.op == "entry" else x.port
        operands = [self.value(a) for a in x.args if a.op != "table"]
        if x.op == "uniform":
            result = (self.uniform(x.value), True)
        else:
            key = (x.op, x.dtype, port, x.channel, tuple(operands), tuple(a.dtype for a in x.args))
            found = self._by_key.get(key)
            result = found if found is not None else (self._operation(x, operands), False)
            self._by_key[key] = result
        self._by_id[id(x)] = result
        return result

    def _number(self, x: Px) -> Scalar | None:
        """Return the value of a float32 expression of uniforms alone, computed once per row; None for others.

        The operations run in double. Their results, rounded to float32, are those of float32 operations, because double
        has more than twice the digits (Figueroa, "When is double rounding innocuous?", 1995).
        """
        if x.dtype != DType.FLOAT or not (x.op == "uniform" or x.op in _OF_ROWS):
            return None
        if id(x) not in self._numbers:
            parts = [x.value] if x.op == "uniform" else [self._number(a) for a in x.args]
            found = None if any(p is None for p in parts) else parts[0] if x.op == "uniform" else _computed(x.op, parts)
            self._numbers[id(x)] = None if found is None else _computed("float32", [found])
        return self._numbers[id(x)]

    def _from_port(self, x: Px, operands: list[tuple[int, bool]]) -> int:
        if x.op == "load":
            return self.emit("Load", x.dtype, port=x.port, channel=max(x.channel, 0))
        if x.op == "entry":
            return self.emit("Lookup", x.dtype, operands=operands, port=x.args[2].port)
        if x.port not in self.coordinates:
            self.coordinates.append(x.port)
        return self.emit("Coordinate", x.dtype, port=self.inputs + self.coordinates.index(x.port))

    def _operation(self, x: Px, operands: list[tuple[int, bool]]) -> int:
        if x.op in ("load", "entry", "coordinate"):
            return self._from_port(x, operands)
        if x.op == "random":
            return self.emit("Random", x.dtype, operands=operands)
        if x.op == "normal":
            return self.emit("Normal", x.dtype, operands=operands)
        if x.op == "select":
            condition, a, b = operands
            return self.emit("Select", x.dtype, operands=[a, b, condition])
        if x.op in ("cast", "convert"):
            source = x.args[0].dtype
            op = "Wrap" if x.op == "convert" else "UCast" if source == DType.UINT64 else "Cast"
            return self.emit(op, x.dtype, from_=register_type(source), operands=operands)
        source = x.args[0].dtype
        op = (BINARY if x.op in BINARY else UNARY)[x.op]
        if source == DType.UINT64:
            op = UNSIGNED.get(op, op)
        kind = register_type(source)
        dst = self.emit(op, x.dtype, type_=kind, operands=operands)
        if x.op in COMPARISONS:
            return dst
        if x.dtype in _SMALL:
            return self.emit("Wrap", x.dtype, from_=kind, operands=[(dst, False)])
        if x.dtype in _ROUNDED:
            return self.emit("Cast", x.dtype, from_=kind, operands=[(dst, False)])
        return dst

    def store(self, x: Px, port: int, channel: int) -> None:
        reg, is_uniform = self.value(x)
        if is_uniform:
            reg = self.emit("Copy", x.dtype, operands=[(reg, True)])
        self.emit("Store", x.dtype, operands=[(reg, False)], port=port, channel=channel)


@dataclass(frozen=True)
class CompiledProgram:
    """Register program: packed instructions, uniforms (numbers per row), and the axes of its coordinates.

    Coordinates are input ports after those of the values.
    """

    code: list[Instruction]
    uniforms: list[Scalar]
    coordinates: list[int]


def compile_program(outputs: Sequence[Sequence[Px]], op_codes: dict[str, int], inputs: int) -> CompiledProgram:
    """Compile ``outputs[port][channel]``. A flat program has one expression per port.

    Args:
        inputs: number of values that the program loads from.
    """
    program = _Program(op_codes, inputs)
    for port, channels in enumerate(outputs):
        for channel, x in enumerate(channels):
            program.store(x, port, channel)
    return CompiledProgram(program.code, program.uniforms, program.coordinates)


def size(outputs: Sequence[Px]) -> int:
    """Return the number of distinct operations in the expressions."""
    seen: set[int] = set()
    for x in outputs:
        visit(x, lambda _: None, seen)
    return len(seen)


def channel_count(outputs: Sequence[Px]) -> int:
    """Return the larger of the channel counts that a program with these output channels reads and writes."""
    loaded: list[int] = []
    seen: set[int] = set()
    for x in outputs:
        visit(x, lambda n: loaded.append(n.channel) if n.op == "load" else None, seen)
    return max([len(outputs), *(channel + 1 for channel in loaded)])


def uniform_count(outputs: Sequence[Px]) -> int:
    """Return the number of different uniforms, which :func:`compile_program` numbers."""
    found: set[object] = set()
    seen: set[int] = set()
    for x in outputs:
        visit(x, lambda n: found.add(identity(n.value)) if n.op == "uniform" else None, seen)
    return len(found)


def scalars(outputs: Sequence[Px]) -> list[Scalar]:
    """Return the scalars of all uniforms."""
    found: list[Scalar] = []
    seen: set[int] = set()
    for x in outputs:
        visit(x, lambda n: found.append(n.value) if n.op == "uniform" and isinstance(n.value, Expr) else None, seen)
    return found
