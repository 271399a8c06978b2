# SPDX-License-Identifier: Apache-2.0
"""Check of container files: every record is read, compared with its checksum, taken apart as readers do, and decoded.

A container is checked unit by unit, in any order and on any thread. A unit is a record, or a row group of a table.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..contract.errors import ArgumentError, DataError, StokerError, UnsupportedError
from ..contract.storage import RecordForm, Storage
from ..contract.text import printable, reason_of
from ..readers._containers import check_begin, storage_of
from ..readers._index_files import ContainerIndex, index_files
from ..readers.bagz import read_ends
from ..readers.mds import read_shard_layout, split_fields
from .byte_records import ByteRecords, Part, Parts, parts_of_image_record, whole
from .container_format import FORMAT_NAMES
from .image_check import Checked
from .library_check import open_array_record, open_fits, open_litdata
from .manifest import manifest_facts
from .record_check import NPY_HEAD_BYTES, Container, Unreadable, npy_fault
from .survey import Finding, Remark
from .table_check import open_lance, open_table

_TAR_BLOCK = 512


class RecordFile(ByteRecords):
    """Container of records that are byte ranges of the file.

    Args:
        path: the file.
        index: ranges of the records.
        form: form in which records are stored.
        parts: function that takes a record apart (:meth:`ByteRecords._learn`).
    """

    def __init__(
        self, path: Path, index: ContainerIndex, form: RecordForm = RecordForm.STORED, parts: Parts | None = None
    ) -> None:
        super().__init__(path)
        self.storage: Storage = storage_of([str(path)], [index], form)
        self.records = len(index)
        names = index.names.split(b"\0")[:-1]
        self.names = [name.decode("utf-8", "surrogateescape") for name in names]
        if index.damage:
            # The last range of a file of frames is the damaged rest; other formats end before it.
            if form is not RecordForm.STORED and self.records:
                self.records -= 1
            rest = os.path.getsize(path) - index.damage_offset
            text = (
                f"{index.damage}; the {rest} bytes from byte {index.damage_offset} on hold no record that can be read"
            )
            self.faults.append(Finding(path, Remark.RECORD, text, index.damage_offset, record=self.records))
        self._learn(parts)

    def content(self, record: int) -> bytes:
        return self.storage.content(record)

    def close(self) -> None:
        close = getattr(self.storage, "close", None)
        if close is not None:
            close()


# ---- opening ----


def open_container(path: Path, kind: str) -> Container:
    """Open a container for a check. Faults of the whole container are in its ``faults``.

    Args:
        path: the file, or the folder of a data set.
        kind: its format, as ``container_format.recognize`` or ``container_format.find_data_sets`` names it.
    """
    try:
        if path.is_file() and not os.path.getsize(path):
            return Unreadable(path, "", Remark.EMPTY)
        return _OPENERS[kind](path)
    except UnsupportedError as error:
        return Unreadable(path, str(error), Remark.UNCHECKED)
    except StokerError as error:
        return Unreadable(path, str(error))
    except OSError as error:
        return Unreadable(path, error.strerror or str(error), Remark.UNREADABLE)


def _open_tfrecord(path: Path) -> Container:
    index = index_files("tfrecord", [str(path)])[0]
    _require_begin(path, index, "tfrecord")
    return RecordFile(path, index, RecordForm.TFRECORD)


def _open_recordio(path: Path) -> Container:
    index = index_files("recordio", [str(path)])[0]
    _require_begin(path, index, "recordio")
    return RecordFile(path, index, RecordForm.RECORDIO, parts_of_image_record)


def _require_begin(path: Path, index: ContainerIndex, kind: str) -> None:
    """Raise ArgumentError for a file without a single record before its damage."""
    check_begin(str(path), index, FORMAT_NAMES[kind])


def _open_tar(path: Path) -> Container:
    index = index_files("tar", [str(path)])[0]
    _require_begin(path, index, "tar")
    found = _members(path, index, lambda record, content: None)
    end = -(-int(index.offset[-1] + index.length[-1]) // _TAR_BLOCK) * _TAR_BLOCK if len(index) else 0
    if not index.damage and os.path.getsize(path) < end + _TAR_BLOCK:
        text = "the archive has no end marker; it may have been cut between two members"
        found.faults.append(Finding(path, Remark.DAMAGED, text, os.path.getsize(path)))
    return found


def _open_zip(path: Path) -> Container:
    index = _undamaged(path, "zip")
    try:
        with zipfile.ZipFile(path) as archive:
            sums = [member.CRC for member in archive.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:  # the last: the format is of a later version
        raise ArgumentError(reason_of(error)) from None
    if len(sums) != len(index):
        raise ArgumentError(f"expected {len(index)} members in the archive's directory, got {len(sums)}")

    def compare(record: int, content: bytes) -> None:
        if zlib.crc32(content) != sums[record]:
            raise DataError("expected the member's bytes, got data with a wrong checksum")

    return _members(path, index, compare)


def _members(path: Path, index: ContainerIndex, compare: Callable[[int, bytes], None]) -> RecordFile:
    """Return the container of an archive. ``compare`` raises DataError for a member with a wrong checksum."""
    names = [os.path.basename(name.decode("utf-8", "surrogateescape")) for name in index.names.split(b"\0")[:-1]]

    def parts(record: int, content: bytes) -> Iterator[Part]:
        compare(record, content)
        yield names[record], content

    return RecordFile(path, index, RecordForm.STORED, parts)


def _open_lmdb(path: Path) -> Container:
    index = _undamaged(path, "lmdb")
    if not len(index):
        raise ArgumentError("the environment is empty")
    return RecordFile(path, index)


def _undamaged(path: Path, kind: str) -> ContainerIndex:
    """Return the index of a container that readers refuse as a whole if any part of its tables is damaged."""
    index = index_files(kind, [str(path)])[0]
    if index.damage:
        raise ArgumentError(f"at byte {index.damage_offset}: {index.damage}")
    return index


def _open_bagz(path: Path) -> Container:
    if path.name.lower().endswith(".bagz"):
        raise ArgumentError("the records are compressed, which readers refuse: write a .bag file")
    return RecordFile(path, read_ends(str(path)), RecordForm.STORED, whole)


def _open_mds(path: Path) -> Container:
    layout, index, facts = read_shard_layout(str(path))
    images = [kind in ("jpeg", "png", "pil", "jpegarray") for kind in layout.encodings]

    def parts(record: int, content: bytes) -> Iterator[Part]:
        for name, encoding, is_image, data in zip(
            layout.names, layout.encodings, images, split_fields(content, layout.sizes), strict=True
        ):
            if encoding == "json":
                _require_json(name, data)
            if is_image or encoding == "bytes":
                yield name, data

    found = RecordFile(path, index, RecordForm.STORED, parts)
    size = os.path.getsize(path)
    if size != facts.get("bytes", size):
        found.faults.append(
            Finding(path, Remark.CONTAINER, f"expected {facts['bytes']} bytes, as index.json says, got {size}")
        )
    for name, digest in dict(facts.get("hashes") or {}).items():
        if name in hashlib.algorithms_available and _digest(path, name) != digest:
            found.faults.append(Finding(path, Remark.CONTAINER, f"the file has another {name} than index.json says"))
    return found


def _require_json(name: str, data: bytes) -> None:
    try:
        json.loads(data)
    except ValueError as error:
        raise DataError(f"expected JSON in the column {name!r}, got other bytes: {reason_of(error)}") from None


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


class _Array(Container):
    """Array in an .npy file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.records = 1

    def __len__(self) -> int:
        return 1

    def close(self) -> None:
        return

    def check(self, unit: int) -> Checked:
        with self.path.open("rb") as file:
            fault = npy_fault(file.read(NPY_HEAD_BYTES), os.path.getsize(self.path))
        return ([Finding(self.path, Remark.RECORD, fault, record=0)] if fault else []), Counter()


