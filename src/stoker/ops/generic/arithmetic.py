# SPDX-License-Identifier: Apache-2.0
"""``_arithmetic``: Python's operators on nodes and the functions of ``stoker.math``, with DALI's type promotion."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.pixel import COMPARISONS, Px, binary, load, select, unary, uniform
from ...contract.step import Value, ViewOp
from ...contract.streaming import StreamRule, elementwise
from ...contract.types import DType, promote
from ._arithmetic_reference import arithmetic_reference

FUNCTIONS = (
    "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "floor", "ceil", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "//", "mod": "%", "pow": "**", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "neg": "-", "not": "~",
}  # fmt: skip
OPERANDS = {
    **dict.fromkeys((*FUNCTIONS, "neg", "not", "abs", "fabs"), 1),
    **dict.fromkeys((*(s for s in SYMBOLS if s not in ("neg", "not")), "min", "max", "fpow", "atan2"), 2),
    "clamp": 3,
}
BITWISE = ("and", "or", "xor", "shl", "shr", "not")
FLOATING = (*FUNCTIONS, "div", "fpow", "atan2", "fabs")  # integers become float32 first
LOGICAL = ("mul", *BITWISE, *COMPARISONS)  # operations on two booleans
WIDE = (DType.INT64, DType.UINT64)  # a double may not represent them exactly, so they stay tensors


class Arithmetic(Operator, name="_arithmetic"):
    """Apply one operation to all elements. Operands are broadcast as in NumPy.

    Types follow DALI: a float wins over integers, integers widen until both fit (mixed signs one size up, at most
    int64), Python's ints count as int32 and floats as float32. ``/`` and the functions of ``stoker.math`` give float32
    for integers. ``//`` truncates toward zero and ``%`` has the dividend's sign; on floats they are a true division and
    C's ``fmod``. Integers wrap; a negative power of an integer is 0; an integer division by zero is an error of the
    row. Shift counts are taken modulo 32 (64 for 64-bit types). Comparisons of mixed signs are right for all values.
    float16 and bfloat16 are computed in float32 and rounded once by every operation. An integer operand with them is
    rounded to the float type first. float16 with bfloat16 gives float32. These are torch's rules.

    Exact; functions other than ``sqrt``, ``floor`` and ``ceil`` within one unit in the last place, and the same bits on
    every machine.
    """

    inputs = (1, 3)
    takes_bfloat16 = True
    hidden = True
    exactness = "functions within one unit in the last place"
    op = arg("str", choices=tuple(OPERANDS), doc="The operation.")
    cases = tuple({"op": op} for op in OPERANDS)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        """Return numbers for which the operation is defined."""
        op = case["op"]
        count = OPERANDS[op]
        rng = np.random.default_rng(len(op))
        if op in ("and", "or", "xor", "not", "shl", "shr", "idiv", "mod", "pow"):
            return [tuple(rng.integers(1, 9, (4, 5)).astype(np.int32) for _ in range(count)) for _ in range(2)]
        return [tuple(rng.uniform(1.0, 1.9, (4, 5)).astype(np.float32) for _ in range(count)) for _ in range(2)]

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        return elementwise(axis)  # the other operands of a stream are numbers

    @classmethod
    def subject(cls, args: Mapping[str, Any]) -> str:
        op = args.get("op", cls.name)
        return SYMBOLS.get(op, f"math.{op}" if op in OPERANDS else op)

    def lower(self, c: Lowering, *operands: Value) -> Value:
        op = c.const("op")
        c.expect(len(operands) == OPERANDS[op], "expected {0} operands, got {1}", OPERANDS[op], len(operands))
        check_types(c, op, [x.dtype for x in operands])
        aligned, per_frame = _aligned(c, operands)
        shape, layout = _shape(c, aligned), _layout(c, aligned)
        inputs: list[Value] = []
        px = [_operand(c, x, inputs, len(shape)) for x in aligned]
        program = combine(op, px)
        if inputs:
            inputs = _framed(c, inputs, px, shape)
            out = c.pointwise(inputs, program, shape, layout)
        else:
            out = c.stage([], [(program.dtype, shape, layout)], [[program]])[0]
        return c.with_properties(out, per_frame=True) if per_frame else out

    def reference(self, row: RowContext, *operands: Any) -> Any:
        return arithmetic_reference(row["op"], *operands)


def check_types(c: Lowering, op: str, types: Sequence[DType]) -> None:
    """Refuse combinations without a meaning, as DALI does."""
    if all(t == DType.BOOL for t in types) and op not in LOGICAL:
        c.expect(False, "expected numbers, got booleans only. Cast one operand")
    if op in BITWISE and any(t.is_float for t in types):
        kinds = ", ".join(map(str, types))
        c.expect(False, f"expected whole numbers or booleans, got {kinds}")


# ---- shapes ----


def _aligned(c: Lowering, operands: Sequence[Value]) -> tuple[list[Value], bool]:
    """Give per-frame operands the rank of data with frames. Without such data, the result is per frame too."""
    data = [x for x in operands if not x.per_frame and not _single(x)]
    if not any(x.per_frame for x in operands):
        return list(operands), False
    if not data:
        return list(operands), True
    rank = max(x.rank for x in data)
    largest = next(x for x in data if x.rank == rank)
    c.expect(
        c.layout(largest)[:1] == "F",
        f"expected data whose first axis is F with a per-frame operand, got layout {c.layout(largest)!r}",
    )
    out = []
    for x in operands:
        if x.per_frame and not _uniform_frames(x):
            c.expect(x.rank <= rank, "expected at most {0} axes per frame, got {1}", rank - 1, x.rank - 1)
            x = c.with_properties(c.view(x, [ViewOp("insert", 1)] * (rank - x.rank)), per_frame=False)
        out.append(x)
    return out, False


def _single(x: Value) -> bool:
    """Return whether the value has one element, whatever its rank."""
    return all(ex.is_static(e) and e == 1 for e in x.shape)


def _uniform_frames(x: Value) -> bool:
    """Return whether the value is one number per frame that a double can hold."""
    return x.dtype not in WIDE and all(ex.is_static(e) and e == 1 for e in x.shape[1:])


def _shape(c: Lowering, operands: Sequence[Value]) -> list[Any]:
    plain = [x for x in operands if not x.per_frame] if any(not x.per_frame and x.rank for x in operands) else operands
    rank = max(x.rank for x in plain)
    shape = []
    for axis in range(-rank, 0):
        extent: Any = 1
        for x in plain:
            if x.rank >= -axis:
                extent = _broadcast(c, extent, x.shape[axis])
        shape.append(extent)
    return shape


def _broadcast(c: Lowering, a: Any, b: Any) -> Any:
    """Return the extent of two operands' common axis."""
    if ex.same(a, b) or (ex.is_static(b) and b == 1):
        return a
    if ex.is_static(a) and a == 1:
        return b
    fits = ex.either(ex.equal(a, b), ex.either(ex.equal(a, 1), ex.equal(b, 1)))
    text = "expected operands of one shape or extents of 1, got {0} and {1} elements in an axis"
    if ex.is_static(a) and ex.is_static(b):
        c.expect(False, text, a, b)
    c.require(fits, text, a, b)
    return a if ex.is_static(a) else b if ex.is_static(b) else ex.where(ex.equal(a, 1), b, a)


