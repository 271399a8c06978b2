# SPDX-License-Identifier: Apache-2.0
"""Features of ``tf.train.Example`` records: their declarations, and columns that take them out of records."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.columns import Column
from ..contract.errors import ArgumentError, DataError, UnsupportedError
from ..contract.lowering import Lowering
from ..contract.step import ALIASES, ALLOCATES, Value
from ..contract.storage import Bools, Storage
from ..contract.text import brief
from ..contract.types import MAX_RANK, DType
from ..contract.whole_number import as_whole_number

int64, float32, string = "int64", "float32", "string"
_DTYPES = {int64: DType.INT64, float32: DType.FLOAT, string: DType.UINT8}
_NAMES = {DType.INT64: int64, DType.FLOAT: float32}


@dataclass(frozen=True)
class Feature:
    """Feature of an Example: its type, and the shape of its values.

    Attributes:
        dtype: "int64", "float32" or "string".
        shape: extents of a feature of fixed length; None if the length varies.
        partial_shape: extents of an item of a feature of variable length.
        default_value: replacement of missing values; None: they are an error.
    """

    dtype: str
    shape: tuple[int, ...] | None
    partial_shape: tuple[int, ...] = ()
    default_value: Any = None

    def packed(self) -> tuple[Any, ...]:
        """Return the declaration as plain values, which a graph can store."""
        return self.dtype, self.shape, self.partial_shape, self.default_value


class FixedLenFeature(Feature):
    """Feature with the same number of values in every record.

    Args:
        shape: extents of the values; ``()`` for a single one.
        dtype: ``tfrecord.int64``, ``tfrecord.float32`` or ``tfrecord.string``.
        default_value: number, list of numbers, or bytes for records that lack the feature. Where a record has fewer
            numbers than the shape, it replaces the rest. Without it, such records are errors.

    Raises:
        ArgumentError: the arguments do not fit together.
        UnsupportedError: several strings.
    """

    def __init__(self, shape: Any, dtype: Any, default_value: Any = None) -> None:
        kind, extents = _dtype(dtype), _extents("shape", shape)
        if kind == string and extents not in ((), (1,)):
            raise UnsupportedError(
                f"expected a feature of one string, with shape () or [1], got the shape {list(extents)}: a tensor "
                "cannot hold several strings"
            )
        super().__init__(kind, extents, (), _default(kind, default_value, extents))


class VarLenFeature(Feature):
    """Feature with any number of values. Records that lack it have none.

    Args:
        partial_shape: extents of the axes after the first one, such as ``[4]`` for boxes; may be left out.
        dtype: ``tfrecord.int64`` or ``tfrecord.float32``.
        default_value: accepted as in DALI; a missing feature has no values.

    Raises:
        ArgumentError: the arguments do not fit together.
        UnsupportedError: strings.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        given = dict(named)
        order = ("dtype", "default_value") if args and _is_dtype(args[0]) else _ORDER
        if len(args) > len(order) or set(order[: len(args)]) & set(given) or not set(given) <= set(_ORDER):
            raise ArgumentError(
                "expected VarLenFeature(dtype, default_value) or VarLenFeature(partial_shape, dtype, default_value), "
                f"got {brief(args)} and {brief(named)}"
            )
        given.update(zip(order, args, strict=False))
        kind = _dtype(given.get("dtype"))
        if kind == string:
            raise UnsupportedError(
                "expected a feature of numbers, got strings: a tensor cannot hold several of them. A feature of one "
                "string is FixedLenFeature((), tfrecord.string)"
            )
        item = _extents("partial_shape", given.get("partial_shape") or ())
        if len(item) >= MAX_RANK:
            raise ArgumentError(f"expected at most {MAX_RANK - 1} extents as `partial_shape`, got {len(item)}")
        super().__init__(kind, None, item)


_ORDER = ("partial_shape", "dtype", "default_value")


def _is_dtype(value: Any) -> bool:
    return not isinstance(value, (list, tuple, np.ndarray)) and value is not None


def _dtype(value: Any) -> str:
    if isinstance(value, str) and value in _DTYPES:
        return value
    if value is not None:
        try:
            return _NAMES[DType.of(value)]
        except (TypeError, KeyError):
            pass
    raise ArgumentError(f"expected tfrecord.int64, tfrecord.float32 or tfrecord.string, got {brief(value)}")


def _extents(name: str, value: Any) -> tuple[int, ...]:
    items = [value] if as_whole_number(value) is not None else value
    try:
        found = [as_whole_number(n) for n in items]
    except TypeError:
        found = [None]
    if any(n is None or not 1 <= n < 1 << 40 for n in found) or len(found) > MAX_RANK:
        raise ArgumentError(f"expected a list of extents >= 1 as `{name}`, got {brief(value)}")
    extents = tuple(int(n) for n in found if n is not None)
    if np.prod([float(n) for n in extents]) > 1 << 40:
        raise ArgumentError(f"expected at most 2**40 elements, got the {name} {brief(value)}")
    return extents


