# SPDX-License-Identifier: Apache-2.0
"""The assembler's reports of kernels, cached in the build folder: unchanged kernels are not compiled again."""

from __future__ import annotations

import hashlib
from pathlib import Path

from emulated_stages import write_whole

from stoker.device import compile as compiling

_FOLDER = Path(__file__).resolve().parents[2] / "build" / "reports"
_KEPT = 1000  # reports of a few kilobytes


def report_of(source: str, architecture: int) -> str:
    """Return the assembler's report of registers and spills in a source's kernels.

    The name of a kept report covers the source, all headers that it includes, the options, the architecture, the
    compiler's version and the code that calls the compiler.
    """
    caller = hashlib.sha256(Path(compiling.__file__).read_bytes()).hexdigest()[:20]
    key = compiling.key_of(source, architecture, compiling.compiler_version())
    path = _FOLDER / f"{key}.{caller}.txt"
    if not path.exists():
        report: list[str] = []
        assert compiling.compile_kernels(source, architecture, report=report)
        _FOLDER.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda own: own.write_text(report[0]))
        for old in sorted(_FOLDER.glob("*.txt"), key=lambda p: p.stat().st_mtime)[:-_KEPT]:
            old.unlink(missing_ok=True)
    return path.read_text()
