# SPDX-License-Identifier: Apache-2.0
"""``stoker check``: decodes every image of a folder, in files and in containers, and lists bad and unusual ones.

The survey reads headers only. This command also finds damage in the middle of compressed data, at the speed of decoding
on all threads. A pipeline would fail on files and records reported as broken or truncated. Damage that libjpeg accepts
with a warning (missing or extra data, wrong codes, lost restart markers) gives pixels in a pipeline, and a remark here.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from .._image_formats import has_image_extension, starts_like_image
from ..contract.errors import StokerError
from ..contract.text import printable
from ..remote.addresses import is_remote, join
from ..settings import default_threads
from .container_check import check_container, describe, open_container
from .container_format import HEADERLESS, find_data_sets, recognize
from .image_check import Checked, check_image_file, list_counts
from .object_copies import Copies, copies_of, list_objects
from .progress import progress_bar
from .survey import Finding, FolderUnusable, Remark, list_files

T = TypeVar("T")
Progress = Callable[[int], AbstractContextManager[Any]]

_CHUNK_FILES = 256  # files in flight together
_CHUNK_UNITS = 16  # records that a thread checks in turn
_HARMLESS = frozenset({Remark.CMYK, Remark.ROTATED, Remark.OVERSIZED, Remark.OTHER_IMAGE, Remark.DAMAGED})


@dataclass
class CheckReport:
    """Findings for a folder.

    Attributes:
        root: the folder, the file, or the address.
        files: number of files checked.
        containers: number of containers among them.
        records: number of records of the containers.
        seconds: duration.
        ignored: number of files that readers leave out: neither name nor content is that of an image or a container.
        findings: all remarks, images before containers, by path; a file may have several.
        warnings: counts of libjpeg's warnings over all files.
    """

    root: Path | str
    files: int = 0
    ignored: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    containers: int = 0
    records: int = 0

    @property
    def bad(self) -> list[Finding]:
        """Return the findings of files and records on which a pipeline would fail."""
        return [f for f in self.findings if f.remark not in _HARMLESS]

    def counts(self) -> dict[str, int]:
        """Return the number of findings for each remark."""
        return dict(Counter(str(f.remark) for f in self.findings))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        listed = [
            {"path": str(f.path), "remark": str(f.remark), "detail": f.detail, "offset": f.offset}
            | ({} if f.record is None else {"record": f.record, "name": f.name})
            for f in self.findings
        ]
        return {
            "files": self.files, "containers": self.containers, "records": self.records, "ignored": self.ignored,
            "seconds": self.seconds, "bad": len(self.bad), "counts": self.counts(), "warnings": dict(self.warnings),
            "findings": listed,
        }  # fmt: skip

    def __str__(self) -> str:
        """Return a line per finding, and a line of totals."""
        lines = [f"{describe(f)}: {f.remark}{f' ({printable(f.detail)})' if f.detail else ''}" for f in self.findings]
        listed = ", ".join(f"{count} {remark}" for remark, count in sorted(self.counts().items()))
        rate = (self.files + self.records) / self.seconds if self.seconds else 0
        records = f", {self.records} records in {self.containers} containers" if self.containers else ""
        timing = f"{self.files} files{records} in {self.seconds:.1f} s ({rate:.0f} per s)"
        if self.warnings:
            lines.append("in the damaged files: " + list_counts(self.warnings))
        if self.ignored:
            text = "files are not looked at: neither name nor content is that of an image or a container"
            lines.append(f"{self.ignored} {text}")
        return "\n".join([*lines, f"{timing}: {listed or 'nothing to remark'}"])


def check(root: Path | str, *, threads: int | None = None, progress: Progress | None = None) -> CheckReport:
    """Decode every image below a folder, and read every record of the containers below it.

    Args:
        root: the folder, or one file; or the address of an object, or of a folder of objects. Hidden files and folders
            are skipped, and files that readers leave out. Objects are copied into a temporary folder, at most 256 MiB
            or one object or data set at a time.
        threads: number of threads; by default as many as the process may use.
        progress: function that takes the number of files and returns a bar, whose ``update(count)`` is called when
            ``count`` more files are done.

    Raises:
        FolderUnusable: the folder does not exist or cannot be listed, or the store refuses the address.
    """
    result = CheckReport(root)
    start = time.perf_counter()
    with ThreadPoolExecutor(threads or default_threads()) as pool:
        try:
            if isinstance(root, str) and is_remote(root):
                _check_objects(result, root, pool, progress)
            else:
                _check_files(result, Path(root), pool, progress)
        except BaseException:  # after Ctrl-C the rest of the portion is not waited for
            pool.shutdown(cancel_futures=True)
            raise
    result.seconds = time.perf_counter() - start
    return result


def _check_files(result: CheckReport, root: Path, pool: ThreadPoolExecutor, progress: Progress | None) -> None:
    """Check a file, or the files of a folder."""
    images, containers, result.ignored = _sort([root] if root.is_file() else list_files(root))
    bar = progress(len(images) + len(containers)) if progress is not None else nullcontext()
    with bar as shown:
        _check_sorted(result, images, containers, pool, _noop if shown is None else shown.update)


def _check_objects(result: CheckReport, address: str, pool: ThreadPoolExecutor, progress: Progress | None) -> None:
    """Check an object, or the objects below an address, in portions that are copied into a temporary folder."""
    try:
        listed = list_objects(address)
        bar = progress(len(listed)) if progress is not None else nullcontext()
        with bar as shown, closing(copies_of(address, listed)) as portions:
            for portion in portions:
                known = len(result.findings)
                files = [path for path in list_files(portion.folder) if path not in portion.indexes]
                images, containers, ignored = _sort(files)
                result.ignored += ignored
                _check_sorted(result, images, containers, pool, _noop)
                result.findings[known:] = [_at_address(f, portion, address) for f in result.findings[known:]]
                result.findings += portion.failed
                result.files += len(portion.failed)
                if shown is not None:
                    shown.update(len(portion.addresses) - len(portion.indexes))
    except StokerError as error:
        raise FolderUnusable(str(error)) from None


def _at_address(finding: Finding, portion: Copies, address: str) -> Finding:
    """Return the finding about an object from that about its copy."""
    name = os.path.relpath(finding.path, portion.folder)
    found = portion.addresses.get(name) or join(address, name)  # the folder of a data set has no object
    detail = finding.detail.replace(str(finding.path), found)
    return replace(finding, path=found, detail=detail)


def _check_sorted(
    result: CheckReport, images: Sequence[Path], containers: Sequence[tuple[Path, str]], pool: ThreadPoolExecutor,
    update: Callable[[int], object],
) -> None:  # fmt: skip
    for portion in _portions(images, _CHUNK_FILES):
        _add(result, pool.map(check_image_file, portion))
        result.files += len(portion)
        update(len(portion))
    for path, kind in containers:
        _check_records(result, path, kind, pool)
        update(1)


def _noop(count: int) -> None:
    return


def check_file(path: Path) -> list[Finding]:
    """Decode a whole image file and return all remarks about it; none for an ordinary image."""
    return check_image_file(path)[0]


def _sort(found: Sequence[Path]) -> tuple[list[Path], list[tuple[Path, str]], int]:
    """Return the images, the containers with their formats, and the number of other files."""
    images: list[Path] = []
    data_sets = find_data_sets(found)
    containers = [(folder, kind) for folder, (kind, _) in sorted(data_sets.items())]
    covered = {path for _, files in data_sets.values() for path in files}
    ignored = 0
    for path in found:
        if path in covered:
            continue
        has_no_header = path.suffix.lower() in HEADERLESS  # it may begin with an image, its first record
        if has_image_extension(path.name) or (not has_no_header and starts_like_image(path)):
            images.append(path)
            continue
        try:
            kind = recognize(str(path))
        except OSError:  # reported when the file is checked
            images.append(path)
            continue
        if kind is None:
            ignored += 1
        else:
            containers.append((path, kind))
    return images, containers, ignored


def _check_records(result: CheckReport, path: Path, kind: str, pool: ThreadPoolExecutor) -> None:
    with closing(open_container(path, kind)) as container:
        units = range(len(container))
        chunks = [units[i : i + _CHUNK_UNITS] for i in range(0, len(units), _CHUNK_UNITS)]
        for portion in _portions(chunks, _CHUNK_FILES):
            _add(result, pool.map(lambda chunk: check_container(container, chunk), portion))
        result.findings += container.faults
        result.files += 1
        result.containers += 1
        result.records += container.records


def _add(result: CheckReport, checked: Iterable[Checked]) -> None:
    for findings, warned in checked:
        result.findings += findings
        result.warnings += warned


def _portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while portion := list(islice(rest, size)):
        yield portion


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    made = argparse.ArgumentParser(
        prog="stoker check",
        description="Decode every image of a folder, in files and in containers (TFRecord, RecordIO, tar, zip, LMDB, "
        "MDS, Bagz, Parquet, Arrow, ArrayRecord, Lance, LitData, FITS), compare checksums, and list bad files and "
        "records.",
    )
    made.add_argument(
        "folder",
        metavar="PATH",
        help="the folder, with all folders below it, or one file; or the address of objects (s3://, gs://, az://), or "
        "of one object (https://)",
    )
    made.add_argument("--threads", type=int, help="number of threads, >= 1; by default as many as the process may use")
    made.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    return made


def main(argv: list[str]) -> int:
    """Run the command and return its exit status: 0: no fault, 1: some files are bad, 2: the folder cannot be used."""
    arguments = parser().parse_args(argv)
    if arguments.threads is not None and arguments.threads < 1:
        parser().error("expected --threads >= 1")
    bar = (lambda total: progress_bar(total, "checking", "files")) if sys.stderr.isatty() else None
    try:
        found = check(arguments.folder, threads=arguments.threads, progress=bar)
    except FolderUnusable as error:
        print(f"stoker check: {printable(str(error))}", file=sys.stderr)
        return 2
    print(json.dumps(found.to_dict()) if arguments.json else found)
    return 1 if found.bad else 0
