# SPDX-License-Identifier: Apache-2.0
"""Files of samples as shards of containers: how a sample is written into each format, and read back."""

from __future__ import annotations

import io
import itertools
import json
import os
import struct
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..contract.errors import ArgumentError
from ..contract.storage import RecordForm
from ..contract.text import printable
from ..native import _native
from ..readers._containers import check_begin, storage_of
from ..readers._example import read_feature
from ..readers._index_files import index_files

_MAGIC = 0xCED7230A  # of RecordIO
_IMAGE, _NAME, _LABEL, _TEXT = "image/encoded", "image/filename", "image/class/label", "image/class/text"


@dataclass(frozen=True)
class Sample:
    """File to pack.

    Attributes:
        name: path relative to the packed folder, with slashes.
        label: number of its class; 0 if there are no classes.
        number: position among all files.
    """

    name: str
    label: int
    number: int


class ShardWriter(ABC):
    """Writer of one shard."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @abstractmethod
    def add(self, sample: Sample, content: bytes) -> None:
        """Append a file."""

    def finish(self) -> None:  # noqa: B027 - most formats have no end
        """Complete the shard."""


class _TarWriter(ShardWriter):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._tar = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, sample: Sample, content: bytes) -> None:
        member = tarfile.TarInfo(sample.name)
        member.size = len(content)
        self._tar.addfile(member, io.BytesIO(content))

    def finish(self) -> None:
        self._tar.close()


class _TFRecordWriter(ShardWriter):
    def add(self, sample: Sample, content: bytes) -> None:
        texts = {_IMAGE: content, _NAME: _coded(sample.name), _TEXT: _coded(os.path.dirname(sample.name))}
        entries = [_message(1, _message(1, key.encode()) + _message(2, _message(1, _message(1, value))))
                   for key, value in texts.items()]  # fmt: skip
        number = _message(3, _message(1, _varint(sample.label)))
        entries.append(_message(1, _message(1, _LABEL.encode()) + _message(2, number)))
        record = _message(1, b"".join(entries))
        length = struct.pack("<Q", len(record))
        self._file.writelines((length, _masked(length), record, _masked(record)))


class _RecordIOWriter(ShardWriter):
    def add(self, sample: Sample, content: bytes) -> None:
        record = struct.pack("<IfQQ", 0, float(sample.label), sample.number, 0) + content
        magic = struct.pack("<I", _MAGIC)
        # A magic number at a multiple of 4 divides the record into parts.
        at, cuts = record.find(magic), []
        while at >= 0:
            if at % 4 == 0:
                cuts.append(at)
            at = record.find(magic, at + (4 if at % 4 == 0 else 1))
        begins, ends = [0, *(c + 4 for c in cuts)], [*cuts, len(record)]
        for k, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            part = 0 if not cuts else 1 if k == 0 else 3 if k == len(cuts) else 2
            head = magic + struct.pack("<I", part << 29 | end - begin)
            self._file.writelines((head, record[begin:end], bytes(-(end - begin) % 4)))


class _MDSWriter(ShardWriter):
    COLUMNS = ("image", "label", "name")
    ENCODINGS = ("bytes", "int", "str")
    SIZES = (None, 8, None)

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._samples: list[bytes] = []

    def add(self, sample: Sample, content: bytes) -> None:
        name = _coded(sample.name)
        head = struct.pack("<II", len(content), len(name))
        self._samples.append(head + content + struct.pack("<q", sample.label) + name)

    def finish(self) -> None:
        info = json.dumps({"column_names": self.COLUMNS, "column_encodings": self.ENCODINGS,
                           "column_sizes": self.SIZES, "format": "mds"}).encode()  # fmt: skip
        ends = [4 * (len(self._samples) + 2) + len(info)]
        for sample in self._samples:
            ends.append(ends[-1] + len(sample))
        if ends[-1] >= 1 << 32:
            raise ArgumentError("expected shards below 4 GiB in the format mds: reduce `--shard-size`")
        self._file.writelines((struct.pack(f"<{len(ends) + 1}I", len(self._samples), *ends), info, *self._samples))


WRITERS: dict[str, type[ShardWriter]] = {
    "tar": _TarWriter, "tfrecord": _TFRecordWriter, "rec": _RecordIOWriter, "mds": _MDSWriter,
}  # fmt: skip


def mds_index(shards: list[tuple[str, int, int]]) -> str:
    """Return the text of index.json for shards: name, number of samples, bytes."""
    found: list[dict[str, Any]] = [
        {
            "version": 2, "format": "mds", "compression": None, "hashes": [], "samples": count, "size_limit": None,
            "column_names": _MDSWriter.COLUMNS, "column_encodings": _MDSWriter.ENCODINGS,
            "column_sizes": _MDSWriter.SIZES, "raw_data": {"basename": name, "bytes": size, "hashes": {}},
            "zip_data": None,
        }
        for name, count, size in shards
    ]  # fmt: skip
    return json.dumps({"version": 2, "shards": found})


def read_shard(path: Path, kind: str, names: dict[int, str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files in a shard.

    Args:
        path: the shard.
        kind: its format, one of ``WRITERS``, or "zip".
        names: names by number, for RecordIO, whose records have none.

    Raises:
        ArgumentError: the shard is damaged.
        OSError: it cannot be read.
    """
    if kind == "mds":
        yield from _read_mds(path)
        return
    scan, form = {
        "tar": ("tar", RecordForm.STORED), "zip": ("zip", RecordForm.STORED),
        "tfrecord": ("tfrecord", RecordForm.TFRECORD), "rec": ("recordio", RecordForm.RECORDIO),
    }[kind]  # fmt: skip
    index = index_files(scan, [str(path)])[0]
    check_begin(str(path), index, kind)
    if index.damage:
        raise ArgumentError(f"'{printable(str(path))}' is damaged at byte {index.damage_offset}: {index.damage}")
    members = [n.decode("utf-8", "surrogateescape") for n in index.names.split(b"\0")[:-1]]
    storage = storage_of([str(path)], [index], form)
    try:
        for number in range(len(storage)):
            content = storage.content(number)
            yield (members[number], content) if members else _file_of(content, kind, number, names or {}, path)
    finally:
        storage.close()


