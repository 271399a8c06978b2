# SPDX-License-Identifier: Apache-2.0
"""``stoker new-operator``: the package builds, installs and passes its tests in an empty environment, and is found."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import emulated_stages
import numpy as np
import pytest

from stoker import cpp
from stoker.command import main
from stoker.device.gpu import Gpu
from stoker.inspection.operator_package import package_files
from stoker.testing import check_on_gpu
from tests.idle_clock import HANG_S

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="there is no C++ compiler"
)


def wheel_of_installed(folder: Path) -> Path:
    """Write the installed Stoker as a wheel."""
    found = importlib.metadata.distribution("stoker")
    files = [f for f in found.files or () if f.suffix != ".pyc" and f.parts[0] != ".."]
    tag = next(line.removeprefix("Tag: ") for line in (found.read_text("WHEEL") or "").splitlines() if "Tag:" in line)
    wheel = folder / f"stoker-{found.version}-{tag}.whl"
    rows = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in files:
            if file.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                continue
            data = Path(str(file.locate())).read_bytes()
            archive.writestr(str(file), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append((str(file), f"sha256={digest}", len(data)))
        record = next(str(f) for f in files if f.name == "RECORD")
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (record, "", "")])
        archive.writestr(record, text.getvalue())
    return wheel


def call(command: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "COV"))}
    environment["STOKER_KERNEL_CACHE"] = str(folder / "kernels")
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=2 * HANG_S
    )


@needs_compiler
def test_a_package_works_in_an_empty_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package, wheels, environment = tmp_path / "t_edges", tmp_path / "wheels", tmp_path / "environment"
    assert main(["new-operator", "t_edges", "--folder", str(package)]) == 0
    assert "pip install" in capsys.readouterr().out
    wheels.mkdir()
    stoker = wheel_of_installed(wheels)
    # Without a pip of its own, and without bytecode of the packages, the environment is there in half the time.
    assert call([sys.executable, "-m", "venv", "--without-pip", environment], tmp_path).returncode == 0
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "-q", "--disable-pip-version-check"]
    needs = call([*pip, "install", "--no-compile", "numpy", "pillow", "pytest", "setuptools>=77"], tmp_path)
    if needs.returncode:
        pytest.skip(f"pip cannot install NumPy, Pillow, pytest and setuptools: {needs.stderr.strip()[-200:]}")
    installed = call([*pip, "install", "--no-index", "--no-deps", stoker], tmp_path)
    assert installed.returncode == 0, installed.stderr
    built = call([*pip, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", wheels, package], tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob("t_edges-*.whl")
    assert "cp311-abi3" in wheel.name, "one wheel is for all versions of Python"
    assert call([*pip, "install", "--no-index", wheel], tmp_path).returncode == 0
    tests = tmp_path / "away"  # away from the package's sources
    shutil.copytree(package / "tests", tests)
    passed = call([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", tests], tmp_path)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "5 passed" in passed.stdout and "failed" not in passed.stdout, passed.stdout
    code = (
        "import sys, numpy as np; from stoker import eager, fn; assert 't_edges' in dir(fn); "
        "assert 't_edges' not in sys.modules; "
        "print(eager.t_edges(np.eye(4, dtype=np.uint8)[..., None], radius=3).sum())"
    )
    used = call([python, "-c", code], tmp_path)
    assert used.stdout.strip() == "16", used.stderr
    timed = call([python, package / "benchmarks" / "t_edges_time.py"], tmp_path)
    assert "t_edges" in timed.stdout and " ms" in timed.stdout, timed.stderr


@needs_compiler
@pytest.mark.parametrize("kind", ["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def test_both_forms_of_the_template_have_the_same_bits(
    kind: str, kernel_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "null":
        gpu = emulated_stages.EmulatedGpu
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: gpu(kernel_folder)))
    files = package_files("t_twice", "0", cuda=True)
    own = cpp.load(
        files["src/t_twice/t_twice.cpp"], "t_twice", cuda=files["src/t_twice/t_twice.cu"], cases=({}, {"radius": 2})
    )
    check_on_gpu(own.operator)
    rows = [(np.random.default_rng(i).normal(size=(9, 5 + i, 1)).astype(np.float32),) for i in range(3)]
    check_on_gpu(own.operator, rows)


def test_a_package_without_cuda_has_none() -> None:
    files = package_files("my_op", "0", cuda=False)
    assert not any("cuda" in text.lower() or "gpu" in text.lower() for text in files.values())
    assert not any(path.endswith(".cu") for path in files)
    assert not any("@" in path for path in files)
    both = package_files("my_op", "0", cuda=True)
    for text in (*files.values(), *both.values()):
        assert not any(word in text for word in ("@name@", "@package@", "@version@", "@cuda", "@end"))
    for path, text in (*files.items(), *both.items()):
        if path.endswith(".py"):
            compile(text, path, "exec")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("My-Op", "small letters"), ("class", "small letters"), ("a__b", "small letters"), ("1st", "small letters"),
        ("flip", "a built-in operator"), ("json", "a module of Python's"),
    ],
)  # fmt: skip
def test_wrong_names_are_refused(name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-operator", name, "--folder", str(tmp_path / "new")]) == 2
    assert text in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_a_folder_with_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("")
    assert main(["new-operator", "t_mine", "--folder", str(tmp_path)]) == 2
    assert "new or empty folder" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
