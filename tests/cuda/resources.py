# SPDX-License-Identifier: Apache-2.0
"""Registers, shared memory and spills of the kernels, for docs/internals/gpu.md: ``python -m tests.cuda.resources``.

No GPU is needed. Registers count per thread, shared memory (static bytes) per block; spills are listed if there are
any. The kernels are those that the tests compile: the decoder's, the recipes', of a few stages, and of some operators.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stoker.codecs.jpeg.codec import SUFFIXES, sources_for
from stoker.device import compile as compiling
from stoker.ops.image.recipe import SOURCES as RECIPE

_ENTRY = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?"
    r"Used (\d+) registers([^\n]*)", re.DOTALL,
)  # fmt: skip


def compiled_by_tests() -> Any:
    """Return the module of the tests that compile for every architecture."""
    sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("cuda", "native")]
    import test_compile

    return test_compile


def resources(text: str, architecture: int) -> Mapping[str, str]:
    """Return registers, shared memory and spills of each kernel in a source."""
    report: list[str] = []
    compiling.compile_kernels(text, architecture, report=report)
    found = {}
    for name, stores, loads, registers, more in _ENTRY.findall("".join(report)):
        shared = re.search(r"(\d+)(?:\+\d+)? bytes smem", more)
        spilled = int(stores) + int(loads)
        found[name] = f"{registers}, {shared[1] if shared else 0}" + (f", {spilled} spilled" if spilled else "")
    return found


def _short(title: str) -> str:
    """Describe a representative source in a few words; for a custom kernel, its types and architecture."""
    if not title.startswith("OwnKernel("):
        return title.strip()
    constants = re.search(r"constants=\(([\d, ]*)\)", title)
    types = " ".join(t.lower() for t in re.findall(r"DType\.(\w+)", title))
    return f"{types} ({constants[1]})" if constants and constants[1] else types


def main() -> None:
    tests = compiled_by_tests()
    architectures = tests.ARCHITECTURES
    sources = dict((*(s for dtype in SUFFIXES for s in sources_for(dtype)), *RECIPE))
    sources.update(tests.representative())
    print("| kernel |", " | ".join(f"sm_{a}" for a in architectures), "|\n|---|" + "---|" * len(architectures))
    for title, text in sources.items():
        found = [resources(text, a) for a in architectures]
        for name in found[0]:
            if name == title or not title.startswith("stoker_"):
                label = f"`{name}`" if name == title else f"`{name}`: {_short(title)}"
                print(f"| {label} |", " | ".join(each[name] for each in found), "|", flush=True)


if __name__ == "__main__":
    main()
