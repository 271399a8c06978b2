# SPDX-License-Identifier: Apache-2.0
"""Numbers of pixels in functions under ``stoker.fuse``: recorded expressions, or arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.lowering import Lowering
from ..contract.pixel import Px, binary, coordinate, load, lookup, select, uniform
from ..contract.step import Value
from ..contract.text import brief
from ..contract.types import DType, promote
from ..ops.generic._arithmetic_reference import arithmetic_reference
from ..ops.generic.arithmetic import BITWISE, FLOATING, OPERANDS, combine
from ..ops.generic.cast import cast_array
from ..ops.random._elements import ElementDraws

MOST_OPERATIONS = 256  # of a function; passes walk expressions recursively
LAYOUTS = {2: "HW", 3: "HWC", 4: "FHWC"}
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

    def __init__(self, content: Any, made_by: Maker) -> None:
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
            "a pixel has no truth value, because the function is traced once for all pixels. Use "
            "`stoker.where(condition, a, b)` instead of `if`, `&` and `|` instead of `and` and `or`"
        )

    def _no_number(self, *_: Any) -> Any:
        raise UnsupportedError(
            "a pixel is not one number, because the function is traced once for all pixels. Loops and indices need "
            "arguments that are constants: annotate them as `bool` or `str`, or use `stoker.table(array)[value]`"
        )

    __int__ = __float__ = __index__ = __iter__ = __len__ = __complex__ = __array__ = _no_number

    def __getitem__(self, index: Any) -> NoReturn:
        raise UnsupportedError(f"expected arithmetic on a number of a pixel, got the index {brief(index)}: `p[0]` is "
                               "the first channel of the pixel `p`")  # fmt: skip

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


class Maker(ABC):
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

    @abstractmethod
    def constant(self, x: Any, dtype: DType) -> Any:
        """Return a constant of the type."""

    @abstractmethod
    def apply(self, op: str, contents: list[Any]) -> Any:
        """Return the result of an operation on contents."""

    @abstractmethod
    def dtype_of(self, content: Any) -> DType:
        """Return the type of a content."""

    @abstractmethod
    def cast(self, content: Any, dtype: DType) -> Any:
        """Return the content as another type."""

    @abstractmethod
    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        """Return ``a`` where the condition holds, else ``b``."""

    @abstractmethod
    def entry(self, table: Table, index: Number) -> Number:
        """Return the entry of a table at an index."""


class Traced(Maker):
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


class Arrays(Maker):
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


class Pixel(ABC):
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

    @abstractmethod
    def _element(self) -> Number:
        """Return the element of the pixel in the channel that is computed."""

    @abstractmethod
    def _in_channel(self, channel: int) -> Number:
        """Return the element of the pixel in another channel."""

    @abstractmethod
    def _index(self, axis: int) -> Number:
        """Return the index along an axis."""

    @abstractmethod
    def _extent(self, axis: int) -> Any:
        """Return the extent of an axis."""

    @abstractmethod
    def _draw(self) -> Number:
        """Return a random number of the element."""

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

    def _no_number(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedError(
            "expected a number, got a pixel as a whole. `p.value` is its element in the channel that is computed, "
            "`p[0]` the one in the first channel"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_number
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _no_number
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _no_number
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = _no_number
    __eq__ = __ne__ = __bool__ = __int__ = __float__ = __index__ = __len__ = _no_number
    __array__ = __array_ufunc__ = __array_function__ = __stoker_math__ = _no_number
    __hash__ = None  # type: ignore[assignment]

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


class TracedPixel(Pixel):
    """Pixel whose numbers are expressions of an input. ``channel`` is the one that is computed, -1 for every one."""

    def __init__(
        self, c: Lowering, x: Value, port: int, channel: int, maker: Traced, uses: Uses, draws: ElementDraws | None
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


class ArrayPixel(Pixel):
    """Pixel whose numbers are arrays over all pixels."""

    def __init__(self, layout: str, x: Any, maker: Arrays, uses: Uses, draws: Callable[[int], Any]) -> None:
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
