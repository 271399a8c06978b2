# SPDX-License-Identifier: Apache-2.0
"""``stoker.fuse``: Python functions on pixels as operators that fuse with their neighbours.

The function runs when a pipeline is planned, with a :class:`Pixel` whose numbers record the operations on them. The
recorded expression is a stage like those of built-in operators: it joins the stages before and after it, on the CPU and
on a GPU. The same function on arrays is the operator's reference.
"""

from __future__ import annotations

import inspect
import typing
import zlib
from collections.abc import Callable, Mapping, Sequence
from types import new_class
from typing import Any

import numpy as np

from ..contract import expr as ex
from ..contract.argument import REQUIRED, Argument
from ..contract.errors import ArgumentError, StokerError, UnsupportedError
from ..contract.lowering import Lowering, UndeclaredTypes
from ..contract.operator import Operator, RowContext
from ..contract.pixel import Px, binary, coordinate, load, lookup, select, uniform
from ..contract.step import Value
from ..contract.text import brief
from ..contract.types import DType, promote
from ..ops.generic._arithmetic_reference import arithmetic_reference
from ..ops.generic.arithmetic import BITWISE, FLOATING, OPERANDS, combine
from ..ops.generic.cast import cast_array
from ..ops.random._elements import ElementDraws, ElementDrawsReference
from .data_node import DataNode
from .registry import register

MOST_OPERATIONS = 256  # of a function; passes walk expressions recursively
_LAYOUTS = {2: "HW", 3: "HWC", 4: "FHWC"}
# Type in which elements are computed: whole numbers of up to 16 bits do not wrap, and 16-bit floats round once.
_WIDE = {
    **dict.fromkeys((DType.BOOL, DType.UINT8, DType.INT8, DType.UINT16, DType.INT16), DType.INT32),
    **dict.fromkeys((DType.FLOAT16, DType.BFLOAT16), DType.FLOAT),
}
_UFUNCS: dict[Any, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.true_divide: "div", np.power: "pow",
    np.negative: "neg", np.absolute: "abs", np.fabs: "fabs", np.minimum: "min", np.maximum: "max",
    np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge", np.equal: "eq", np.not_equal: "ne",
    np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor", np.invert: "not", np.left_shift: "shl",
    np.right_shift: "shr", np.sqrt: "sqrt", np.cbrt: "cbrt", np.exp: "exp", np.log: "log", np.log2: "log2",
    np.log10: "log10", np.floor: "floor", np.ceil: "ceil", np.sin: "sin", np.cos: "cos", np.tan: "tan",
    np.arcsin: "asin", np.arccos: "acos", np.arctan: "atan", np.arctan2: "atan2", np.sinh: "sinh", np.cosh: "cosh",
    np.tanh: "tanh", np.arcsinh: "asinh", np.arccosh: "acosh", np.arctanh: "atanh",
}  # fmt: skip


# ---- numbers of a pixel ----


