# SPDX-License-Identifier: Apache-2.0
"""Run the snippets in tests/compat/dali_snippets under NVIDIA DALI and under Stoker.

``python tools/dali_snippets.py PYTHON``: PYTHON is an interpreter with nvidia-dali (a CPU is enough). The program
records what the snippets show under DALI in tests/compat/dali_snippets.json, with which the tests compare. Names of
files or snippets after PYTHON limit the run to these and to new ones.

A snippet is the text after a line ``# ---- name``. ``LIBRARY`` is the package; it uses the names of :data:`PRELUDE` and

- ``show(*values)``: records values: lists of tensors by type, layout and elements, others by ``repr``,
- ``run(pipe, n=1)``: builds a pipeline and records ``n`` batches,
- ``attempt(function, *arguments)``: records the result, or the built-in classes of the exception.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "compat" / "dali_snippets"
RECORD = ROOT / "tests" / "compat" / "dali_snippets.json"
PRELUDE = """
import numpy as np
import LIBRARY as dali
import LIBRARY.fn as fn, LIBRARY.math as dmath, LIBRARY.ops as ops, LIBRARY.types as types
from LIBRARY import Pipeline, pipeline_def
f4, i4, u1 = np.float32, np.int32, np.uint8
CPU = {"num_threads": 1, "device_id": None}
"""
_LONGEST = 24  # elements of a tensor in a record
_BUILT_IN = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError, StopIteration)


def read_snippets() -> dict[str, str]:
    """Return all snippets by name: ``<file>: <name>``."""
    found: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.txt")):
        parts = re.split(r"^# ---- (.*)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        found |= {f"{file.stem}: {name}": text for name, text in zip(parts[::2], parts[1::2], strict=True)}
    return found


def describe(x: Any, depth: int = 0) -> str:
    """Return a value as text that does not depend on the library."""
    kind = type(x).__name__
    if kind.startswith("TensorList"):
        dtype = str(x.dtype).rsplit(".", 1)[-1].lower().replace("float32", "float")
        return " ".join([f"{dtype} {x.layout()!r}", *(describe(np.array(x.at(i))) for i in range(len(x)))])
    if kind.startswith("Tensor"):
        return f"{x.layout()!r} {describe(np.array(x))}"
    if isinstance(x, np.ndarray):
        numbers = (np.round(x.astype(float), 3) + 0.0).reshape(-1).tolist()
        return f"{list(x.shape)}{numbers[:_LONGEST]}"
    if isinstance(x, (tuple, list)) and depth < 3:
        return "(" + ", ".join(describe(v, depth + 1) for v in x) + ")"
    return x.__name__ if isinstance(x, type) else re.sub(r"<(\w+): \d+>", r"\1", repr(x))


def classes_of(error: BaseException) -> str:
    """Return the built-in classes that an exception is of."""
    return "!" + " ".join(b.__name__ for b in _BUILT_IN if isinstance(error, b))


def run_snippet(library: str, text: str, folder: Path) -> list[str]:
    """Return what a snippet records. ``folder`` receives a file with its text, which conditionals read."""
    lines: list[str] = []

    def show(*values: Any) -> None:
        lines.append("; ".join(map(describe, values)))

    def run(pipe: Any, n: int = 1) -> None:
        pipe.build()
        for _ in range(n):
            show(pipe.run())

    def attempt(function: Any, *arguments: Any) -> None:
        try:
            lines.append(describe(function(*arguments)))
        except Exception as error:  # noqa: BLE001 - the class is what is compared
            lines.append(classes_of(error))

    code = (PRELUDE + text).replace("LIBRARY", library)
    file = folder / "snippet.py"
    file.write_text(code, encoding="utf-8")
    names = {"show": show, "run": run, "attempt": attempt, "__name__": "snippet"}
    exec(compile(code, str(file), "exec"), names)
    return lines


def agrees(theirs: str, ours: str) -> bool:
    """Return whether a line of Stoker's agrees with DALI's: equal, or an error of one of DALI's classes."""
    if theirs.startswith("!") and ours.startswith("!"):
        return not theirs[1:] or bool(set(theirs[1:].split()) & set(ours[1:].split()))
    return theirs == ours


def main() -> None:
    """Record what DALI shows; with --one, run the snippet of standard input and print its lines."""
    if sys.argv[1] == "--one":
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(run_snippet("nvidia.dali", sys.stdin.read(), Path(folder))))
        return
    snippets = read_snippets()
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    wanted = set(sys.argv[2:]) or set(snippets)  # files, or all
    recorded, failed = {}, []
    for name, text in snippets.items():
        if name in known and not wanted & {name, name.split(":")[0]}:
            recorded[name] = known[name]
            continue
        run = subprocess.run([sys.argv[1], __file__, "--one"], input=text, capture_output=True, text=True)
        if run.returncode:
            failed.append(f"{name}: {run.stderr}")
            continue
        recorded[name] = json.loads(run.stdout.splitlines()[-1])
    RECORD.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
