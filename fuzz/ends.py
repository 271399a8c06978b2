# SPDX-License-Identifier: Apache-2.0
"""Fuzzer of the checks whether a container file is whole (`video/video_ends.py`, `video/container_ends.py`).

Usage: python fuzz/ends.py SECONDS [SEED]

Made files of every container are mutated. Laws: the checks return, or raise DataError where they say so; a path and its
contents have the same answer; a whole file is whole; one that is cut off is not.
"""

from __future__ import annotations

import io
import random
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from stoker.contract.errors import DataError
from stoker.video.container_ends import after_id3, end_of_known_segment, movie_tick, require_whole
from stoker.video.video_ends import cut_of

_SLOWEST_S = 10.0  # of one check of some kilobytes; one that loops takes for ever
_ODD = (0, 1, 0x21, 0x2C, 0x3B, 0x47, 0x7F, 0x80, 0xFF)
_LENGTHS = (0, 1, 2**31 - 1, 2**31, 2**32 - 1)


def gif() -> bytes:
    """Return an animation."""
    from PIL import Image

    first, *rest = (Image.effect_noise((40, 24 + k), 90.0).convert("RGB") for k in range(3))
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=rest, duration=40)
    return file.getvalue()


def avi() -> bytes:
    """Return two RIFF chunks, of which the first has an odd size."""
    return b"".join(
        b"RIFF" + struct.pack("<I", len(body)) + body + bytes(len(body) & 1)
        for body in (b"AVI " + bytes(range(251)), b"AVIX" + bytes(300))
    )


def stream(packet: int = 188, first: int = 0) -> bytes:
    """Return packets of a transport stream."""
    return b"".join(
        bytes(first) + b"\x47" + bytes([number]) * 187 + bytes(packet - first - 188) for number in range(20)
    )


def matroska() -> bytes:
    """Return a segment of known size, after a header, with two elements."""
    body = b"\x16\x54\xae\x6b\x84abcd" + b"\x1f\x43\xb6\x75\x40\x80" + bytes(128)
    return b"\x1a\x45\xdf\xa3\x83\x42\x86\x81" + b"\x18\x53\x80\x67" + (1 << 56 | len(body)).to_bytes(8, "big") + body


def mp4() -> bytes:
    """Return boxes, one of which has a size of 64 bits."""
    movie = b"mvhd" + bytes(12) + struct.pack(">I", 600) + bytes(80)
    boxes = [(b"ftyp", b"isom"), (b"moov", struct.pack(">I", len(movie) + 4) + movie), (b"free", bytes(33))]
    large = struct.pack(">I4sQ", 1, b"mdat", 16 + 200) + bytes(200)
    return b"".join(struct.pack(">I", 8 + len(body)) + name + body for name, body in boxes) + large


def adts() -> bytes:
    """Return a tag and frames."""
    frames = b"".join(
        b"\xff\xf1\x50" + bytes([0x80 | size >> 11, size >> 3 & 255, (size & 7) << 5 | 31, 0xFC]) + bytes(size - 7)
        for size in (90, 7, 300)
    )
    return b"ID3\x04\0\0\0\0\0\x14" + bytes(20) + frames


def asf() -> bytes:
    """Return a header with the properties of a file, and its data."""
    properties = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
    head = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + struct.pack("<Q", 30 + 104) + bytes(6)
    body = properties + struct.pack("<Q", 104) + bytes(16) + struct.pack("<Q", 400) + bytes(56)
    return (head + body).ljust(400, b"\x55")


def wavpack() -> bytes:
    """Return blocks."""
    return b"".join(b"wvpk" + struct.pack("<I", size) + bytes(size) for size in (60, 24, 100))


# Form of FFmpeg's demuxer, how the file is made, and the bytes at its end whose loss shows.
CUTS: dict[str, tuple[str, Callable[[], bytes], int]] = {
    "gif": ("gif", gif, 1),
    "avi": ("avi", avi, 2),
    "stream": ("mpegts", stream, 1),
    "timed stream": ("mpegts", lambda: stream(192, 4), 1),
    "stream with parity": ("mpegts", lambda: stream(204), 1),
    "matroska": ("matroska,webm", matroska, 1),
}
ENDS: dict[str, Callable[[], bytes]] = {"mov": mp4, "aac": adts, "matroska": matroska, "asf": asf, "wv": wavpack}


def mutated(data: bytes, draws: random.Random) -> bytes:
    """Return the data with some changes."""
    out = bytearray(data)
    for _ in range(draws.choice((1, 1, 2, 4, 16))):
        at, kind = draws.randrange(len(out) + 1), draws.randrange(6)
        if kind == 0:
            del out[at:]
        elif kind == 1:
            del out[at : at + draws.choice((1, 2, 16, 300))]
        elif kind == 2:
            out[at:at] = out[at : at + draws.choice((1, 8, 188))]
        elif kind == 3:
            form = draws.choice((">I", "<I"))
            out[at : at + 4] = struct.pack(form, draws.choice((*_LENGTHS, len(out), draws.randrange(4096))))
        else:
            out[at : at + 1] = bytes([draws.choice((*_ODD, draws.randrange(256)))])
        if not out:
            return b""
    return bytes(out)


def check_whole_files() -> None:
    """Check that made files are whole, and that every cut shows that takes enough of their end."""
    for name, (form, make, least) in CUTS.items():
        data = make()
        assert not cut_of(data, form), f"{name} is whole, got {cut_of(data, form)}"
        size = {"stream": 188, "timed stream": 192, "stream with parity": 204}.get(name, 0)
        for lost in range(least, len(data) // 2):
            is_shorter = bool(size) and lost % size == 0  # whole packets, which such a file cannot show
            assert bool(cut_of(data[:-lost], form)) != is_shorter, f"{name} without its last {lost} bytes"
    for form, make in ENDS.items():
        data = make()
        require_whole(data, form)
        try:
            require_whole(data[:-1], form)
        except DataError:
            continue
        raise AssertionError(f"{form} without its last byte is whole")


def run(seconds: float, seed: int, folder: Path) -> Counter[str]:
    """Check mutated files for some seconds. Return the numbers of outcomes.

    Raises:
        AssertionError: a law does not hold.
    """
    check_whole_files()
    counts: Counter[str] = Counter(runs=0)
    cuts = [(form, make()) for form, make, _ in CUTS.values()]
    ends = [(form, make()) for form, make in ENDS.items()]
    path, end = folder / "mutant", time.monotonic() + seconds
    while time.monotonic() < end:
        draws = random.Random(f"{seed} {counts['runs']}")
        counts["runs"] += 1
        form, whole = draws.choice(cuts)
        data, begin = mutated(whole, draws), time.monotonic()
        answer = cut_of(data, form)
        counts["cut" if answer else "whole"] += 1
        if draws.random() < 0.02:
            path.write_bytes(data)
            assert cut_of(str(path), form) == answer, f"case {counts['runs'] - 1} of seed {seed}: {form}"
            counts["files"] += 1
        form, whole = draws.choice(ends)
        data = mutated(whole, draws)
        for check in (lambda: require_whole(data, form), lambda: end_of_known_segment(data)):  # noqa: B023
            try:
                check()
            except DataError:
                counts["refused"] += 1
        assert after_id3(data) >= 0 and movie_tick(data) >= 0
        assert time.monotonic() - begin < _SLOWEST_S, f"case {counts['runs'] - 1} of seed {seed}: {form} is slow"
    return counts


def main(seconds: float, seed: int) -> int:
    """Check mutated files and print the counts."""
    with tempfile.TemporaryDirectory() as folder:
        counts = run(seconds, seed, Path(folder))
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
