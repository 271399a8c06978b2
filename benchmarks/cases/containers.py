# SPDX-License-Identifier: Apache-2.0
"""Raw records of containers: processor time per record, against reads of the same bytes and against DALI."""

from __future__ import annotations

import atexit
import io
import os
import shutil
import struct
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.case import Bar, Case, Contender, Sample, Unit
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, load

ORDER = 45
CPU_US_PER_RECORD = Unit("CPU us/record")
RECORDS = 2048
_BATCHES = (32, 256)
FORMATS = {"tfrecord": "TFRecord file", "recordio": "RecordIO file", "tar": "tar file"}


def _records(data: Data, count: int) -> list[bytes]:
    contents = data.read()
    return [contents[i % len(contents)] for i in range(count)]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


@dataclass(frozen=True)
class Container:
    """Container file.

    Attributes:
        path: the file.
        index: its index file, as DALI reads it.
        ranges: offset and length of each record.
    """

    path: str
    index: str
    ranges: list[tuple[int, int]]


def write_container(data: Data, form: str, *, with_checksums: bool, count: int = RECORDS) -> Container:
    """Write a container of the images. Checksums need Stoker; DALI does not read them."""
    checksum = _checksum if with_checksums and form == "tfrecord" else _no_checksum
    folder = tempfile.mkdtemp(prefix="stoker-containers-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, ranges = os.path.join(folder, f"a.{form}"), []
    records = _records(data, count)
    if form == "tar":
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i, record in enumerate(records):
                member = tarfile.TarInfo(f"{i:06}.jpg")
                member.size = len(record)
                ranges.append((tar.offset + 512, len(record)))
                tar.addfile(member, io.BytesIO(record))
        lines = [f"jpg {at} {size} {i:06}.jpg" for i, (at, size) in enumerate(ranges)]
        text = f"v1.2 {len(lines)}\n" + "\n".join(lines) + "\n"
    else:
        with open(path, "wb") as file:
            for i, record in enumerate(records):
                at = file.tell()
                if form == "tfrecord":
                    feature = _message(2, _message(1, _message(1, record)))
                    body = _message(1, _message(1, _message(1, b"image") + feature))
                    length = struct.pack("<Q", len(body))
                    framed = length + checksum(length) + body + checksum(body)
                else:
                    body = struct.pack("<IfQQ", 0, 1.0, i, 0) + record
                    framed = struct.pack("<II", 0xCED7230A, len(body)) + body
                    framed += bytes(-len(framed) % 4)
                file.write(framed)
                ranges.append((at, len(framed)))
        columns = (lambda i, r: f"{r[0]} {r[1]}") if form == "tfrecord" else (lambda i, r: f"{i}\t{r[0]}")
        text = "\n".join(columns(i, r) for i, r in enumerate(ranges)) + "\n"
    with open(f"{path}.idx", "w", encoding="ascii") as file:
        file.write(text)
    return Container(path, f"{path}.idx", ranges)


def _no_checksum(data: bytes) -> bytes:
    return bytes(4)


def _checksum(data: bytes) -> bytes:
    from stoker.native import _native

    crc = _native.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def read_images(lib: Any, library: str, form: str, container: Container, **reader: Any) -> Any:
    """Return the node of the encoded images of a container, in a pipeline of either library."""
    readers, reader = lib.fn.readers, {"dont_use_mmap": True, **reader}
    path, index = [container.path], [container.index]
    if form == "tar":
        return readers.webdataset(paths=path, index_paths=index, ext=["jpg"], **reader)
    if form == "recordio":
        return readers.mxnet(path=path, index_path=index, **reader)[0]
    if library == STOKER:
        from stoker import tfrecord
    else:
        from nvidia.dali import tfrecord
    features = {"image": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    return readers.tfrecord(path=path, index_path=index, features=features, **reader)["image"]


def _per_record(run: Callable[[], int]) -> Sample:
    """Return the process's CPU time per record of all its threads; the first pass is not counted."""
    done = 0
    while done < RECORDS:
        done += run()

    def read() -> float:
        start, count = time.process_time(), 0
        while count < RECORDS:
            count += run()
        return (time.process_time() - start) * 1e6 / count

    return Sample(read)


def read_ranges(data: Data, *, form: str, places: int = 1) -> Sample:
    """Read the ranges of the records: the floor.

    Args:
        places: number of records whose memory takes turns; 1: one buffer for all records, which stays in the cache.
    """
    container = write_container(data, form, with_checksums=False)
    ranges = container.ranges
    descriptor = os.open(container.path, os.O_RDONLY)
    most = max(size for _, size in ranges)
    memory = memoryview(bytearray(most * places))
    parts = [memory[i * most : (i + 1) * most] for i in range(places)]

    def run() -> int:
        for i, (at, size) in enumerate(ranges):
            os.preadv(descriptor, [parts[i % places][:size]], at)
        return len(ranges)

    return _per_record(run)


def run_reader(data: Data, *, library: str, form: str, batch: int) -> Sample:
    """Read the bytes of the images as a pipeline's output, on one thread."""
    lib = load(library)
    container = write_container(data, form, with_checksums=library == STOKER)

    @lib.pipeline_def(batch_size=batch, num_threads=1, device_id=None, seed=7)
    def reading() -> Any:
        return read_images(lib, library, form, container)

    pipeline = reading()
    pipeline.build()

    def run() -> int:
        pipeline.run()
        return batch

    return _per_record(run)


def _contenders(form: str, batch: int) -> tuple[Contender, ...]:
    return (
        Contender("stoker", "run_reader", {"library": STOKER, "form": form, "batch": batch}),
        Contender("DALI", "run_reader", {"library": DALI, "form": form, "batch": batch}, "peers"),
        Contender("pread", "read_ranges", {"form": form, "places": 3 * batch}),
        Contender("pread, one buffer", "read_ranges", {"form": form}),
    )


CASES = tuple(
    Case(
        f"container-{form}-{batch}",
        f"Raw records of a {name} in batches of {batch}",
        CPU_US_PER_RECORD,
        _contenders(form, batch),
        (
            Bar("against reads of the same ranges", "stoker", ("pread",), at_most=1.15, goal=1.05),
            Bar("against DALI", "stoker", ("DALI",), at_most=1.0),
        ),
        note=f"{RECORDS} records in the page cache, batch {batch}, one thread; the output is the images' bytes. "
        "`pread` reads into the memory of three batches in turn, as a pipeline does, and delivers nothing. Stoker "
        "compares the checksums of TFRecord, DALI does not.",
    )
    for form, name in FORMATS.items()
    for batch in _BATCHES
)
