# SPDX-License-Identifier: Apache-2.0
"""The survey of a folder: it classifies every file, and writes nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stoker.inspection.survey import FolderUnusable, Remark, examine, list_files, survey


def jpeg(mode: str = "RGB", size: tuple[int, int] = (64, 48), orientation: int = 1) -> bytes:
    shape = (size[1], size[0], len(mode)) if len(mode) > 1 else (size[1], size[0])
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    exif = Image.Exif()
    if orientation != 1:
        exif[0x0112] = orientation
    buffer = io.BytesIO()
    Image.fromarray(pixels, mode).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def flat_jpeg(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (width, height)).save(buffer, "JPEG")
    return buffer.getvalue()


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")
    return buffer.getvalue()


USABLE: dict[str, tuple[Callable[[], bytes], list[Remark]]] = {
    "plain": (jpeg, []),
    "gray": (lambda: jpeg("L"), []),
    "trailing bytes": (lambda: jpeg() + b"\0" * 100_000, []),
    "cmyk": (lambda: jpeg("CMYK"), [Remark.CMYK]),
    "rotated": (lambda: jpeg(orientation=6), [Remark.ROTATED]),
    "48 megapixels": (lambda: flat_jpeg(8000, 6000), [Remark.OVERSIZED]),
}

LEFT_OUT: dict[str, tuple[Callable[[], bytes], Remark]] = {
    "truncated": (lambda: jpeg()[:-400], Remark.TRUNCATED),
    "no end marker": (lambda: jpeg()[:-2], Remark.TRUNCATED),
    "cut in the header": (lambda: jpeg()[:100], Remark.BROKEN),
    "signature alone": (lambda: b"\xff\xd8\xff", Remark.BROKEN),
    "garbage after the signature": (lambda: b"\xff\xd8\xff" + bytes(range(256)) * 4, Remark.BROKEN),
    "bomb": (lambda: flat_jpeg(16_000, 12_000), Remark.BOMB),
    "heic": (lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", Remark.HEIC),
    "png": (png, Remark.OTHER_IMAGE),
    "text": (lambda: b"hello\n", Remark.NOT_IMAGE),
    "empty": (lambda: b"", Remark.EMPTY),
}


@pytest.mark.parametrize("kind", USABLE)
def test_usable_files(tmp_path: Path, kind: str) -> None:
    content, remarks = USABLE[kind]
    (tmp_path / "a.jpg").write_bytes(content())
    found = survey(tmp_path)
    assert found.files == [tmp_path / "a.jpg"]
    assert not found.left_out
    assert [finding.remark for finding in found.unusual] == remarks


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_files_that_are_left_out(tmp_path: Path, kind: str) -> None:
    content, remark = LEFT_OUT[kind]
    (tmp_path / "bad.jpg").write_bytes(content())
    (tmp_path / "good.jpg").write_bytes(jpeg())
    found = survey(tmp_path)
    assert found.files == [tmp_path / "good.jpg"]
    assert [(finding.path.name, finding.remark) for finding in found.left_out] == [("bad.jpg", remark)]


def test_a_header_full_of_markers_hides_no_truncation(tmp_path: Path) -> None:
    """An end marker inside the header, as in an embedded preview, does not count as the end of the image."""
    content = jpeg(size=(300, 200))
    preview = b"\xff\xe2" + (2 + 4).to_bytes(2, "big") + b"x\xff\xd9x"
    (tmp_path / "a.jpg").write_bytes(content[:2] + preview + content[2:-3000])
    assert [finding.remark for finding in examine(tmp_path / "a.jpg")] == [Remark.TRUNCATED]


def test_nested_folders_become_classes(tmp_path: Path) -> None:
    for name in ("b/deep/1.jpg", "a/2.JPEG", "a/1", "top.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(jpeg())
    found = survey(tmp_path)
    assert found.classes == [".", "a", "b/deep"]
    names = [path.relative_to(tmp_path).as_posix() for path in found.files]
    assert dict(zip(names, found.labels, strict=True)) == {"a/1": 1, "a/2.JPEG": 1, "b/deep/1.jpg": 2, "top.jpg": 0}


def test_strange_entries_neither_block_nor_fail(tmp_path: Path) -> None:
    (tmp_path / "good.jpg").write_bytes(jpeg())
    (tmp_path / "dangling.jpg").symlink_to(tmp_path / "nowhere")
    (tmp_path / ".hidden.jpg").write_bytes(b"")
    (tmp_path / "folder.jpg").mkdir()
    os.mkfifo(tmp_path / "pipe.jpg")
    found = survey(tmp_path)
    assert [path.name for path in found.files] == ["good.jpg"]
    assert [(finding.path.name, finding.remark) for finding in found.left_out] == [("dangling.jpg", Remark.UNREADABLE)]


def test_nothing_is_written(tmp_path: Path) -> None:
    for number, (content, _) in enumerate((*USABLE.values(), *LEFT_OUT.values())):
        (tmp_path / f"{number}.jpg").write_bytes(content())
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in list_files(tmp_path)}
    survey(tmp_path)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in list_files(tmp_path)} == before


def test_a_limit_spreads_over_all_files(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02d}.jpg").write_bytes(jpeg())
    counts: list[int] = []
    found = survey(tmp_path, limit=5, progress=counts.append)
    assert [path.stem for path in found.files] == ["00", "04", "08", "12", "16"]
    assert (found.total, found.skipped, sum(counts)) == (5, 15, 5)


def test_useless_folders_are_explained(tmp_path: Path) -> None:
    with pytest.raises(FolderUnusable, match="does not exist"):
        survey(tmp_path / "nowhere")
    with pytest.raises(FolderUnusable, match="holds no files"):
        survey(tmp_path)
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.txt").write_bytes(b"text")
    with pytest.raises(FolderUnusable, match="is a file"):
        survey(tmp_path / "a.png")
    with pytest.raises(FolderUnusable, match=r"no usable JPEG file \(1 another image format, 1 not an image\)"):
        survey(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "good.jpg").write_bytes(jpeg())
    (tmp_path / "closed.jpg").write_bytes(jpeg())
    (tmp_path / "closed.jpg").chmod(0)
    (tmp_path / "folder").mkdir(mode=0)
    found = survey(tmp_path)
    assert {finding.path.name for finding in found.left_out} == {"closed.jpg", "folder"}
    tmp_path.chmod(0o300)
    with pytest.raises(FolderUnusable, match="cannot be read"):
        survey(tmp_path)
    tmp_path.chmod(0o700)
