# SPDX-License-Identifier: Apache-2.0
"""Survey of a folder of photographs: which JPEG files can be used, and the faults of the others.

Only headers and the ends of files are read, so that thousands of files take seconds. Damage in the middle of the
compressed data shows only when a file is decoded. Nothing is written. A usable file may get several remarks (a rotated
CMYK photograph).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from .._image_formats import find_format
from ..contract.warning import ignored

OVERSIZED_MEGAPIXELS = 40
BOMB_MEGAPIXELS = 178  # Pillow refuses larger images as decompression bombs
_TAIL_BYTES = 1 << 16
_ORIENTATION_TAG = 0x0112


class Remark(StrEnum):
    """Remark about a file. The value is the text for users."""

    CMYK = "CMYK"
    ROTATED = "rotated by EXIF"
    OVERSIZED = f"more than {OVERSIZED_MEGAPIXELS} megapixels"
    BROKEN = "broken"
    TRUNCATED = "truncated"
    BOMB = f"more than {BOMB_MEGAPIXELS} megapixels"
    SCANS = "more scans than a decoder goes through"
    HEIC = "HEIC"
    OTHER_IMAGE = "another image format"
    NOT_IMAGE = "not an image"
    EMPTY = "empty file"
    UNREADABLE = "cannot be read"
    DAMAGED = "damaged, yet decoded"
    RECORD = "damaged record"
    CONTAINER = "damaged container"
    UNCHECKED = "not checked"


_USABLE = {Remark.CMYK, Remark.ROTATED, Remark.OVERSIZED}


@dataclass(frozen=True)
class Finding:
    """File with a remark.

    Attributes:
        path: The file; the address of an object.
        remark: The remark.
        detail: More about it.
        offset: Byte at which the file is damaged, or the image in a record; None if it is not known.
        record: Number of the record, if the file is a container; None for a remark about the whole file.
        name: Name of the part of the record: a member, a feature, a column; "" if it has none.
    """

    path: Path | str
    remark: Remark
    detail: str = ""
    offset: int | None = None
    record: int | None = None
    name: str = ""


@dataclass
class Survey:
    """Findings of a survey of a folder.

    Attributes:
        root: The folder.
        files: Usable JPEG files, sorted by path.
        labels: For each usable file, the index of its class in `classes`.
        classes: Names of the folders that hold usable files, relative to `root`, sorted; "." for files in `root`.
        unusual: Usable files with a remark.
        left_out: Files that cannot be used, with the reason.
        total: Number of files examined.
        skipped: Number of files not examined because of the limit.
    """

    root: Path
    files: list[Path] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    unusual: list[Finding] = field(default_factory=list)
    left_out: list[Finding] = field(default_factory=list)
    total: int = 0
    skipped: int = 0

    def count(self, remark: Remark) -> int:
        """Return the number of findings with this remark."""
        return sum(finding.remark is remark for finding in (*self.unusual, *self.left_out))


class FolderUnusable(RuntimeError):
    """The folder does not exist, is not a folder, cannot be read, or holds no usable JPEG file."""


def survey(root: Path, *, limit: int | None = None, progress: Callable[[int], object] | None = None) -> Survey:
    """Examine the files of a folder, flat or nested. Hidden files and folders are skipped.

    Args:
        root: The folder.
        limit: Maximum number of files to examine, spread evenly over all of them.
        progress: Called with the number of files examined since the last call.

    Raises:
        FolderUnusable: The folder has no usable files; the text says why.
    """
    paths = list_files(root)
    result = Survey(root)
    chosen = paths if limit is None or len(paths) <= limit else [paths[i * len(paths) // limit] for i in range(limit)]
    result.total, result.skipped = len(chosen), len(paths) - len(chosen)
    for path in chosen:
        findings = examine(path)
        ruled_out = [finding for finding in findings if finding.remark not in _USABLE]
        if ruled_out:
            result.left_out.append(ruled_out[0])
        else:
            result.files.append(path)
            result.unusual.extend(findings)
        if progress is not None:
            progress(1)
    if not result.files:
        raise FolderUnusable(_nothing_usable(result))
    folders = [path.parent.relative_to(root).as_posix() for path in result.files]
    result.classes = sorted(set(folders))
    index = {name: i for i, name in enumerate(result.classes)}
    result.labels = [index[name] for name in folders]
    return result


def list_files(root: Path) -> list[Path]:
    """Return all regular files below a folder, sorted. Links to folders are not followed.

    Raises:
        FolderUnusable: The folder does not exist, is not a folder or cannot be listed.
    """
    if not root.exists():
        raise FolderUnusable(f"{root} does not exist.")
    if not root.is_dir():
        raise FolderUnusable(f"{root} is a file; give the folder that it lies in.")
    try:
        os.listdir(root)
    except OSError as error:
        raise FolderUnusable(f"{root} cannot be read: {error.strerror}.") from None
    return sorted(_walk(root))


def _walk(root: Path) -> Iterator[Path]:
    closed: list[str] = []
    for folder, below, names in os.walk(root, onerror=lambda error: closed.append(str(error.filename))):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            path = os.path.join(folder, name)
            if not name.startswith(".") and (os.path.isfile(path) or not os.path.exists(path)):
                # Dangling links are listed; pipes and sockets are not, because opening one would block.
                yield Path(path)
    yield from map(Path, closed)


def examine(path: Path) -> list[Finding]:
    """Return the remarks about one file; none for an ordinary JPEG file."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
            if not head.startswith(b"\xff\xd8\xff"):
                remark, detail = name_format(head)
                return [Finding(path, remark, detail)]
            file.seek(0)
            return [Finding(path, remark, detail) for remark, detail in _examine_jpeg(file)]
    except OSError as error:
        return [Finding(path, Remark.UNREADABLE, error.strerror or str(error))]


