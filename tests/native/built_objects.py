# SPDX-License-Identifier: Apache-2.0
"""Object files that `make setup` has compiled, for test programs of the same sources."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from native_layers import NATIVE

_BUILD = NATIVE.parents[2] / "build"


@functools.cache
def _newest_s() -> float:
    return max(path.stat().st_mtime for path in NATIVE.rglob("*") if path.is_file() and path.suffix != ".pyc")


def built_object(source: Path) -> Path | None:
    """Return the object file of a native source, or None if there is none or any native file is newer."""
    inner = source.relative_to(NATIVE)
    pattern = f"cp{sys.version_info.major}{sys.version_info.minor}-*/src/stoker/native/CMakeFiles/*.dir/{inner}.o"
    found = [path for path in _BUILD.glob(pattern) if path.stat().st_mtime > _newest_s()]
    return found[0] if len(found) == 1 else None
