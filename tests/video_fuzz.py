# SPDX-License-Identifier: Apache-2.0
"""Spoilt videos into ``eager.video``: each call returns frames or raises Stoker's errors, and memory is bounded.

    python -m tests.video_fuzz [--seconds 60] [--seed 1]

A file that is only cut off must not show wrong frames: what is left is compared with the whole file.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stoker import StokerError, eager
from tests.clips import make_clip

KINDS = (
    "h264", "h264_open", "h264_fragments", "h264_ts", "h264_mkv", "h264_avi", "h264_raw", "h264_vfr", "one_frame",
    "hevc_open", "vp8", "vp9", "vp9_mp4", "mpeg4", "mpeg4_avi", "mpeg2", "mjpeg", "gif", "png",
)  # fmt: skip
# Containers that do not state the sizes of packets: a decoder may not notice that the last one is shorter.
UNSIZED = ("gif", "h264_raw", "h264_ts", "mpeg2")
# Frames without times have others' numbers if one that is shown before them is missing.
UNTIMED = ("h264_avi", "mpeg4_avi")
_SLOWEST_S = 60.0  # of one file; a hang is far longer


def flipped(data: bytes, draws: random.Random) -> bytes:
    """Return the data with some changed bytes."""
    spoilt = bytearray(data)
    for _ in range(draws.choice((1, 2, 8, 64))):
        spoilt[draws.randrange(len(spoilt))] = draws.randrange(256)
    return bytes(spoilt)


def header_flipped(data: bytes, draws: random.Random) -> bytes:
    """Return the data with changed bytes near the start or the end, where containers have their tables."""
    spoilt, reach = bytearray(data), min(len(data), 2048)
    for _ in range(draws.choice((1, 2, 4))):
        at = draws.randrange(reach)
        spoilt[at if draws.random() < 0.5 else -1 - at] = draws.choice((0, 1, 0x7F, 0x80, 0xFF, draws.randrange(256)))
    return bytes(spoilt)


def moved(data: bytes, draws: random.Random) -> bytes:
    """Return the data with a part that is missing, repeated or zero."""
    a, b = sorted(draws.randrange(len(data) + 1) for _ in range(2))
    b = min(b, a + draws.choice((1, 188, 4096)))
    return data[:a] + draws.choice((b"", data[a:b] * 2, bytes(b - a))) + data[b:]


def truncated(data: bytes, draws: random.Random) -> bytes:
    """Return the first part of the data."""
    return data[: draws.randrange(len(data))]


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flipped, header_flipped, moved, truncated)


def read(source: Any, draws: random.Random) -> dict[float, Any]:
    """Open a video and read some frames by all kinds of calls. Return frames by time."""
    found: dict[float, Any] = {}
    with eager.video.open(source) as video:
        facts, count = video.metadata, len(video)
        assert count == facts.num_frames > 0 and facts.begin_stream_seconds <= facts.end_stream_seconds
        spans = video.get_frame_timestamp(slice(None))
        assert spans.shape == (count, 2) and (np.diff(spans[:, 0]) >= 0).all()
        assert all(0 <= key < count for key in video.get_key_indices())
        for _ in range(4):
            numbers = draws.choices(range(count), k=draws.randrange(1, 4))
            try:
                if draws.random() < 0.3:
                    moments = spans[numbers, 0]
                    frames = video.get_frames_played_at(moments).data
                else:
                    frames = video.get_frames_at(numbers).data
            except (StokerError, OSError):
                continue
            assert frames.dtype == np.uint8 and frames.shape[0] == len(numbers) and frames.shape[3] == 3
            found |= dict(zip(spans[numbers, 0].tolist(), frames, strict=True))
    return found


def run(folder: Path, seconds: float, seed: int, kinds: Sequence[str] = KINDS) -> Counter[str]:
    """Read spoilt files for some seconds. Return how many had which outcome.

    Raises:
        AssertionError: a frame of a file that is cut off is wrong, or a file took too long.
    """
    outcomes: Counter[str] = Counter()
    sources = {kind: make_clip(folder, kind).read_bytes() for kind in kinds}
    whole: dict[str, dict[float, Any]] = {}
    for kind, data in sources.items():
        with eager.video.open(data) as video:
            whole[kind] = dict(zip(video.get_frame_timestamp(slice(None))[:, 0].tolist(), video, strict=True))
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        draws = random.Random(f"{seed} {number}")
        number += 1
        kind, change = draws.choice(kinds), draws.choice(CHANGES)
        spoilt = change(sources[kind], draws)
        source: Any = spoilt
        if draws.random() < 0.3:
            source = folder / "spoilt"
            source.write_bytes(spoilt)
        begin = time.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of damage
                found = read(source, draws)
        except (StokerError, OSError) as error:
            outcomes[type(error).__name__] += 1
            found = {}
        else:
            outcomes["read"] += 1
        where = f"case {number - 1} of seed {seed}: {kind}, {change.__name__}"
        assert time.monotonic() - begin < _SLOWEST_S, where
        if change is truncated and kind not in (*UNSIZED, *UNTIMED):
            for at, frame in found.items():
                assert np.array_equal(frame, whole[kind].get(at)), f"{where}: wrong frame at {at:g} s"
    return outcomes


def main(argv: Sequence[str] | None = None) -> int:
    """Read spoilt files and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("kinds", nargs="*", default=KINDS)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(Path(folder), arguments.seconds, arguments.seed, arguments.kinds)
    print(", ".join(f"{name}: {count}" for name, count in outcomes.most_common()))
    return int(not outcomes["read"])


if __name__ == "__main__":
    sys.exit(main())
