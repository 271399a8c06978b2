# SPDX-License-Identifier: Apache-2.0
"""Batches for the GPU JPEG decoder, in the format of `jpeg_gpu_cases.hpp`."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from built_objects import built_object
from checked_programs import ADDRESSES, COMPILER, compile_unit
from idle_clock import HANG_S

from native_layers import NATIVE, list_sources

HERE = Path(__file__).resolve().parent
GPU_SOURCES = (
    "jpeg.cpp",
    "jpeg_index.cpp",
    "jpeg_index_store.cpp",
    "jpeg_row_buffers.cpp",
    "jpeg_row.cpp",
)  # of gpu_kernels/
FORMATS = ("RGB", "BGR", "GRAY", "YCbCr", "ANY")
ELEMENTS = ("uint8", "uint16", "float32")
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
    spread_rows: int = 0  # batches of up to this many rows have several CTAs that write each of them
    lead_bits: int = 256  # that are decoded before a subsequence to guess its state
    element: str = "uint8"  # type of the pixels' elements
    piece_bytes: int = 1 << 17  # of a file: the index stores an entry point for each piece of a subsequence

    def pack(self) -> bytes:
        head = struct.pack(
            "<17I4x3Q", len(self.rows), FORMATS.index(self.format), self.adjust, self.unstuff_threads,
            self.entropy_threads, self.pixel_threads, self.min_bits, self.max_rounds, self.seed, self.scale_log2,
            self.passes, self.spoil, self.parts, self.scratch_kb, self.spread_rows, self.lead_bits,
            ELEMENTS.index(self.element), self.memory, self.index_bytes, self.piece_bytes,
        )  # fmt: skip
        rows = (struct.pack("<I4i", len(r.data), *(r.window or (0, 0, 0, 0))) + r.data for r in self.rows)
        return head + b"".join(rows)


def pack(batches: Sequence[Batch]) -> bytes:
    return struct.pack("<I", len(batches)) + b"".join(b.pack() for b in batches)


def build_emulator(folder: Path) -> Path:
    """Build the program that runs cases. The tested code is built with sanitizers, the rest is that of the package."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-O1", "-ffp-contract=off", "-DSTOKER_PARTLY_GUARDED", f"-I{HERE}"]
    tested = [NATIVE / "gpu_kernels" / name for name in GPU_SOURCES]
    units: list[tuple[list[Path], Sequence[str]]] = [(tested, ADDRESSES), ([HERE / "jpeg_gpu_emulated.cpp"], ADDRESSES)]
    rest = {source: built_object(source) for source in {*list_sources(["jpeg", "plan"])} - {*tested}}
    units += [([source], ()) for source, built in rest.items() if not built]
    objects = [folder / f"{number}.o" for number in range(len(units))]
    with ThreadPoolExecutor(2) as pool:  # memory and processors of small machines
        list(pool.map(lambda out, unit: compile_unit(out, unit[0], "-c", *options, *unit[1]), objects, units))
    program = folder / "emulated"
    link = [COMPILER, *ADDRESSES, *map(str, [*objects, *filter(None, rest.values())]), "-o", str(program)]
    subprocess.run(link, check=True, timeout=HANG_S)
    return program
