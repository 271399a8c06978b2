# SPDX-License-Identifier: Apache-2.0
"""Records with the frames of TFRecord and RecordIO files, in plain Python (native: ``native/io/records.cpp``)."""

from __future__ import annotations

import struct

from ..contract.errors import DataError
from ..contract.storage import RecordForm
from ..native import _native

_MAGIC = struct.pack("<I", 0xCED7230A)
_WHOLE, _FIRST, _LAST = 0, 1, 3  # parts of a RecordIO record


def without_frame(record: bytes, form: RecordForm) -> bytes:
    """Return the content of a record.

    Args:
        record: the record as it is stored.
        form: its form.

    Raises:
        DataError: the frame is damaged, or a checksum is wrong.
    """
    if form == RecordForm.RECORDIO:
        return _joined(record)
    if form in (RecordForm.TFRECORD, RecordForm.TFRECORD_UNCHECKED):
        return _of_tfrecord(record, is_checked=form == RecordForm.TFRECORD)
    return record


def _of_tfrecord(record: bytes, *, is_checked: bool) -> bytes:
    if len(record) < 16:
        raise DataError(f"expected a TFRecord of at least 16 bytes, got {len(record)}")
    length, of_length = struct.unpack_from("<QI", record)
    content = record[12:-4]
    if of_length != _masked(record[:8]):
        raise DataError("expected a TFRecord, got a length with a wrong checksum")
    if length != len(content):
        raise DataError(f"expected a TFRecord of {len(content)} bytes, got one of {length}")
    if is_checked and struct.unpack("<I", record[-4:])[0] != _masked(content):
        raise DataError("expected the TFRecord, got data with a wrong checksum")
    return content


def _masked(data: bytes) -> int:
    crc = _native.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _joined(record: bytes) -> bytes:
    parts: list[bytes] = []
    at, kind = 0, _FIRST
    while at < len(record):
        head = record[at : at + 8]
        if len(head) < 8 or head[:4] != _MAGIC:
            raise DataError("expected a RecordIO record, got bytes without the magic number")
        kind, length = divmod(struct.unpack("<I", head[4:])[0], 1 << 29)
        content = record[at + 8 : at + 8 + length]
        if len(content) < length or (kind in (_WHOLE, _FIRST)) != (at == 0):
            raise DataError("expected a RecordIO record, got an incomplete one")
        parts.append(content)
        if kind in (_WHOLE, _LAST):
            return _MAGIC.join(parts)
        at += 8 + length + -length % 4
    raise DataError("expected a RecordIO record, got an incomplete one")