def _open_manifest(path: Path) -> Container:
    facts = manifest_facts(str(path))
    found = _Listed(path)
    found.records = facts["records"]
    return found


class _Listed(Unreadable):
    """Manifest: its table is checked when it is opened, and its shards are files of their own."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "")
        self.faults = []


_OPENERS: dict[str, Callable[[Path], Container]] = {
    "tfrecord": _open_tfrecord, "recordio": _open_recordio, "tar": _open_tar, "zip": _open_zip, "lmdb": _open_lmdb,
    "bagz": _open_bagz, "mds": _open_mds, "npy": _Array, "manifest": _open_manifest, "parquet": open_table,
    "arrow": open_table, "array_record": open_array_record, "fits": open_fits, "lance": open_lance,
    "litdata": open_litdata,
}  # fmt: skip


def check_container(container: Container, units: Sequence[int]) -> Checked:
    """Check several units of a container."""
    findings: list[Finding] = []
    warnings: Counter[str] = Counter()
    for unit in units:
        found, warned = container.check(unit)
        findings += found
        warnings += warned
    return findings, warnings


def describe(finding: Finding) -> str:
    """Return the place of a finding: the file, and the record in a container."""
    where = printable(finding.path)
    if finding.record is not None:
        where += f", record {finding.record}" + (f" ({printable(finding.name)})" if finding.name else "")
    return where
