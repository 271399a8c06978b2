# SPDX-License-Identifier: Apache-2.0
"""``stoker check``: decode every file of a folder and list those that deserve a remark.

The survey looks at headers; this finds damage in the middle of compressed data too, at the speed of decoding on all
threads. What it calls broken or truncated is what a pipeline would fail at. Damage that libjpeg passes over with a
warning (data that end early or are too many, wrong codes, lost restart markers) gives pixels there, and a remark here.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ..native import _native
from ..settings import default_threads
from .progress import progress_bar
from .survey import (
    BOMB_MEGAPIXELS,
    OVERSIZED_MEGAPIXELS,
    Finding,
    FolderUnusable,
    Remark,
    first_line,
    list_files,
    name_format,
)

_PORTION = 256  # files that are under way at once
_HARMLESS = frozenset({Remark.CMYK, Remark.ROTATED, Remark.OVERSIZED, Remark.OTHER_IMAGE, Remark.DAMAGED})
# What libjpeg warns of, by the names that the native decoder counts it by.
_WARNINGS = {
    "wrong_codes": "bits that are no code",
    "early_ends": "pieces of data that end early",
    "wrong_restarts": "restart markers that are missing or out of turn",
    "extra_bytes": "bytes that belong to nothing",
}


@dataclass
class Checked:
    """What was found in a folder.

    Attributes:
        root: the folder.
        files: how many were looked at.
        seconds: how long that took.
        findings: all remarks, by path; a file may have several.
        warnings: what libjpeg would warn of, over all files.
    """

    root: Path
    files: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)

    @property
    def bad(self) -> list[Finding]:
        """Of the files that a pipeline would fail at."""
        return [f for f in self.findings if f.remark not in _HARMLESS]

    def counts(self) -> dict[str, int]:
        """How many files have each remark."""
        return dict(Counter(str(f.remark) for f in self.findings))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        listed = [
            {"path": str(f.path), "remark": str(f.remark), "detail": f.detail, "offset": f.offset}
            for f in self.findings
        ]
        return {
            "files": self.files, "seconds": self.seconds, "bad": len(self.bad), "counts": self.counts(),
            "warnings": dict(self.warnings), "findings": listed,
        }  # fmt: skip

    def __str__(self) -> str:
        """A line per finding, and one that counts."""
        lines = [f"{f.path}: {f.remark}{f' ({f.detail})' if f.detail else ''}" for f in self.findings]
        listed = ", ".join(f"{count} {remark}" for remark, count in sorted(self.counts().items()))
        rate = self.files / self.seconds if self.seconds else 0
        timing = f"{self.files} files in {self.seconds:.1f} s ({rate:.0f} per s)"
        if self.warnings:
            lines.append("in the damaged files: " + _told(self.warnings))
        return "\n".join([*lines, f"{timing}: {listed or 'nothing to remark'}"])


def check(
    root: Path, *, threads: int | None = None, progress: Callable[[int], AbstractContextManager[Any]] | None = None
) -> Checked:
    """Decode every file below a folder.

    Args:
        root: the folder; hidden files and folders are passed over.
        threads: by default as many as the process may use.
        progress: given the number of files, makes a bar whose ``update(count)`` is called when so many more are done.

    Raises:
        FolderUnusable: there is no such folder, or it cannot be listed.
    """
    result = Checked(root)
    start = time.perf_counter()
    paths = list_files(root)
    bar = progress(len(paths)) if progress is not None else nullcontext()
    with ThreadPoolExecutor(threads or default_threads()) as pool, bar as shown:
        for portion in _portions(paths):
            for findings, warned in pool.map(_check, portion):
                result.findings += findings
                result.warnings += warned
            result.files += len(portion)
            if shown is not None:
                shown.update(len(portion))
    result.seconds = time.perf_counter() - start
    return result


def check_file(path: Path) -> list[Finding]:
    """All remarks about one file, decoded whole; an ordinary image gives none."""
    return _check(path)[0]


def _check(path: Path) -> tuple[list[Finding], Counter[str]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        return [Finding(path, Remark.UNREADABLE, error.strerror or str(error))], Counter()
    if data.startswith(b"\xff\xd8\xff"):
        return _check_jpeg(path, data)
    remark, detail = name_format(data[:32])
    findings = [Finding(path, remark, detail)]
    if remark is Remark.OTHER_IMAGE and (failed := _decode_elsewhere(data)):
        findings.insert(0, Finding(path, *failed))
    return findings, Counter()


def _portions(paths: Iterable[Path]) -> Iterator[list[Path]]:
    rest = iter(paths)
    while portion := list(islice(rest, _PORTION)):
        yield portion


def _check_jpeg(path: Path, data: bytes) -> tuple[list[Finding], Counter[str]]:
    info = _native.jpeg.jpeg_check(data, int(BOMB_MEGAPIXELS * 1e6))
    size, megapixels = f"{info['width']}x{info['height']}", info["width"] * info["height"] / 1e6
    if megapixels > BOMB_MEGAPIXELS:
        return [Finding(path, Remark.BOMB, size)], Counter()
    findings = []
    if info["components"] == 4:
        findings.append(Finding(path, Remark.CMYK))
    if info["orientation"] in range(2, 9):
        findings.append(Finding(path, Remark.ROTATED, f"orientation {info['orientation']}"))
    if megapixels > OVERSIZED_MEGAPIXELS:
        findings.append(Finding(path, Remark.OVERSIZED, f"{size}, {megapixels:.0f} megapixels"))
    if info["status"] == "truncated":
        text = f"the data end before the image of {size} pixels does"
        return [*findings, Finding(path, Remark.TRUNCATED, text, info["offset"])], Counter()
    # Pillow decides what is an error and what only a warning, as in a pipeline.
    if info["status"] != "ok" and (failed := _decode_elsewhere(data)):
        return [*findings, Finding(path, *failed, info["offset"])], Counter()
    warned = Counter({name: info[name] for name in _WARNINGS if info[name]})
    if warned:
        text = f"{_told(warned)}; from byte {info['offset']} on"
        findings.append(Finding(path, Remark.DAMAGED, text, info["offset"]))
    return findings, warned


def _told(warned: Mapping[str, int]) -> str:
    return ", ".join(f"{warned[name]} {text}" for name, text in _WARNINGS.items() if warned.get(name))


def _decode_elsewhere(data: bytes) -> tuple[Remark, str] | None:
    """What is wrong when Pillow decodes it, as a pipeline does with what the native decoder hands over."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Image.open(io.BytesIO(data)).load()
    except Image.DecompressionBombError as error:
        return Remark.BOMB, first_line(error)
    except Exception as error:  # noqa: BLE001 - whatever a codec raises is said of its file
        return (Remark.TRUNCATED if "truncated" in str(error) else Remark.BROKEN), first_line(error)
    return None


def main(argv: list[str]) -> int:
    """The command; 0: nothing is wrong, 1: some files are bad, 2: the folder cannot be used."""
    parser = argparse.ArgumentParser(prog="stoker check", description="Decode every file of a folder, list bad ones.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--threads", type=int, help="by default as many as the process may use")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    given = parser.parse_args(argv)
    if given.threads is not None and given.threads < 1:
        parser.error("expected --threads >= 1")
    bar = (lambda total: progress_bar(total, "checking", "files")) if sys.stderr.isatty() else None
    try:
        found = check(given.folder, threads=given.threads, progress=bar)
    except FolderUnusable as error:
        print(f"stoker check: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found.to_dict()) if given.json else found)
    return 1 if found.bad else 0
