# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.arrays_gpu``: rate at which arrays in files reach a GPU, from the page cache.

Contenders alternate. ``off``: bounce buffers, as with ``STOKER_GDS=off``; ``--pieces`` and ``--buffers`` vary them.
``batch``: staging of whole batches, which small files and files that the CPU reads take. ``on``: cuFile, which reads
around the page cache where the file system can; without NVIDIA's driver for GPUDirect Storage it copies through host
memory, if ``CUFILE_ALLOW_COMPAT_MODE=true``. ``floor``: threads that read pieces of the files into memory of their own
and, with torch, copy them to the GPU from page-locked buffers, without a pipeline.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stoker import DeviceError, fn, pipeline_def
from stoker.device import file_reads, gpu

MIB = 1 << 20
FLOOR = Path(__file__).with_name("native") / "read_and_copy.cpp"


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arrays_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--mib", type=float, default=4, help="size of an array")
    parser.add_argument("--count", type=int, default=256, help="number of files")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=15)
    parser.add_argument("--prefetch", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a round, after two epochs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the files are written (default: the folder of temporary files)")
    parser.add_argument("--ways", nargs="+", choices=("off", "batch", "on", "floor"), default=["off", "batch", "floor"])
    parser.add_argument("--pieces", nargs="+", type=float, default=[file_reads.PIECE_BYTES / MIB], help="MiB")
    parser.add_argument("--buffers", nargs="+", type=int, default=[file_reads.BUFFERS])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        files = [str(Path(folder, f"{i}.npy")) for i in range(arguments.count)]
        for i, file in enumerate(files):
            np.save(file, np.full(int(arguments.mib * MIB) // 4, i, np.int32))
        contenders = list(list_contenders(arguments, files, Path(folder)))
        rates: dict[str, list[float]] = {name: [] for name, _ in contenders}
        profiles = dict.fromkeys(rates, "")
        for _ in range(arguments.rounds):
            for name, measured in contenders:
                try:
                    rate, profiles[name] = measured()
                except DeviceError as error:
                    rate, profiles[name] = float("nan"), str(error)
                rates[name].append(rate)
    for name, found in rates.items():
        print(f"{name}: {statistics.median(found):.1f} GB/s, {[round(r, 1) for r in found]}; {profiles[name]}")


def list_contenders(arguments: argparse.Namespace, files: list[str], folder: Path) -> Any:
    """Yield a name and a function that returns 10^9 bytes per second and a profile, for each contender."""
    for way in arguments.ways:
        if way == "floor":
            function = build_floor(folder)
            for piece, on_gpu in itertools.product(arguments.pieces, (False, True)):
                name = f"floor, pieces of {piece:g} MiB, read{' and copied' if on_gpu else ''}"
                measured = partial(measure_floor, function, files, int(piece * MIB), arguments.threads)
                yield name, partial(measured, arguments.seconds, on_gpu=on_gpu)
        elif way == "off":
            for piece in arguments.pieces:
                for buffers in arguments.buffers:
                    name = f"bounce buffers, {buffers} of {piece:g} MiB"
                    yield name, lambda p=piece, b=buffers: pipeline(arguments, files, "off", p, b)
        else:
            yield {"batch": "batches", "on": "cuFile"}[way], lambda w=way: pipeline(arguments, files, w)


def pipeline(
    arguments: argparse.Namespace, files: list[str], way: str, piece: float | None = None, buffers: int = 2
) -> tuple[float, str]:
    """Return the rate of a pipeline after its first two epochs, and its profile."""
    os.environ["STOKER_GDS"] = "on" if way == "on" else "off"
    kept = file_reads.PIECE_BYTES, file_reads.BUFFERS, gpu.open_file_reads
    if piece is not None:
        file_reads.PIECE_BYTES, file_reads.BUFFERS = int(piece * MIB), buffers
    if way == "batch":
        gpu.open_file_reads = lambda device: None  # type: ignore[assignment,return-value]

    @pipeline_def(
        batch_size=arguments.batch, num_threads=arguments.threads, device_id=0, seed=1,
        prefetch_queue_depth=arguments.prefetch,
    )  # fmt: skip
    def arrays() -> Any:
        return fn.readers.numpy(files=files, device="gpu")

    try:
        with arrays() as pipe:
            for _ in range(2 * len(files) // arguments.batch):
                out = pipe.run()[0]
            out.as_cpu()  # waits for the GPU
            before = read_times(pipe, way)
            batches, start = 0, time.perf_counter()
            while time.perf_counter() - start < arguments.seconds:
                out = pipe.run()[0]
                batches += 1
            out.as_cpu()
            seconds = time.perf_counter() - start
            profile = describe(before, read_times(pipe, way), seconds * arguments.threads, seconds / batches)
            return batches * arguments.batch * Path(files[0]).stat().st_size / seconds / 1e9, profile
    finally:
        file_reads.PIECE_BYTES, file_reads.BUFFERS, gpu.open_file_reads = kept


def read_times(pipe: Any, way: str) -> tuple[int, ...] | None:
    """Return reads, bytes and nanoseconds (all, in the file system, waiting for copies) of bounce buffers until now."""
    if way == "batch":
        return None
    found: tuple[int, ...] = pipe._execution.gpu.file_reads.report()[2]
    return found


def describe(
    before: tuple[int, ...] | None, after: tuple[int, ...] | None, thread_seconds: float, batch_seconds: float
) -> str:
    """Return the shares of the threads' time."""
    text = f"{1e3 * batch_seconds:.2f} ms a batch"
    if before is None or after is None or after[0] == before[0]:
        return text
    reads, _, ns, file_ns, await_ns = (b - a for a, b in zip(before, after, strict=True))
    other = ns - file_ns - await_ns
    shares = {"reading": ns, "in the file system": file_ns, "waiting for copies": await_ns, "issuing": other}
    text += ", of the threads' time " + ", ".join(f"{v / 1e9 / thread_seconds:.0%} {k}" for k, v in shares.items())
    return f"{text}; {ns / reads / 1e3:.0f} us a read"


def build_floor(folder: Path) -> Any:
    """Compile the floor into a folder and return its function. It is native because threads of Python share a lock.

    Raises:
        RuntimeError: there is no compiler, or it fails.
    """
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise RuntimeError("expected a C++ compiler for the floor, got none; leave `floor` out of `--ways`")
    library = folder.resolve() / "read_and_copy.so"
    options = ["-std=c++20", "-O2", "-shared", "-fPIC", "-pthread", "-o", str(library), str(FLOOR), "-ldl"]
    done = subprocess.run([compiler, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the floor does not compile: {done.stderr}")
    function = ctypes.CDLL(str(library)).read_and_copy
    function.restype = ctypes.c_char_p
    function.argtypes = [
        ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_double,
        ctypes.c_int, ctypes.POINTER(ctypes.c_double),
    ]  # fmt: skip
    return function


def measure_floor(
    function: Any, files: Sequence[str], piece_bytes: int, threads: int, seconds: float, *, on_gpu: bool
) -> tuple[float, str]:
    """Return 10^9 bytes per second of threads that read pieces of files, and copy them to the GPU with `on_gpu`.

    Raises:
        DeviceError: a call of the driver failed, or a file could not be read.
    """
    descriptors = [os.open(file, os.O_RDONLY) for file in files]
    try:
        rate = ctypes.c_double()
        size = os.fstat(descriptors[0]).st_size
        numbers = (ctypes.c_int * len(descriptors))(*descriptors)
        failed = function(numbers, len(descriptors), size, piece_bytes, threads, seconds, on_gpu, ctypes.byref(rate))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    if failed:
        raise DeviceError(failed.decode())
    return rate.value / 1e9, f"{threads} threads"


if __name__ == "__main__":
    main()
