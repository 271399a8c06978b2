# SPDX-License-Identifier: Apache-2.0
"""A short fuzz in every test run: mutated files of every kind, compared with Pillow.

`fuzz/run.sh` is the long one, with sanitizers.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
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


def photograph(**options: Any) -> bytes:
    """Return a file whose scan is long enough for libjpeg-turbo's fast decoder, which wants 512 bytes per block."""
    pixels = np.random.default_rng(5).normal(128, 60, (150, 200, 3)).clip(0, 255).astype(np.uint8)
    to = io.BytesIO()
    Image.fromarray(pixels).resize((400, 300)).save(to, "JPEG", quality=92, **options)
    return to.getvalue()


def with_fill(data: bytes, at: int, fill: int) -> bytes:
    """Insert 0xFF bytes and the stuffed byte 0xFF 0 at an offset that does not follow 0xFF."""
    while data[at - 1] == 0xFF:
        at += 1
    return data[:at] + b"\xff" * fill + b"\xff\0" + data[at:]


@pytest.mark.parametrize("fill", [1, 3])
def test_fill_bytes_before_a_stuffed_byte(fill):
    """A stuffed byte after fill bytes is one data byte, as in libjpeg's ordinary decoder.

    libjpeg-turbo's fast decoder takes the fill for a marker, decodes the MCU to its end with zeros, and decodes it
    again with the ordinary decoder on top of these coefficients. So this one MCU differs. The fast decoder is not used
    with restart markers, nor where the caller's buffer has few bytes left.
    """
    rng = np.random.default_rng(fill)
    plain, restarts = photograph(), photograph(restart_marker_blocks=50)
    begin = plain.index(b"\xff\xda") + 20
    for at in rng.integers(begin, len(restarts) - 40, 12):
        damaged = with_fill(restarts, int(at), fill)
        np.testing.assert_array_equal(decode(damaged)[0], lenient(damaged))
    for at in rng.integers(len(plain) - 2500, len(plain) - 40, 6):
        damaged = with_fill(plain, int(at), fill)
        np.testing.assert_array_equal(decode(damaged)[0], lenient(damaged))
    other = 0
    for at in rng.integers(begin, len(plain) - 6000, 24):
        damaged = with_fill(plain, int(at), fill)
        pixels, status = decode(damaged)
        assert status == "ok"
        np.testing.assert_array_equal(pixels, decode(with_fill(plain, int(at), 0))[0])
        differs = np.argwhere((pixels != lenient(damaged)).any(-1))
        other += len(differs) > 0
        # An MCU of 16x16 pixels, and a pixel around it, into which the upsampling of chroma spreads.
        assert not len(differs) or (np.ptp(differs, axis=0) < 18).all()
    assert other > 0, "libjpeg-turbo no longer leaves these coefficients: remove the note in docs/guides"
