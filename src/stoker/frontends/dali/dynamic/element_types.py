# SPDX-License-Identifier: Apache-2.0
"""Element types of the imperative mode."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

from ....contract.errors import ArgumentError
from ....contract.text import brief
from ....contract.types import DType as TypeId
from ..errors import error_class
from ..type_names import DALIDataType

_FRACTION_BITS = {TypeId.FLOAT16: 10, TypeId.BFLOAT16: 7, TypeId.FLOAT: 23, TypeId.FLOAT64: 52}


class DType:
    """Element type, such as ``float32``. Calling it makes a tensor of this type.

    Attributes:
        type_id: the member of ``types.DALIDataType``.
        kind: signed, unsigned, float, bool or enum.
        bits, bytes: size of an element.
        exponent_bits, significand_bits: parts of a float; None for other types.
        name: the type's name here.
    """

    class Kind(Enum):
        """Class of numbers."""

        signed = "i"
        unsigned = "u"
        float = "f"
        bool = "bool"

    def __init__(self, type_id: TypeId, name: str) -> None:
        """Describe a type.

        Args:
            type_id: the member of ``types.DALIDataType``.
            name: the type's name here.
        """
        kind = type_id.numpy.kind
        letter = "f" if type_id.is_float else "bool" if type_id == TypeId.BOOL else kind
        self.type_id, self.name = DALIDataType.of(type_id), name
        self.kind = DType.Kind(letter)
        self.bytes = 2 if type_id == TypeId.BFLOAT16 else type_id.size
        self.bits = 8 * self.bytes
        fraction = _FRACTION_BITS.get(type_id)
        self.significand_bits = fraction
        self.exponent_bits = None if fraction is None else self.bits - 1 - fraction

    make_tensor: ClassVar[Callable[..., Any]]  # `tensors` sets it

    def __call__(self, data: Any, **arguments: Any) -> Any:
        """Return a tensor of this type.

        Args:
            data: as for `tensor`.
            **arguments: those of `tensor`.
        """
        return DType.make_tensor(data, self, **arguments)

    def __str__(self) -> str:
        if self.type_id in (TypeId.BOOL, TypeId.BFLOAT16):
            return "bool" if self.type_id == TypeId.BOOL else "bf16"
        return f"{self.kind.value}{self.bits}"

    def __repr__(self) -> str:
        return f"DType({self})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.type_id == other.type_id
        return self.type_id == other if isinstance(other, (TypeId, DALIDataType)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.type_id)

    @staticmethod
    def from_type_id(type_id: TypeId | DALIDataType) -> DType:
        """Return the type of a member of ``types.DALIDataType``."""
        return TYPES[TypeId.of(type_id)]

    @staticmethod
    def from_fw_type(framework_type: Any) -> DType:
        """Return the type of a type of NumPy's or a framework's."""
        return dtype(framework_type)

    @staticmethod
    def parse(name: str) -> DType:
        """Return the type of a name: ``float32``, ``f32``."""
        found = next((t for t in TYPES.values() if name in (t.name, str(t))), None)
        if found is None:
            raise error_class(ArgumentError)(f"expected the name of an element type, got {brief(name)}")
        return found


_NAMES = {
    TypeId.BOOL: "bool", TypeId.UINT8: "uint8", TypeId.UINT16: "uint16", TypeId.UINT32: "uint32",
    TypeId.UINT64: "uint64", TypeId.INT8: "int8", TypeId.INT16: "int16", TypeId.INT32: "int32", TypeId.INT64: "int64",
    TypeId.FLOAT16: "float16", TypeId.BFLOAT16: "bfloat16", TypeId.FLOAT: "float32", TypeId.FLOAT64: "float64",
}  # fmt: skip
TYPES = {type_id: DType(type_id, name) for type_id, name in _NAMES.items()}


def dtype(of: Any) -> DType:
    """Return an element type.

    Args:
        of: a type, its name, a member of ``types.DALIDataType``, or a type of NumPy's or a framework's.
    """
    if isinstance(of, DType):
        return of
    if isinstance(of, str):
        return DType.parse(of)
    try:
        return TYPES[TypeId.of(of)]
    except (TypeError, ValueError) as error:
        raise error_class(ArgumentError)(f"expected an element type, got {brief(of)}") from error


def type_id(of: Any) -> DALIDataType:
    """Return the member of ``types.DALIDataType``.

    Args:
        of: as for `dtype`.
    """
    return dtype(of).type_id


def stored_type(of: Any) -> TypeId:
    """Return the element type of the tensors that store the elements.

    Args:
        of: as for `dtype`.
    """
    return TypeId.of(dtype(of).type_id)
