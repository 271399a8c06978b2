# SPDX-License-Identifier: Apache-2.0
"""Bytes that Pillow gets never start a program, whatever they are and whatever the file is called."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from stoker import DataError, eager
from stoker._image_formats import pillow_formats
from stoker.command import main
from stoker.inspection.check import check_file
from stoker.inspection.survey import Remark, survey
from tests.run.pipelines import decoding

POSTSCRIPT = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 100 100
%%EndComments
newpath 10 10 moveto 90 90 lineto stroke
showpage
%%EOF
"""
FORMATS = {"PNG": "png", "GIF": "gif", "BMP": "bmp", "TIFF": "tif", "PPM": "ppm", "WEBP": "webp", "JPEG2000": "jp2"}


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a Ghostscript on the path leaves when it is started."""
    program = tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@" >>"$TRACE"\necho 10.0\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TRACE", str(tmp_path / "started"))
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    return tmp_path / "started"


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    (tmp_path / "photographs").mkdir()
    path = tmp_path / "photographs" / "cat.jpg"
    path.write_bytes(POSTSCRIPT)
    return path


def test_pillow_alone_starts_ghostscript(started: Path) -> None:
    """The planted error: without the list of formats, the file exists."""
    with Image.open(io.BytesIO(POSTSCRIPT)) as image, pytest.raises(OSError):
        image.load()
    assert started.exists()


def test_a_pipeline_starts_no_program(started: Path, cat: Path) -> None:
    Image.init()  # every plugin is there, as after any script's use of Pillow
    with decoding([str(cat)]) as pipe, pytest.raises(DataError, match="expected an image that Pillow can read"):
        pipe.run()
    for decode in (eager.decoders.image, eager.peek_image_shape):
        with pytest.raises(DataError, match="PNG, WebP"):
            decode(np.frombuffer(POSTSCRIPT, np.uint8))
    assert not started.exists()


def test_stoker_check_and_the_survey_start_no_program(
    started: Path, cat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.init()
    assert Remark.NOT_IMAGE in {f.remark for f in check_file(cat)}
    cat.with_name("prefixed.jpg").write_bytes(b"\xff\xd8\xff" + POSTSCRIPT)
    cat.with_name("png.jpg").write_bytes(b"\x89PNG\r\n\x1a\n" + POSTSCRIPT)
    main(["check", str(cat.parent)])
    with pytest.raises(RuntimeError):
        survey(cat.parent)
    assert not started.exists()


@pytest.mark.parametrize("name", FORMATS)
def test_the_formats_of_the_list_are_decoded(name: str) -> None:
    pixels = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)
    memory = io.BytesIO()
    Image.fromarray(pixels).save(memory, name, **({"lossless": True} if name == "WEBP" else {}))
    got = np.asarray(eager.decoders.image(memory.getvalue()))
    assert got.shape == pixels.shape and (name == "GIF" or np.array_equal(got, pixels))


def test_plugins_that_start_programs_are_not_on_the_list() -> None:
    Image.init()
    assert not {"EPS", "WMF", "FPX", "MIC"} & set(pillow_formats())
