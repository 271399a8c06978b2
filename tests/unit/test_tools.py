# SPDX-License-Identifier: Apache-2.0
"""Tools of the project: generated files are current, and the set-up names missing requirements before it fails."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stoker.native import _native
from tests.idle_clock import HANG_S

ROOT = Path(__file__).resolve().parents[2]
APT = "sudo apt install python3-venv python3-dev g++ make"


def test_make_check_runs_all_tools_that_check() -> None:
    """`make test` runs `make check` first, so no test runs these tools again."""
    tools = {path.stem: ast.get_docstring(ast.parse(path.read_text())) for path in (ROOT / "tools").glob("*.py")}
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    several = re.findall(r"for tool in ([\w ]+); do \$\(PY\) tools/\$\$tool\.py --check ", text)
    run = {*re.findall(r"^\t@\$\(PY\) tools/(\w+)\.py --check$", text, re.MULTILINE), *" ".join(several).split()}
    assert run == {name for name, about in tools.items() if "--check" in (about or "")} - {"wheel"}  # checks an archive
    assert re.search(r"^test[\w -]*: check$", text, re.MULTILINE)


# ---- the hand-written stub of the compiled module ----


def _declared(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement
    return found


PROTOCOLS = ("__len__", "__getitem__", "__dlpack__", "__dlpack_device__", "__cuda_array_interface__", "_repr_html_")


def _members(thing: object) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("_") or name in PROTOCOLS}


@pytest.mark.parametrize("name", ["__init__", "kernels", "gpu", "jpeg"])
def test_the_native_stub_lists_all_members(name: str) -> None:
    module: ModuleType = _native if name == "__init__" else getattr(_native, name)
    text = (ROOT / "src" / "stoker" / "native" / "_native" / f"{name}.pyi").read_text()
    declared = _declared(ast.parse(text).body)
    assert set(declared) == {n for n in _members(module) if not isinstance(getattr(module, n), ModuleType)}
    for class_name, statement in declared.items():
        if isinstance(statement, ast.ClassDef):
            assert set(_declared(statement.body)) - {"__init__"} == _members(getattr(module, class_name)), class_name


# ---- set-up ----


def _doctor(python: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "tools" / "doctor.sh", python],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CXX": "true", **environment},
        timeout=HANG_S,
    )


def _fake_python(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_doctor_is_silent_if_nothing_is_missing() -> None:
    done = _doctor(sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_missing_compiler_is_one_apt_line() -> None:
    done = _doctor(sys.executable, CXX="no-such-compiler")
    assert done.returncode == 1
    assert "no-such-compiler" in done.stderr
    assert done.stderr.count("apt install") == 1


def test_a_missing_python_is_one_apt_line() -> None:
    done = _doctor("/nowhere/python3")
    assert done.returncode == 1
    assert APT in done.stderr


@pytest.mark.parametrize(("lacking", "reported"), [("ensurepip", "venv module"), ("sysconfig", "Python.h")])
def test_a_python_in_parts_is_one_apt_line(tmp_path: Path, lacking: str, reported: str) -> None:
    """Debian has separate packages python3-venv and python3-dev."""
    real = shutil.which("python3") or sys.executable
    body = f'case "$*$(test "$1" = - && cat)" in *{lacking}*) exit 1;; *) exec "{real}" "$@";; esac'
    done = _doctor(_fake_python(tmp_path / "python3", body))
    assert done.returncode == 1
    assert reported in done.stderr
    assert APT in done.stderr


def test_an_old_python_is_reported_by_its_version(tmp_path: Path) -> None:
    body = 'case "$2" in *python_version*) echo 3.9.2;; *) exit 1;; esac'
    done = _doctor(_fake_python(tmp_path / "python3", body))
    assert done.returncode == 1
    assert "3.9.2" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_a_versioned_python_has_its_own_packages() -> None:
    assert "python3.12-venv python3.12-dev g++ make" in _doctor("/nowhere/python3.12").stderr


def test_requirements_come_from_one_place() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "needs.py", "build", "test", "test-no-deps"],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    names = {re.split(r"[<>=!~]", line)[0] for line in done.stdout.split()}
    assert {"scikit-build-core", "nanobind", "cmake", "ninja", "numpy", "pillow", "tqdm"} <= names
    assert {"pytest", "torch", "torchvision"} <= names


@pytest.mark.parametrize(
    ("target", "sets"),
    [
        ("test-older", {"build", "older"}),
        ("test-newest", {"build", "newest"}),
        ("recipes", {"build", "recipes"}),
        ("test-features", {"build", "features"}),
        ("trainers", {"build", "trainers"}),
        ("test-dali", {"dali"}),
        ("changelog", {"release"}),
        (".venv-bench/.bench-needs", {"bench"}),
    ],
)
def test_one_rule_installs_every_set_of_requirements(target: str, sets: set[str]) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "-C", ROOT, target],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    listed = re.findall(r"for set in ([\w-]+) ([\w-]+); do", done.stdout)
    assert {name for name, _ in listed} == sets
    for name, no_deps in listed:
        assert no_deps == f"{name}-no-deps"
        command = [sys.executable, ROOT / "tools" / "needs.py", name, no_deps]
        assert subprocess.run(command, capture_output=True, check=True, timeout=HANG_S).stdout.strip()


def test_an_unknown_set_of_requirements_is_an_error() -> None:
    command = [sys.executable, ROOT / "tools" / "needs.py", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 1 and "got nonsense" in done.stderr
