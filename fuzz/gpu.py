# SPDX-License-Identifier: Apache-2.0
"""Fuzzer of the GPU's JPEG decoder: mutated files on the emulation of threads, under sanitizers.

If the decoder accepts a file, the CPU must accept it too and give equal pixels; the decoder must leave all other files
to the CPU. Windows, formats, scales and the division of work are random. Files come again, whole or in part, and their
index entries may change in between (`SPOILT`). Other pixels are allowed only for entries that were forged including
their seal.

Usage: python fuzz/gpu.py SECONDS FOLDER [SEED [JOBS]]. FOLDER/corpus has the files (fuzz/make_corpus.py), FOLDER/found
gets the cases that fail: `emulated CASES` runs them again. JOBS processes have consecutive seeds.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "native"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from jpeg_gpu_cases import FORMATS, SPOILT, Batch, Row, build_emulator, pack

BATCHES, ROWS = 6, 6  # per run of the program
MAX_PIXELS = 2_000_000  # of a picture: the emulation is slow
HEADER_BYTES = 700  # few bytes of most files, with the largest effect
NO_FRAME = (0xC4, 0xC8, 0xCC)


def mutated(corpus: list[bytes], draw: random.Random) -> bytes:
    """Return a file with some bytes changed, inserted, deleted, or copied from another."""
    data = bytearray(draw.choice(corpus))
    span = len(data) if draw.random() < 0.25 else min(len(data), HEADER_BYTES)
    for _ in range(draw.randrange(6)):
        at = draw.randrange(max(1, min(span, len(data))))
        kind = draw.randrange(6)
        if kind == 0:
            data[at : at + 1] = b"\xff"
        elif kind == 1:
            data[at : at + 1] = bytes([(data[at] if at < len(data) else 0) ^ 1 << draw.randrange(8)])
        elif kind == 2:
            del data[at : at + 1]
        elif kind == 3:
            other = draw.choice(corpus)
            begin = draw.randrange(len(other))
            data[at:at] = other[begin : begin + draw.randrange(64)]
        elif kind == 4:
            data[at : at + 2] = bytes([0xFF, 0xC0 + draw.randrange(0x20)])
        else:
            data[at : at + draw.randrange(2)] = bytes([draw.randrange(256)])
    return bytes(data[: draw.randrange(len(data) + 1)] if draw.randrange(8) == 0 else data)


def size_of(data: bytes) -> tuple[int, int]:
    """Return height and width if the header is valid; otherwise zeros."""
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            at += 1
            continue
        if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in NO_FRAME:
            return data[at + 5] << 8 | data[at + 6], data[at + 7] << 8 | data[at + 8]
        at += 2 + (data[at + 2] << 8 | data[at + 3])
    return 0, 0


def row(data: bytes, scale_log2: int, draw: random.Random) -> Row | None:
    """Return a window of a file, sometimes out of bounds; None if the file is unsuitable."""
    height, width = size_of(data)
    if not 0 < height * width <= MAX_PIXELS:
        return None
    height, width = -(-height >> scale_log2), -(-width >> scale_log2)
    high, wide = draw.randint(1, min(height, 60)), draw.randint(1, min(width, 60))
    low = -3 if draw.random() < 0.15 else 0
    return Row(data, (draw.randint(low, height - high), draw.randint(low, width - wide), high, wide))


def batch(corpus: list[bytes], draw: random.Random) -> Batch:
    """Return some files, and how they are decoded."""
    scale_log2 = draw.choice([0, 0, 0, 1, 2, 3])
    rows = [r for r in (row(mutated(corpus, draw), scale_log2, draw) for _ in range(ROWS)) if r]
    again = {"passes": 2, "index_bytes": 1 << 22, "spoil": draw.randrange(len(SPOILT)), "parts": draw.randrange(3)}
    again["piece_bytes"] = draw.choice([100, 1000, 1 << 17])
    return Batch(
        rows,
        format=draw.choice(FORMATS),
        adjust=draw.random() < 0.2,
        unstuff_threads=draw.choice([32, 64, 96]),
        entropy_threads=draw.choice([32, 64, 96]),
        pixel_threads=draw.choice([32, 64]),
        min_bits=draw.choice([32, 64, 256]),
        seed=draw.randrange(1 << 30),
        memory=draw.choice([1 << 30, 4096]),
        scale_log2=scale_log2,
        **(again if draw.random() < 0.4 else {}),
    )


def search(seconds: float, folder: Path, program: Path, seed: int) -> tuple[int, Counter[str], int]:
    """Run cases until the time is over; return the runs of the program, the outcomes of rows, and failures."""
    corpus = [file.read_bytes() for file in sorted((folder / "corpus").iterdir())]
    draw, outcomes, failures, runs = random.Random(seed), Counter[str](), 0, 0
    cases = folder / f"cases{seed}"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        cases.write_bytes(pack([batch(corpus, draw) for _ in range(BATCHES)]))
        done = subprocess.run([program, cases], capture_output=True, text=True, timeout=600)
        runs += 1
        outcomes.update(line for line in done.stdout.splitlines() if "differs" not in line)
        if done.returncode:
            failures += 1
            cases.replace(folder / "found" / f"gpu-{seed}-{runs}")
            print(f"found/gpu-{seed}-{runs}: {done.stdout[-300:]}{done.stderr[:2000]}", flush=True)
    cases.unlink(missing_ok=True)
    return runs, outcomes, failures


def main(seconds: float, folder: Path, seed: int = 1, jobs: int = 1) -> int:
    """Run ``jobs`` searches at the same time, print their sums, and return the exit status."""
    (folder / "found").mkdir(parents=True, exist_ok=True)
    program = build_emulator(folder / "emulated")
    runs, outcomes, failures = 0, Counter[str](), 0
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(partial(search, seconds, folder, program), range(seed, seed + jobs)):
            runs, failures = runs + found[0], failures + found[2]
            outcomes.update(found[1])
    print(f"gpu: {jobs} processes, programs {runs}, rows {outcomes.total():,}, failures {failures}")
    print("\n".join(f"{count:>8}  {what}" for what, count in outcomes.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:5])))
