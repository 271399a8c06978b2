# SPDX-License-Identifier: Apache-2.0
"""``stoker index``: finds the records of container files, keeps the indexes, and reports damaged files."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from ..contract.errors import StokerError
from ..contract.storage import RecordForm
from ..contract.text import printable
from ..readers._containers import check_begin, storage_of
from ..readers._index_files import ContainerIndex, index_files

_NAMES = {"tfrecord": "TFRecord", "recordio": "RecordIO", "tar": "tar", "zip": "zip", "lmdb": "LMDB"}
_FORMS = {"tfrecord": RecordForm.TFRECORD, "recordio": RecordForm.RECORDIO}  # other formats have no frames
_RECORDIO_MAGIC = b"\x0a\x23\xd7\xce"


def find_kind(path: str) -> str:
    """Return the format of a container file by its first bytes; TFRecord if they are not those of another format."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head[:4] == _RECORDIO_MAGIC:
        return "recordio"
    if head[:4] in (b"PK\3\4", b"PK\5\6"):
        return "zip"
    if head[16:20] == b"\xde\xc0\xef\xbe":
        return "lmdb"
    if head[257:262] == b"ustar" or path.lower().endswith(".tar"):
        return "tar"
    return "tfrecord"


def inspect(path: str, *, read: bool) -> dict[str, Any]:
    """Return the facts about one file: format, number of records, and faults as texts.

    Args:
        path: the file.
        read: also read every record and compare its checksum.

    Raises:
        StokerError: the file is of no known format.
        OSError: the file cannot be read.
    """
    kind = find_kind(path)
    index = index_files(kind, [path])[0]
    check_begin(path, index, _NAMES[kind])
    faults = [f"at byte {index.damage_offset}: {index.damage}"] if index.damage else []
    if read:
        faults += _read(path, index, kind)
    return {"path": path, "format": _NAMES[kind], "records": len(index), "bytes": os.path.getsize(path),
            "faults": faults}  # fmt: skip


def _read(path: str, index: ContainerIndex, kind: str) -> list[str]:
    """Read all records and return the faults."""
    storage = storage_of([path], [index], _FORMS.get(kind, RecordForm.STORED))
    faults = []
    try:
        for record in range(len(storage)):
            try:
                storage.content(record)
            except OSError as error:
                faults.append(f"record {record}: {error}")
    finally:
        storage.close()
    return faults


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    found = argparse.ArgumentParser(
        prog="stoker index",
        description="Find the records of container files (TFRecord, RecordIO, tar, zip, LMDB), keep the indexes for "
        "later pipelines, and report damaged files.",
    )
    found.add_argument("files", nargs="+", metavar="FILE", type=Path, help="container files")
    found.add_argument("--read", action="store_true", help="read every record, and compare checksums")
    found.add_argument("--json", action="store_true", help="print one JSON object per file instead of a line")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    args = parser().parse_args(argv)
    status = 0
    for path in map(str, args.files):
        try:
            facts = inspect(path, read=args.read)
        except (StokerError, OSError) as error:
            print(f"stoker index: {printable(str(error))}", file=sys.stderr)
            status = 2 if isinstance(error, OSError) else max(status, 1)
            continue
        status = max(status, int(bool(facts["faults"])))
        if args.json:
            print(json.dumps(facts))
            continue
        print(f"{printable(path)}: {facts['format']}, {facts['records']} records, {facts['bytes']} bytes")
        for fault in facts["faults"]:
            print(f"  {printable(fault)}")
    return status
