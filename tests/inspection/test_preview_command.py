# SPDX-License-Identifier: Apache-2.0
"""The command ``stoker preview``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PIL import Image

from stoker import ArgumentError
from stoker.command import main
from stoker.inspection.pipeline_file import parse_arguments

FILE = """
from stoker import fn, pipeline_def

@pipeline_def(batch_size=4, num_threads=1, seed=1)
def training(folder, size=24):
    jpegs, labels = fn.readers.file(file_root=folder)
    return fn.resize(fn.decoders.image(jpegs), size=(size, size)), labels

if __name__ == "__main__":
    raise SystemExit("the training loop ran")
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(FILE)
    return path


def opened(path: str) -> tuple[int, str | None]:
    """Return height and format of an image."""
    with Image.open(path) as image:
        return image.height, image.format


def test_a_sheet_is_written(file: Path, jpegs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preview", str(file), f"folder={jpegs}", "size=32"]) == 0
    small, kind = opened("sheet.png")
    assert kind == "PNG"
    shown = capsys.readouterr().out
    assert "<Pipeline 'training': 3 operators, batch size 4" in shown and "written to sheet.png" in shown
    assert main(["preview", "-n", "20", str(file), "-o", "large.jpg", f"folder={jpegs}"]) == 0
    large, kind = opened("large.jpg")
    assert kind == "JPEG" and large > small


def test_a_pipeline_in_a_variable(file: Path, jpegs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{FILE}\nready = training({str(jpegs)!r})\n")
    assert main(["preview", str(file)]) == 2
    assert "found training, ready: choose one with --name" in capsys.readouterr().err
    assert main(["preview", str(file), "--name", "ready"]) == 0
    assert main(["preview", str(file), "--name", "ready", "size=3"]) == 2
    assert "which is a pipeline and no function, got size" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "status", "text"), [
    (["none.py"], 2, "there is no file 'none.py'"),
    (["JPEGS"], 2, "expected a Python file with a pipeline, got the folder"),
    (["zeros.tar"], 2, "got 'zeros.tar', which is no text"),
    (["train.py"], 2, "expected values for `folder` of training, as NAME=VALUE"),
    (["train.py", "--name", "other"], 2, "called 'other', found none"),
    (["train.py", "folder"], 2, "as name=value, got 'folder'"),
    (["train.py", "folder=/nowhere"], 1, "/nowhere"),
    (["train.py", "folder=JPEGS", "-n", "0"], 1, "from 1 to 256, got 0"),
    (["train.py", "folder=JPEGS", "-o", "no/folder.png"], 2, "no/folder.png: No such file"),
    (["train.py", "folder=JPEGS", "-o", "sheet.xyz"], 2, "sheet.xyz: unknown file extension"),
])  # fmt: skip
def test_faults_are_reported(
    arguments: list[str], status: int, text: str, file: Path, jpegs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file.parent / "zeros.tar").write_bytes(bytes(512))
    assert main(["preview", *(a.replace("JPEGS", str(jpegs)) for a in arguments)]) == status
    error = capsys.readouterr().err
    assert error.startswith("stoker preview: ") and text in error and "Traceback" not in error


def test_modules_next_to_the_file_are_found(file: Path, jpegs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(jpegs)
    file.with_name("settings_next_to_train.py").write_text("SIZE = 16\n")
    file.write_text(f"from settings_next_to_train import SIZE\n{FILE.replace('size=24', 'size=SIZE')}")
    assert main(["preview", str(file), f"folder={jpegs}", "-o", str(file.with_suffix(".png"))]) == 0
    sys.modules.pop("settings_next_to_train")


def test_arguments_are_literals_or_texts() -> None:
    words = ["a=3", "b=[0.5, 1]", "c=~/photos", "d=", "e=x=y", "f='7'", "g=None"]
    assert parse_arguments(words) == {"a": 3, "b": [0.5, 1], "c": "~/photos", "d": "", "e": "x=y", "f": "7", "g": None}
    for word in ("a", "=3", "a b=3"):
        with pytest.raises(ArgumentError, match="as name=value"):
            parse_arguments([word])
