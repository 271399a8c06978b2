# SPDX-License-Identifier: Apache-2.0
"""Check of containers that optional libraries read: ArrayRecord files, FITS files, and data sets of LitData."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .._image_formats import find_format
from ..contract.errors import DataError
from ..contract.extras import import_extra
from ..contract.text import printable, reason_of
from ..readers.array_record import ArrayRecords, open_file
from ..readers.experimental_fits import opened, read_images
from ..readers.litdata import open_folder
from .byte_records import TRIED, ByteRecords, Part
from .container_format import DATA_SET_INDEX
from .image_check import Checked
from .record_check import Container, check_part, in_record
from .survey import Finding, Remark

_TOGETHER = 16  # records of a call of a library, which has a fixed cost


class _ArrayRecordFile(ByteRecords):
    """ArrayRecord file. A unit is a group of records, which the library decodes as a whole, or several single ones."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        file = open_file(str(path))
        *_, self.records, self._group = file
        self._size = self._group if self._group > 1 else _TOGETHER
        self._storage = ArrayRecords([file])
        self._learn(None)

    def __len__(self) -> int:
        return -(-self.records // self._size)

    def content(self, record: int) -> bytes:
        return self._storage.read([record])[0]

    def check(self, unit: int) -> Checked:
        begin, end = unit * self._size, min((unit + 1) * self._size, self.records)
        findings: list[Finding] = []
        warnings: Counter[str] = Counter()
        try:
            contents = self._storage.read(range(begin, end))
        except (OSError, DataError) as error:
            if self._group > 1:
                failed = self._failed(begin, error)
                text = f"records {begin} to {end - 1}: {failed.detail}"
                return [Finding(self.path, failed.remark, text, record=begin)], warnings
            checked = [super(_ArrayRecordFile, self).check(record) for record in range(begin, end)]
        else:
            checked = [self._check_content(begin + k, content) for k, content in enumerate(contents)]
        for found, warned in checked:
            findings += found
            warnings += warned
        return findings, warnings

    def close(self) -> None:
        self._storage.close()


def open_array_record(path: Path) -> Container:
    """Open an ArrayRecord file.

    Raises:
        ArgumentError: it is no ArrayRecord file, or it is cut off.
        UnsupportedError: the package ``array_record`` is not installed.
    """
    return _ArrayRecordFile(path)


class _FitsFile(Container):
    """FITS file. A unit is a header and data unit (HDU)."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            with opened(str(path), decompresses=False) as (_, file, size):
                self.records = len(file)  # reads all headers
                places = [unit.fileinfo() for unit in file]
        except DataError as error:
            self.faults.append(Finding(path, Remark.CONTAINER, reason_of(error)))
            return
        end = max((int(p["datLoc"]) + int(p["datSpan"]) for p in places), default=0)
        if end < size:
            text = f"the {size - end} bytes from byte {end} on are no header and data unit that can be read"
            self.faults.append(Finding(path, Remark.RECORD, text, end, record=self.records))

    def __len__(self) -> int:
        return self.records

    def check(self, unit: int) -> Checked:
        name = f"HDU {unit + 1}"
        try:
            fault = self._fault(unit)
        except (OSError, DataError) as error:
            remark = Remark.UNREADABLE if getattr(error, "errno", None) is not None else Remark.RECORD
            return [Finding(self.path, remark, reason_of(error), record=unit, name=name)], Counter()
        return ([Finding(self.path, Remark.RECORD, fault, record=unit, name=name)] if fault else []), Counter()

    def _fault(self, unit: int) -> str:
        """Return the fault of an HDU; "" if there is none.

        Raises:
            DataError: its image cannot be read.
        """
        # Checksums are those of the stored bytes: of an image that is compressed by tiles, of its table.
        with opened(str(self.path), decompresses=False) as (_, file, size):
            found = file[unit]
            place = found.fileinfo()
            end = int(place["datLoc"]) + int(place["datSpan"])
            if end > size:
                return f"expected {place['datSpan']} bytes of data from byte {place['datLoc']} on, the file has {size}"
            # The library returns 0 for a wrong sum, and 2 if there is none.
            for keyword, verify in (("DATASUM", found.verify_datasum), ("CHECKSUM", found.verify_checksum)):
                if verify() == 0:
                    return f"expected the bytes that {keyword} belongs to, got data with another checksum"
        with opened(str(self.path)) as (fits, file, _):
            found = file[unit]
            is_image = isinstance(found, (fits.PrimaryHDU, fits.ImageHDU, fits.CompImageHDU))
            has_pixels = is_image and bool(found.shape) and 0 not in found.shape
        if has_pixels:
            read_images(str(self.path), [unit + 1])
        return ""

    def close(self) -> None:
        return  # each check opens the file


def open_fits(path: Path) -> Container:
    """Open a FITS file.

    Raises:
        UnsupportedError: the package ``astropy`` is not installed.
    """
    return _FitsFile(path)


class _LitData(Container):
    """Data set of LitData, a folder. A unit is a sample."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        import_extra("litdata", "litdata", "data sets of LitData")
        self._samples = open_folder(str(path))
        self.records = len(self._samples)
        self._lock = threading.Lock()  # the library's reader is for one thread
        self._images: set[str] = set()  # names of values that are images in the first sample
        self._lost = np.zeros(self.records, bool)  # samples in chunks that are missing or have another size
        with open(path / DATA_SET_INDEX, "rb") as file:
            chunks = json.load(file)["chunks"]
        begin = 0
        for chunk in chunks:
            end = begin + int(chunk["chunk_size"])
            fault = self._chunk_fault(path / str(chunk["filename"]), int(chunk["chunk_bytes"]))
            if fault is not None:
                remark, text = fault
                self.faults.append(Finding(path, remark, f"samples {begin} to {end - 1}: {text}", record=begin))
                self._lost[begin:end] = True
            begin = end
        for record in np.flatnonzero(~self._lost)[:TRIED]:
            try:
                parts = self._read(int(record))
            except (OSError, DataError):
                continue
            self._images = {name for name, data in parts if find_format(data[:32])}
            break

    def _chunk_fault(self, path: Path, size: int) -> tuple[Remark, str] | None:
        """Return the fault of a chunk that the library would wait for; None if it has its size."""
        try:
            found = os.path.getsize(path)
        except OSError as error:
            return Remark.UNREADABLE, f"'{printable(path.name)}': {error.strerror or error}"
        if found == size:
            return None
        return Remark.RECORD, f"expected {size} bytes in '{printable(path.name)}', as the index says, got {found}"

    def __len__(self) -> int:
        return self.records

    def _read(self, record: int) -> list[Part]:
        """Return the values of a sample that are bytes.

        Raises:
            DataError: the library cannot read the sample.
            OSError: the operating system fails.
        """
        with self._lock:
            try:
                sample = self._samples[record]
            except Exception as error:  # the library raises errors of many classes for damaged chunks
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                raise DataError(f"cannot read the sample: {type(error).__name__}: {reason_of(error)}") from error
        items = sample.items() if isinstance(sample, Mapping) else enumerate(_values(sample))
        return [(str(name), value) for name, value in items if isinstance(value, bytes)]

    def check(self, unit: int) -> Checked:
        if self._lost[unit]:
            return [], Counter()  # the finding about its chunk has it
        try:
            parts = self._read(unit)
        except (OSError, DataError) as error:
            remark = Remark.UNREADABLE if getattr(error, "errno", None) is not None else Remark.RECORD
            return [Finding(self.path, remark, reason_of(error), record=unit)], Counter()
        findings: list[Finding] = []
        warnings: Counter[str] = Counter()
        for name, data in parts:
            found, warned = check_part(self.path, name, data, name in self._images)
            findings += [in_record(finding, unit, name) for finding in found]
            warnings += warned
        return findings, warnings

    def close(self) -> None:
        return


def _values(sample: object) -> Sequence[object]:
    return sample if isinstance(sample, (list, tuple)) else [sample]


def open_litdata(path: Path) -> Container:
    """Open the folder of a LitData data set.

    Raises:
        ArgumentError: the index is damaged, or the chunks are compressed or encrypted.
        UnsupportedError: the package ``litdata`` is not installed.
        OSError: the index cannot be read.
    """
    return _LitData(path)
