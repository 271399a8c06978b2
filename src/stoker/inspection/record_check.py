# SPDX-License-Identifier: Apache-2.0
"""Containers that are open for a check, and the check of the parts of their records: images and arrays."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path

import numpy as np

from .._image_formats import find_format, has_image_extension
from ..contract.text import reason_of
from ..contract.types import DType
from ..native import _native
from .image_check import Checked, check_image
from .survey import Finding, Remark

_NPY_MAGIC = b"\x93NUMPY"
NPY_HEAD_BYTES = (1 << 20) + 12  # at least the header of an .npy file


class Container(ABC):
    """Container file that is open for a check.

    Attributes:
        path: the file.
        records: number of records that were found.
        faults: findings about the container as a whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = 0
        self.faults: list[Finding] = []

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of units."""

    @abstractmethod
    def check(self, unit: int) -> Checked:
        """Return the findings about a unit, with counts of libjpeg's warnings."""

    @abstractmethod
    def close(self) -> None:
        """Close the files that the check keeps open."""


class Unreadable(Container):
    """Container of which no record can be read.

    Args:
        path: the file.
        fault: the reason.
        remark: kind of the fault.
    """

    def __init__(self, path: Path, fault: str, remark: Remark = Remark.CONTAINER) -> None:
        super().__init__(path)
        self.faults = [Finding(path, remark, fault)]

    def __len__(self) -> int:
        return 0

    def check(self, unit: int) -> Checked:
        raise IndexError(unit)

    def close(self) -> None:
        return


def check_part(path: Path, name: str, data: bytes, is_image: bool) -> Checked:
    """Check a part of a record that may be an image or an array.

    Args:
        path: path for the findings.
        name: name of the part; its ending may say what it is.
        data: its bytes.
        is_image: the part must be an image.
    """
    if is_image or has_image_extension(name) or find_format(data[:32]):
        return check_image(path, io.BytesIO(data))
    if name.endswith(".npy") or data.startswith(_NPY_MAGIC):
        fault = npy_fault(data[:NPY_HEAD_BYTES], len(data))
        return ([Finding(path, Remark.RECORD, fault)] if fault else []), Counter()
    return [], Counter()


def in_record(finding: Finding, record: int, name: str) -> Finding:
    """Return a finding about a part of a record."""
    return Finding(finding.path, finding.remark, finding.detail, finding.offset, record, name)


def npy_fault(head: bytes, size: int) -> str:
    """Return the fault of an .npy file of ``size`` bytes that begins with ``head``; "" if there is none."""
    try:
        number, shape = _native.npy_header(head)
    except ValueError as error:
        return reason_of(error)
    dtype = DType(number)
    length = int.from_bytes(head[8:10], "little") + 10 if head[6] == 1 else int.from_bytes(head[8:12], "little") + 12
    needed = length + dtype.size * int(np.prod(shape, dtype=object))
    if size < needed:
        return f"expected {needed} bytes of an array {list(shape)} of {dtype}, got {size}"
    return ""
