# SPDX-License-Identifier: Apache-2.0
"""Run-time compilation of CUDA C++ by NVRTC, and the cache of compiled kernels on disk.

The cache key covers everything that can change a kernel's code: the source, all headers that it includes, the options,
the architecture and the compiler's version. Files are written atomically, so that processes may share the cache. A
damaged file is compiled again. If several processes need the same kernel at the same time, one compiles it and the
others wait (``build_lock.py``). ``settings.py`` has the folder and its size.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..contract.errors import UnsupportedError
from ..contract.private_folder import make_private_folder, require_private_folder
from ..contract.warning import warn
from ..settings import kernel_cache
from .build_lock import build_lock

NATIVE = Path(__file__).resolve().parent.parent / "native"
# NVRTC has no standard library; device/std has the parts that the shared headers use.
INCLUDE = (NATIVE / "device" / "std", NATIVE)
# Exact results: no fused multiply-adds, no approximations, subnormals preserved.
OPTIONS = (
    "--std=c++20", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
    "--device-as-default-execution-space", "--no-source-include",
)  # fmt: skip
_INCLUDES = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
_MAGIC = b"stoker kernel 1\n"
_DIGEST_BYTES = 32


def compile_kernels(source: str, architecture: int, *, report: list[str] | None = None) -> bytes:
    """Return the machine code (a cubin) of CUDA C++ ``source``, from the cache if possible.

    Args:
        source: source text; its ``#include``s are found in ``native``.
        architecture: 90 for compute capability 9.0.
        report: receives the assembler's report of registers and spills; disables the cache.

    Raises:
        UnsupportedError: the compiler is not installed.
        RuntimeError: the compiler refused the source; the text has its messages.
    """
    version = compiler_version()
    if report is not None:
        return _compile(source, architecture, report)
    place = kernel_cache()
    if place is None:
        return _compile(source, architecture, None)
    folder, limit_bytes = place
    if not _is_trusted(folder):
        return _compile(source, architecture, None)
    path = folder / f"{key_of(source, architecture, version)}.cubin"
    code = _read(path)
    if code is not None:
        return code
    with build_lock(path):
        code = _read(path)  # another process may have written it during the wait
        if code is None:
            code = _compile(source, architecture, None)
            _write(path, code, limit_bytes)
    return code


def is_cached(source: str, architecture: int) -> bool:
    """Whether the cache has the machine code of ``source``, so that :func:`compile_kernels` does not compile it."""
    place = kernel_cache()
    return place is not None and (place[0] / f"{key_of(source, architecture, compiler_version())}.cubin").is_file()


def _is_trusted(folder: Path) -> bool:
    """Whether kernels of a folder may be run. A warning says why not."""
    try:
        require_private_folder(folder)
    except OSError as error:
        hint = "set STOKER_KERNEL_CACHE to a folder of your own"
        warn(f"compiled kernels are neither read nor kept: {error}; {hint}", stacklevel=3)
        return False
    return True


def compiler_version() -> tuple[int, int]:
    """Return NVRTC's version.

    Raises:
        UnsupportedError: NVRTC is not installed.
    """
    try:
        from cuda.bindings import nvrtc

        status, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise UnsupportedError(
            f"expected NVRTC to compile kernels for a GPU, got: {error}. It is the extra `cuda13`: "
            "`pip install 'cuda-bindings>=13,<14' 'nvidia-cuda-nvrtc>=13,<14'`"
        ) from error
    if int(status):
        raise UnsupportedError(f"expected a working NVRTC, got its status {int(status)}")
    return int(major), int(minor)


def key_of(source: str, architecture: int, version: tuple[int, int]) -> str:
    """Return the cache key of a kernel, which covers everything that can change its code."""
    digest = _digest_before(tuple(_INCLUDES.findall(source)), OPTIONS, architecture, version).copy()
    _add(digest, source)
    return str(digest.hexdigest()[:40])


@functools.lru_cache(256)
def _digest_before(
    includes: tuple[str, ...], options: tuple[str, ...], architecture: int, version: tuple[int, int]
) -> Any:
    """Return a digest of all parts of a key but the source, whose headers have 100 KB and more."""
    digest = hashlib.sha256()
    for part in (_MAGIC.decode(), repr(options), str(architecture), repr(version)):
        _add(digest, part)
    for name, text in sorted(_headers_of(includes).items()):
        _add(digest, name)
        _add(digest, text)
    return digest


def _add(digest: Any, part: str) -> None:
    data = part.encode()
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)


def headers(source: str) -> dict[str, str]:
    """Return the texts of all headers that ``source`` includes, directly or indirectly, by their paths below
    ``native``.
    """
    return _headers_of(_INCLUDES.findall(source))


def _headers_of(includes: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    todo = [(name, NATIVE) for name in includes]
    while todo:
        header = _header(*todo.pop())
        if header is None or header.name in found:
            continue
        found[header.name] = header.text
        todo += [(inner, header.folder) for inner in header.includes]
    return found


@dataclass(frozen=True)
class _Header:
    name: str  # path below `native`
    folder: Path
    text: str
    includes: tuple[str, ...]


@functools.cache
def _header(name: str, folder: Path) -> _Header | None:
    """Read a header that a file in ``folder`` includes; None for one of CUDA's.

    Installed headers do not change while the process runs.
    """
    path = next((p for p in ((f / name).resolve() for f in (folder, *INCLUDE)) if p.is_file()), None)
    if path is None:
        return None
    text = path.read_text(encoding="utf-8")
    return _Header(str(path.relative_to(NATIVE)), path.parent, text, tuple(_INCLUDES.findall(text)))


def _compile(source: str, architecture: int, report: list[str] | None) -> bytes:
    from cuda.bindings import nvrtc

    options = [*OPTIONS, f"--gpu-architecture=sm_{architecture}", *(f"--include-path={p}" for p in INCLUDE)]
    if report is not None:
        options += ["--ptxas-options=-v", "--no-cache"]  # NVRTC's cached results have no report
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"stoker.cu", 0, [], [])
    _expect(status, "make a program")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _fetch(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
        if int(status):
            raise RuntimeError(f"NVRTC refused a kernel for sm_{architecture}:\n{log}")
        if report is not None:
            report.append(log)
        return _fetch(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _expect(status: Any, what: str) -> None:
    if int(status):
        raise RuntimeError(f"NVRTC could not {what}: {status}")


def _fetch(size_of: Callable[[Any], Any], get: Callable[[Any, bytes], Any], program: Any) -> bytes:
    """Return the bytes that NVRTC writes into memory of the size that it reports."""
    status, size = size_of(program)
    _expect(status, "give a size")
    memory = bytes(size)  # the binding writes into it
    _expect(get(program, memory)[0], "give its result")
    return memory


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    code = data[head:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : head] != hashlib.sha256(code).digest():
        return None
    with contextlib.suppress(OSError):  # the folder may be read-only
        os.utime(path)  # marks the file as recently used
    return code


def _write(path: Path, code: bytes, limit_bytes: int) -> None:
    """Write ``code`` to the cache.

    A cache that cannot be written costs time but no results, so the failure is a warning.
    """
    try:
        make_private_folder(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(code).digest() + code)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
        _trim(path.parent, limit_bytes)
    except OSError as error:
        hint = "set STOKER_KERNEL_CACHE to a folder that can be written"
        warn(f"compiled kernels are not kept: {error}; {hint}", stacklevel=3)


def _trim(folder: Path, limit_bytes: int) -> None:
    """Delete the least recently used files until the folder is within its limit."""
    kept = []
    for path in folder.glob("*.cubin"):
        try:
            status = path.stat()
        except OSError:
            continue  # another process deleted it
        kept.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept)[:-1]:
        if total <= limit_bytes:
            break
        path.unlink(missing_ok=True)
        total -= size
