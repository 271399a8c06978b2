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
from ..contract.errors import ArgumentError, StokerError
from ..contract.lowering import Lowering, UndeclaredTypes
from ..contract.operator import Operator, RowContext
from ..contract.pixel import Px, uniform
from ..contract.step import Value
from ..contract.text import brief
from ..contract.types import DType
from ..ops.generic.cast import cast_array
from ..ops.random._elements import ElementDraws, ElementDrawsReference
from .data_node import DataNode
from .pixel_numbers import LAYOUTS, ArrayPixel, Arrays, Maker, Pixel, Traced, TracedPixel, Uses
from .registry import register

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
    inputs = 0
    arguments: dict[str, Argument] = {}
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

    def values(self, maker: Maker, get: Callable[[str, DType], Any], const: Callable[[str], Any]) -> dict[str, Any]:
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
        maker, uses = Traced(len(inputs)), Uses()

        def trace(channel: int, draws: ElementDraws | None) -> Any:
            uses.draws = maker.operations = 0
            pixels = [TracedPixel(c, x, i, channel, maker, uses, draws) for i, x in enumerate(inputs)]
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
        f, maker, uses = self.made_from, Arrays(), Uses()
        arrays = [np.asarray(x) for x in inputs]
        layouts = [row.layouts[i] if i < len(row.layouts) else "" for i in range(len(arrays))]

        def call(draws: Callable[[int], Any]) -> Any:
            uses.draws = 0
            pixels = [
                ArrayPixel(layout or LAYOUTS.get(x.ndim, ""), x, maker, uses, draws)
                for x, layout in zip(arrays, layouts, strict=True)
            ]
            numbers = f.values(maker, lambda key, dtype: dtype.numpy.type(row.number(key)), lambda key: row[key])
            return f.call(pixels, numbers)

        x = arrays[0]
        layout = layouts[0] or LAYOUTS.get(x.ndim, "")
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


def _content(maker: Traced, result: Any) -> Px:
    """Return the expression of a function's result."""
    return maker.content_of(result)  # type: ignore[no-any-return]


def _number(c: Lowering, key: str, dtype: DType) -> Any:
    """Return an argument, truncated if it is a whole number that a node computes."""
    return c.scalar(key) if dtype.is_float else ex.trunc(c.scalar(key))


def _equal(a: Any, b: Any) -> Any:
    return True if ex.same(a, b) else ex.equal(a, b)


def _tables(c: Lowering, maker: Traced) -> list[Value]:
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
        """Add a node if an input or argument is one, else compute arrays (``stoker.eager``).

        Raises:
            ArgumentError: an input is passed by name.
        """
        names = list(inspect.signature(self._function).parameters)[: self.operator.inputs[1]]
        for key in arguments.keys() & set(names):
            raise ArgumentError(
                f"`{self.operator.name}`: expected `{key}` by position, because parameters without annotation and "
                f"default are inputs, got it by name. For an argument annotate it: `{key}: float`"
            )
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
    constants. The result is a number, which is rounded half to even and saturated to the input's type, or a tuple with
    a number for each channel. The operator is also ``fn.<name>`` and ``eager.<name>``.

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
            "__doc__": function.__doc__ or f"Function on pixels, defined at {place}.",
            "__module__": function.__module__,
            "made_from": made_from, "inputs": (made_from.inputs, made_from.inputs), "draws": int(draws),
            "cases": tuple(dict(case) for case in cases), "version": made_from.version(), "gives_bfloat16": True,
            "takes_bfloat16": True,
        }  # fmt: skip

    operator = new_class(function.__name__.title().replace("_", ""), (_Fused,), {"name": called}, fill)
    register(operator)
    return FusedFunction(function, operator)
