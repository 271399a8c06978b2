# SPDX-License-Identifier: Apache-2.0
"""Arguments of operators: kinds, defaults, and the conversion of users' values."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .file_path import as_path
from .text import brief
from .types import MAX_RANK, DType, ImageType, InterpType


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


_MAX_NUMBERS = 1 << 24
_NO_VALUE = object()


@dataclass(frozen=True)
class Argument:
    """Declared argument of an operator.

    Attributes:
        kind: int, float, bool, str, dtype, image_type, interp, or object.
        many: the argument takes a list as well as a single value. Values are stored as a tuple.
        per_row: the argument may be a node of the graph, with another value for every row (or frame).
        default: value of an argument that is not given; ``REQUIRED`` if it must be given.
        per_axis: a list has at most one number for each axis of a tensor.
    """

    kind: str
    doc: str
    default: Any = REQUIRED
    many: bool = False
    per_row: bool = False
    choices: tuple[Any, ...] = ()
    per_axis: bool = False

    def convert(self, value: Any) -> Any:
        """Convert ``value`` to this argument's type.

        Raises:
            TypeError, ValueError: the value does not fit.
        """
        if value is None or self.kind == "object":
            return value
        if self.many and isinstance(value, np.ndarray) and value.ndim:
            self.require_axes(value.size)
            if value.size > _MAX_NUMBERS:  # such as a broadcast array, whose elements exist only once
                raise ValueError(f"expected at most {_MAX_NUMBERS} values of a constant argument, got {value.size}")
            return tuple(map(self._one, value.reshape(-1)))
        if self.many and isinstance(value, (list, tuple)):
            self.require_axes(len(value))
            return tuple(map(self._one, value))
        one = self._one(value)
        return (one,) if self.many and self.kind in ("int", "float", "str") else one

    def require_axes(self, count: int) -> None:
        """Raise ValueError if the argument is one of axes, and ``count`` numbers are more than a tensor has axes."""
        if self.per_axis and count > MAX_RANK:
            raise ValueError(too_many_axes(count))

    def convert_default(self) -> Any:
        """Return the default in its stored form; None if there is no default."""
        return None if self.default is REQUIRED else self.convert(self.default)

    def _one(self, value: Any) -> Any:
        one = _CONVERT[self.kind](value)
        if self.choices and one not in self.choices:
            raise ValueError(f"expected one of {', '.join(map(repr, self.choices))}, got {brief(value)}")
        return one


def too_many_axes(count: int) -> str:
    """Return the text of the error that a list has more numbers than a tensor has axes."""
    return f"expected at most {MAX_RANK} axes, got {count}. Join neighbouring axes into one where there are more"


def arg(
    kind: str,
    default: Any = REQUIRED,
    *,
    doc: str,
    many: bool = False,
    per_row: bool = False,
    choices: tuple[Any, ...] = (),
    per_axis: bool = False,
) -> Any:
    """Declare an argument of an operator, as a class attribute: ``bits = arg("int", 4, doc="Bits to keep.")``.

    Args:
        kind: type of the values: "int", "float", "bool", "str", "dtype", "image_type", "interp" or "object".
        default: value of an argument that is not given. Without a default the argument is required.
        doc: meaning, unit and range, for the operator's page and for messages.
        many: take a list as well as a single value. The operator gets a tuple.
        per_row: take a node as well, with another value for every row (or frame).
        choices: the valid values; by default all of the type.
        per_axis: a list names axes, or has a number for each axis: one of more numbers than a tensor has axes is
            refused before the operator is planned.
    """
    return Argument(kind, doc, default, many, per_row, choices, per_axis)


def _to_int(value: Any) -> int:
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    if not whole and not isinstance(value, (bool, np.bool_, int, np.integer)):
        raise TypeError(f"expected an integer, got {brief(value)}")
    if not -(1 << 63) <= int(value) < 1 << 64:
        raise ValueError(f"expected an integer of at most 64 bits, got {brief(value)}")
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, (str, bytes, complex, np.complexfloating)) or (
        isinstance(value, np.ndarray) and not _is_one(value)
    ):
        raise TypeError(f"expected a number, got {brief(value)}")
    # `float` would give a nan, with a warning. A masked number exists only if its module has been imported. An import
    # here might run in another thread at the moment of a fork, and the child would wait for it forever.
    if value is getattr(sys.modules.get("numpy.ma"), "masked", _NO_VALUE):
        raise TypeError("expected a number, got a masked one")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"expected a number that a float holds, got {brief(value)}") from None
    except Exception:  # noqa: BLE001 - a user's `__float__` may raise anything
        raise TypeError(f"expected a number, got {brief(value)}") from None


def _is_one(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array is a single real number without axes."""
    return array.ndim == 0 and array.dtype.kind in "biuf"


def _to_bool(value: Any) -> bool:
    if isinstance(value, (bool, int, np.bool_, np.integer)):
        return bool(value)
    raise TypeError(f"expected True or False, got {brief(value)}")


def _to_str(value: Any) -> str:
    text = as_path(value)
    if not isinstance(text, str):
        raise TypeError(f"expected a string, got {brief(value)}")
    return text


def _to_enum(cls: type[enum.IntEnum]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        name = value.name if isinstance(value, enum.Enum) else value  # also another library's enumeration
        if isinstance(name, str) and name in cls.__members__:
            return cls[name]
        raise TypeError(f"expected one of types.{', types.'.join(cls.__members__)}, got {brief(value)}")

    return convert


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "int": _to_int,
    "float": _to_float,
    "bool": _to_bool,
    "str": _to_str,
    "dtype": DType.of,
    "image_type": _to_enum(ImageType),
    "interp": _to_enum(InterpType),
}

COMMON = {
    "name": Argument("str", "Name of the node, shown in errors and by which outputs and readers are found.", None),
    "device": Argument("str", "Where the operator runs.", None, choices=("cpu", "gpu", "mixed")),
    "preserve": Argument("bool", "Run the operator also if its output is not used.", False),
    "bytes_per_sample_hint": Argument("int", "Accepted for compatibility; memory is planned.", 0, many=True),
}
ON_ERROR = Argument(
    "str", "In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the "
    "pipeline's `on_error` says.", None, choices=("raise", "replace", "skip"),
)  # fmt: skip
SEED = Argument("int", "Seed of this operator's draws; by default it follows from the pipeline's.", None)
