# SPDX-License-Identifier: Apache-2.0
"""``decoders.audio`` for damaged MP3 files: a clear error, or the documented result."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import DataError, StokerError
from stoker.native import _native
from stoker.ops.audio._mp3 import checked

soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")

_KBITS = (
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
)
_RATES = {"00": (11025, 12000, 8000), "10": (22050, 24000, 16000), "11": (44100, 48000, 32000)}


def encoded(rate: int = 16000, channels: int = 1, seconds: float = 1.0) -> bytes:
    """Return a file that states its length."""
    t = np.arange(int(seconds * rate))
    noise = np.random.default_rng(rate).normal(0, 0.02, (len(t), channels))
    memory = io.BytesIO()
    soundfile.write(memory, (0.3 * np.sin(t * 0.05)[:, None] + noise).astype(np.float32), rate, format="MP3")
    return memory.getvalue()


def decode(data: bytes, **arguments: Any) -> Any:
    return np.asarray(eager.decoders.audio(np.frombuffer(data, np.uint8), **arguments)[0])


# ---- plain twin of the native check ----


class Frame(NamedTuple):
    rate: int
    is_mono: bool
    size: int
    is_possible: bool
    checksum_matches: bool | None


def checksum(bits: str) -> int:
    """Return the CRC of MPEG audio, bit by bit."""
    r = 0xFFFF
    for bit in bits:
        high, r = r >> 15, r << 1 & 0xFFFF
        r ^= 0x8005 if high != int(bit) else 0
    return r


def bits_of(data: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in data)


def parse(data: bytes, at: int) -> Frame | None:
    """Return the frame at a byte, read as text of bits."""
    head = bits_of(data[at : at + 4])
    if len(head) < 32 or head[:11] != "1" * 11 or head[11:13] == "01" or head[13:15] != "01":
        return None
    kbits, rate_index = int(head[16:20], 2), int(head[20:22], 2)
    if kbits in (0, 15) or rate_index == 3:
        return None
    is_1, is_mono, is_protected = head[11:13] == "11", head[24:26] == "11", head[15] == "0"
    rate = _RATES[head[11:13]][rate_index]
    size = (1152 if is_1 else 576) // 8 * 1000 * _KBITS[is_1][kbits] // rate + int(head[22])
    side_bytes = {(True, True): 17, (True, False): 32, (False, True): 9, (False, False): 17}[is_1, is_mono]
    begin = at + 4 + 2 * is_protected
    side = bits_of(data[begin : begin + side_bytes])
    if len(side) < 8 * side_bytes:
        return Frame(rate, is_mono, size, False, None)
    channels = 1 if is_mono else 2
    matches = checksum(head[16:] + side) == int.from_bytes(data[at + 4 : at + 6], "big") if is_protected else None
    main = int(side[: 9 if is_1 else 8], 2) + size - (begin - at) - side_bytes
    parts = side[9 + (5 if is_mono else 3) + 4 * channels :] if is_1 else side[8 + channels :]
    is_possible, used = size >= begin - at + side_bytes, 0
    width, scale = (59, 4) if is_1 else (63, 9)
    for i in range(channels * (2 if is_1 else 1)):
        part = parts[i * width : (i + 1) * width]
        used += int(part[:12], 2)
        pairs, flags = int(part[12:21], 2), part[29 + scale :]
        is_short = flags[0] == "1"
        table = int(flags[4:9] if is_short else flags[1:6], 2)
        is_possible &= pairs <= 288 and not (is_short and flags[1:3] == "00") and not (pairs and table in (4, 14))
    return Frame(rate, is_mono, size, is_possible and used <= 8 * main, matches)


def walk(data: bytes, start: int, most: int) -> tuple[int, int, str]:
    """Return what the native check does, with the first words of its error."""
    at, count, first, bad, good = start, 0, None, None, 0
    while count != most and (frame := parse(data, at)) is not None:
        first = first or frame
        if (frame.rate, frame.is_mono) != (first.rate, first.is_mono):
            break
        if at + frame.size > len(data):
            return count, at, f"expected {frame.size} bytes of a frame at byte {at}, got {len(data) - at}"
        if not frame.is_possible:
            return count, at, f"expected possible side information of the frame at byte {at}"
        if frame.checksum_matches is not None:
            good += frame.checksum_matches
            bad = at if bad is None and not frame.checksum_matches else bad
        at, count = at + frame.size, count + 1
    return count, at, f"expected the checksum of the frame at byte {bad}" if good and bad is not None else ""


def offsets(data: bytes) -> list[int]:
    """Return the bytes at which frames begin; the first one states the length."""
    found, at = [], 0
    while (frame := parse(data, at)) is not None:
        found.append(at)
        at += frame.size
    return found


def with_checksums(data: bytes) -> bytes:
    """Return silent frames of the kind of a file's first frame, each with the checksum of its header."""
    frame = parse(data, 0)
    assert frame is not None
    header = bytes((data[0], data[1] & 0xFE, data[2], data[3]))
    body = frame.size - 6
    side = {True: 17, False: 32}[frame.is_mono] if data[1] >> 3 & 3 == 3 else {True: 9, False: 17}[frame.is_mono]
    silent = header + checksum(bits_of(header[2:]) + "00000000" * side).to_bytes(2, "big") + bytes(body)
    return silent * 12


