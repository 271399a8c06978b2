# SPDX-License-Identifier: Apache-2.0
"""The demonstration on a user's folder: it lists unusable files, checks its results, and writes only to --out."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stoker.demo.run import main


def write_jpeg(path: Path, seed: int, **options: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(coarse).resize((320, 240), Image.Resampling.BICUBIC).save(path, "JPEG", **options)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Create a typical folder: nested, with a rotated, a CMYK and a broken file, and files that are no images."""
    root = tmp_path / "my photos"
    for number in range(9):
        write_jpeg(root / ("summer" if number % 2 else "winter") / f"{number}.jpg", number)
    exif = Image.Exif()
    exif[0x0112] = 6
    write_jpeg(root / "summer" / "deep" / "rotated.jpg", 20, exif=exif)
    write_jpeg(root / "progressive.jpg", 21, progressive=True)
    Image.new("CMYK", (64, 64), (10, 200, 30, 40)).save(root / "printed.jpg", "JPEG")
    whole = io.BytesIO()
    Image.effect_noise((200, 200), 90).save(whole, "JPEG")
    (root / "cut.jpg").write_bytes(whole.getvalue()[:-3000])
    (root / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    (root / "notes.txt").write_text("not an image")
    return root


def test_the_whole_demonstration(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in photos.rglob("*") if path.is_file()}
    out = tmp_path / "out"
    status = main(["--data", str(photos), "--out", str(out), "--seconds", "2"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert "12 usable JPEG files in 4 folders, of 15 files" in captured.out
    assert "1 CMYK" in captured.out
    assert "1 rotated by EXIF" in captured.out
    for text in ("cut.jpg: truncated", "phone.heic: HEIC", "notes.txt: not an image"):
        assert text in captured.out
    assert "12 of 12 decoded images equal Pillow's bit for bit" in captured.out
    assert "the same\n" in captured.out
    assert "NOT THE SAME" not in captured.out
    assert str(photos) in captured.out.partition("Paste this")[2]
    assert "Traceback" not in captured.out + captured.err
    with Image.open(out / "sheet.png") as sheet:
        assert sheet.width > 1000
    assert {path: path.read_bytes() for path in photos.rglob("*") if path.is_file()} == before


def test_the_snippet_runs_as_printed(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", exc_type=ModuleNotFoundError)
    assert main(["--data", str(photos), "--out", str(tmp_path / "out"), "--seconds", "2"]) == 0
    snippet = capsys.readouterr().out.partition("(it needs torch):\n")[2].replace("...", "shapes.append(x.shape)")
    shapes: list[tuple[int, ...]] = []
    exec(compile(snippet, "snippet", "exec"), {"shapes": shapes})
    assert sum(shape[0] for shape in shapes) == 12
    assert {tuple(shape[1:]) for shape in shapes} == {(3, 224, 224)}


def test_useless_folders_end_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("text")
    for name, text in (("nowhere", "does not exist"), ("empty", "no files"), ("texts", "no usable JPEG")):
        assert main(["--data", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
        errors = capsys.readouterr().err
        assert text in errors
        assert "Traceback" not in errors


def test_a_single_photograph_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_jpeg(tmp_path / "one" / "only.jpg", 0)
    assert main(["--data", str(tmp_path / "one"), "--out", str(tmp_path / "out"), "--seconds", "1"]) == 0
    assert "1 of 1 decoded images equal" in capsys.readouterr().out
