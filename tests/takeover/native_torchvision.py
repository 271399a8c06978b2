# SPDX-License-Identifier: Apache-2.0
"""torchvision's real native library beside a torch without CUDA.

torchvision's wheel is linked with torch's CUDA libraries. Its functions for the CPU need nothing from them. So this
module builds libraries of the same names whose functions abort, and loads them before torchvision is imported.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

from tests.idle_clock import HANG_S

_PREFIXES = re.compile(r"_ZNK?(3c10|2at)4cuda")  # functions of the namespaces c10::cuda and at::cuda
_COUNT = "_ZN3c104cuda12device_countEv"  # the only function that is called without a GPU: there are none
_ALLOCATOR = "_ZN3c104cuda20CUDACachingAllocator9allocatorE"  # a variable
_FOLDER = Path(__file__).parents[2] / "build" / "torchvision"
_LIBRARIES = ("libc10_cuda.so", "libtorch_cuda.so")


def load() -> bool:
    """Load the libraries that torchvision's wheel needs; return False if torchvision or a compiler is missing."""
    found = importlib.util.find_spec("torchvision")
    tools = [shutil.which(os.environ.get("CC", "gcc")), shutil.which("nm")]
    if found is None or found.origin is None or None in tools:
        return False
    if torch.version.cuda is not None:
        return True
    parts = [part for name in ("_C.so", "image.so") if (part := Path(found.origin).parent / name).exists()]
    if not parts:
        return False
    listed = subprocess.run(
        [str(tools[1]), "-D", "--undefined-only", *map(str, parts)], capture_output=True, text=True, check=True,
        timeout=HANG_S,
    )  # fmt: skip
    names = sorted({word for line in listed.stdout.splitlines() for word in line.split()[-1:] if _PREFIXES.match(word)})
    folder = _build(str(tools[0]), names)
    for name in _LIBRARIES:
        ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)
    for library in sorted((Path(found.origin).parent.parent / "torchvision.libs").glob("libcudart.*")):
        _load_as(library, re.sub(r"\.[0-9a-f]{8}\.", ".", library.name), folder)
    return True


def _build(compiler: str, names: list[str]) -> Path:
    """Build libraries that define ``names``, once for all processes."""
    source = "#include <stdlib.h>\n" + "".join(map(_define, names))
    folder = _FOLDER / hashlib.sha256(source.encode()).hexdigest()[:16]
    if all((folder / name).exists() for name in _LIBRARIES):
        return folder
    _FOLDER.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=_FOLDER))
    (building / "cuda.c").write_text(source)
    (building / "nothing.c").write_text("")
    for name, code in zip(_LIBRARIES, ("cuda.c", "nothing.c"), strict=True):
        options = ["-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(building / name)]
        subprocess.run([compiler, *options, str(building / code)], check=True, timeout=HANG_S)
    try:
        building.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(building)
    return folder


def _define(name: str) -> str:
    if name == _ALLOCATOR:
        return f"void *{name};\n"
    return f"int {name}(void) {{ {'return 0;' if name == _COUNT else 'abort();'} }}\n"


def _load_as(library: Path, name: str, folder: Path) -> None:
    """Load a library under the name that another one requires."""
    copy = folder / name
    if not copy.exists():
        temporary = folder / f"{name}.{os.getpid()}"
        shutil.copy(library, temporary)
        _set_name(temporary, library.name, name)
        temporary.rename(copy)
    ctypes.CDLL(str(copy), ctypes.RTLD_GLOBAL)


def _set_name(path: Path, old: str, new: str) -> None:
    """Replace a library's own name by a shorter one."""
    data = path.read_bytes()
    path.write_bytes(data.replace(old.encode() + b"\0", new.encode().ljust(len(old), b"\0") + b"\0"))
