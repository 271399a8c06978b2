# SPDX-License-Identifier: Apache-2.0
"""Check of one image: a file, or the bytes of a record."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from .._image_formats import open_image
from ..contract.warning import ignored
from ..native import _native
from ..ops.image._decoding import MAX_SCAN_PIXELS
from .survey import BOMB_MEGAPIXELS, OVERSIZED_MEGAPIXELS, Finding, Remark, first_line, name_format

_HEAD_BYTES = 32
_MAX_BYTES = 512 << 20  # of a JPEG file, which is decoded from memory: three bytes for each of the most pixels
# libjpeg's warnings, by the names in the native decoder's counts.
_WARNINGS = {
    "wrong_codes": "bits that are no code",
    "early_ends": "pieces of data that end early",
    "wrong_restarts": "restart markers that are missing or out of turn",
    "extra_bytes": "bytes that belong to nothing",
}
Checked = tuple[list[Finding], Counter[str]]


def check_image_file(path: Path) -> Checked:
    """Decode a file and return the remarks about it, with counts of libjpeg's warnings."""
    try:
        with path.open("rb") as file:
            return check_image(path, file)
    except OSError as error:
        return [Finding(path, Remark.UNREADABLE, error.strerror or str(error))], Counter()


def check_image(path: Path, file: BinaryIO) -> Checked:
    """Decode an open file and return the remarks about it, with counts of libjpeg's warnings.

    Args:
        path: path for the remarks.
        file: the file, or ``io.BytesIO``.

    Raises:
        OSError: the file cannot be read.
    """
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


def _check_jpeg(path: Path, data: bytes) -> Checked:
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
        text = f"{list_counts(warned)}; from byte {info['offset']} on"
        findings.append(Finding(path, Remark.DAMAGED, text, info["offset"]))
    return findings, warned


def list_counts(warned: Mapping[str, int]) -> str:
    """Return counts of libjpeg's warnings as text."""
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
