# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.arrays_gpu``: rate at which arrays in files reach a GPU.

Contenders alternate: staging through page-locked memory (``STOKER_GDS=off``), which reads from the page cache, and
cuFile (``on``), which reads around it where the file system can. Without NVIDIA's driver for GPUDirect Storage, cuFile
copies through host memory, if ``CUFILE_ALLOW_COMPAT_MODE=true``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from stoker import fn, pipeline_def


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arrays_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--mib", type=float, default=4, help="size of an array")
    parser.add_argument("--count", type=int, default=256, help="number of files")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=15)
    parser.add_argument("--folder", help="where the files are written (default: the folder of temporary files)")
    parser.add_argument("--ways", nargs="+", choices=("off", "on"), default=["off", "on"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        files = [str(Path(folder, f"{i}.npy")) for i in range(arguments.count)]
        for i, file in enumerate(files):
            np.save(file, np.full(int(arguments.mib * (1 << 20)) // 4, i, np.int32))
        rates: dict[str, list[float]] = {way: [] for way in arguments.ways}
        for _ in range(3):
            for way in arguments.ways:
                rate, report = measure(way, files, arguments.batch, arguments.threads)
                rates[way].append(rate)
    for way, found in rates.items():
        print(f"STOKER_GDS={way}: {statistics.median(found):.1f} GB/s, {[round(r, 1) for r in found]}")
    print(report)


def measure(way: str, files: list[str], batch: int, threads: int, epochs: int = 6) -> tuple[float, str]:
    """Return 10^9 bytes per second over all epochs but the first, and the report's line about cuFile."""
    os.environ["STOKER_GDS"] = way

    @pipeline_def(batch_size=batch, num_threads=threads, device_id=0, seed=1, prefetch_queue_depth=3)
    def arrays() -> Any:
        return fn.readers.numpy(files=files, device="gpu")

    batches = len(files) // batch
    with arrays() as pipe:
        for _ in range(batches):
            pipe.run()
        start = time.perf_counter()
        for _ in range((epochs - 1) * batches):
            out = pipe.run()[0]
        out.as_cpu()  # waits for the GPU
        seconds = time.perf_counter() - start
        moved = (epochs - 1) * sum(Path(f).stat().st_size for f in files)
        return moved / seconds / 1e9, str(pipe.report().file_reads)


if __name__ == "__main__":
    main()
