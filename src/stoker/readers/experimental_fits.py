# SPDX-License-Identifier: Apache-2.0
"""``experimental.readers.fits``: images in FITS files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.extras import import_extra
from ..contract.lowering import Lowering
from ..contract.operator import Spec
from ..contract.step import Value
from ..contract.storage import RecordLocation
from ..contract.text import brief, printable, reason_of
from ..contract.types import DType
from ..remote.addresses import join
from ..remote.copies import local_copies
from ._array_files import check_names, list_names
from ._columns import fingerprint
from ._containers import ContainerReader
from ._items import ItemColumn, lower_item_columns
from ._library_records import LibraryStorage

_MOST_TRIED = 100  # files that are opened until one says the types
_MOST_RATIO = 1 << 16  # of an image's bytes to those that are stored: more is an attack on memory


class FitsReader(ContainerReader, name="experimental.readers.fits"):
    """Read images in FITS files. Outputs: an array per header and data unit (HDU) of `hdu_indices`.

    Axes are those of NumPy: the slowest first, so NAXIS1 is the last one. The elements have the type of the file
    (BITPIX), with the usual unsigned integers and signed bytes (BZERO). Images with other numbers as BZERO and BSCALE
    are float32, or float64 if they have more than 16 bits. Images that are compressed by tiles are decompressed.

    All files have the types and numbers of axes of the first one; their extents may differ. This reader needs the
    package ``astropy``, which threads of the pipeline call.
    """

    outputs = 1
    result_neutral = (*ContainerReader.result_neutral, "file_root", "file_list", "files", "file_filter")
    file_root = arg("str", None, doc="Folder of the files, with its sub-folders; the base of relative paths otherwise.")
    file_filter = arg("str", "*.fits", doc="Pattern of the names to take in the folder.")
    file_list = arg("str", None, doc="Text file with one path per line.")
    files = arg("object", None, doc="Paths, absolute or relative to file_root.")
    hdu_indices = arg("int", (2,), many=True, doc="Numbers of the HDUs to read, from 1; 1 is the primary one.")
    dtypes = arg("object", None, doc="Element type of each output; files with another type are refused.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        check_names(args)
        numbers = args["hdu_indices"]
        if not len(numbers) or any(n < 1 for n in numbers):
            raise ArgumentError(f"expected numbers from 1 on as `hdu_indices`, got {brief(list(numbers))}")
        _declared_types(args)

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return len(args["hdu_indices"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """List the files, and read the types of the first one.

        Raises:
            ArgumentError: there are no files, or none has the images.
            UnsupportedError: astropy is not installed.
            OSError: the operating system fails.
        """
        folder, names = list_names(args)
        numbers = tuple(int(n) for n in args["hdu_indices"])
        paths = local_copies("files", [join(folder.root, name) for name in names], folder.known)
        storage = _FitsImages(paths, numbers)
        for number, spec, declared in zip(numbers, storage.specs(), _declared_types(args), strict=True):
            if declared is not None and declared != spec.dtype:
                raise ArgumentError(f"expected {declared} in HDU {number}, as `dtypes` says, got {spec.dtype}")
        columns = tuple(
            ItemColumn(f"output {k} (HDU {number})", storage, k, spec)
            for k, (number, spec) in enumerate(zip(numbers, storage.specs(), strict=True))
        )
        return DataSet(columns, fingerprint("\0".join(names), repr(numbers), repr(storage.specs())))

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        return lower_item_columns(c)


def _declared_types(args: Mapping[str, Any]) -> list[DType | None]:
    given, count = args["dtypes"], len(args["hdu_indices"])
    if given is None:
        return [None] * count
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(listed) != count:
        raise ArgumentError(f"expected a type for each of {count} outputs as `dtypes`, got {len(listed)}")
    try:
        return [DType.of(one) for one in listed]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"argument `dtypes`: {error}") from None


@contextmanager
def opened(path: str, *, decompresses: bool = True) -> Iterator[tuple[Any, Any, int]]:
    """Open a FITS file, for the time of a ``with`` block. Errors of the library in the block become a DataError.

    Args:
        path: the file.
        decompresses: show images that are compressed by tiles as images; else as the tables that they are stored in.

    Yields:
        the module ``astropy.io.fits``, an ``HDUList``, and the bytes of the file.

    Raises:
        DataError: the file is damaged.
        UnsupportedError: astropy is not installed.
        OSError: the file cannot be read.
    """
    fits = import_extra("astropy.io.fits", "fits", "FITS files")
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        try:
            with fits.open(stream, memmap=False, disable_image_compression=not decompresses) as file:
                yield fits, file, size
        except (DataError, MemoryError):
            raise
        except Exception as error:  # the library raises errors of many classes for damaged files
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DataError(f"cannot read '{printable(path)}': {type(error).__name__}: {reason_of(error)}") from error


def read_images(path: str, numbers: Sequence[int]) -> tuple[npt.NDArray[Any], ...]:
    """Return the images of a FITS file, in native byte order.

    Args:
        path: the file.
        numbers: numbers of the HDUs, from 1 on.

    Raises:
        DataError: the file is damaged, or lacks an image.
        UnsupportedError: astropy is not installed.
        OSError: the file cannot be read.
    """
    with opened(path) as (fits, file, size):
        return tuple(_image(fits, file, number, size) for number in numbers)


def _image(fits: Any, file: Any, number: int, file_size: int) -> npt.NDArray[Any]:
    """Return the image of an HDU."""
    try:
        unit = file[number - 1]
    except IndexError:
        raise DataError(f"expected at least {number} HDUs, got {len(file)}") from None
    if not isinstance(unit, (fits.PrimaryHDU, fits.ImageHDU, fits.CompImageHDU)):
        raise DataError(f"expected an image in HDU {number}, got a {type(unit).__name__}")
    place, shape = unit.fileinfo(), unit.shape
    if not shape or 0 in shape:
        raise DataError(f"expected an image in HDU {number}, got one without data")
    stored, end = int(place["datSpan"]), int(place["datLoc"]) + int(place["datSpan"])
    # The library allocates memory for the declared extents.
    if end > file_size or abs(int(unit.header["BITPIX"])) // 8 * _product(shape) > stored * _MOST_RATIO:
        raise DataError(
            f"expected an image of {'x'.join(map(str, shape))} elements in HDU {number}, got {stored} bytes of a file "
            f"of {file_size} bytes"
        )
    data = unit.data
    return np.ascontiguousarray(data, data.dtype.newbyteorder("="))


def _product(extents: Sequence[int]) -> int:
    found = 1
    for extent in extents:
        found *= int(extent)
    return found


class _FitsImages(LibraryStorage):
    """Images of files: tuples of arrays.

    Args:
        paths: the files.
        numbers: numbers of the HDUs.
    """

    def __init__(self, paths: Sequence[str], numbers: Sequence[int]) -> None:
        super().__init__("stoker-fits", "all FITS files")
        self._paths, self._numbers = paths, numbers
        self._specs = self._first_types()

    def __len__(self) -> int:
        return len(self._paths)

    def specs(self) -> tuple[Spec, ...]:
        """Return the types of the images."""
        return self._specs

    def _first_types(self) -> tuple[Spec, ...]:
        first = ""
        for path in self._paths[:_MOST_TRIED]:
            try:
                images = read_images(path, self._numbers)
            except (FileNotFoundError, IsADirectoryError, DataError) as error:
                first = first or f"'{printable(path)}': {reason_of(error)}"
                continue
            return tuple(Spec(DType.of(image.dtype), (None,) * image.ndim) for image in images)
        raise ArgumentError(
            f"expected a FITS file with images in the HDUs {list(self._numbers)}, got none in the first "
            f"{len(self._paths[:_MOST_TRIED])} files: {brief(first, 400)}"
        )

    def locate(self, record: int) -> RecordLocation:
        return RecordLocation(self._paths[record])

    def read(self, records: Sequence[int]) -> Sequence[tuple[npt.NDArray[Any], ...]]:
        return [self._read_one(self._paths[record]) for record in records]

    def _read_one(self, path: str) -> tuple[npt.NDArray[Any], ...]:
        images = read_images(path, self._numbers)
        for number, image, spec in zip(self._numbers, images, self._specs, strict=True):
            if DType.of(image.dtype) != spec.dtype or image.ndim != len(spec.shape):
                raise DataError(
                    f"expected {spec.dtype} with {len(spec.shape)} axes in HDU {number} of '{printable(path)}', as in "
                    f"the first file, got {image.dtype} with {image.ndim}"
                )
        return images