def _layout(c: Lowering, operands: Sequence[Value]) -> str:
    named = [x for x in operands if x.layout and not x.per_frame]
    if not named:
        return ""
    longest = max(named, key=lambda x: x.rank).layout
    for x in named:
        if not longest.endswith(x.layout):
            c.expect(
                False,
                f"expected operands with the same axes, got layouts {longest} and {x.layout}. Transpose one of them, "
                'or use `reshape(x, layout="")` if the names do not matter',
            )
    return longest if max(x.rank for x in operands) == len(longest) else ""


def _framed(c: Lowering, inputs: list[Value], px: Sequence[Px], shape: Sequence[Any]) -> list[Value]:
    """Run the stage frame by frame if numbers differ between frames.

    Inputs without frames are used whole for every frame.
    """
    if not any(c.differs_by_frame(x.value) for x in px if x.op == "uniform"):
        return inputs
    out = []
    for x in inputs:
        if x.rank == len(shape):
            if ex.is_static(x.shape[0]) and x.shape[0] == 1 and not ex.same(x.shape[0], shape[0]):
                x = c.view(x, [ViewOp("drop", 0)])
            else:
                c.require(
                    ex.equal(x.shape[0], shape[0]) if not ex.same(x.shape[0], shape[0]) else True,
                    "expected operands with {0} frames, got {1}", shape[0], x.shape[0],
                )  # fmt: skip
        out.append(x)
    return out