def name_format(head: bytes) -> tuple[Remark, str]:
    """Return the name of the format of a file that is not a JPEG, by its first bytes."""
    if not head:
        return Remark.EMPTY, ""
    name = find_format(head)
    if name == "HEIC":
        return Remark.HEIC, "convert it to JPEG to use it here"
    return (Remark.OTHER_IMAGE, name) if name else (Remark.NOT_IMAGE, "")


def _examine_jpeg(file: BinaryIO) -> Iterator[tuple[Remark, str]]:
    try:
        with ignored():  # large images and odd EXIF data get remarks of our own
            image = Image.open(file, formats=("JPEG",))
            scan_start = file.tell()
            orientation = image.getexif().get(_ORIENTATION_TAG, 1)
    except Image.DecompressionBombError:
        yield Remark.BOMB, ""
        return
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, KeyError, IndexError, EOFError) as error:
        yield Remark.BROKEN, first_line(error)
        return
    if not _has_end_marker(file, scan_start):
        yield Remark.TRUNCATED, "no end-of-image marker"
        return
    megapixels = image.width * image.height / 1e6
    if image.mode == "CMYK":
        yield Remark.CMYK, ""
    if orientation in range(2, 9):
        yield Remark.ROTATED, f"orientation {orientation}"
    if megapixels > OVERSIZED_MEGAPIXELS:
        yield (Remark.OVERSIZED, f"{image.width}x{image.height}, {megapixels:.0f} megapixels")


def _has_end_marker(file: BinaryIO, scan_start: int) -> bool:
    """Return whether an end-of-image marker follows the start of the scan.

    Trailing bytes after it are common and harmless.
    """
    size = file.seek(0, os.SEEK_END)
    start = max(scan_start, size - _TAIL_BYTES)
    file.seek(start)
    if b"\xff\xd9" in file.read():
        return True
    file.seek(scan_start)
    return start > scan_start and b"\xff\xd9" in file.read(start - scan_start + 1)


def first_line(error: Exception) -> str:
    """Return an error's text as one line."""
    text = str(error).partition("\n")[0]
    return "no complete header" if "cannot identify" in text or not text else text[:80]


def _nothing_usable(result: Survey) -> str:
    if not result.total:
        return f"{result.root} holds no files. Give a folder with JPEG photographs in it, flat or nested."
    reasons = [remark for remark in Remark if result.count(remark)]
    listed = ", ".join(f"{result.count(remark)} {remark}" for remark in reasons)
    return f"{result.root} holds no usable JPEG file ({listed})."
