# SPDX-License-Identifier: Apache-2.0
"""Test programs in C++ with native sources, compiled with sanitizers."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from idle_clock import HANG_S

from native_layers import NATIVE

ADDRESSES = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)
_SUFFIXES = {".cpp", ".hpp", ".ipp", ".cuh", ".h"}
COMPILER = os.environ.get("CXX") or shutil.which("g++") or "c++"


_TESTS = Path(__file__).resolve().parents[1]
_FOLDER = _TESTS.parent / "build" / "programs"
_KEPT = 40  # programs of a few megabytes


def compile_unit(out: Path, sources: Sequence[Path], *options: str) -> None:
    """Compile sources as one translation unit: reading their headers takes most of the time, and is done once.

    Programs are cached in the build folder. A program's name covers the compiler, its options, and all C++ files of the
    native code and of the tests.
    """
    text = "".join(f'#include "{source}"\n' for source in sources)
    command = [COMPILER, "-std=c++20", "-g1", f"-I{NATIVE}", *options]
    digest = hashlib.sha256(f"{command}{text}{_version()}".encode())
    for source in (*sources, *_files()):
        digest.update(source.read_bytes())
    kept = _FOLDER / digest.hexdigest()[:20]
    if not kept.exists():
        unit, own = out.with_suffix(".unit.cpp"), _FOLDER / f"{os.getpid()}.{kept.name}"
        unit.write_text(text)
        _FOLDER.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [*command, str(unit), "-o", str(own)], capture_output=True, text=True, check=False, timeout=HANG_S
        )
        assert done.returncode == 0, done.stderr[-4000:]
        own.replace(kept)
        for old in sorted(_FOLDER.iterdir(), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
            old.unlink(missing_ok=True)
    os.utime(kept)
    shutil.copy(kept, out)


@functools.cache
def _version() -> str:
    return subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True, timeout=HANG_S).stdout


@functools.cache
def _files() -> tuple[Path, ...]:
    """Return all files that a program may include, in order."""
    found = [path for folder in (NATIVE, _TESTS) for path in folder.rglob("*") if path.suffix in _SUFFIXES]
    return tuple(sorted([*found, *(path for path in (NATIVE / "device" / "std").rglob("*") if path.is_file())]))


def check_program(
    folder: Path, sources: Sequence[Path], *options: str, environment: Mapping[str, str] | None = None
) -> None:
    """Compile a program and run it: it must end without an error."""
    program = folder / "program"
    compile_unit(program, sources, "-O0", "-pthread", *options, "-ldl")
    # ThreadSanitizer needs an address space without randomization.
    without = ["setarch", "--addr-no-randomize"] if THREADS[0] in options and shutil.which("setarch") else []
    done = subprocess.run(
        [*without, str(program)], capture_output=True, text=True, check=False, timeout=HANG_S, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
