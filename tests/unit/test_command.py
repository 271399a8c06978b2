# SPDX-License-Identifier: Apache-2.0
"""The command `stoker`, and the settings that Stoker reads from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stoker import ArgumentError, Pipeline, settings
from stoker.command import main
from stoker.frontends.source_line import user_line
from stoker.native import _native
from tests.idle_clock import HANG_S

PIPELINES = """
from stoker import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1)
def numbers(high=1.0):
    return fn.random.uniform(range=(0.0, high))

@pipeline_def(batch_size=2, num_threads=1)
def reading(folder):
    return fn.readers.file(file_root=folder)

built = numbers(3.0)
"""
WRONG = (
    PIPELINES
    + """
@pipeline_def(batch_size=2, num_threads=1)
def wrong():
    return fn.random.uniform(range=(0.0, 1.0), rage=3)
"""
)


def test_show_prints_the_pipelines_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pipelines.py"
    file.write_text(PIPELINES)
    assert main(["show", str(file)]) == 0
    shown = capsys.readouterr()
    assert [line for line in shown.out.splitlines() if line.startswith("# ")] == [
        "# numbers", "# reading: it needs `folder`", "# built",
    ]  # fmt: skip
    assert shown.out.count("random.uniform") >= 2 and not shown.err
    assert main(["show", str(file), "--name", "built", "--dot"]) == 0
    assert "digraph" in capsys.readouterr().out
    assert main(["show", str(file), "--name", "reading"]) == 1


def test_show_reports_pipelines_that_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    assert main(["show", str(file)]) == 1
    shown = capsys.readouterr()
    assert "# built" in shown.out
    assert "stoker show: wrong: `random.uniform`" in shown.err and "rage" in shown.err
    assert main(["show", str(tmp_path / "none.py")]) == 2
    assert main(["show", str(file), "--name", "other"]) == 1
    assert "no pipeline" in capsys.readouterr().err


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines.keys() >= {"stoker", "compiler", "threads"} and "for CUDA" in " ".join(lines.values())


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", "\u00b2"])
def test_a_number_of_threads_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STOKER_NUM_THREADS", text)
    with pytest.raises(ValueError, match="STOKER_NUM_THREADS: expected a whole number >= 1, got"):
        Pipeline(batch_size=1)


def test_numbers_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STOKER_NUM_THREADS", " 3 ")
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path))
    assert Pipeline(batch_size=1).num_threads == settings.default_threads() == 3
    for text, mib in (("", 256), ("7", 7), ("0", 0)):
        monkeypatch.setenv("STOKER_KERNEL_CACHE_MIB", text)
        assert settings.kernel_cache() == (tmp_path, mib << 20)
    assert settings.gpu_multiprocessors() == 0, "all of them"
    monkeypatch.setenv("STOKER_GPU_MULTIPROCESSORS", "24")
    assert settings.gpu_multiprocessors() == 24
    monkeypatch.setenv("STOKER_KERNEL_CACHE_MIB", "much")
    with pytest.raises(ValueError, match="STOKER_KERNEL_CACHE_MIB: expected a whole number >= 0, got 'much'"):
        settings.kernel_cache()


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (7, 7), (8, 7), (16, 15)])
def test_one_core_is_left_beside_a_gpu(monkeypatch: pytest.MonkeyPatch, cores: int, threads: int) -> None:
    monkeypatch.delenv("STOKER_NUM_THREADS", raising=False)
    monkeypatch.setattr(settings, "default_threads", lambda: cores)
    assert settings.threads_with_gpu() == threads
    monkeypatch.setenv("STOKER_NUM_THREADS", str(cores))
    assert settings.threads_with_gpu() == cores, "the environment sets it"


@pytest.mark.parametrize(("text", "error"), [("avx3", "got 'avx3'"), ("AVX2", "got 'AVX2'"), ("plain", ""), ("", "")])
def test_an_unknown_instruction_set_is_refused(text: str, error: str) -> None:
    program = "from stoker.native import _native; print(_native.get_isa())"
    environment = {**os.environ, "STOKER_SIMD": text}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert (done.returncode != 0) == bool(error)
    assert f"expected plain, avx2, avx512 or neon, {error}" in done.stderr if error else done.stdout.strip()


def test_exactly_the_listed_instruction_sets_can_be_chosen() -> None:
    listed, before = _native.instruction_sets(), _native.get_isa()
    assert listed[0] == "plain"
    assert listed[-1] == _native.best_isa()
    try:
        for name in ("plain", "avx2", "avx512", "neon"):
            if name in listed:
                _native.set_isa(name)
                assert _native.get_isa() == name
            else:
                with pytest.raises(ValueError, match=rf"this machine \({', '.join(listed)}\), got '{name}'"):
                    _native.set_isa(name)
    finally:
        _native.set_isa(before)


@pytest.mark.parametrize("name", ["plain", "avx2", "avx512", "neon"])
def test_the_environment_bounds_the_instruction_set(name: str) -> None:
    program = "from stoker.native import _native; print(_native.get_isa())"
    environment = {**os.environ, "STOKER_SIMD": name}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stdout.strip() == (name if name in _native.instruction_sets() else _native.best_isa())


def test_a_wrong_policy_without_a_gpu_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_WITHOUT_GPU", "ignore")
    with pytest.raises(ArgumentError, match="got 'ignore', which STOKER_WITHOUT_GPU says"):
        Pipeline(batch_size=1)


def test_lines_of_the_interpreter_are_not_the_users() -> None:
    """`python -m stoker.command` runs this package from `<frozen runpy>`, where no user can look."""
    names: dict[str, Any] = {}
    exec(compile("def call(function):\n    return function()\n", "<frozen runpy>", "exec"), names)
    line = names["call"](user_line)
    assert line is not None and line.file == __file__
