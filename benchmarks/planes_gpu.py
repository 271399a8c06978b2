# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.planes_gpu``: decoded images in component planes, compared with interleaved pixels.

Both forms of ``benchmarks.gpu``'s training chain run in one process. The program compares all pixels, and measures the
kernels' time per image from the driver's trace (batch by batch), the memory of a pipeline, rates in alternation with
the processor time, and the threads' time per step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from .gpu_data import add_arguments, describe, make_files
from .gpu_pipelines import BATCH, CHAIN, consume, make_pipeline
from .stages_gpu import measure

FORMS = "planes", "pixels"


def main() -> None:
    """Measure both forms."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planes_gpu", description=__doc__.split("\n")[0])
    add_arguments(parser, seconds=0.8)
    parser.add_argument("--rounds", type=int, default=4, help="rounds of each form")
    parser.add_argument("--depths", type=int, nargs="*", default=[5, 8], help="prefetched batches")
    parser.add_argument("--threads", type=int, default=16)
    arguments = parser.parse_args()
    files = make_files(arguments.data, arguments.work, arguments.files)
    describe(files)
    check_bits(files, arguments.threads)
    for form in FORMS:
        measure(form, in_form(form, files, arguments.threads, 1), 12)
    for depth in arguments.depths:
        rates(files, arguments, depth)


def in_form(form: str, files: list[str], threads: int, depth: int) -> Any:
    """Return the training chain of ``benchmarks.gpu`` with images in planes or in pixels."""
    from stoker.graph.analysis import PASSES, PLANES

    passes = frozenset(name for name in PASSES if form == "planes" or name != PLANES)
    return make_pipeline("stoker", CHAIN, files, "gpu", threads, depth, passes=passes)


def check_bits(files: list[str], threads: int) -> None:
    """Compare an epoch of both forms."""
    with in_form("planes", files, threads, 2) as one, in_form("pixels", files, threads, 2) as other:
        for _ in range(len(files) // BATCH):
            a, b = (np.asarray(pipe.run()[0].as_cpu().as_array()) for pipe in (one, other))
            if not np.array_equal(a.view(np.uint16), b.view(np.uint16)):
                raise SystemExit("pixels of the two forms differ")
        left = one.report().decoding.rows_on_cpu
    print(f"bits        equal, {len(files) // BATCH * BATCH} rows, {left} of them decoded by the CPU", flush=True)


def rates(files: list[str], arguments: argparse.Namespace, depth: int) -> None:
    """Measure images per second and processor time of both in alternation, and each pipeline's memory on the GPU."""
    import torch

    pipes = {form: in_form(form, files, arguments.threads, depth) for form in FORMS}
    found: dict[str, list[float]] = {form: [] for form in FORMS}
    spent: dict[str, list[float]] = {form: [] for form in FORMS}
    taken: dict[str, int] = {}
    total = torch.zeros((), dtype=torch.float64, device="cuda")
    for form, pipe in pipes.items():
        before = torch.cuda.mem_get_info()[0]
        for _ in range(60):
            consume(pipe.run(), total)
        torch.cuda.synchronize()
        taken[form] = before - torch.cuda.mem_get_info()[0]
    for _ in range(arguments.rounds):
        for form, pipe in pipes.items():
            start, count, cpu = time.perf_counter(), 0, time.process_time()
            while time.perf_counter() - start < arguments.seconds:
                consume(pipe.run(), total)
                count += BATCH
            torch.cuda.synchronize()
            found[form].append(count / (time.perf_counter() - start))
            spent[form].append(1e6 * (time.process_time() - cpu) / count)
    for form, pipe in pipes.items():
        low, high = min(found[form]), max(found[form])
        print(f"depth {depth}  {form:<8} {statistics.median(found[form]):9,.0f} images/s ({low:,.0f} .. {high:,.0f}), "
              f"{statistics.median(spent[form]):.1f} us of processor time per image, "
              f"{taken[form] / 1e6:,.0f} MB of the GPU's memory; a thread's time: {step_times(pipe)}",
              flush=True)  # fmt: skip
        pipe.close()


def step_times(pipe: Any) -> str:
    """Return the microseconds of thread time per image for each step."""
    rows = pipe.execution.report().rows
    pairs = zip(pipe.execution.plan.steps, pipe.execution.run.step_times(), strict=True)
    return ", ".join(f"{getattr(s.body, 'kernel', type(s.body).__name__)} {1e-3 * t / rows:.1f}" for s, t in pairs if t)


if __name__ == "__main__":
    main()
