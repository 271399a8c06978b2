# SPDX-License-Identifier: Apache-2.0
"""Every kind of bad file and files that disappear: raised, replaced or skipped, with the reason."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image

from stoker import DataError
from tests.run.pipelines import decoding, files_of, labels_of


def spoil(path: Path, kind: str, good: bytes) -> str:
    path.write_bytes(good)
    if kind == "missing":
        path.unlink()
        return "No such file"
    if kind == "directory":
        path.unlink()
        path.mkdir()
        return "Is a directory"
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
        return "pipe, socket or device"
    if kind == "loop":
        path.unlink()
        path.symlink_to(path)
        return "symbolic links"
    data, reason = {
        "empty": (b"", "0 bytes"),
        "truncated": (good[: len(good) // 2], "end before the image is complete"),
        "header only": (good[:200], ""),
        "text": (b"GIF89 is only the beginning", "expected an image that Pillow can read"),
        "bomb": (_bomb(), "a decompression bomb"),
    }[kind]
    path.write_bytes(data)
    return reason


def _bomb() -> bytes:
    out = io.BytesIO()
    Image.new("L", (8, 8)).save(out, "JPEG")
    data = bytearray(out.getvalue())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = (60000).to_bytes(2, "big") * 2
    return bytes(data)


KINDS = ("missing", "directory", "pipe", "loop", "empty", "truncated", "header only", "text", "bomb")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_replaced_skipped_and_raised(kind: str, jpegs: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    good = files_of(jpegs)
    reason = spoil(bad, kind, Path(good[0]).read_bytes())
    files = [good[0], str(bad), good[1], good[2]]
    for policy in ("replace", "skip"):
        with decoding(files, on_error=policy, error_limit=0.5, batch_size=4) as pipe:
            labels = labels_of(pipe.run())
            assert [(e.path, e.action) for e in pipe.errors] == [
                (str(bad), {"skip": "skipped"}.get(policy, "replaced"))
            ]
            assert reason in pipe.errors[0].reason
            assert len(labels) == (3 if policy == "skip" else 4)
            assert 1 not in labels
    with decoding(files, batch_size=4) as pipe, pytest.raises(DataError, match=r"sample 1 .*bad\.jpg"):
        pipe.run()


def test_files_that_vanish_while_it_runs(jpegs: Path, tmp_path: Path) -> None:
    files = [str(tmp_path / f"{n}.jpg") for n in range(8)]
    good = Path(files_of(jpegs)[0]).read_bytes()
    for name in files:
        Path(name).write_bytes(good)
    with decoding(files, on_error="replace", error_limit=0.5, batch_size=2, prefetch_queue_depth=1) as pipe:
        pipe.run()
        Path(files[6]).unlink()
        pipe.run()
        pipe.run()
        labels = labels_of(pipe.run())
        assert labels[1] == 7
        assert labels[0] not in (6,)
        assert [e.index for e in pipe.errors] == [6]
