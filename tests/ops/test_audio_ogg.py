# SPDX-License-Identifier: Apache-2.0
"""``decoders.audio`` for Ogg files: Opus by libopus beside libsndfile, the structure of files, damage."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.ops.audio import decode as decoder
from stoker.ops.audio._opus import libopus

soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")
with_libopus = pytest.mark.skipif(not libopus(), reason="there is no libopus: neither PyAV's nor the system's")
REFUSED = (ArgumentError, DataError, UnsupportedError)
BEGINS, ENDS = 2, 4


def noise(frames: int, channels: int = 1) -> Any:
    return np.random.default_rng(frames).normal(0, 0.1, (frames, channels)).astype(np.float32)


def encoded(frames: int, rate: int = 16000, channels: int = 1, subtype: str = "OPUS") -> bytes:
    memory = io.BytesIO()
    soundfile.write(memory, noise(frames, channels), rate, format="OGG", subtype=subtype)
    return memory.getvalue()


def decode(data: bytes, **arguments: Any) -> Any:
    return np.asarray(eager.decoders.audio(np.frombuffer(data, np.uint8), **arguments)[0])


def by_libsndfile(data: bytes) -> Any:
    return soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]


# ---- pages ----


def checksum(data: bytes) -> int:
    r = 0
    for byte in data:
        r ^= byte << 24
        for _ in range(8):
            r = (r << 1 ^ (0x04C11DB7 if r >> 31 else 0)) & 0xFFFFFFFF
    return r


def page(number: int, flags: int, position: int, lacing: bytes, body: bytes, stream: int = 7) -> bytes:
    head = b"OggS\0" + bytes([flags]) + position.to_bytes(8, "little", signed=True) + stream.to_bytes(4, "little")
    head += number.to_bytes(4, "little")
    tail = bytes([len(lacing)]) + lacing + body
    return head + checksum(head + bytes(4) + tail).to_bytes(4, "little") + tail


def pages_of(data: bytes) -> list[tuple[int, int, bytes, bytes]]:
    """Return flags, position, lacing and body of each page."""
    found, at = [], 0
    while at < len(data):
        count = data[at + 26]
        lacing = data[at + 27 : at + 27 + count]
        body = data[at + 27 + count :][: sum(lacing)]
        found.append((data[at + 5], int.from_bytes(data[at + 6 : at + 14], "little"), lacing, body))
        at += 27 + count + sum(lacing)
    return found


def packets_of(data: bytes) -> list[bytes]:
    found, open_part = [], b""
    for _, _, lacing, body in pages_of(data):
        at = 0
        for size in lacing:
            open_part += body[at : at + size]
            at += size
            if size < 255:
                found.append(open_part)
                open_part = b""
    return found


def muxed(packets: Sequence[bytes], end: int, segments: int = 255, begin: int = 0) -> bytes:
    """Return a file: pages of `segments` each, the last one with the position of the end."""
    pages: list[tuple[int, bytes, bytes, bool]] = []  # number of packets that end by then, lacing, body, continues
    lacing, body, continues = b"", b"", False
    for number, packet in enumerate(packets):
        sizes = [*[255] * (len(packet) // 255), len(packet) % 255]
        for i, size in enumerate(sizes):
            lacing, body = lacing + bytes([size]), body + packet[255 * i : 255 * i + size]
            whole = i + 1 == len(sizes)
            if len(lacing) == segments or (whole and (number < 2 or number + 1 == len(packets))):
                pages.append((number + whole, lacing, body, continues))
                lacing, body, continues = b"", b"", not whole
    file, before = b"", 0
    for i, (ended, lacing, body, continued) in enumerate(pages):
        last = i + 1 == len(pages)
        position = end if last else -1 if ended == before else begin + max(ended - 2, 0) * 960
        file += page(i, continued | (BEGINS if i == 0 else 0) | (ENDS if last else 0), position, lacing, body)
        before = ended
    return file


# ---- Opus ----


@with_libopus
@pytest.mark.parametrize("rate", [8000, 12000, 16000, 24000, 48000])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_libopus_decodes_what_libsndfile_does(rate: int, channels: int) -> None:
    for frames in (1, 100, rate + 77):
        data = encoded(frames, rate, channels)
        got, want = decode(data), by_libsndfile(data)
        assert got.shape == want.shape == (frames, channels)
        np.testing.assert_allclose(got, want, atol=5e-7)  # other builds of one library
        assert float(eager.decoders.audio(np.frombuffer(data, np.uint8))[1]) == rate


def test_without_libopus_libsndfile_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(9001, 24000, 2)
    native = decode(data)
    monkeypatch.setattr(decoder, "libopus", lambda: b"")
    got = decode(data, max_samples=20000)  # the program without this limit is planned already
    np.testing.assert_array_equal(got, by_libsndfile(data))
    np.testing.assert_allclose(got, native, atol=5e-7)


@with_libopus
def test_ranges_types_and_means_are_those_of_the_whole() -> None:
    data = encoded(20000, 48000, 2)
    whole = decode(data)
    np.testing.assert_array_equal(decode(data, offset=0.1, duration=0.2), whole[4800:14400])
    np.testing.assert_array_equal(decode(data, offset=0.4), whole[19200:])
    mean = whole[:, 0] * np.float32(0.5) + whole[:, 1] * np.float32(0.5)
    np.testing.assert_array_equal(decode(data, downmix=True), mean)
    most = np.rint(np.clip(whole.astype(np.float64) * 32767, -32768, 32767)).astype(np.int16)
    np.testing.assert_array_equal(decode(data, dtype="int16"), most)
    assert decode(data, sample_rate=16000.0, downmix=True).shape == (6667,)


@with_libopus
def test_a_part_after_a_preroll_decodes_only_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(48000 * 8, 48000)
    whole = decode(data)[48000 * 6 : 48000 * 7]
    part = {"offset": 6.0, "duration": 1.0}
    np.testing.assert_array_equal(decode(data, **part), whole)
    np.testing.assert_array_equal(decode(data, **part, preroll=3.0), whole)
    np.testing.assert_array_equal(decode(data, **part, preroll=9.0), whole)
    short = decode(data, **part, preroll=0.0)
    assert not np.array_equal(short, whole)
    np.testing.assert_allclose(short[24000:], whole[24000:], atol=1e-3)  # the state converges
    monkeypatch.setattr(decoder, "libopus", lambda: b"")
    np.testing.assert_allclose(decode(data, **part, max_samples=500000), whole, atol=5e-7)
    np.testing.assert_allclose(decode(data, **part, max_samples=500000, preroll=3.0), whole, atol=5e-7)


@with_libopus
def test_a_preroll_of_a_reader(tmp_path: Path) -> None:
    data = encoded(48000 * 8, 48000)
    (tmp_path / "speech.opus").write_bytes(bytes(data))
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"audio_filepath": "speech.opus", "offset": 6.0, "duration": 1.0}))

    def read(preroll: float | None) -> Any:
        @pipeline_def(batch_size=1, num_threads=1)
        def pipe() -> Any:
            return fn.readers.nemo_asr(manifest_filepaths=str(manifest), preroll=preroll)

        with pipe() as made:
            return np.asarray(made.run()[0][0])

    whole = decode(data)[48000 * 6 : 48000 * 7].reshape(-1)
    np.testing.assert_array_equal(read(None), whole)
    np.testing.assert_array_equal(read(3.0), whole)
    assert not np.array_equal(read(0.0), whole)
    with pytest.raises(ArgumentError, match="`preroll` of at least 0 seconds"):
        read(-1.0)


def test_a_preroll_is_checked() -> None:
    for wrong in (-0.1, float("nan"), float("inf")):
        with pytest.raises(REFUSED, match="`preroll` of at least 0 seconds"):
            decode(encoded(4000), preroll=wrong)


@with_libopus
@pytest.mark.parametrize("segments", [1, 2, 7, 255])
def test_packets_may_lie_on_several_pages(segments: int) -> None:
    data = encoded(48000, 48000, 2)
    packets = packets_of(data)
    assert max(map(len, packets)) > 255, "the file shows nothing"
    end = pages_of(data)[-1][1]
    np.testing.assert_array_equal(decode(muxed(packets, end, segments)), decode(data))


@with_libopus
def test_gain_skipped_samples_and_a_late_beginning() -> None:
    data = encoded(20000, 48000)
    packets, end = packets_of(data), pages_of(data)[-1][1]
    whole, head = decode(data), packets[0]
    skipped = int.from_bytes(head[10:12], "little")
    louder = head[:16] + (6 * 256).to_bytes(2, "little") + head[18:]  # 6 dB
    np.testing.assert_allclose(decode(muxed([louder, *packets[1:]], end)), whole * 10 ** (6 / 20), atol=1e-6)
    later = head[:10] + (skipped + 500).to_bytes(2, "little") + head[12:]
    np.testing.assert_array_equal(decode(muxed([later, *packets[1:]], end)), whole[500:])
    cut_out = muxed(packets, end + 96000, 2, begin=96000)  # a part of a longer stream
    np.testing.assert_array_equal(decode(cut_out), whole)
    unusual = head[:12] + (44100).to_bytes(4, "little") + head[16:]  # the rate of the recording is no rate of Opus
    np.testing.assert_array_equal(decode(muxed([unusual, *packets[1:]], end)), whole)


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (8, 16, "unknown header"),
        (9, 0, "0 channels"),
        (9, 3, "3 channels without a mapping"),
        (18, 2, "unsupported mapping family 2"),
        (18, 1, "without its mapping"),
    ],
)
def test_damaged_headers_of_opus_are_errors(at: int, value: int, text: str) -> None:
    packets = packets_of(encoded(2000))
    head = packets[0][:at] + bytes([value]) + packets[0][at + 1 :]
    with pytest.raises(DataError, match=text):
        decode(muxed([head, *packets[1:]], 2000))


def test_other_damage_of_opus_is_an_error() -> None:
    data = encoded(9000)
    packets, end = packets_of(data), pages_of(data)[-1][1]
    for broken, text in (
        (muxed([packets[0][:9], *packets[1:]], end), "unknown header"),
        (muxed([packets[0], b"what?", *packets[2:]], end), "no comments"),
        (muxed(packets[:1], end), "no comments"),
        (muxed([*packets[:2], b""], end), "no known duration"),
        (muxed([*packets[:2], b"\3"], end), "no known duration"),
        (muxed(packets, 10**9, 2), "pages say 1000000000"),
        (muxed([packets[0][:18] + b"\1\1\0\5", *packets[1:]], end), "a channel of which there is no stream"),
        (muxed([packets[0][:18] + b"\1\0\0\0", *packets[1:]], end), "a mapping of 0 streams"),
    ):
        with pytest.raises(DataError, match=text):
            decode(broken)
    assert decode(muxed(packets[:2], 0)).shape == (0, 1)


# ---- all Ogg files ----


@pytest.mark.parametrize("subtype", ["OPUS", "VORBIS"])
def test_every_prefix_of_a_file_is_an_error(subtype: str) -> None:
    data, limit = encoded(3000, subtype=subtype), time.monotonic() + 4
    cuts = np.random.default_rng(0).permutation(len(data))
    for done, cut in enumerate(cuts.tolist()):
        with pytest.raises(REFUSED):
            decode(data[:cut])
        if time.monotonic() > limit:
            assert done > 300
            break


@pytest.mark.parametrize("subtype", ["OPUS", "VORBIS"])
def test_every_changed_byte_is_an_error(subtype: str) -> None:
    data, limit = encoded(3000, subtype=subtype), time.monotonic() + 4
    for done, at in enumerate(np.random.default_rng(1).permutation(len(data)).tolist()):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        with pytest.raises(REFUSED):
            decode(bytes(changed))
        if time.monotonic() > limit:
            assert done > 300
            break


@pytest.mark.parametrize("subtype", ["OPUS", "VORBIS"])
def test_the_structure_of_files_is_checked(subtype: str) -> None:
    data = encoded(60000, 48000, subtype=subtype)
    parts = pages_of(data)
    whole = [page(i, *part) for i, part in enumerate(parts)]
    assert decode(b"".join(whole)).shape == (60000, 1)
    assert decode(b"".join(whole) + b"\0\0\0").shape == (60000, 1)  # padding
    flags, *rest = parts[-1]
    endless = [*whole[:-1], page(len(whole) - 1, flags & ~ENDS, *rest)]
    for broken, text in (
        (endless, "a page that ends it, got none: the file is cut off"),
        (whole[:-1], "a page that ends it, got none: the file is cut off"),
        (whole[:1] + whole[2:], "missing pages"),
        (whole[1:], "does not begin a stream"),
        (whole * 2, "a further stream"),
        ([whole[0], page(1, *parts[1], stream=8), *whole[1:]], "a page of a second stream"),
        ([whole[0], page(1, BEGINS, *parts[1][1:]), *whole[2:]], "a second beginning"),
        ([whole[0], page(1, 1, *parts[1][1:]), *whole[2:]], "missing part of a packet"),
    ):
        with pytest.raises(DataError, match=text):
            decode(b"".join(broken))


@with_libopus
def test_damaged_packets_never_end_the_process() -> None:
    """Checksums are right, so that the packets reach the decoder."""
    data = encoded(6000, 48000, 2)
    packets, end = packets_of(data), pages_of(data)[-1][1]
    rng, limit, done, failed = np.random.default_rng(3), time.monotonic() + 3, 0, 0
    while done < 300 and time.monotonic() < limit:
        changed = [bytearray(packet) for packet in packets]
        for _ in range(rng.integers(1, 4)):
            one = changed[rng.integers(2, len(changed))]
            one[0 if rng.random() < 0.5 else rng.integers(len(one))] = rng.integers(256)
        done += 1
        try:
            assert decode(muxed([bytes(packet) for packet in changed], end)).dtype == np.float32
        except REFUSED:
            failed += 1
    assert done > 20
    assert 0 < failed < done
