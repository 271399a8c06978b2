# SPDX-License-Identifier: Apache-2.0
"""Batches for the GPU JPEG decoder, as `jpeg_gpu_cases.hpp` reads them."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"
FORMATS = ("RGB", "BGR", "GRAY", "YCbCr", "ANY")
SPOILT = ("nothing", "checksums", "states", "sums", "bit", "bytes", "exchanged", "packed", "forged")


@dataclass(frozen=True)
class Row:
    """A file and the window wanted of it (y0, x0, height, width), as shown; None: all."""

    data: bytes
    window: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class Batch:
    """Rows and how the work is cut: threads per CTA and stage, bits per subsequence, rounds, memory, random order."""

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
    passes: int = 1  # how often all rows are decoded
    index_bytes: int = 0  # room for what a pass finds out for the next
    spoil: int = 0  # what happens to the index's entries before the last pass: its place in SPOILT
    scratch_kb: int = 0  # the most memory that a launch may ask for; 0: any
    parts: int = 0  # 1: of known files, only what the window needs is read; 2: and a byte of it has changed
    piece_bytes: int = 1 << 17  # of a file: a piece for each is noted of a subsequence

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
    """The program that runs cases. What it checks is built with sanitizers."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++20", "-O1", "-ffp-contract=off", f"-I{NATIVE}", f"-I{HERE}"]
    checks = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    checked = {HERE / "jpeg_gpu_emulated.cpp", *NATIVE.glob("jpeg_gpu*.cpp")}
    sources = sorted({*NATIVE.glob("jpeg_*.cpp"), *checked})
    running: list[subprocess.Popen[bytes]] = []
    for source in sources:
        if len(running) >= 2:  # memory and processors of small machines
            assert running.pop(0).wait() == 0
        out = folder / f"{source.stem}.o"
        command = [compiler, *flags, *(checks if source in checked else []), "-c", str(source), "-o", str(out)]
        running.append(subprocess.Popen(command))
    assert [p.wait() for p in running] == [0] * len(running)
    program = folder / "emulated"
    subprocess.run([compiler, *checks, *map(str, folder.glob("*.o")), "-o", str(program)], check=True)
    return program
