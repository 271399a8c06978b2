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
import itertools
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stoker import DeviceError, fn, pipeline_def
from stoker.device import file_reads, gpu

MIB = 1 << 20


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
        contenders = list(list_contenders(arguments, files))
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


def list_contenders(arguments: argparse.Namespace, files: list[str]) -> Any:
    """Yield a name and a function that returns 10^9 bytes per second and a profile, for each contender."""
    for way in arguments.ways:
        if way == "floor":
            for piece in arguments.pieces:
                yield f"floor, pieces of {piece:g} MiB, read", floor(arguments, files, piece, on_gpu=False)
                yield f"floor, pieces of {piece:g} MiB, read and copied", floor(arguments, files, piece, on_gpu=True)
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


class HostBuffers:
    """Two buffers of a thread of the floor, which are only filled."""

    def __init__(self, size: int) -> None:
        self.memory = [memoryview(bytearray(size)) for _ in range(2)]

    def await_copy(self, turn: int) -> None:
        """Wait until a buffer may be filled again."""

    def copy(self, turn: int, count: int) -> None:
        """Copy the filled part of a buffer to the GPU."""

    def close(self) -> None:
        """Wait for all copies."""


class CopiedBuffers(HostBuffers):
    """Two page-locked buffers, which torch copies to the GPU on a stream of their own."""

    def __init__(self, size: int) -> None:
        import torch

        self.torch = torch
        self.hosts = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
        self.device, self.stream = torch.empty(size, dtype=torch.uint8, device="cuda"), torch.cuda.Stream()
        self.memory = [memoryview(host.numpy()) for host in self.hosts]
        self.events = [torch.cuda.Event() for _ in self.hosts]

    def await_copy(self, turn: int) -> None:
        self.events[turn].synchronize()

    def copy(self, turn: int, count: int) -> None:
        with self.torch.cuda.stream(self.stream):
            self.device[:count].copy_(self.hosts[turn][:count], non_blocking=True)
            self.events[turn].record()

    def close(self) -> None:
        self.stream.synchronize()


def floor(arguments: argparse.Namespace, files: list[str], piece: float, *, on_gpu: bool) -> Callable[[], Any]:
    """Return a function that measures threads which only read pieces of the files, and copy them to the GPU."""
    size, step, threads = Path(files[0]).stat().st_size, int(piece * MIB), arguments.threads
    pieces = [(i, at) for i in range(len(files)) for at in range(0, size, step)]

    def work(number: int, descriptors: list[int], done: list[int], ready: threading.Barrier) -> None:
        buffers = CopiedBuffers(step) if on_gpu else HostBuffers(step)
        ready.wait()
        end, turn = time.perf_counter() + arguments.seconds, 0
        for file, offset in itertools.islice(itertools.cycle(pieces), number, None, threads):
            if time.perf_counter() >= end:
                break
            buffers.await_copy(turn)
            count = os.preadv(descriptors[file], [buffers.memory[turn]], offset)
            buffers.copy(turn, count)
            done[number] += count
            turn = 1 - turn
        buffers.close()

    def measure() -> tuple[float, str]:
        descriptors = [os.open(file, os.O_RDONLY) for file in files]
        done, ready = [0] * threads, threading.Barrier(threads + 1)
        workers = [threading.Thread(target=work, args=(n, descriptors, done, ready)) for n in range(threads)]
        for worker in workers:
            worker.start()
        ready.wait()
        start = time.perf_counter()
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - start
        for descriptor in descriptors:
            os.close(descriptor)
        return sum(done) / seconds / 1e9, f"{threads} threads"

    return measure


if __name__ == "__main__":
    main()
