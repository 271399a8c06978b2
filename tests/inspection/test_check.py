# SPDX-License-Identifier: Apache-2.0
"""``stoker check``: it decodes every file completely, and classifies it."""

from __future__ import annotations

import io
import json
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stoker import DataError, fn, pipeline_def
from stoker.command import main
from stoker.inspection.check import check
from stoker.inspection.survey import FolderUnusable, Remark
from tests.inspection.test_survey import flat_jpeg, jpeg, png


def ended_early() -> bytes:
    """Return a file with an end marker before the last row: libjpeg and pipelines return the image; libjpeg warns."""
    data = jpeg(size=(256, 256))
    cut = len(data) // 2
    return data[:cut] + b"\xff\xd9"


def progressive() -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", progressive=True)
    return out.getvalue()


FILES: dict[str, tuple[bytes, set[Remark]]] = {
    "plain.jpg": (jpeg(), set()),
    "gray.jpg": (jpeg("L"), set()),
    "progressive.jpg": (progressive(), set()),
    "cmyk.jpg": (jpeg("CMYK"), {Remark.CMYK}),
    "rotated.jpg": (jpeg(orientation=6), {Remark.ROTATED}),
    "large.jpg": (flat_jpeg(8000, 6000), {Remark.OVERSIZED}),
    "bomb.jpg": (flat_jpeg(16_000, 12_000), {Remark.BOMB}),
    "cut.jpg": (jpeg()[:-400], {Remark.TRUNCATED}),
    "early end.jpg": (ended_early(), {Remark.DAMAGED}),
    "extra bytes.jpg": (jpeg()[:-2] + b"12345" + jpeg()[-2:], {Remark.DAMAGED}),
    "header.jpg": (jpeg()[:100], {Remark.BROKEN}),
    "picture.png": (png(), {Remark.OTHER_IMAGE}),
    "cut.png": (png()[:45], {Remark.OTHER_IMAGE, Remark.BROKEN}),
    "text.jpg": (b"hello\n", {Remark.NOT_IMAGE}),
    "empty.jpg": (b"", {Remark.EMPTY}),
}
GOOD = {Remark.CMYK, Remark.ROTATED, Remark.OVERSIZED, Remark.OTHER_IMAGE, Remark.DAMAGED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("check")
    for name, (data, _) in FILES.items():
        (root / name).write_bytes(data)
    (root / "gone.jpg").symlink_to(root / "nowhere")
    return root


def remarks(root: Path, threads: int) -> dict[str, set[Remark]]:
    found: dict[str, set[Remark]] = {}
    for finding in check(root, threads=threads).findings:
        found.setdefault(finding.path.name, set()).add(finding.remark)
    return found


@pytest.mark.parametrize("threads", [1, 4])
def test_every_kind_of_file_is_reported(threads: int, folder: Path) -> None:
    found = remarks(folder, threads)
    assert found.pop("gone.jpg") == {Remark.UNREADABLE}
    for name, (_, expected) in FILES.items():
        got = found.pop(name, set())
        if name == "cut.png":
            assert Remark.OTHER_IMAGE in got and got & {Remark.BROKEN, Remark.TRUNCATED}
        else:
            assert got == expected, name
    assert not found


def test_the_check_agrees_with_a_pipeline(folder: Path) -> None:
    """The check reports a file as bad if and only if a pipeline fails at it."""

    @pipeline_def(batch_size=1, num_threads=1)
    def decoding(name: str) -> object:
        return fn.decoders.image(fn.readers.file(files=[str(folder / name)])[0])

    bad = {f.path.name for f in check(folder).bad}
    for name in FILES:
        with decoding(name) as pipe:
            try:
                pipe.run()
            except DataError:
                assert name in bad, name
            else:
                assert name not in bad, name


def test_progress_is_reported(folder: Path) -> None:
    calls: list[int] = []

    class Bar(AbstractContextManager["Bar"]):
        def __init__(self, total: int) -> None:
            calls.append(total)

        def __exit__(self, *_: object) -> None:
            calls.append(-1)

        def update(self, count: int) -> None:
            calls.append(count)

    result = check(folder, progress=Bar)
    assert calls[0] == sum(calls[1:-1]) == result.files == len(FILES) + 1 and calls[-1] == -1


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder), "--threads", "2"]) == 1
    printed = capsys.readouterr().out
    assert f"{folder / 'cut.jpg'}: truncated (the data end before" in printed
    assert f"{folder / 'rotated.jpg'}: rotated by EXIF (orientation 6)" in printed
    extra = f"5 bytes that belong to nothing; from byte {len(jpeg()) - 2} on"
    assert f"{folder / 'extra bytes.jpg'}: damaged, yet decoded ({extra})" in printed
    assert "in the damaged files: 1 pieces of data that end early, 5 bytes that belong to nothing" in printed
    assert f"{len(FILES) + 1} files in " in printed
    assert main(["check", str(folder), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["files"] == len(FILES) + 1
    assert data["counts"]["CMYK"] == 1
    assert data["warnings"] == {"early_ends": 1, "extra_bytes": 5}
    offsets = {Path(f["path"]).name: f["offset"] for f in data["findings"]}
    assert offsets["cut.jpg"] == len(jpeg()) - 400 and offsets["rotated.jpg"] is None
    assert data["bad"] == len([1 for _, r in FILES.values() if r - GOOD]) + 1
    fine = tmp_path / "fine"
    fine.mkdir()
    (fine / "a.jpg").write_bytes(jpeg())
    assert main(["check", str(fine)]) == 0
    assert "nothing to remark" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["check", str(fine), "--threads", "0"])
    with pytest.raises(FolderUnusable):
        check(fine / "nowhere")
    assert main(["check", str(fine / "a.jpg")]) == 0
    assert "1 files in " in capsys.readouterr().out