# ---- programs ----


def _operand(c: Lowering, x: Value, inputs: list[Value], rank: int) -> Px:
    """Return the operand as a number of the row if possible, so that chains with it fuse; otherwise as an input."""
    one = _uniform_frames(x) if x.per_frame and rank > x.rank else _single(x)
    if one and x.dtype not in WIDE:
        return uniform(c.element(x), x.dtype)
    known = next((i for i, other in enumerate(inputs) if other is x), None)
    if known is None:
        known = len(inputs)
        inputs.append(x)
    return load(x.dtype, known)


def _to(x: Px, dtype: DType) -> Px:
    """Convert to a common type, which holds every value of the original type (int64 for mixed signs wraps, as in C)."""
    if x.op == "uniform" and (dtype not in (DType.FLOAT16, DType.BFLOAT16) or x.dtype == dtype):
        return uniform(x.value, dtype)
    return x.convert(dtype)


def combine(op: str, operands: Sequence[Px]) -> Px:
    """Return the operation as a pixel expression."""
    common = functools.reduce(promote, [x.dtype for x in operands])
    if op in FLOATING or (op == "idiv" and common.is_float):
        common = common if common.is_float else DType.FLOAT
        op = {"idiv": "div", "fpow": "pow", "fabs": "abs"}.get(op, op)
    if op in COMPARISONS:
        return _compare(op, operands[0], operands[1], common)
    if op in ("shl", "shr"):
        return _shift(op, operands[0], operands[1], common)
    typed = [_to(x, common) for x in operands]
    if len(typed) == 1:
        same = op == "abs" and not (common.is_float or common.is_signed)
        return typed[0].convert(common) if same else unary(op, typed[0])
    if op == "clamp":
        return binary("min", binary("max", typed[0], typed[1]), typed[2])
    if op == "mul" and common == DType.BOOL:
        op = "and"
    if op == "pow" and not common.is_float:
        power = binary("ipow", *typed)
        return select(binary("lt", typed[1], 0), uniform(0, common), power) if common.is_signed else power
    return binary("fmod" if op == "mod" and common.is_float else op, *typed)


def _compare(op: str, a: Px, b: Px, common: DType) -> Px:
    """Compare uint64 with a signed type. A negative number is below every unsigned one."""
    mixed = DType.UINT64 in (a.dtype, b.dtype) and any(t.is_signed and not t.is_float for t in (a.dtype, b.dtype))
    if not mixed:
        return binary(op, _to(a, common), _to(b, common))
    left = a.dtype != DType.UINT64
    negative = binary("lt", a if left else b, 0)
    answer = {"eq": False, "ne": True, "lt": left, "le": left, "gt": not left, "ge": not left}[op]
    both = binary(op, a.convert(DType.UINT64), b.convert(DType.UINT64))
    return select(negative, uniform(int(answer), DType.BOOL), both)


def _shift(op: str, a: Px, b: Px, common: DType) -> Px:
    work = DType.INT32 if common == DType.BOOL else common
    count = binary("and", _to(b, work), 31 if work.size < 8 else 63)
    out = binary(op, _to(a, work), count)
    return out.cast(common)