@pytest.mark.parametrize(("rate", "channels"), [(44100, 2), (44100, 1), (16000, 1), (22050, 2), (8000, 1)])
def test_the_native_check_is_that_of_the_plain_one(rate: int, channels: int) -> None:
    rng, whole = np.random.default_rng(rate + channels), encoded(rate, channels, 0.2)
    second = offsets(whole)[1]
    spoilt = whole[: second + 4] + b"\xff" * 32 + whole[second + 36 :]
    files = [whole, with_checksums(whole), whole * 2, whole[100:], spoilt]
    for _ in range(150):
        changed = bytearray(files[rng.integers(2)])
        for _ in range(rng.integers(1, 4)):
            near = int(rng.choice(offsets(bytes(whole)))) + int(rng.integers(0, 40))
            changed[min(near, len(changed) - 1)] ^= 1 << int(rng.integers(8))
        files.append(bytes(changed[: len(changed) if rng.random() < 0.7 else rng.integers(len(changed))]))
    outcomes = set()
    for data in files:
        for start, most in ((0, -1), (0, 3), (len(data), -1)):
            count, end, error = _native.mpeg_frames(data, start, most)
            wanted = walk(data, start, most)
            assert (count, end) == wanted[:2]
            assert error.startswith(wanted[2])
            assert bool(error) == bool(wanted[2])
            outcomes.add(re.sub(r"\d+", "", error))
    assert len(outcomes) == 4


# ---- damage ----


