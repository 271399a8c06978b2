# SPDX-License-Identifier: Apache-2.0
"""Object files that `make setup` has compiled, for test programs of the same sources."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from native_layers import NATIVE

ROOT = NATIVE.parents[2]
_BUILD = ROOT / "build"
_INSTALLED = ROOT / ".venv" / ".package"  # `make setup` touches it when it has built and installed all


@functools.cache
def _is_current() -> bool:
    changed_s = max(path.stat().st_mtime for path in NATIVE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return _INSTALLED.exists() and _INSTALLED.stat().st_mtime > changed_s


def built_object(source: Path) -> Path | None:
    """Return the object file of a native source, or None if there is none or a source is newer than `make setup`."""
    inner = source.relative_to(NATIVE)
    pattern = f"cp{sys.version_info.major}{sys.version_info.minor}-*/src/stoker/native/CMakeFiles/*.dir/{inner}.o"
    found = [*_BUILD.glob(pattern)] if _is_current() else []
    return found[0] if len(found) == 1 else None
