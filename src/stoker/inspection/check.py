# SPDX-License-Identifier: Apache-2.0
"""``stoker check``: decodes every image of a folder, in files and in containers, and lists bad and unusual ones.

The survey reads headers only. This command also finds damage in the middle of compressed data, at the speed of decoding
on all threads. A pipeline would fail on files and records reported as broken or truncated. Damage that libjpeg accepts
with a warning (missing or extra data, wrong codes, lost restart markers) gives pixels in a pipeline, and a remark here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from .._image_formats import has_image_extension, starts_like_image
from ..contract.text import printable
from ..settings import default_threads
from .container_check import check_container, describe, open_container
from .container_format import HEADERLESS, recognize
from .image_check import Checked, check_image_file, list_counts
from .progress import progress_bar
from .survey import Finding, FolderUnusable, Remark, list_files

T = TypeVar("T")

_CHUNK_FILES = 256  # files in flight together
_CHUNK_UNITS = 16  # records that a thread checks in turn
_HARMLESS = frozenset({Remark.CMYK, Remark.ROTATED, Remark.OVERSIZED, Remark.OTHER_IMAGE, Remark.DAMAGED})


@dataclass
class CheckReport:
    """Findings for a folder.

    Attributes:
        root: the folder, or the file.
        files: number of files checked.
        containers: number of containers among them.
        records: number of records of the containers.
        seconds: duration.
        ignored: number of files that readers leave out: neither name nor content is that of an image or a container.
        findings: all remarks, images before containers, by path; a file may have several.
        warnings: counts of libjpeg's warnings over all files.
    """

    root: Path
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


def check(
    root: Path, *, threads: int | None = None, progress: Callable[[int], AbstractContextManager[Any]] | None = None
) -> CheckReport:
    """Decode every image below a folder, and read every record of the containers below it.

    Args:
        root: the folder, or one file; hidden files and folders are skipped, and files that readers leave out.
        threads: number of threads; by default as many as the process may use.
        progress: function that takes the number of files and returns a bar, whose ``update(count)`` is called when
            ``count`` more files are done.

    Raises:
        FolderUnusable: the folder does not exist or cannot be listed.
    """
    result = CheckReport(root)
    start = time.perf_counter()
    images, containers, result.ignored = _sort(root)
    bar = progress(len(images) + len(containers)) if progress is not None else nullcontext()
    with ThreadPoolExecutor(threads or default_threads()) as pool, bar as shown:
        try:
            for portion in _portions(images, _CHUNK_FILES):
                _add(result, pool.map(check_image_file, portion))
                result.files += len(portion)
                if shown is not None:
                    shown.update(len(portion))
            for path, kind in containers:
                _check_records(result, path, kind, pool)
                if shown is not None:
                    shown.update(1)
        except BaseException:  # after Ctrl-C the rest of the portion is not waited for
            pool.shutdown(cancel_futures=True)
            raise
    result.seconds = time.perf_counter() - start
    return result


def check_file(path: Path) -> list[Finding]:
    """Decode a whole image file and return all remarks about it; none for an ordinary image."""
    return check_image_file(path)[0]


def _sort(root: Path) -> tuple[list[Path], list[tuple[Path, str]], int]:
    """Return the images, the containers with their formats, and the number of other files."""
    found = [root] if root.is_file() else list_files(root)
    images: list[Path] = []
    containers: list[tuple[Path, str]] = []
    for path in found:
        has_no_header = path.suffix.lower() in HEADERLESS  # it may begin with an image, its first record
        if has_image_extension(path.name) or (not has_no_header and starts_like_image(path)):
            images.append(path)
            continue
        try:
            kind = recognize(str(path))
        except OSError:  # reported when the file is checked
            images.append(path)
            continue
        if kind is not None:
            containers.append((path, kind))
    return images, containers, len(found) - len(images) - len(containers)


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
        "MDS, Bagz, Parquet, Arrow), compare checksums, and list bad files and records.",
    )
    made.add_argument("folder", type=Path, metavar="PATH", help="the folder, with all folders below it, or one file")
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
