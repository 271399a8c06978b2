# SPDX-License-Identifier: Apache-2.0
"""``readers.numpy``: arrays in .npy files, or regions of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.expr import Scalar, is_static
from ..contract.lowering import Lowering
from ..contract.page_cache import refuse_direct_io
from ..contract.step import ALLOCATES, Value
from ..contract.storage import Bools
from ..contract.text import brief, printable, reason_of
from ..contract.types import DType
from ..native import _native
from ._array_files import check_names, list_names
from ._columns import fingerprint
from ._containers import ContainerReader
from ._fetching import AsyncStorage
from ._folders import whole_files
from ._origins import OriginReader
from ._storages import FileStorage

_POLICIES = ("error", "pad", "trim_to_shape")
_STARTS = ("roi_start", "rel_roi_start")
_ENDS = ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")
_HEAD_BYTES = (1 << 20) + 12
_MOST_TRIED = 100  # files whose headers are looked at until one says the type


class NumpyReader(OriginReader, ContainerReader, name="readers.numpy"):
    """Read arrays in .npy files (versions 1 to 3). Output: the array, or a region of it.

    All arrays have the type and the number of axes of the first one; their extents may differ. Arrays in Fortran order
    and big-endian ones become contiguous arrays in the order of C, little-endian.

    A region has a start (`roi_start`, or `rel_roi_start` as a share of the extent) and an end or a shape, in the axes
    `roi_axes`, or in all axes. Relative numbers are rounded to the nearest element. Only the rows of the slowest axis
    that the region needs are read from the file. With ``device="gpu"`` large arrays go to the GPU in pieces, or by
    GPUDirect Storage, if the environment's ``STOKER_GDS`` is ``auto`` or ``on``.
    """

    outputs = 1
    result_neutral = (*ContainerReader.result_neutral, "origin", "file_root", "file_list", "files", "file_filter",
                      "cache_header_information", "register_buffers", "use_o_direct")  # fmt: skip
    file_root = arg("str", None, doc="Folder of the files, with its sub-folders; the base of relative paths otherwise.")
    file_filter = arg("str", "*.npy", doc="Pattern of the names to take in the folder.")
    file_list = arg("str", None, doc="Text file with one path per line.")
    files = arg("object", None, doc="Paths, absolute or relative to file_root.")
    roi_start = arg(
        "int", None, many=True, per_axis=True, per_row=True, doc="First index of the region in each axis; by default 0."
    )
    rel_roi_start = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Start of the region as a share of the extent: 0 to 1.",
    )
    roi_end = arg("int", None, many=True, per_axis=True, per_row=True, doc="Index after the region in each axis.")
    rel_roi_end = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="End of the region as a share of the extent."
    )
    roi_shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Extents of the region.")
    rel_roi_shape = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="Extents of the region as shares of the extents."
    )
    roi_axes = arg(
        "int", (), many=True, per_axis=True, doc="Axes that the region limits; negative ones count from the last."
    )
    out_of_bounds_policy = arg(
        "str", "error", choices=_POLICIES, doc="Policy for regions that are not inside of the array: error, pad "
        "with `fill_value`, or trim_to_shape.",
    )  # fmt: skip
    fill_value = arg("float", 0.0, doc="Value outside of the array, rounded and limited to the array's type.")
    cache_header_information = arg("bool", False, doc="No effect: a header is read with its array.")
    register_buffers = arg("bool", True, doc="Ignored: Stoker and cuFile have buffers of their own.")
    use_o_direct = arg("bool", False, doc="Only False: files are read through the page cache.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        refuse_direct_io(args)
        check_names(args)
        for names in (_STARTS, _ENDS):
            used = [name for name in names if args.get(name, ()) is not None]
            if len(used) > 1:
                raise ArgumentError(f"expected at most one of `{'`, `'.join(names)}`, got `{'` and `'.join(used)}`")

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """List the files, and read the header of the first one.

        Raises:
            ArgumentError: there are no files, or none has an array.
            OSError: the operating system fails.
        """
        folder, names = list_names(args)
        storage = whole_files(names, folder.root, folder.known)
        dtype, rank = _first_type(storage)
        known = {n for n in (*_STARTS, *_ENDS) if n in args}
        constant = len(known) == len(_STARTS) + len(_ENDS)

        def numbers(name: str) -> Sequence[Scalar] | None:
            value: Sequence[Scalar] | None = args[name]
            return value

        region = _region(args, dtype, rank, numbers) if constant else None
        column = ArrayColumn(storage, dtype, rank, region)
        return DataSet((column,), fingerprint("\0".join(names), str(dtype), str(rank)))

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        reader = c.reader()
        column: ArrayColumn = c.source.columns[0]
        region = _region(c.scope.args, column.dtype, column.rank, _numbers_of(c))
        array = column.lower_region(c, reader, region)
        return (array, *(more.lower(c, reader) for more in c.source.columns[1:]))


@dataclass(frozen=True)
class Region:
    """Region of arrays, in numbers that the native kernel knows.

    Attributes:
        axes: the limited axes.
        start: kind of the start (0: none, 1: ``roi_start``, 2: ``rel_roi_start``), and a number per axis.
        end: kind of the end (0: none, then in the order of ``_ENDS``), and a number per axis.
        policy: number in ``_POLICIES``.
        fill: value outside of the array, ``(1,)``.
    """

    axes: tuple[int, ...]
    start: tuple[int, tuple[Scalar, ...]]
    end: tuple[int, tuple[Scalar, ...]]
    policy: int
    fill: npt.NDArray[Any]

    def of(self, shape: Sequence[int]) -> list[tuple[int, int]]:
        """Return begin and end per axis for constant numbers, as the native kernel computes them."""
        found = [(0, n) for n in shape]
        for k, axis in enumerate(self.axes):
            extent = shape[axis]
            start = _number(self.start[1][k]) if self.start[0] else 0.0
            begin = np.floor(start * extent + 0.5) if self.start[0] == 2 else start
            number = _number(self.end[1][k]) if self.end[0] else 0.0
            end: float = {
                0: extent, 1: number, 2: np.floor(number * extent + 0.5), 3: begin + number,
                4: np.floor((start + number) * extent + 0.5) if self.start[0] == 2
                else begin + np.floor(number * extent + 0.5),
            }[self.end[0]]  # fmt: skip
            if end < begin or (self.policy == 0 and not 0 <= begin <= end <= extent):
                raise DataError(f"expected a region inside of {extent} elements, got {begin:g} to {end:g}")
            low, high = (0, extent) if self.policy == 2 else (-np.inf, np.inf)
            found[axis] = int(np.clip(begin, low, high)), int(np.clip(end, low, high))
        return found


class ArrayColumn(Column):
    """Arrays in .npy files, or a region of each.

    Args:
        files: the files, or whole objects.
        dtype: type of all arrays.
        rank: number of axes of all arrays.
        region: the region to take; None if it differs from row to row.
    """

    name = "array"
    layout = ""
    optional = False

    def __init__(self, files: FileStorage | AsyncStorage, dtype: DType, rank: int, region: Region | None) -> None:
        self.dtype, self.rank = dtype, rank
        self._files, self._region = files, region
        if isinstance(files, FileStorage):
            files.is_read_in_parts = region is not None

    def __len__(self) -> int:
        return len(self._files)

    @property
    def storage(self) -> FileStorage | AsyncStorage:
        return self._files

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        if self._region is None:
            raise ArgumentError("expected constants as the region of a reader that is joined with others, got nodes")
        return self.lower_region(c, reader, self._region)

    def lower_region(self, c: Lowering, reader: int, region: Region) -> Value:
        """Build the step that reads a region of a row's array."""
        array = c.opaque(self.dtype, self.rank)
        facts = (region.axes, region.start[0], region.end[0], region.policy, region.fill)
        params = (*region.start[1], *region.end[1])
        if isinstance(self._files, FileStorage):
            attrs = (self._files.table, reader, *facts)
            c.emit("read_numpy", [], [array], attrs=attrs, params=params, memory=ALLOCATES)
        else:
            data = self._files.lower(c, reader, DType.UINT8, (), "")
            c.emit("region_of_npy", [data], [array], attrs=facts, params=params, memory=ALLOCATES)
        return array

    def row(self, index: int) -> npt.NDArray[Any]:
        try:
            array = np.load(io.BytesIO(self._files.content(index)), allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise DataError(reason_of(error), sample=index) from None
        if array.dtype.newbyteorder("=") != self.dtype.numpy or array.ndim != self.rank:
            raise DataError(f"expected {self.dtype} with {self.rank} axes, got {array.dtype}", sample=index)
        array = array.astype(self.dtype.numpy)
        if self._region is None:
            return np.ascontiguousarray(array).reshape(array.shape)
        bounds = self._region.of(array.shape)
        out = np.full([end - begin for begin, end in bounds], self._region.fill[0], array.dtype)
        inside = [(max(b, 0), max(min(e, n), max(b, 0))) for (b, e), n in zip(bounds, array.shape, strict=True)]
        if all(low < high for low, high in inside):
            to = tuple(slice(low - b, high - b) for (low, high), (b, _) in zip(inside, bounds, strict=True))
            out[to] = array[tuple(slice(low, high) for low, high in inside)]
        return out

    def joined(self, others: Sequence[Column]) -> ArrayColumn:
        same = [o for o in others if isinstance(o, ArrayColumn) and (o.dtype, o.rank) == (self.dtype, self.rank)]
        regions = {repr(o._region) for o in (self, *same)}
        if len(same) < len(others) or len(regions) > 1:
            raise ArgumentError("expected parts with arrays of one type, one number of axes and one region")
        if any(type(o.storage) is not type(self._files) for o in same):
            raise ArgumentError("expected parts that are all files, or all objects of a store")
        files: Any = self._files
        return ArrayColumn(files.joined([o.storage for o in same]), self.dtype, self.rank, self._region)


def _number(x: Scalar) -> float:
    if not is_static(x):
        raise ArgumentError("expected numbers as the region, got nodes")
    return float(x)


def _numbers_of(c: Lowering) -> Callable[[str], Sequence[Scalar] | None]:
    def numbers(name: str) -> Sequence[Scalar] | None:
        if not c.given(name):
            return None
        return [c.scalar(name, k) for k in range(c.fixed_length(name))]

    return numbers


def _region(
    args: Mapping[str, Any], dtype: DType, rank: int, numbers: Callable[[str], Sequence[Scalar] | None]
) -> Region:  # fmt: skip
    """Return the region that the arguments describe.

    Raises:
        ArgumentError: an axis does not exist or is named twice, or there is not a number per axis.
    """
    starts, ends = ([numbers(name) for name in names] for names in (_STARTS, _ENDS))
    axes = tuple(args["roi_axes"])
    if any(not -rank <= a < rank for a in axes) or len({a % max(rank, 1) for a in axes}) < len(axes):
        raise ArgumentError(f"expected different axes of {rank} as `roi_axes`, got {list(axes)}")
    axes = tuple(a % rank for a in axes)
    is_limited = any(x is not None for x in (*starts, *ends))
    if not axes and is_limited:
        axes = tuple(range(rank))
    if not is_limited:
        axes = ()

    def per_axis(names: Sequence[str], given: Sequence[Sequence[Scalar] | None]) -> tuple[int, tuple[Scalar, ...]]:
        for kind, (name, values) in enumerate(zip(names, given, strict=True), 1):
            if values is None:
                continue
            if len(values) not in (1, len(axes)):
                raise ArgumentError(f"expected a number in `{name}` for each of {len(axes)} axes, got {len(values)}")
            return kind, tuple(values) * (len(axes) if len(values) == 1 else 1)
        return 0, ()

    policy = _POLICIES.index(args["out_of_bounds_policy"])
    return Region(axes, per_axis(_STARTS, starts), per_axis(_ENDS, ends), policy, _fill(args["fill_value"], dtype))


def _fill(value: float, dtype: DType) -> npt.NDArray[Any]:
    if not dtype.is_float and dtype != DType.BOOL:
        limits = np.iinfo(dtype.numpy)
        number = 0 if np.isnan(value) else min(max(float(np.rint(value)), float(limits.min)), float(limits.max))
        return np.asarray([min(max(int(number), int(limits.min)), int(limits.max))], dtype.numpy)
    with np.errstate(over="ignore"):
        return np.asarray([value], np.float64).astype(dtype.numpy)


def _first_type(files: FileStorage | AsyncStorage) -> tuple[DType, int]:
    """Return type and number of axes of the first array."""
    first, tried = "", min(len(files), _MOST_TRIED)
    for record in range(tried):
        path = files.locate(record).path
        try:
            dtype, shape = _native.npy_header(_head_of(files, record, path))
            return DType(dtype), len(shape)
        except (FileNotFoundError, IsADirectoryError, ValueError) as error:
            first = first or f"'{printable(path)}': {reason_of(error)}"
    raise ArgumentError(f"expected an .npy file, got none in the first {tried} files: {brief(first, 400)}")


def _head_of(files: FileStorage | AsyncStorage, record: int, path: str) -> bytes:
    """Return the first bytes of a file, or those of an object."""
    if isinstance(files, AsyncStorage):
        return files.content(record)[:_HEAD_BYTES]
    with open(path, "rb") as file:
        return file.read(_HEAD_BYTES)
