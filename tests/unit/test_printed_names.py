# SPDX-License-Identifier: Apache-2.0
"""Names of files cannot drive a terminal, and commands end without a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stoker import ArgumentError, DataError, __version__, command
from stoker.command import main
from stoker.contract.storage import RecordLocation
from stoker.contract.text import printable, printable_lines
from stoker.inspection import check as checking
from stoker.inspection import image_check
from stoker.inspection.check import check
from stoker.inspection.survey import Remark, survey
from tests.inspection.test_survey import jpeg
from tests.run.pipelines import decoding

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\nfine: 0 \x9b31m\u202egpj.jpg"


def is_harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text) and "\u202e" not in text


def test_names_are_escaped() -> None:
    assert printable("a\x1b[1m\r\n\tb\x7f\x9b\u202e\u2028") == r"a\x1b[1m\r\n\tb\x7f\x9b\u202e\u2028"
    assert printable(os.fsdecode(b"caf\xe9")) == r"caf\xe9" and printable("caf\u00e9 \u5b57") == "caf\u00e9 \u5b57"
    assert printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b"
    assert str(RecordLocation("a\x1b\n.tar", 3, 5)) == r"a\x1b\n.tar at byte 3"
    assert str(ArgumentError("expected 'a\x1b'")) == r"expected 'a\x1b'"
    assert str(DataError("a\x1b", row=1)) == r"a\x1b"


@pytest.mark.parametrize("content", [b"no image", None])
def test_errors_of_a_run_name_files_harmlessly(tmp_path: Path, content: bytes | None) -> None:
    for name in (os.fsencode(HOSTILE), b"\x1b\xff.jpg"):
        path = os.path.join(os.fsencode(tmp_path), name)
        if content is not None:
            Path(os.fsdecode(path)).write_bytes(content)
        with decoding([os.fsdecode(path)]) as pipe, pytest.raises(DataError) as raised:
            pipe.run()
        assert is_harmless(str(raised.value)) and "\n" not in str(raised.value)
        (bad,) = pipe.errors
        assert is_harmless(bad.reason) and "\n" not in bad.reason


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "photographs"
    root.mkdir()
    (root / HOSTILE).write_bytes(b"\x1b[2J")
    Path(os.fsdecode(os.path.join(os.fsencode(root), b"caf\xe9.jpg"))).write_bytes(b"")
    (root / "\u5b57.jpg").write_bytes(b"")
    return root


def run_stoker(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **options.pop("env", {})}  # type: ignore[dict-item]
    command_line = [sys.executable, "-m", "stoker.command", *arguments]
    return subprocess.run(command_line, stderr=subprocess.PIPE, env=environment, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_stoker_check_prints_names_on_a_strict_terminal(folder: Path) -> None:
    strict = {"PYTHONIOENCODING": "ascii:strict"}
    done = run_stoker("check", str(folder), env=strict, stdout=subprocess.PIPE)
    printed = done.stdout.decode("ascii")
    assert done.returncode == 1 and b"Traceback" not in done.stderr
    assert is_harmless(printed) and r"caf\xe9.jpg: empty file" in printed and r"\u5b57.jpg: empty file" in printed
    assert printed.count(": empty file") == 2 and printed.count("\n") == 4
    done = run_stoker("check", str(folder), "--json", env=strict, stdout=subprocess.PIPE)
    assert len(json.loads(done.stdout)["findings"]) == 3


def test_files_that_readers_ignore_are_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "set"
    root.mkdir()
    (root / "a.JPG").write_bytes(jpeg())
    (root / "notes.txt").write_text("hello")
    with (root / "train.tar").open("wb") as file:
        file.truncate(1 << 43)
    assert main(["check", str(root)]) == 0
    # A tar file of zeros has its end marker as the first header, and therefore no members.
    printed = capsys.readouterr().out
    assert "2 files, 0 records in 1 containers in " in printed and "1 files are not looked at" in printed
    found = check(root)
    assert (found.files, found.containers, found.records, found.ignored, found.findings) == (2, 1, 0, 1, [])


def test_files_are_read_in_bounded_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 8 TiB under the name of a photograph: nothing like its size is read."""
    for name, head in (("zeros.jpg", b""), ("head.jpg", b"\xff\xd8\xff"), ("picture.png", b"\x89PNG\r\n\x1a\n")):
        with (tmp_path / name).open("wb") as file:
            file.write(head)
            file.truncate(1 << 43)
    monkeypatch.setattr(image_check, "_MAX_BYTES", 1 << 20)
    found = {f.path.name: f for f in check(tmp_path, threads=1).findings if f.remark is not Remark.OTHER_IMAGE}
    assert found["zeros.jpg"].remark is Remark.NOT_IMAGE
    assert (found["head.jpg"].remark, found["head.jpg"].detail) == (Remark.UNREADABLE, "larger than 1 MiB")
    assert found["picture.png"].remark is Remark.BROKEN


def test_a_survey_and_its_errors_are_harmless(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError):
        survey(folder)
    assert main(["check", str(folder / "\x1b[2J")]) == 2
    assert is_harmless(capsys.readouterr().err)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"stoker {__version__}\n"


def test_ctrl_c_ends_every_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_info", interrupted)
    monkeypatch.setattr(command, "_show", interrupted)
    monkeypatch.setattr(checking, "check", interrupted)
    for arguments in (["info"], ["show", "x.py"], ["check", "."]):
        assert main(arguments) == command.INTERRUPTED
        assert capsys.readouterr().err == "stoker: interrupted\n"


@pytest.mark.parametrize("arguments", [["info"], ["--version"], ["check", "{folder}"]])
def test_a_full_disk_and_a_closed_pipe_end_without_a_traceback(arguments: list[str], folder: Path) -> None:
    arguments = [argument.format(folder=folder) for argument in arguments]
    with open("/dev/full", "wb") as full:
        done = run_stoker(*arguments, stdout=full)
    assert done.returncode == 1 and done.stderr.startswith(b"stoker: ") and done.stderr.count(b"\n") == 1
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run_stoker(*arguments, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == command.CLOSED_PIPE and done.stderr == b""