def _cut(data: bytes, at: list[int]) -> bytes:
    return data[: at[len(at) // 2]]


def _flip(offset: int, bit: int) -> Callable[[bytes, list[int]], bytes]:
    def change(data: bytes, at: list[int]) -> bytes:
        changed = bytearray(data)
        changed[at[len(at) // 2] + offset] ^= bit
        return bytes(changed)

    return change


def _insert(garbage: bytes) -> Callable[[bytes, list[int]], bytes]:
    return lambda data, at: data[: at[len(at) // 2]] + garbage + data[at[len(at) // 2] :]


def _zeros(frames: int) -> Callable[[bytes, list[int]], bytes]:
    def change(data: bytes, at: list[int]) -> bytes:
        begin, end = at[len(at) // 2], at[len(at) // 2 + frames]
        return data[:begin] + bytes(end - begin) + data[end:]

    return change


_IN_BOTH: dict[str, tuple[Callable[[bytes, list[int]], bytes], str]] = {
    "cut off in a frame": (lambda data, at: _cut(data, at) + data[at[len(at) // 2] :][:30], "the file is cut off"),
    "cut off before the last byte": (lambda data, at: data[:-1], "the file is cut off"),
    "a byte between frames": (_insert(b"\0"), "expected a frame"),
    "text between frames": (_insert(b"garbage!" * 10), "expected a frame"),
    "noise between frames": (_insert(np.random.default_rng(0).bytes(5000)), "expected a frame"),
    "another file between frames": (_insert(b"RIFF" + bytes(100)), "expected a frame"),
    "a frame of zeros": (_zeros(1), "expected a frame"),
    "three frames of zeros": (_zeros(3), "expected a frame"),
    "sync bits": (_flip(0, 0x80), "expected a frame"),
    "another layer": (_flip(1, 0x04), "expected a frame"),
    "another rate": (_flip(2, 0x04), "expected a frame"),
    "another bit rate": (_flip(2, 0x10), "expected"),
    "another number of channels": (_flip(3, 0x40), "expected a frame"),
    "too many large values": (_flip(6, 0x55), "possible side information"),
}
_IN_STATED: dict[str, tuple[Callable[[bytes, list[int]], bytes], str]] = {
    "cut off between frames": (_cut, "frames of MPEG audio, as the file states, got [0-9]+: the file is cut off"),
    "a frame is missing": (lambda data, at: data[: at[5]] + data[at[6] :], "as the file states, got [0-9]+: the file"),
    "a frame twice": (lambda data, at: data[: at[6]] + data[at[5] :], "as the file states, got more, one at byte"),
    "two files in one": (lambda data, at: data * 2, "as the file states, got more, one at byte"),
}


@pytest.mark.parametrize("is_stated", [True, False], ids=["stated", "bare"])
@pytest.mark.parametrize("damage", _IN_BOTH)
def test_damage_is_an_error(damage: str, is_stated: bool) -> None:
    whole = encoded()
    data = whole if is_stated else whole[offsets(whole)[1] :]
    change, text = _IN_BOTH[damage]
    assert len(decode(data)) >= 16000
    damaged = change(data, offsets(data))
    for part in ({}, {"offset": 0.1, "duration": 0.2}):  # the damage is later than the part
        with pytest.raises(DataError, match=text):
            decode(damaged, **part)


@pytest.mark.parametrize("damage", _IN_STATED)
def test_another_number_of_frames_than_stated_is_an_error(damage: str) -> None:
    whole = encoded()
    change, text = _IN_STATED[damage]
    with pytest.raises(DataError, match=text):
        decode(change(whole, offsets(whole)))


def test_a_length_that_is_not_stated_is_that_of_the_frames() -> None:
    """A file without a stated length, cut off between frames, is a shorter file."""
    whole = encoded()
    at = offsets(whole)
    bare = whole[at[1] :]
    samples = decode(bare)
    assert len(samples) == 576 * (len(at) - 1)
    part = decode(bare[: at[20] - at[1]])
    assert len(part) == 576 * 19
    np.testing.assert_allclose(part, samples[: len(part)], atol=1e-6)
    flags = bytearray(whole)
    tag = whole.index(b"Xing")
    flags[tag + 7] &= 0xFE  # the first frame states other facts, and no length
    np.testing.assert_array_equal(decode(bytes(flags)), samples)


def test_bytes_after_the_stated_frames_are_left_alone() -> None:
    whole = encoded()
    samples = decode(whole)
    for after in (b"TAG" + bytes(125), bytes(1000), b"some text of another program"):
        np.testing.assert_array_equal(decode(whole + after), samples)
    with pytest.raises(DataError, match="expected a frame of MPEG audio"):
        decode(whole[offsets(whole)[1] :] + b"some text of another program")


def test_damaged_samples_are_noise_in_few_frames_or_an_error_by_checksum() -> None:
    """The documented result: without checksums nothing in a file says that its numbers have changed."""
    whole = encoded()
    at = offsets(whole)
    changed = bytearray(whole)
    changed[at[15] + 60] ^= 0x55
    samples, damaged = decode(whole), decode(bytes(changed))
    differ = np.flatnonzero(np.abs(samples - damaged).reshape(len(samples), -1).max(1) > 1e-5)
    assert samples.shape == damaged.shape
    assert 0 < differ[-1] - differ[0] < 4 * 576
    silent = with_checksums(whole)
    assert not decode(silent).any()
    broken = bytearray(silent)
    frame = len(silent) // 12
    broken[5 * frame + 8] ^= 2
    with pytest.raises(DataError, match=f"checksum of the frame at byte {5 * frame} to match"):
        decode(bytes(broken))
    for i in range(12):  # an encoder that writes other checksums throughout
        silent = silent[: i * frame + 4] + b"\1\2" + silent[i * frame + 6 :]
    assert not decode(silent).any()


@pytest.mark.parametrize("is_stated", [True, False], ids=["stated", "bare"])
def test_every_prefix_is_an_error_or_a_shorter_file(is_stated: bool) -> None:
    whole = encoded(seconds=0.1)
    data = whole if is_stated else whole[offsets(whole)[1] :]
    at = offsets(data)
    for cut in range(len(data)):
        if not is_stated and cut in at[1:]:
            assert len(checked(data[:cut])) > cut
        elif cut in (0, 1, 2, 3):
            with pytest.raises(StokerError):
                decode(data[:cut])
        else:
            with pytest.raises(DataError, match=r"the file is cut off|expected a frame"):
                checked(data[:cut])


def test_a_damaged_file_is_an_error_of_its_row() -> None:
    whole = encoded()
    damaged = _IN_BOTH["text between frames"][0](whole, offsets(whole))
    rows = [np.frombuffer(x, np.uint8) for x in (whole, damaged, whole)]

    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def decoding() -> Any:
        return tuple(fn.decoders.audio(fn.external_source(source=lambda: rows)))

    with decoding() as pipe, pytest.raises(DataError, match=r"expected a frame of MPEG audio.*row 1"):
        pipe.run()


def open_files_in_memory() -> int:
    """Return the number of open descriptors of decoders' files, on systems that list them."""
    found = 0
    for link in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):  # another thread has closed it
            found += "stoker-audio" in os.readlink(link)
    return found


def test_without_files_in_memory_the_samples_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = encoded()
    samples = decode(whole)
    with pytest.raises(DataError):
        decode(b"no file of sounds, but long enough to be one")
    assert open_files_in_memory() == 0
    monkeypatch.setattr("stoker.ops.audio._soundfile._file_in_memory", lambda content: None)
    np.testing.assert_array_equal(decode(whole), samples)


def test_a_system_that_refuses_files_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> int:
        raise OSError(name)

    samples = decode(encoded())
    monkeypatch.setattr("os.memfd_create", refuse, raising=False)
    np.testing.assert_array_equal(decode(encoded()), samples)
