# SPDX-License-Identifier: Apache-2.0
"""A short fuzz in every test run: mutated files of every kind, compared with Pillow.

`fuzz/run.sh` is the long one, with sanitizers.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from test_jpeg import decode, info, lenient

sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))
import make_corpus

CORPUS = dict(make_corpus.files(np.random.default_rng(1)))
GROUPS = 8
MARKERS = np.arange(0xC0, 0xFF)


def mutated(rng: np.random.Generator, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(2, len(out) - 2))
        kind = rng.integers(6)
        if kind == 0:
            del out[at]
        elif kind == 1:
            out.insert(at, int(rng.integers(256)))
        elif kind == 2:
            out[at : at + 2] = bytes([0xFF, int(rng.choice(MARKERS))])
        else:
            out[at] = int(rng.integers(256))
    return bytes(out)


@pytest.mark.parametrize("group", range(GROUPS))
def test_mutations_equal_pillow(group):
    """Files that both decode without a complaint about truncation have the same pixels."""
    rng = np.random.default_rng(group)
    outcome: Counter[str] = Counter()
    for name, data in list(CORPUS.items())[group::GROUPS]:
        for _ in range(12):
            damaged = mutated(rng, data)
            header = info(damaged)
            if header["support"] != "native" or header["width"] * header["height"] > 1 << 16:
                outcome["refused"] += 1
                continue
            pixels, status = decode(damaged)
            expected = lenient(damaged)
            if expected is None or expected.shape != pixels.shape or status in ("truncated", "unsupported"):
                outcome["not compared"] += 1
                continue
            gave_up = not pixels.any() and len(np.unique(expected)) == 1  # Pillow: zeros, which are white in CMYK
            if expected.any() and not gave_up:
                np.testing.assert_array_equal(pixels, expected, err_msg=f"{name}: {damaged.hex()}")
            outcome["compared"] += 1
    assert outcome["compared"] > 40
