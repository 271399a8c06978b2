# SPDX-License-Identifier: Apache-2.0
"""``stoker index``: finds the records of container files, keeps the indexes, and reports damaged files."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from ..contract.errors import ArgumentError, StokerError
from ..contract.storage import RecordForm
from ..contract.text import printable
from ..readers._containers import check_begin, storage_of
from ..readers._index_files import ContainerIndex, index_files
from ..readers._manifest_file import is_manifest, open_manifest
from .container_format import FORMAT_NAMES, find_kind
from .manifest import manifest_facts, write_manifest
from .reading_plan import RankReads, simulate

_FORMS = {"tfrecord": RecordForm.TFRECORD, "recordio": RecordForm.RECORDIO}  # other formats have no frames


def inspect(path: str, *, read: bool) -> dict[str, Any]:
    """Return the facts about one file: format, number of records, and faults as texts.

    Args:
        path: the file.
        read: also read every record and compare its checksum.

    Raises:
        StokerError: the file is of no known format.
        OSError: the file cannot be read.
    """
    if os.path.isdir(path):
        raise ArgumentError(f"expected a container file, got the folder {path!r}; give its files")
    if is_manifest(path):
        return manifest_facts(path)
    kind = find_kind(path)
    index = index_files(kind, [path])[0]
    check_begin(path, index, FORMAT_NAMES[kind])
    faults = [f"at byte {index.damage_offset}: {index.damage}"] if index.damage else []
    if read:
        faults += _read(path, index, kind)
    return {"path": path, "format": FORMAT_NAMES[kind], "records": len(index), "bytes": os.path.getsize(path),
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
        "later pipelines, and report damaged files. With --manifest: write the records of all files into a manifest, "
        "which readers take in place of the files. @FILE is replaced with the lines of FILE.",
        fromfile_prefix_chars="@",
    )
    found.add_argument("files", nargs="+", metavar="FILE", help="container files, or manifests; with --manifest also "
                       "addresses of objects, and folders with MDS data sets")  # fmt: skip
    found.add_argument("--read", action="store_true", help="read every record, and compare checksums")
    found.add_argument("--json", action="store_true", help="print one JSON object per file instead of a line")
    found.add_argument(
        "--manifest", metavar="OUT", help="write a manifest of the files, OUT.manifest, or join manifests"
    )
    found.add_argument(
        "--ranks", type=_positive, metavar="N", help="print what each of N ranks reads from a manifest's shards"
    )
    found.add_argument("--rate", type=_positive, default=1000, help="records per second and rank (default: 1000)")
    found.add_argument("--batch", type=_positive, default=256, help="rows of a rank's batch (default: 256)")
    found.add_argument("--window", type=_positive, default=16, help="shards of a window (default: 16)")
    return found


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    args = parser().parse_args(argv)
    if args.manifest is not None:
        return _write(args)
    status = 0
    for path in args.files:
        try:
            facts = inspect(path, read=args.read)
            plans = _plans(path, args) if args.ranks is not None else []
        except (StokerError, OSError) as error:
            print(f"stoker index: {printable(str(error))}", file=sys.stderr)
            status = 2 if isinstance(error, OSError) else max(status, 1)
            continue
        status = max(status, int(bool(facts["faults"])))
        if args.json:
            print(json.dumps({**facts, "ranks": [vars(plan) for plan in plans]} if plans else facts))
            continue
        shards = f"{facts['shards']} shards, " if "shards" in facts else ""
        print(f"{printable(path)}: {facts['format']}, {shards}{facts['records']} records, {facts['bytes']} bytes")
        for line in (*map(str, plans), *facts["faults"]):
            print(f"  {printable(line)}")
    return status


def _plans(path: str, args: argparse.Namespace) -> list[RankReads]:
    """Return the reads of a rank for several orders."""
    if not is_manifest(path):
        raise ArgumentError(f"expected a manifest with --ranks, got '{printable(path)}'")
    opened = open_manifest(path)
    try:
        return list(simulate(opened, args.ranks, args.rate, args.batch, window=args.window))
    finally:
        opened.native.close()


def _write(args: argparse.Namespace) -> int:
    """Write a manifest and return the exit status."""
    try:
        samples = write_manifest(args.manifest, args.files, None if args.json else _show)
    except (StokerError, OSError) as error:
        print(f"stoker index: {printable(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, OSError) else 1
    facts = manifest_facts(args.manifest)
    print(
        json.dumps(facts) if args.json else f"{printable(args.manifest)}: {facts['shards']} shards, {samples} records"
    )
    return 0


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} shards", end="\n" if done == total else "", file=sys.stderr, flush=True)