def _default(kind: str, value: Any, extents: tuple[int, ...]) -> Any:
    """Return a default value in the form that a graph can store."""
    if value is None:
        return None
    if kind == string:
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        if isinstance(value, str):
            return value
        raise ArgumentError(f"expected a string as `default_value`, got {brief(value)}")
    try:
        array = np.asarray(value)
        numbers = array.astype(_DTYPES[kind].numpy) if array.dtype.kind in "biuf" else None
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None or (kind == int64 and (numbers != array).any()):
        raise ArgumentError(f"expected numbers of type {kind} as `default_value`, got {brief(value)}")
    if numbers.size != 1 and numbers.shape != extents:
        raise ArgumentError(
            f"expected one number or numbers of the shape {list(extents)} as `default_value`, got {list(numbers.shape)}"
        )
    flat = numbers.reshape(-1).tolist()
    return flat[0] if len(flat) == 1 else tuple(flat)


def as_features(value: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the declarations in a dict, or in the form of this function, as (name, declaration ...) each.

    Raises:
        ArgumentError: the value is neither.
    """
    items = list(value.items()) if isinstance(value, Mapping) else None
    if items is None and isinstance(value, (list, tuple)) and all(_is_packed(v) for v in value):
        items = [(v[0], _unpacked(v[1:])) for v in value]
    if not items or len({name for name, _ in items}) < len(items):
        raise ArgumentError(f"expected a dict of FixedLenFeature and VarLenFeature by name, got {brief(value)}")
    for name, feature in items:
        if not isinstance(name, str) or not isinstance(feature, Feature):
            raise ArgumentError(
                f"expected a tfrecord.FixedLenFeature or tfrecord.VarLenFeature for {brief(name)}, got {brief(feature)}"
            )
    return tuple((name, *feature.packed()) for name, feature in items)


def unpacked_features(packed: Sequence[Sequence[Any]]) -> list[tuple[str, Feature]]:
    """Return names and declarations of what :func:`as_features` returned."""
    return [(one[0], _unpacked(one[1:])) for one in packed]


def _is_packed(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 5 and isinstance(value[0], str)


def _unpacked(packed: Sequence[Any]) -> Feature:
    dtype, shape, partial_shape, default = packed
    if shape is None:
        return VarLenFeature(partial_shape, dtype)
    return FixedLenFeature(shape, dtype, default)


class ExampleColumn(Column):
    """Feature of the Examples in a storage.

    Args:
        name: name of the feature, in Examples and in messages.
        feature: its declaration.
        storage: storage of the Examples. Columns over one storage read a record once.
    """

    layout = ""
    optional = False

    def __init__(self, name: str, feature: Feature, storage: Storage) -> None:
        self.name, self.feature, self._storage = name, feature, storage
        self.dtype = _DTYPES[feature.dtype]
        self._item = feature.partial_shape if feature.shape is None else feature.shape[1:]
        if feature.dtype == string:
            self.rank = 1
        else:
            self.rank = 1 + len(feature.partial_shape) if feature.shape is None else len(feature.shape)

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> Storage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        record = self._storage.lower(c, reader, DType.UINT8, (), "")
        name, feature = self.name.encode("utf-8", "surrogateescape"), self.feature
        if feature.dtype == string:
            value = c.opaque(DType.UINT8, 1)
            missing = feature.default_value
            attrs = (name, None if missing is None else missing.encode("utf-8", "surrogateescape"))
            c.emit("example_bytes", [record, record], [value], attrs=attrs, memory=ALIASES)
            return value
        if feature.shape is None:
            value = c.opaque(self.dtype, self.rank, "", (None, *self._item))
            c.emit("example_list", [record], [value], attrs=(name, self._item), memory=ALLOCATES)
            return value
        outputs = [(self.dtype, feature.shape, "")]
        return c.native("example_numbers", [record], outputs, attrs=(name, self._missing()))[0]

    def _missing(self) -> npt.NDArray[Any]:
        """Return the default value of every element; an empty array if there is none."""
        if self.feature.default_value is None or self.feature.shape is None:
            return np.empty(0, self.dtype.numpy)
        count = int(np.prod(self.feature.shape, dtype=np.int64))
        return np.ascontiguousarray(
            np.broadcast_to(np.asarray(self.feature.default_value, self.dtype.numpy).reshape(-1), count)
        )

    def row(self, index: int) -> npt.NDArray[Any]:
        kind, values = read_feature(self._storage.content(index), self.name)
        if kind not in (None, self.feature.dtype):
            raise DataError(f"expected {self.feature.dtype} in the feature {self.name!r}, got {kind}", sample=index)
        return self._shaped(values, index)

    def _shaped(self, values: list[Any], index: int) -> npt.NDArray[Any]:
        feature = self.feature
        if feature.dtype == string:
            if not values and feature.default_value is None:
                raise DataError(f"expected bytes in the feature {self.name!r}, got none", sample=index)
            content = values[0] if values else feature.default_value.encode("utf-8", "surrogateescape")
            return np.frombuffer(content, np.uint8) if content else np.empty(0, np.uint8)
        numbers = np.asarray(values, self.dtype.numpy)
        if feature.shape is None:
            size = int(np.prod(self._item, dtype=np.int64))
            if len(numbers) % size:
                raise DataError(
                    f"expected a multiple of {size} numbers in {self.name!r}, got {len(numbers)}", sample=index
                )
            return numbers.reshape(-1, *self._item)
        wanted, missing = int(np.prod(feature.shape, dtype=np.int64)), self._missing()
        if len(numbers) > wanted or (len(numbers) < wanted and not missing.size):
            raise DataError(f"expected {wanted} numbers in the feature {self.name!r}, got {len(numbers)}", sample=index)
        return np.concatenate([numbers, missing[len(numbers) :]]).reshape(feature.shape)

    def joined(self, others: Sequence[Column]) -> ExampleColumn:
        same = [o for o in others if isinstance(o, ExampleColumn) and (o.name, o.feature) == (self.name, self.feature)]
        if len(same) < len(others) or any(type(o.storage) is not type(self._storage) for o in same):
            raise ArgumentError(f"expected parts with the same columns, got another declaration of {brief(self.name)}")
        return ExampleColumn(self.name, self.feature, self._storage.joined([o.storage for o in same]))


# ---- the native parser's twin in Python ----

_KINDS = {1: string, 2: float32, 3: int64}


def read_feature(example: bytes, name: str) -> tuple[str | None, list[Any]]:
    """Return the type and the values of a feature; None and no values if the Example lacks it.

    Raises:
        DataError: the Example is damaged.
    """
    wanted = name.encode("utf-8", "surrogateescape")
    entry = None
    for features in _messages(example, 1):
        for one in _messages(features, 1):
            if (_messages(one, 1) or [b""])[-1] == wanted:
                entry = one
    return (None, []) if entry is None else _feature_of(entry)


def read_features(example: bytes) -> dict[str, tuple[str | None, list[Any]]]:
    """Return the type and the values of every feature, by name.

    Raises:
        DataError: the Example is damaged.
    """
    entries = {}
    for features in _messages(example, 1):
        for one in _messages(features, 1):
            entries[(_messages(one, 1) or [b""])[-1]] = one
    return {name.decode("utf-8", "surrogateescape"): _feature_of(entry) for name, entry in entries.items()}


def _feature_of(entry: bytes) -> tuple[str | None, list[Any]]:
    """Return the type and the values of an entry of an Example's map of features."""
    kind: str | None = None
    values: list[Any] = []
    for feature in _messages(entry, 2):
        for field, wire, content in wire_fields(feature):
            if field not in _KINDS or wire != 2:
                continue
            if _KINDS[field] != kind:
                kind, values = _KINDS[field], []
            values += _values(_KINDS[field], content)
    return kind, values


def _messages(message: bytes, wanted: int) -> list[bytes]:
    return [content for field, wire, content in wire_fields(message) if field == wanted and wire == 2]


def _values(kind: str, message: bytes) -> list[Any]:
    found: list[Any] = []
    for field, wire, content in wire_fields(message):
        if field != 1:
            continue
        if kind == string and wire == 2:
            found.append(content)
        elif kind == float32 and wire in (2, 5):
            if len(content) % 4:
                raise DataError("expected a tf.train.Example, got damaged bytes")
            found += struct.unpack(f"<{len(content) // 4}f", content)
        elif kind == int64 and wire == 0:
            found.append(_signed(content))
        elif kind == int64 and wire == 2:
            at = 0
            while at < len(content):
                number, at = _varint(content, at)
                found.append(_signed(number))
    return found


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def wire_fields(message: bytes, kind: str = "a tf.train.Example") -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and content of the fields of a message of protocol buffers.

    Raises:
        DataError: the message is damaged.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, wire = tag >> 3, tag & 7
        content: Any
        if wire == 0:
            content, at = _varint(message, at)
        elif wire in (1, 2, 5):
            size, at = _varint(message, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            content, at = message[at : at + size], at + size
        if wire not in (0, 1, 2, 5) or not 0 < tag < 1 << 32 or field == 0 or at > len(message):
            raise DataError(f"expected {kind}, got damaged bytes")
        yield field, wire, content


def varints(content: bytes) -> list[int]:
    """Return the numbers of a packed field.

    Raises:
        DataError: the bytes end within a number.
    """
    at, found = 0, []
    while at < len(content):
        number, at = _varint(content, at)
        found.append(number)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (1 << 64) - 1, at
    raise DataError("expected a tf.train.Example, got damaged bytes")
