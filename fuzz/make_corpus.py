# SPDX-License-Identifier: Apache-2.0
"""Write seed files for the fuzzer: small pictures of every kind that the decoder supports, by the tests' own writer.

Usage: python fuzz/make_corpus.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "native"))
import jpeg_progressive_writer as pw
import jpeg_writer as jw

SAMPLINGS = {
    "gray": [(1, 1)],
    "444": [(1, 1)] * 3,
    "420": [(2, 2), (1, 1), (1, 1)],
    "422": [(2, 1), (1, 1), (1, 1)],
    "440": [(1, 2), (1, 1), (1, 1)],
    "411": [(4, 1), (1, 1), (1, 1)],
    "chroma-first": [(1, 1), (2, 2), (2, 1)],
    "thirds": [(3, 1), (1, 1), (1, 1)],
    "inks": [(1, 1)] * 4,
    "inks-420": [(2, 2), (1, 1), (1, 1), (2, 2)],
}
APPS = (b"", jw.adobe(0), jw.adobe(1), jw.adobe(2), jw.exif(6), jw.segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"))


def files(rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Return names and contents."""
    for name, factors in SAMPLINGS.items():
        for restart in (0, 1, 3):
            width, height = (int(n) for n in rng.integers(1, 45, 2))
            options = {"restart": restart, "keep": float(rng.choice([0.05, 0.3, 1.0])), "app": APPS[rng.integers(6)]}
            yield f"{name}-{restart}", jw.random_file(rng, width, height, factors, **options)
            yield f"{name}-{restart}-progressive", pw.random_file(rng, width, height, factors, **options)
        scans = [[i] for i in range(len(factors))]
        yield f"{name}-scans", jw.random_file(rng, 30, 20, factors, scans=scans)
        script = pw.full_script(len(factors))
        yield f"{name}-common-script", pw.random_file(rng, 30, 20, factors, script)
        yield f"{name}-incomplete", pw.random_file(rng, 30, 20, factors, script[:-4])
    yield from odd_files(rng)


def odd_files(rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Return legal but rare layouts."""
    colour = SAMPLINGS["420"]
    yield "again", jw.random_file(rng, 40, 33, colour, scans=[[1], [0, 2], [0, 1]])
    wide = {0: rng.integers(1, 65535, (8, 8))}
    yield "wide", jw.random_file(rng, 24, 24, colour, quantisers=wide, wide=True, sof=0xC1, size=300)
    yield "crowded", jw.random_file(rng, 40, 30, [(4, 2), (4, 4), (4, 4)], scans=[[0], [1], [2]])
    yield "equal-ids", jw.random_file(rng, 20, 20, colour, ids=(0, 0, 0))
    components, layout = jw.random_components(rng, 20, 20, colour)
    yield "no-tables", jw.write(components, replace(layout, write_tables=False))
    dc, rest = (range(3), 0, 0, 0, 0), [((c,), 1, 63, 0, 13) for c in range(3)]
    script = [*rest, dc, ((0,), 1, 9, 14, 13), ((1,), 1, 9, 1, 0)]
    yield "against-the-rules", pw.random_file(rng, 30, 20, colour, script)
    flat = jw.random_file(rng, 200, 8, SAMPLINGS["gray"], keep=0.0)
    yield "flat", flat
    yield "trailing", flat + bytes(40)
    # From 4 KiB of data on, tables are built with pairs of symbols.
    yield "pairs", jw.random_file(rng, 30, 20, colour) + bytes(4096)
    yield "pairs-dense", jw.random_file(rng, 100, 64, colour, keep=1.0)
    yield "conditioning", jw.random_file(rng, 9, 9, colour, app=jw.segment(0xCC, b"\0\x10\x10\5"))
    yield "empty-segment", jw.random_file(rng, 9, 9, colour, app=b"\xff\xe3\0\0")
    yield "fill", flat.replace(b"\xff\xc4", b"\xff\xff\xff\xc4")


def main(folder: str) -> None:
    """Write all files."""
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    for name, content in files(np.random.default_rng(2024)):
        (to / f"{name}.jpg").write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