class Number:
    """Number of each pixel, with Python's operators and NumPy's functions.

    Types are those of ``stoker.math``: whole numbers are int32 or wider, ``/`` gives float32, ``//`` truncates, and
    Python's floats are float32.
    """

    __slots__ = ("_made_by", "content")

    def __init__(self, content: Any, made_by: _Maker) -> None:
        self.content = content
        self._made_by = made_by

    def _apply(self, op: str, *operands: Any) -> Any:
        return self._made_by.number(op, operands)

    def __stoker_math__(self, op: str, operands: Sequence[Any]) -> Any:
        return self._apply(op, *operands)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        op = _UFUNCS.get(ufunc)
        if op is None or method != "__call__" or more:
            known = ", ".join(sorted(f.__name__ for f in _UFUNCS))
            raise UnsupportedError(f"`numpy.{ufunc.__name__}` has no form for pixels; these have: {known}")
        return self._apply(op, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3 and not kwargs:
            return where(*args)
        if function is np.clip and len(args) == 3 and not kwargs:
            return self._apply("clamp", *args)
        raise UnsupportedError(f"`numpy.{function.__name__}` has no form for pixels; use `stoker.where` or arithmetic")

    def __bool__(self) -> bool:
        raise UnsupportedError(
            "a pixel has no truth value, because the function is traced once for all pixels. Use `stoker.where(condition, "
            "a, b)` instead of `if`, `&` and `|` instead of `and` and `or`"
        )

    def _no_number(self, *_: Any) -> Any:
        raise UnsupportedError(
            "a pixel is not one number, because the function is traced once for all pixels. Loops and indices need "
            "arguments that are constants: annotate them as `bool` or `str`, or use `stoker.table(array)[value]`"
        )

    __int__ = __float__ = __index__ = __iter__ = __len__ = __complex__ = __array__ = _no_number

    def __add__(self, o: Any) -> Any:
        return self._apply("add", self, o)

    def __radd__(self, o: Any) -> Any:
        return self._apply("add", o, self)

    def __sub__(self, o: Any) -> Any:
        return self._apply("sub", self, o)

    def __rsub__(self, o: Any) -> Any:
        return self._apply("sub", o, self)

    def __mul__(self, o: Any) -> Any:
        return self._apply("mul", self, o)

    def __rmul__(self, o: Any) -> Any:
        return self._apply("mul", o, self)

    def __truediv__(self, o: Any) -> Any:
        return self._apply("div", self, o)

    def __rtruediv__(self, o: Any) -> Any:
        return self._apply("div", o, self)

    def __floordiv__(self, o: Any) -> Any:
        return self._apply("idiv", self, o)

    def __rfloordiv__(self, o: Any) -> Any:
        return self._apply("idiv", o, self)

    def __mod__(self, o: Any) -> Any:
        return self._apply("mod", self, o)

    def __rmod__(self, o: Any) -> Any:
        return self._apply("mod", o, self)

    def __pow__(self, o: Any) -> Any:
        if isinstance(o, int) and 1 <= o <= 4:  # products: exact for whole numbers, and several times as fast
            result = self
            for _ in range(o - 1):
                result = self._apply("mul", result, self)
            return result
        return self._apply("pow", self, o)

    def __rpow__(self, o: Any) -> Any:
        return self._apply("pow", o, self)

    def __and__(self, o: Any) -> Any:
        return self._apply("and", self, o)

    __rand__ = __and__

    def __or__(self, o: Any) -> Any:
        return self._apply("or", self, o)

    __ror__ = __or__

    def __xor__(self, o: Any) -> Any:
        return self._apply("xor", self, o)

    __rxor__ = __xor__

    def __lshift__(self, o: Any) -> Any:
        return self._apply("shl", self, o)

    def __rlshift__(self, o: Any) -> Any:
        return self._apply("shl", o, self)

    def __rshift__(self, o: Any) -> Any:
        return self._apply("shr", self, o)

    def __rrshift__(self, o: Any) -> Any:
        return self._apply("shr", o, self)

    def __lt__(self, o: Any) -> Any:
        return self._apply("lt", self, o)

    def __le__(self, o: Any) -> Any:
        return self._apply("le", self, o)

    def __gt__(self, o: Any) -> Any:
        return self._apply("gt", self, o)

    def __ge__(self, o: Any) -> Any:
        return self._apply("ge", self, o)

    def __eq__(self, o: object) -> Any:
        return self._apply("eq", self, o)

    def __ne__(self, o: object) -> Any:
        return self._apply("ne", self, o)

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Any:
        return self._apply("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._apply("abs", self)

    def __invert__(self) -> Any:
        return self._apply("not", self)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return ``a`` for pixels where the condition holds, else ``b``, in a function under ``stoker.fuse``.

    Both are computed for every pixel.

    Args:
        condition: a comparison of numbers of a pixel.
        a: a number of a pixel, or a constant.
        b: the same.
    """
    maker = next((x._made_by for x in (condition, a, b) if isinstance(x, Number)), None)
    if maker is None:
        raise ArgumentError(
            f"`stoker.where`: expected numbers of a pixel, got {brief(condition)}. It belongs into functions under "
            "`stoker.fuse`; for nodes use `condition * a + (condition == 0) * b`"
        )
    return maker.where(condition, a, b)


class Table:
    """Table of numbers that functions under ``stoker.fuse`` look up by a number of the pixel: ``table[p.value]``.

    Args:
        array: numbers, one axis.
    """

    def __init__(self, array: Any) -> None:
        self.array = np.ascontiguousarray(array)
        if self.array.ndim != 1 or self.array.dtype.kind not in "biuf":
            raise ArgumentError(
                f"`stoker.table`: expected numbers with one axis, got {self.array.dtype} of shape {self.array.shape}"
            )

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, Number):
            return self.array[index]
        return index._made_by.entry(self, index)

    def __len__(self) -> int:
        return len(self.array)


def table(array: Any) -> Table:
    """Return a table for functions under ``stoker.fuse``. Numbers outside the table give 0.

    Args:
        array: numbers, one axis.
    """
    return Table(array)


# ---- two makers of numbers: expressions, and arrays ----


class _Maker:
    """Source of the numbers of one call of the function."""

    def wrap(self, content: Any) -> Number:
        return Number(content, self)

    def number(self, op: str, operands: Sequence[Any]) -> Number:
        if op not in OPERANDS or len(operands) != OPERANDS[op]:
            raise UnsupportedError(f"there is no `{op}` of {len(operands)} numbers of a pixel")
        contents = [self.content_of(x) for x in operands]
        if op in BITWISE and any(self.dtype_of(x).is_float for x in contents):
            raise UnsupportedError(f"expected whole numbers for `{op}`, got floats")
        if op not in ("and", "or", "xor", "not"):  # truth values count as numbers, except where they are combined
            contents = [self.cast(x, DType.INT32) if self.dtype_of(x) == DType.BOOL else x for x in contents]
        return self.wrap(self.apply(op, contents))

    def content_of(self, x: Any) -> Any:
        if isinstance(x, Number):
            return x.content
        if isinstance(x, (bool, np.bool_)):
            return self.constant(int(x), DType.BOOL)
        if isinstance(x, (int, np.integer)):
            if not -(1 << 31) <= x < 1 << 31:
                raise UnsupportedError(f"expected whole numbers of 32 bits, got {brief(x)}")
            return self.constant(int(x), DType.INT32)
        if isinstance(x, (float, np.floating)):
            return self.constant(float(x), DType.FLOAT)
        if isinstance(x, Pixel):
            raise UnsupportedError("expected a number of the pixel, got the pixel itself: use `p.value` or `p[0]`")
        raise UnsupportedError(f"expected a number of a pixel or a constant, got {brief(x)}")

    def where(self, condition: Any, a: Any, b: Any) -> Number:
        a, b = self.content_of(a), self.content_of(b)
        common = promote(self.dtype_of(a), self.dtype_of(b))
        return self.wrap(self.choose(self.content_of(condition), self.cast(a, common), self.cast(b, common)))

    def constant(self, x: Any, dtype: DType) -> Any:
        raise NotImplementedError

    def apply(self, op: str, contents: list[Any]) -> Any:
        raise NotImplementedError

    def dtype_of(self, content: Any) -> DType:
        raise NotImplementedError

    def cast(self, content: Any, dtype: DType) -> Any:
        raise NotImplementedError

    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def entry(self, table: Table, index: Number) -> Number:
        raise NotImplementedError


class _Traced(_Maker):
    """Expressions. ``tables`` are those that the function has used; they follow the inputs."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.operations = 0
        self.tables: list[Table] = []

    def constant(self, x: Any, dtype: DType) -> Any:
        return uniform(x, dtype)

    def apply(self, op: str, contents: list[Any]) -> Any:
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise UnsupportedError(
                f"expected at most {MOST_OPERATIONS} operations in the function. Write it in C++ (`stoker.cpp`)"
            )
        if op in FLOATING or any(x.dtype.is_float for x in contents):
            contents = [_narrow(x) for x in contents]
        return combine(op, contents)

    def dtype_of(self, content: Any) -> DType:
        return content.dtype  # type: ignore[no-any-return]

    def cast(self, content: Any, dtype: DType) -> Any:
        return content.cast(dtype)

    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        return select(condition if condition.dtype == DType.BOOL else binary("ne", condition, 0), a, b)

    def entry(self, table: Table, index: Number) -> Number:
        if index.content.dtype.is_float:
            raise UnsupportedError("expected a whole number as index of a table, got a float; use `// 1`")
        known = next((i for i, t in enumerate(self.tables) if t is table), None)
        if known is None:
            known = len(self.tables)
            self.tables.append(table)
        dtype = DType.of(table.array.dtype)
        found = lookup(dtype, self.inputs + known, index.content.cast(DType.INT32), len(table))
        return self.wrap(found.cast(_WIDE.get(dtype, dtype)))


def _narrow(x: Px) -> Px:
    """Return an element as it is loaded, for a conversion to a float: one instruction less."""
    return x.args[0] if x.op == "cast" and x.dtype == DType.INT32 and x.args[0].op == "load" else x


class _Arrays(_Maker):
    """NumPy arrays: the reference."""

    def constant(self, x: Any, dtype: DType) -> Any:
        return np.asarray(x, dtype.numpy)

    def apply(self, op: str, contents: list[Any]) -> Any:
        return arithmetic_reference(op, *contents)

    def dtype_of(self, content: Any) -> DType:
        return DType.of(content.dtype)

    def cast(self, content: Any, dtype: DType) -> Any:
        return cast_array(content, dtype)

    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(np.asarray(condition) != 0, a, b)

    def entry(self, table: Table, index: Number) -> Number:
        at = np.asarray(index.content)
        inside = (at >= 0) & (at < len(table))
        found = np.where(inside, table.array[np.where(inside, at, 0)], 0).astype(table.array.dtype)
        dtype = DType.of(found.dtype)
        return self.wrap(cast_array(found, _WIDE.get(dtype, dtype)))


# ---- the pixel ----


class Uses:
    """Parts of the pixel that a call of the function has used."""

    def __init__(self) -> None:
        self.own = self.channels = False  # `p.value` or `p.c`; `p[0]`
        self.draws = 0


class Pixel:
    """Pixel of an input, as functions under ``stoker.fuse`` see it.

    Attributes:
        value: element of the pixel in the channel that is computed.
        y, x, c, frame: indices along the axes H, W, C and F.
        height, width, channels, frames: extents of these axes.
    """

    def __init__(self, layout: str, uses: Uses) -> None:
        self._layout = layout
        self._uses = uses

    def _axis(self, name: str) -> int:
        if name not in self._layout:
            raise ArgumentError(f"expected an input with an axis {name}, got layout {self._layout!r}")
        return self._layout.index(name)

    def _element(self) -> Number:
        raise NotImplementedError

    def _in_channel(self, channel: int) -> Number:
        raise NotImplementedError

    def _index(self, axis: int) -> Number:
        raise NotImplementedError

    def _extent(self, axis: int) -> Any:
        raise NotImplementedError

    def _draw(self) -> Number:
        raise NotImplementedError

    @property
    def value(self) -> Number:
        self._uses.own = True
        return self._element()

    def __getitem__(self, channel: Any) -> Number:
        if not isinstance(channel, (int, np.integer)) or isinstance(channel, bool):
            raise UnsupportedError(
                f"expected the number of a channel, got {brief(channel)}. A function sees one pixel: neighbours need "
                "`fn.filter`, or an operator in C++ (`stoker.cpp`)"
            )
        self._uses.channels = True
        return self._in_channel(int(channel))

    def __iter__(self) -> Any:
        raise UnsupportedError("expected `p.value` or `p[0]`, got a loop over a pixel")

    @property
    def y(self) -> Number:
        return self._index(self._axis("H"))

    @property
    def x(self) -> Number:
        return self._index(self._axis("W"))

    @property
    def c(self) -> Number:
        self._uses.own = True
        return self._index(self._axis("C"))

    @property
    def frame(self) -> Number:
        return self._index(self._axis("F"))

    @property
    def height(self) -> Any:
        return self._extent(self._axis("H"))

    @property
    def width(self) -> Any:
        return self._extent(self._axis("W"))

    @property
    def channels(self) -> Any:
        return self._extent(self._axis("C"))

    @property
    def frames(self) -> Any:
        return self._extent(self._axis("F"))

    def uniform(self) -> Number:
        """Return a random number in [0, 1) for each element, float32. It follows from the seed, epoch and sample."""
        self._uses.draws += 1
        return self._draw()


class _TracedPixel(Pixel):
    def __init__(
        self, c: Lowering, x: Value, port: int, channel: int, maker: _Traced, uses: Uses, draws: ElementDraws | None
    ) -> None:
        super().__init__(c.layout(x), uses)
        self._c, self._x, self._port, self._channel, self._maker, self._draws = c, x, port, channel, maker, draws

    def _loaded(self, channel: int) -> Number:
        dtype = self._x.dtype
        return self._maker.wrap(load(dtype, self._port, channel).cast(_WIDE.get(dtype, dtype)))

    def _element(self) -> Number:
        return self._loaded(self._channel)

    def _in_channel(self, channel: int) -> Number:
        count = self._c.fixed_extent(self._x, self._axis("C"), "channels")
        return self._loaded(_channel_number(channel, count))

    def _index(self, axis: int) -> Number:
        return self._maker.wrap(coordinate(axis))

    def _extent(self, axis: int) -> Any:
        return self._maker.wrap(uniform(self._x.shape[axis], DType.INT32))

    def _draw(self) -> Number:
        stream = self._uses.draws - 1
        drawn = uniform(0.0, DType.FLOAT) if self._draws is None else self._draws.uniform(stream)
        return self._maker.wrap(drawn)


class _ArrayPixel(Pixel):
    def __init__(self, layout: str, x: Any, maker: _Arrays, uses: Uses, draws: Callable[[int], Any]) -> None:
        super().__init__(layout, uses)
        self._x, self._maker, self._draws = x, maker, draws

    def _element(self) -> Number:
        dtype = DType.of(self._x.dtype)
        return self._maker.wrap(cast_array(self._x, _WIDE.get(dtype, dtype)))

    def _in_channel(self, channel: int) -> Number:
        axis = self._axis("C")
        at = _channel_number(channel, self._x.shape[axis])
        return self._maker.wrap(np.take(self._element().content, [at], axis))

    def _index(self, axis: int) -> Number:
        shape = [n if i == axis else 1 for i, n in enumerate(self._x.shape)]
        return self._maker.wrap(np.arange(self._x.shape[axis], dtype=np.int32).reshape(shape))

    def _extent(self, axis: int) -> Any:
        return self._maker.wrap(np.int32(self._x.shape[axis]))

    def _draw(self) -> Number:
        return self._maker.wrap(self._draws(self._uses.draws - 1))


def _channel_number(channel: int, count: int) -> int:
    if not -count <= channel < count:
        raise ArgumentError(f"expected a channel from {-count} to {count - 1}, got {channel}")
    return channel % count


# ---- the operator ----

_KINDS = {float: ("float", True), int: ("int", True), bool: ("bool", False), str: ("str", False)}


def _arguments(function: Callable[..., Any]) -> tuple[int, dict[str, Argument]]:
    """Return the number of inputs, and the arguments: parameters with an annotation or a default."""
    name = function.__name__
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # noqa: BLE001 - names that only a type checker knows
        hints = {p: {"float": float, "int": int, "bool": bool, "str": str}.get(str(t), object)
                 for p, t in function.__annotations__.items()}  # fmt: skip
    inputs, arguments = 0, {}
    for key, p in inspect.signature(function).parameters.items():
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise ArgumentError(f"`{name}`: expected a function without `*{key}`")
        if p.kind == p.POSITIONAL_OR_KEYWORD and key not in hints and p.default is p.empty and not arguments:
            inputs += 1
            continue
        if hasattr(Operator, key):
            raise ArgumentError(f"`{name}`: expected another name than `{key}` for a parameter; operators have that")
        default = REQUIRED if p.default is p.empty else p.default
        hint = hints.get(key, type(p.default) if p.default is not p.empty else object)
        kind, per_row = _KINDS.get(hint, ("object", False))
        doc = f"Argument of the function, {'a number for each row' if per_row else 'a constant'}."
        arguments[key] = Argument(kind, doc, default, per_row=per_row)
    if inputs == 0:
        raise ArgumentError(f"`{name}`: expected a first parameter without annotation, the pixel")
    return inputs, arguments


class _Function:
    """Function on pixels with its inputs, arguments and result type."""

    def __init__(self, function: Callable[..., Any], dtype: DType | None) -> None:
        self.function = function
        self.dtype = dtype
        self.inputs, self.arguments = _arguments(function)

    def call(self, pixels: Sequence[Pixel], values: Mapping[str, Any]) -> tuple[Any, ...] | Any:
        """Call the function; its errors get the line of the function that caused them."""
        try:
            result = self.function(*pixels, **values)
        except UndeclaredTypes:  # the planner runs the first batch, then traces again
            raise
        except StokerError as error:
            raise type(error)(f"{str(error).rstrip('.')} — {self._line(error)}") from None
        except Exception as error:
            raise ArgumentError(f"{type(error).__name__}: {error} — {self._line(error)}") from error
        if isinstance(result, (tuple, list)):
            if not result:
                raise ArgumentError(f"expected a number, or one for each channel, got none — {self._place()}")
            return tuple(result)
        return result

    def _line(self, error: BaseException) -> str:
        file, trace, line = self.function.__code__.co_filename, error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == file:
                line = trace.tb_lineno
            trace = trace.tb_next
        return self._place() if line is None else f"at {file}:{line}"

    def _place(self) -> str:
        code = self.function.__code__
        return f"function at {code.co_filename}:{code.co_firstlineno}"

    def values(self, maker: _Maker, get: Callable[[str, DType], Any], const: Callable[[str], Any]) -> dict[str, Any]:
        found = {}
        for key, a in self.arguments.items():
            dtype = {"float": DType.FLOAT, "int": DType.INT32}.get(a.kind)
            found[key] = const(key) if dtype is None else maker.wrap(get(key, dtype))
        return found

    def version(self) -> int:
        """Return a number that changes with the function's source, for states of pipelines."""
        try:
            text = inspect.getsource(self.function).encode()
        except (OSError, TypeError):
            text = self.function.__code__.co_code
        return zlib.crc32(text)


class _Fused(Operator):
    """Base class of the operators that ``stoker.fuse`` makes."""

    made_from: _Function

    def lower(self, c: Lowering, *inputs: Value) -> Value:
        f, first = self.made_from, inputs[0]
        for x in inputs[1:]:
            c.expect(x.rank == first.rank, f"expected inputs of one rank, got {first.rank} and {x.rank} axes")
            for n, m in zip(first.shape, x.shape, strict=True):
                c.require(_equal(n, m), "expected inputs of one shape, got {0} and {1} elements in an axis", n, m)
        maker, uses = _Traced(len(inputs)), Uses()

        def trace(channel: int, draws: ElementDraws | None) -> Any:
            uses.draws = maker.operations = 0
            pixels = [_TracedPixel(c, x, i, channel, maker, uses, draws) for i, x in enumerate(inputs)]
            values = f.values(maker, lambda key, dtype: uniform(_number(c, key, dtype), dtype), c.const)
            return f.call(pixels, values)

        result = trace(-1, None)
        dtype = first.dtype if f.dtype is None else f.dtype
        if not uses.channels and not isinstance(result, tuple):
            result = trace(-1, ElementDraws(c, first.shape, uses.draws)) if uses.draws else result
            program = _content(maker, result).cast(dtype)
            return c.pointwise([*inputs, *_tables(c, maker)], program)
        axis = c.axis(first, "C")
        count = c.fixed_extent(first, axis, "channels")
        n = len(result) if isinstance(result, tuple) else count if uses.own else 1
        c.expect(not uses.own or n <= count, f"expected at most {count} results with `p.value` or `p.c`, got {n}")
        shape = [n if i == axis else e for i, e in enumerate(first.shape)]
        draws = ElementDraws(c, shape, uses.draws) if uses.draws else None
        programs: list[Px] = []
        for k in range(n):
            result = trace(k, draws)
            programs.append(_content(maker, result[k] if isinstance(result, tuple) else result).cast(dtype))
        return c.channelled(first, programs, axis, [*inputs[1:], *_tables(c, maker)])

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        f, maker, uses = self.made_from, _Arrays(), Uses()
        arrays = [np.asarray(x) for x in inputs]
        layouts = [row.layouts[i] if i < len(row.layouts) else "" for i in range(len(arrays))]

        def call(draws: Callable[[int], Any]) -> Any:
            uses.draws = 0
            pixels = [
                _ArrayPixel(layout or _LAYOUTS.get(x.ndim, ""), x, maker, uses, draws)
                for x, layout in zip(arrays, layouts, strict=True)
            ]
            numbers = f.values(maker, lambda key, dtype: dtype.numpy.type(row.number(key)), lambda key: row[key])
            return f.call(pixels, numbers)

        x = arrays[0]
        layout = layouts[0] or _LAYOUTS.get(x.ndim, "")
        result = call(lambda _: np.float32(0))
        shape = list(x.shape)
        if isinstance(result, tuple) or (uses.channels and not uses.own):
            shape[layout.index("C")] = len(result) if isinstance(result, tuple) else 1
        if uses.draws:
            result = call(ElementDrawsReference(row, shape, uses.draws).uniform)
        dtype = DType.of(x.dtype) if f.dtype is None else f.dtype
        if not isinstance(result, tuple):
            return np.broadcast_to(cast_array(maker.content_of(result), dtype), shape)
        axis, parts = layout.index("C"), []
        for k, one in enumerate(result):
            content = np.asarray(maker.content_of(one))
            wide = content.ndim and content.shape[axis] > 1
            part = np.take(content, [k], axis) if wide else content
            parts.append(np.broadcast_to(part, [1 if i == axis else n for i, n in enumerate(x.shape)]))
        return np.concatenate([cast_array(p, dtype) for p in parts], axis)


def _content(maker: _Traced, result: Any) -> Px:
    """Return the expression of a function's result."""
    return maker.content_of(result)  # type: ignore[no-any-return]


def _number(c: Lowering, key: str, dtype: DType) -> Any:
    """Return an argument, truncated if it is a whole number that a node computes."""
    return c.scalar(key) if dtype.is_float else ex.trunc(c.scalar(key))


def _equal(a: Any, b: Any) -> Any:
    return True if ex.same(a, b) else ex.equal(a, b)


def _tables(c: Lowering, maker: _Traced) -> list[Value]:
    return [c.constant(t.array) for t in maker.tables]


class FusedFunction:
    """Function on pixels under ``stoker.fuse``: an operator to call on nodes and on arrays.

    Attributes:
        operator: the operator class.
    """

    def __init__(self, function: Callable[..., Any], operator: type[Operator]) -> None:
        self.operator = operator
        self._function = function
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__doc__, self.__module__ = function.__doc__, function.__module__
        self.__wrapped__ = function

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Add a node if an input or argument is one, else compute arrays (``stoker.eager``)."""
        if any(isinstance(x, DataNode) for x in (*inputs, *arguments.values())):
            from . import fn

            return getattr(fn, self.operator.name)(*inputs, **arguments)
        from . import eager

        return getattr(eager, self.operator.name)(*inputs, **arguments)

    def __reduce__(self) -> str:
        return self.__qualname__


def fuse(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    dtype: Any = None,
    cases: Sequence[Mapping[str, Any]] = ({},),
) -> Any:
    """Make an operator of a function on pixels. It fuses with its neighbours on the CPU and on a GPU.

    ::

        @stoker.fuse
        def vignette(p, strength: float = 0.5):
            d = (p.y / p.height - 0.5) ** 2 + (p.x / p.width - 0.5) ** 2
            return p.value * (1 - 2 * strength * d)

        images = vignette(images, strength=fn.random.uniform(range=(0, 1)))

    The function never runs per pixel. It is called when a pipeline is planned, with a :class:`Pixel` for each parameter
    that has neither annotation nor default. ``float`` and ``int`` parameters may differ from row to row; others are
    constants. The result is a number, which is rounded half to even and saturated to the input's type, or a tuple with a
    number for each channel. The operator is also ``fn.<name>`` and ``eager.<name>``.

    Args:
        function: the function.
        name: name of the operator; by default that of the function.
        dtype: element type of the result; by default that of the first input.
        cases: arguments for tests (``stoker.testing.check_operator``).
    """
    if function is None:
        return lambda f: fuse(f, name=name, dtype=dtype, cases=cases)
    if not inspect.isfunction(function):
        raise ArgumentError(f"`stoker.fuse`: expected a function, got {brief(function)}")
    made_from = _Function(function, None if dtype is None else DType.of(dtype))
    called = name or function.__name__
    place = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
    draws = "uniform" in function.__code__.co_names

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(made_from.arguments)
        namespace |= {
            "__doc__": function.__doc__ or f"Function on pixels, defined at {place}.", "__module__": function.__module__,
            "made_from": made_from, "inputs": (made_from.inputs, made_from.inputs), "draws": int(draws),
            "cases": tuple(dict(case) for case in cases), "version": made_from.version(), "gives_bfloat16": True,
            "takes_bfloat16": True,
        }  # fmt: skip

    operator = new_class(function.__name__.title().replace("_", ""), (_Fused,), {"name": called}, fill)
    register(operator)
    return FusedFunction(function, operator)
