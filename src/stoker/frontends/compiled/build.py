# SPDX-License-Identifier: Apache-2.0
"""Compilation of operators in C++, and the cache of their libraries.

The key of a library covers the source, ``stoker/op.h``, the flags, the compiler (path, size, modification time) and the
processor. Other headers are compared by size and modification time (a list next to the library). Files are written
atomically, so that processes may share the folder: the one of compiled GPU kernels.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...contract.errors import ArgumentError, ResourceError
from ...contract.private_folder import make_private_folder, require_private_folder
from ...settings import kernel_cache

HEADERS = Path(__file__).resolve().parents[2] / "native" / "shared"
_FLAGS = ("-std=c++20", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-shared", "-fPIC", "-Wall")
_ERROR = re.compile(r"^(.*?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_TIMEOUT_S = 600


@functools.cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder of this process, for systems without a cache."""
    return tempfile.TemporaryDirectory(prefix="stoker-cpp-")


@functools.cache
def _processor() -> str:
    """Return a text that differs between processors with different instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n", 1)[0].splitlines()
    except OSError:
        return os.uname().machine
    return "\n".join(x for x in lines if x.startswith(("flags", "Features", "model name", "CPU part")))


def compiler() -> Path:
    """Return the C++ compiler: that of the variable ``CXX``, or g++, or c++.

    Raises:
        ResourceError: there is none.
    """
    asked = os.environ.get("CXX", "")
    found = next((p for p in map(shutil.which, (asked,) if asked else ("g++", "c++", "clang++")) if p), None)
    if found is None:
        wanted = f"`{asked}` (the variable CXX)" if asked else "g++, c++ or clang++"
        raise ResourceError(f"expected a C++ compiler, {wanted}, got none. Install one, for example the package g++")
    return Path(found).resolve()


def build(
    source: str, name: str, *, flags: Sequence[str] = (), include: Sequence[str] = (), checked: bool = False,
    headers: Path = HEADERS, shown: str = "",
) -> Path:  # fmt: skip
    """Compile ``source`` and return the library, from the cache if possible.

    Args:
        source: C++ code that includes ``stoker/op.h``.
        name: name of the operator, for messages.
        flags: further flags of the compiler.
        include: further folders of headers.
        checked: compile with STOKER_CHECKED=1, so that numbers of elements are checked.
        headers: folder with ``stoker/op.h``.
        shown: name of the source in messages; by default that of the operator.

    Raises:
        ArgumentError: the compiler refused the source; the text has its first message.
        ResourceError: there is no compiler.
    """
    tool = compiler()
    status = tool.stat()
    native = ("-march=native",) if os.uname().machine in ("x86_64", "AMD64") else ("-mcpu=native",)
    every = [*_FLAGS, *native, f"-DSTOKER_CHECKED={int(checked)}", *(f"-I{Path(p).resolve()}" for p in include), *flags]
    parts = [
        source, (headers / "stoker" / "op.h").read_text(encoding="utf-8"), *every, shown, str(tool),
        str(status.st_size), str(status.st_mtime_ns), _processor(),
    ]  # fmt: skip
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
    folder = _folder()
    listed = folder / f"{key}.headers"
    known = _unchanged(listed)
    if known is not None and _library(listed, known).exists():
        return _library(listed, known)
    with tempfile.TemporaryDirectory(dir=folder) as building:
        code = Path(building, "operator.cpp")
        code.write_text(f'#line 1 "{shown or name + ".cpp"}"\n{source}', encoding="utf-8")
        made, needs = Path(building, "library.so"), Path(building, "needs")
        command = [str(tool), *every, f"-I{headers}", "-MMD", "-MF", str(needs), "-o", str(made), str(code)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise ArgumentError(f"`{name}`: the compiler did not end within {_TIMEOUT_S} s") from None
        except OSError as error:
            raise ResourceError(f"`{name}`: the compiler {tool} cannot be run: {error}") from None
        if run.returncode:
            raise ArgumentError(f"`{name}`: the compiler refused the source: {_first_error(run.stderr)}")
        headers_now = _list_headers(needs, code)
        Path(building, "headers").write_text(headers_now, encoding="utf-8")
        os.replace(made, _library(listed, headers_now))
        os.replace(Path(building, "headers"), listed)
    return _library(listed, headers_now)


def _library(listed: Path, headers: str) -> Path:
    """Return the path of the library with these headers. The loader takes libraries of one path for the same."""
    return listed.with_name(f"{listed.stem}-{hashlib.sha256(headers.encode()).hexdigest()[:8]}.so")


def _folder() -> Path:
    place = kernel_cache()
    if place is None:
        return Path(_own_folder().name)
    folder = place[0]
    try:
        make_private_folder(folder)
        require_private_folder(folder)
    except OSError:
        return Path(_own_folder().name)
    return folder


def _first_error(text: str) -> str:
    found = _ERROR.search(text)
    if found is None:
        return text.strip().splitlines()[-1] if text.strip() else "it gave no message"
    return f"{found.group(1)}:{found.group(2)}: {found.group(3)}"


def _state(path: str) -> str:
    status = os.stat(path)
    return f"{path}\t{status.st_size}\t{status.st_mtime_ns}"


def _list_headers(needs: Path, code: Path) -> str:
    """Return the headers that were included, other than the system's, with their sizes and times."""
    text = needs.read_text(encoding="utf-8").split(":", 1)[-1].replace("\\\n", " ")
    paths = [p.replace("\\ ", " ") for p in re.split(r"(?<!\\)\s+", text) if p]
    return "\n".join(_state(p) for p in paths if Path(p) != code and Path(p).exists())


def _unchanged(listed: Path) -> str | None:
    """Return the list of headers of a library if all are as they were."""
    try:
        text = listed.read_text(encoding="utf-8")
        return text if all(_state(line.split("\t")[0]) == line for line in text.splitlines()) else None
    except OSError:
        return None
