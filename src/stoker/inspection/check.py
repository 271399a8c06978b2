# SPDX-License-Identifier: Apache-2.0
"""``stoker check``: decodes every file of a folder and lists bad and unusual ones.

The survey reads headers only. This command also finds damage in the middle of compressed data, at the speed of decoding
on all threads. A pipeline would fail on files reported as broken or truncated. Damage that libjpeg accepts with a
warning (missing or extra data, wrong codes, lost restart markers) gives pixels in a pipeline, and a remark here.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from .._image_formats import has_image_extension, open_image, starts_like_image
from ..contract.text import printable
from ..contract.warning import ignored
from ..native import _native
from ..ops.image._decoding import MAX_SCAN_PIXELS
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

_CHUNK_FILES = 256  # files in flight together
_HEAD_BYTES = 32
_MAX_BYTES = 512 << 20  # of a JPEG file, which is decoded from memory: three bytes for each of the most pixels
_HARMLESS = frozenset({Remark.CMYK, Remark.ROTATED, Remark.OVERSIZED, Remark.OTHER_IMAGE, Remark.DAMAGED})
# libjpeg's warnings, by the names in the native decoder's counts.
_WARNINGS = {
    "wrong_codes": "bits that are no code",
    "early_ends": "pieces of data that end early",
    "wrong_restarts": "restart markers that are missing or out of turn",
    "extra_bytes": "bytes that belong to nothing",
}


@dataclass
class CheckReport:
    """Findings for a folder.

    Attributes:
        root: the folder.
        files: number of files checked.
        seconds: duration.
        ignored: number of files that readers leave out: neither name nor content is that of an image.
        findings: all remarks, by path; a file may have several.
        warnings: counts of libjpeg's warnings over all files.
    """

    root: Path
    files: int = 0
    ignored: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)

    @property
    def bad(self) -> list[Finding]:
        """Return the findings of files on which a pipeline would fail."""
        return [f for f in self.findings if f.remark not in _HARMLESS]

    def counts(self) -> dict[str, int]:
        """Return the number of files for each remark."""
        return dict(Counter(str(f.remark) for f in self.findings))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        listed = [
            {"path": str(f.path), "remark": str(f.remark), "detail": f.detail, "offset": f.offset}
            for f in self.findings
        ]
        return {
            "files": self.files, "ignored": self.ignored, "seconds": self.seconds, "bad": len(self.bad),
            "counts": self.counts(), "warnings": dict(self.warnings), "findings": listed,
        }  # fmt: skip

    def __str__(self) -> str:
        """Return a line per finding, and a line of totals."""
        lines = [
            f"{printable(f.path)}: {f.remark}{f' ({printable(f.detail)})' if f.detail else ''}" for f in self.findings
        ]
        listed = ", ".join(f"{count} {remark}" for remark, count in sorted(self.counts().items()))
        rate = self.files / self.seconds if self.seconds else 0
        timing = f"{self.files} files in {self.seconds:.1f} s ({rate:.0f} per s)"
        if self.warnings:
            lines.append("in the damaged files: " + _list_counts(self.warnings))
        if self.ignored:
            lines.append(f"{self.ignored} files are not looked at: neither name nor content is that of an image")
        return "\n".join([*lines, f"{timing}: {listed or 'nothing to remark'}"])


def check(
    root: Path, *, threads: int | None = None, progress: Callable[[int], AbstractContextManager[Any]] | None = None
) -> CheckReport:
    """Decode every file below a folder.

    Args:
        root: the folder; hidden files and folders are skipped, and files that readers leave out.
        threads: number of threads; by default as many as the process may use.
        progress: function that takes the number of files and returns a bar, whose ``update(count)`` is called when
            ``count`` more files are done.

    Raises:
        FolderUnusable: the folder does not exist or cannot be listed.
    """
    result = CheckReport(root)
    start = time.perf_counter()
    found = list_files(root)
    paths = [path for path in found if has_image_extension(path.name) or starts_like_image(path)]
    result.ignored = len(found) - len(paths)
    bar = progress(len(paths)) if progress is not None else nullcontext()
    with ThreadPoolExecutor(threads or default_threads()) as pool, bar as shown:
        try:
            for portion in _portions(paths):
                for findings, warned in pool.map(_check, portion):
                    result.findings += findings
                    result.warnings += warned
                result.files += len(portion)
                if shown is not None:
                    shown.update(len(portion))
        except BaseException:  # after Ctrl-C the rest of the portion is not waited for
            pool.shutdown(cancel_futures=True)
            raise
    result.seconds = time.perf_counter() - start
    return result


def check_file(path: Path) -> list[Finding]:
    """Decode a whole file and return all remarks about it; none for an ordinary image."""
    return _check(path)[0]


def _check(path: Path) -> tuple[list[Finding], Counter[str]]:
    try:
        with path.open("rb") as file:
            return _check_open(path, file)
    except OSError as error:
        return [Finding(path, Remark.UNREADABLE, error.strerror or str(error))], Counter()


def _check_open(path: Path, file: BinaryIO) -> tuple[list[Finding], Counter[str]]:
    head = file.read(_HEAD_BYTES)
    if head.startswith(b"\xff\xd8\xff"):
        data = head + file.read(_MAX_BYTES - len(head) + 1)
        if len(data) > _MAX_BYTES:
            return [Finding(path, Remark.UNREADABLE, f"larger than {_MAX_BYTES >> 20} MiB")], Counter()
        return _check_jpeg(path, data)
    remark, detail = name_format(head)
    findings = [Finding(path, remark, detail)]
    file.seek(0)
    if remark is Remark.OTHER_IMAGE and (failed := _decode_elsewhere(file)):
        findings.insert(0, Finding(path, *failed))
    return findings, Counter()


def _portions(paths: Iterable[Path]) -> Iterator[list[Path]]:
    rest = iter(paths)
    while portion := list(islice(rest, _CHUNK_FILES)):
        yield portion


def _check_jpeg(path: Path, data: bytes) -> tuple[list[Finding], Counter[str]]:
    info = _native.jpeg.jpeg_check(data, int(BOMB_MEGAPIXELS * 1e6), MAX_SCAN_PIXELS)
    size, megapixels = f"{info['width']}x{info['height']}", info["width"] * info["height"] / 1e6
    if megapixels > BOMB_MEGAPIXELS:
        return [Finding(path, Remark.BOMB, size)], Counter()
    if _native.jpeg.too_many_scans(data, info["width"], info["height"], MAX_SCAN_PIXELS):
        return [Finding(path, Remark.SCANS, f"{_native.jpeg.count_scans(data)} scans of {size} pixels")], Counter()
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
    # As in a pipeline, Pillow distinguishes errors from warnings.
    if info["status"] != "ok" and (failed := _decode_elsewhere(io.BytesIO(data))):
        return [*findings, Finding(path, *failed, info["offset"])], Counter()
    warned = Counter({name: info[name] for name in _WARNINGS if info[name]})
    if warned:
        text = f"{_list_counts(warned)}; from byte {info['offset']} on"
        findings.append(Finding(path, Remark.DAMAGED, text, info["offset"]))
    return findings, warned


def _list_counts(warned: Mapping[str, int]) -> str:
    return ", ".join(f"{warned[name]} {text}" for name, text in _WARNINGS.items() if warned.get(name))


def _decode_elsewhere(file: BinaryIO) -> tuple[Remark, str] | None:
    """Decode with Pillow, as a pipeline does for files that the native decoder hands over, and return the fault."""
    from PIL import Image

    try:
        with ignored():
            open_image(file).load()
    except Image.DecompressionBombError as error:
        return Remark.BOMB, first_line(error)
    except Exception as error:  # noqa: BLE001 - whatever a codec raises is said of its file
        return (Remark.TRUNCATED if "truncated" in str(error) else Remark.BROKEN), first_line(error)
    return None


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    made = argparse.ArgumentParser(prog="stoker check", description="Decode every file of a folder, list bad ones.")
    made.add_argument("folder", type=Path, metavar="DIR", help="the folder, with all folders below it")
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
