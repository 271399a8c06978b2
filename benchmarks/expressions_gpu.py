# SPDX-License-Identifier: Apache-2.0
"""Time of many small pipelines, each with another expression: ``python -m benchmarks.expressions_gpu [--cpu]``.

Each pipeline adds, compares, ... two inputs of one pair of types, is built, runs twice and is closed. On a GPU, a
program of this kind spends its time in compilation, unless its expressions are interpreted. The first pipelines, whose
kernels Stoker compiles, are timed separately. Use an empty ``STOKER_KERNEL_CACHE``.
"""

from __future__ import annotations

import argparse
import itertools
import operator
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .library import DALI, STOKER, load

BATCH, SHAPE = 4, (6, 7)
FIRST = 9  # pipelines: those whose kernels are compiled, and one more, which loads the interpreter
TYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "float32", "float64")
OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expressions", type=int, default=500, help="number of pipelines, at most 891")
    parser.add_argument("--cpu", action="store_true", help="run the pipelines on the CPU")
    parser.add_argument("--compiled", action="store_true", help="compile every expression")
    parser.add_argument("--dali", type=Path, help="folder to import nvidia.dali from; measures DALI instead of Stoker")
    arguments = parser.parse_args()
    if arguments.dali:
        sys.path.insert(0, str(arguments.dali))
    elif arguments.compiled:
        from stoker.device.gpu import Gpu

        Gpu.compiled_first = 1 << 40
    lib = load(DALI if arguments.dali else STOKER)
    chosen = list(itertools.islice(_expressions(), arguments.expressions))
    first, _ = _time(lib, chosen[:FIRST], on_gpu=not arguments.cpu)
    seconds, processor = _time(lib, chosen, on_gpu=not arguments.cpu)
    how = "DALI" if arguments.dali else "Stoker, compiled" if arguments.compiled else "Stoker"
    print(
        f"{how}: {len(chosen)} expressions in {seconds:.2f} s, {1e3 * seconds / len(chosen):.2f} ms each, "
        f"{1e3 * processor / len(chosen):.2f} of a processor; the first {FIRST} before them in {first:.2f} s"
    )


def _time(lib: Any, expressions: list[tuple[str, str, str]], *, on_gpu: bool) -> tuple[float, float]:
    """Return the seconds that the pipelines take together, and those of processors."""
    start, before = time.perf_counter(), time.process_time()
    for name, first, second in expressions:
        _run(lib, name, first, second, on_gpu=on_gpu)
    return time.perf_counter() - start, time.process_time() - before


def _expressions() -> Iterator[tuple[str, str, str]]:
    return ((name, a, b) for a, b in itertools.product(TYPES, TYPES) for name in OPERATIONS)


def _run(lib: Any, name: str, first: str, second: str, *, on_gpu: bool) -> float:
    rng = np.random.default_rng(0)
    inputs = [rng.integers(1, 100, (BATCH, *SHAPE)).astype(t) for t in (first, second)]

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, device_id=0 if on_gpu else None)
    def expression() -> Any:
        a, b = (lib.fn.external_source(source=_source(x), batch=True) for x in inputs)
        return OPERATIONS[name](a.gpu(), b.gpu()) if on_gpu else OPERATIONS[name](a, b)

    pipe = expression()
    pipe.build()
    for _ in range(2):
        (out,) = pipe.run()
    total = float(sum(np.asarray(row, np.float64).sum() for row in (_on_cpu(out) if on_gpu else _rows(out))))
    if hasattr(pipe, "close"):
        pipe.close()
    return total


def _source(x: Any) -> Callable[[], list[Any]]:
    return lambda: list(x)


def _on_cpu(out: Any) -> list[Any]:
    return _rows(out.as_cpu())


def _rows(rows: Any) -> list[Any]:
    return [np.asarray(rows.at(i)) for i in range(len(rows))] if hasattr(rows, "at") else list(rows)


if __name__ == "__main__":
    main()
