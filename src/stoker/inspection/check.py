# SPDX-License-Identifier: Apache-2.0
"""``stoker check``: decode every file of a folder and list those that deserve a remark.

The survey looks at headers; this finds damage in the middle of compressed data too, at the speed of decoding on all
threads. What it calls broken or truncated is what a pipeline would fail at; damage that libjpeg passes over with a
warning (an early end marker, wrong bits that still are codes) is no error there and none here.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ..native import _native
from ..settings import default_threads
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
_HARMLESS = frozenset({Remark.CMYK, Remark.ROTATED, Remark.OVERSIZED, Remark.OTHER_IMAGE})


@dataclass
class Checked:
    """What was found in a folder.

    Attributes:
        root: the folder.
        files: how many were looked at.
        seconds: how long that took.
        findings: all remarks, by path; a file may have several.
    """

    root: Path
    files: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    @property
    def bad(self) -> list[Finding]:
        """Of the files that a pipeline would fail at."""
        return [f for f in self.findings if f.remark not in _HARMLESS]

    def counts(self) -> dict[str, int]:
        """How many files have each remark."""
        return dict(Counter(str(f.remark) for f in self.findings))


def check(root: Path, *, threads: int | None = None) -> Checked:
    """Decode every file below a folder.

    Args:
        root: the folder; hidden files and folders are passed over.
        threads: by default as many as the process may use.

    Raises:
        FolderUnusable: there is no such folder, or it cannot be listed.
    """
    result = Checked(root)
    start = time.perf_counter()
    paths = list_files(root)
    with ThreadPoolExecutor(threads or default_threads()) as pool:
        for portion in _portions(paths):
            for findings in pool.map(check_file, portion):
                result.findings += findings
            result.files += len(portion)
    result.seconds = time.perf_counter() - start
    return result


def check_file(path: Path) -> list[Finding]:
    """All remarks about one file, decoded whole; an ordinary image gives none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return [Finding(path, Remark.UNREADABLE, error.strerror or str(error))]
    return [Finding(path, remark, detail) for remark, detail in _remarks(data)]


def _portions(paths: Iterable[Path]) -> Iterator[list[Path]]:
    rest = iter(paths)
    while portion := list(islice(rest, _PORTION)):
        yield portion


def _remarks(data: bytes) -> Iterator[tuple[Remark, str]]:
    if not data.startswith(b"\xff\xd8\xff"):
        remark, detail = name_format(data[:32])
        if remark is Remark.OTHER_IMAGE:
            yield from _decode_elsewhere(data)
        yield remark, detail
        return
    info = _native.jpeg.jpeg_info(data)
    megapixels = info["width"] * info["height"] / 1e6
    if megapixels > BOMB_MEGAPIXELS:
        yield Remark.BOMB, f"{info['width']}x{info['height']}"
        return
    if info["components"] == 4:
        yield Remark.CMYK, ""
    if info["orientation"] in range(2, 9):
        yield Remark.ROTATED, f"orientation {info['orientation']}"
    if megapixels > OVERSIZED_MEGAPIXELS:
        yield Remark.OVERSIZED, f"{info['width']}x{info['height']}, {megapixels:.0f} megapixels"
    status = "handover"
    if info["support"] == "native":
        _, status = _native.jpeg.jpeg_decode(data)
    if status == "truncated":
        yield Remark.TRUNCATED, f"the data end before the image of {info['width']}x{info['height']} pixels does"
    elif status != "ok":  # Pillow decides what is an error and what only a warning, as in a pipeline
        yield from _decode_elsewhere(data)


def _decode_elsewhere(data: bytes) -> Iterator[tuple[Remark, str]]:
    """With Pillow, as a pipeline decodes what the native decoder hands over."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Image.open(io.BytesIO(data)).load()
    except Image.DecompressionBombError as error:
        yield Remark.BOMB, first_line(error)
    except Exception as error:  # noqa: BLE001 - whatever a codec raises is said of its file
        text = str(error)
        yield (Remark.TRUNCATED if "truncated" in text else Remark.BROKEN), first_line(error)


def main(argv: list[str]) -> int:
    """The command; 0: nothing is wrong, 1: some files are bad, 2: the folder cannot be used."""
    parser = argparse.ArgumentParser(prog="stoker check", description="Decode every file of a folder, list bad ones.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--threads", type=int, help="by default as many as the process may use")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    given = parser.parse_args(argv)
    if given.threads is not None and given.threads < 1:
        parser.error("expected --threads >= 1")
    try:
        found = check(given.folder, threads=given.threads)
    except FolderUnusable as error:
        print(f"stoker check: {error}", file=sys.stderr)
        return 2
    if given.json:
        print(_as_json(found))
    else:
        for f in found.findings:
            print(f"{f.path}: {f.remark}{f' ({f.detail})' if f.detail else ''}")
        listed = (
            ", ".join(f"{count} {remark}" for remark, count in sorted(found.counts().items())) or "nothing to remark"
        )
        rate = found.files / found.seconds if found.seconds else 0
        print(f"{found.files} files in {found.seconds:.1f} s ({rate:.0f} per s): {listed}")
    return 1 if found.bad else 0


def _as_json(found: Checked) -> str:
    listed = [{"path": str(f.path), "remark": str(f.remark), "detail": f.detail} for f in found.findings]
    return json.dumps({"files": found.files, "bad": len(found.bad), "counts": found.counts(), "findings": listed})
