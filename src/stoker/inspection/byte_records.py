# SPDX-License-Identifier: Apache-2.0
"""Check of containers whose records are bytes: a record is taken apart as readers do, and its parts are checked."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from .._image_formats import find_format
from ..contract.errors import DataError
from ..contract.text import reason_of
from ..readers._caffe2_tensors import read_tensor
from ..readers._example import read_features, wire_fields
from ..readers.caffe import Datum
from ..readers.mxnet import split_record
from .image_check import Checked
from .record_check import Container, check_part, in_record
from .survey import Finding, Remark

TRIED = 100  # records that are read until one shows their content
Part = tuple[str, bytes]  # name and bytes of a part of a record that may be a file
Parts = Callable[[int, bytes], Iterable[Part]]


class ByteRecords(Container):
    """Container of records that are bytes.

    A subclass sets ``records``, and then calls :meth:`_learn`.

    Attributes:
        names: names of the records; empty if they have none.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.names: list[str] = []
        self._parts: Parts = whole
        self._images: set[str] = set()  # names of parts that are images in the first record

    @abstractmethod
    def content(self, record: int) -> bytes:
        """Return a record.

        Raises:
            OSError, DataError: it cannot be read.
        """

    def __len__(self) -> int:
        return self.records

    def check(self, unit: int) -> Checked:
        try:
            return self._check_content(unit, self.content(unit))
        except (OSError, DataError) as error:
            return [self._failed(unit, error)], Counter()

    def _check_content(self, record: int, content: bytes) -> Checked:
        """Check the bytes of a record."""
        findings: list[Finding] = []
        warnings: Counter[str] = Counter()
        try:
            for name, data in self._parts(record, content):
                found, warned = check_part(self.path, name, data, name in self._images)
                findings += [in_record(finding, record, self._name(record, name)) for finding in found]
                warnings += warned
        except DataError as error:
            findings.append(self._failed(record, error))
        return findings, warnings

    def _failed(self, record: int, error: Exception) -> Finding:
        remark = Remark.UNREADABLE if getattr(error, "errno", None) is not None else Remark.RECORD
        return Finding(self.path, remark, reason_of(error), record=record, name=self._name(record, ""))

    def _name(self, record: int, part: str) -> str:
        return self.names[record] if self.names else part

    def _learn(self, parts: Parts | None) -> None:
        """Learn from the first record that can be read which of its parts are images.

        Args:
            parts: function that takes a record apart: from its number and bytes to the parts that may be files. It
                raises DataError for a record that readers refuse. None: the first record that can be read decides.
        """
        self._parts = self._choose_parts() if parts is None else parts
        for record, content in self._first_records():
            try:
                self._images = {name for name, data in self._parts(record, content) if find_format(data[:32])}
            except (DataError, OSError):
                continue
            return

    def _first_records(self) -> Iterator[tuple[int, bytes]]:
        for record in range(min(self.records, TRIED)):
            try:
                yield record, self.content(record)
            except (DataError, OSError):
                continue

    def _choose_parts(self) -> Parts:
        """Return the form of the first record that has one."""
        for _, content in self._first_records():
            for parts in (_parts_of_example, _parts_of_datum, _parts_of_tensors):
                if _has_form(parts, content):
                    return parts
        return whole


# ---- parts of records ----


def whole(record: int, content: bytes) -> Iterator[Part]:
    """Return a record as its only part."""
    yield "", content


def _parts_of_example(record: int, content: bytes) -> Iterator[Part]:
    for name, (kind, values) in read_features(content).items():
        if kind == "string":
            for value in values:
                yield name, value


def parts_of_image_record(record: int, content: bytes) -> Iterator[Part]:
    """Return the image of a record of MXNet."""
    yield "image", split_record(content)[1]


def _parts_of_datum(record: int, content: bytes) -> Iterator[Part]:
    datum = Datum(content)
    if datum.is_encoded:
        yield "image", datum.data
    elif int(np.prod(datum.shape, dtype=object)) != len(datum.data):
        raise DataError(f"expected pixels of the shape {datum.shape}, got {len(datum.data)} bytes")


def _parts_of_tensors(record: int, content: bytes) -> Iterator[Part]:
    number = 0
    for field, wire, message in wire_fields(content, "a TensorProtos record of Caffe2"):
        if field != 1 or wire != 2:
            continue
        values = read_tensor(message)
        if values.dtype == np.uint8 and values.ndim == 1:
            yield f"tensor {number}", values.tobytes()
        number += 1


def _has_form(parts: Parts, content: bytes) -> bool:
    """Return whether a record has a form: it can be taken apart, and its fields are those of the form."""
    try:
        list(parts(0, content))
        fields = {(field, wire) for field, wire, _ in wire_fields(content)}
        if parts is _parts_of_example:
            return bool(read_features(content))
        return (4, 2) in fields if parts is _parts_of_datum else (1, 2) in fields
    except DataError:
        return False
