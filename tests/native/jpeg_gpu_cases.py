# SPDX-License-Identifier: Apache-2.0
"""Batches for the GPU JPEG decoder, in the format of `jpeg_gpu_cases.hpp`."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from built_objects import built_object

from native_layers import list_sources

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"
GPU_SOURCES = (
    "jpeg.cpp",
    "jpeg_index.cpp",
    "jpeg_index_store.cpp",
    "jpeg_row_buffers.cpp",
    "jpeg_row.cpp",
)  # of gpu_kernels/
FORMATS = ("RGB", "BGR", "GRAY", "YCbCr", "ANY")
SPOILT = ("nothing", "checksums", "states", "sums", "bit", "bytes", "exchanged", "packed", "forged")


@dataclass(frozen=True)
class Row:
    """A file and a window of its oriented image (y0, x0, height, width); None: the whole image."""

    data: bytes
    window: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class Batch:
    """Rows, and the division of the work: threads per CTA and stage, bits per subsequence, rounds, memory, order."""

    rows: Sequence[Row]
    format: str = "RGB"
    adjust: bool = False
    unstuff_threads: int = 64
    entropy_threads: int = 64
    pixel_threads: int = 32
    min_bits: int = 64
    max_rounds: int = 1000
    seed: int = 1
    memory: int = 1 << 30
    scale_log2: int = 0
    passes: int = 1  # number of passes over all rows
    index_bytes: int = 0  # room for results that a pass stores for the next one
    spoil: int = 0  # damage to the entries of the index before the last pass: index into SPOILT
    scratch_kb: int = 0  # bound of the memory of a launch; 0: none
    parts: int = 0  # 1: read only what the window needs of known files; 2: the same, and change one byte of it
    piece_bytes: int = 1 << 17  # of a file: the index stores an entry point for each piece of a subsequence

    def pack(self) -> bytes:
        head = struct.pack(
            "<14I3Q", len(self.rows), FORMATS.index(self.format), self.adjust, self.unstuff_threads,
            self.entropy_threads, self.pixel_threads, self.min_bits, self.max_rounds, self.seed, self.scale_log2,
            self.passes, self.spoil, self.parts, self.scratch_kb, self.memory, self.index_bytes,
            self.piece_bytes,
        )  # fmt: skip
        rows = (struct.pack("<I4i", len(r.data), *(r.window or (0, 0, 0, 0))) + r.data for r in self.rows)
        return head + b"".join(rows)


def pack(batches: Sequence[Batch]) -> bytes:
    return struct.pack("<I", len(batches)) + b"".join(b.pack() for b in batches)


def build_emulator(folder: Path) -> Path:
    """Build the program that runs cases. The tested code is built with sanitizers, the rest is that of the package."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++20", "-O1", "-ffp-contract=off", f"-I{NATIVE}", f"-I{HERE}"]
    checks = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    checked = {HERE / "jpeg_gpu_emulated.cpp", *(NATIVE / "gpu_kernels" / name for name in GPU_SOURCES)}
    sources = sorted({*list_sources(["jpeg", "plan"]), *checked})
    running: list[subprocess.Popen[bytes]] = []
    objects = []
    for source in sources:
        built = None if source in checked else built_object(source)
        if built:
            objects.append(built)
            continue
        if len(running) >= 2:  # memory and processors of small machines
            assert running.pop(0).wait() == 0
        out = folder / f"{source.parent.name}_{source.stem}.o"
        command = [compiler, *flags, *(checks if source in checked else []), "-c", str(source), "-o", str(out)]
        objects.append(out)
        running.append(subprocess.Popen(command))
    assert [p.wait() for p in running] == [0] * len(running)
    program = folder / "emulated"
    subprocess.run([compiler, *checks, *map(str, objects), "-o", str(program)], check=True)
    return program