def _file_of(record: bytes, kind: str, number: int, names: dict[int, str], path: Path) -> tuple[str, bytes]:
    if kind == "tfrecord":
        found: dict[str, list[Any]] = {key: read_feature(record, key)[1] for key in (_NAME, _IMAGE)}
        if not found[_IMAGE] or not found[_NAME]:
            raise ArgumentError(
                f"expected the features {_NAME!r} and {_IMAGE!r} in record {number} of '{printable(str(path))}'"
            )
        return found[_NAME][0].decode("utf-8", "surrogateescape"), found[_IMAGE][0]
    if len(record) < 24:
        raise ArgumentError(
            f"expected an image in record {number} of '{printable(str(path))}', got {len(record)} bytes"
        )
    labels, label, own = struct.unpack_from("<IfQ", record)
    return names.get(own, f"{label:g}/{own:08}.bin"), record[24 + 4 * labels :]


def _read_mds(path: Path) -> Iterator[tuple[str, bytes]]:
    content = path.read_bytes()
    try:
        count = struct.unpack_from("<I", content)[0]
        ends = struct.unpack_from(f"<{count + 1}I", content, 4)
        for begin, end in itertools.pairwise(ends):
            image, name = struct.unpack_from("<II", content, begin)
            if begin + 16 + image + name != end:
                raise struct.error("other columns")
            yield (content[end - name : end].decode("utf-8", "surrogateescape"),
                   content[begin + 8 : begin + 8 + image])  # fmt: skip
    except struct.error as error:
        raise ArgumentError(
            f"expected a shard with the columns image, label and name, as `stoker pack` writes it, got "
            f"'{printable(str(path))}': {error}"
        ) from None


def _coded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _masked(data: bytes) -> bytes:
    crc: Any = _native.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
