# SPDX-License-Identifier: Apache-2.0
"""Reports of damage about which libjpeg only warns: kind, count, and offset of the first."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from stoker.native._native.jpeg import has_unknown_marker, jpeg_check, jpeg_decode

KINDS = ("wrong_codes", "early_ends", "wrong_restarts", "extra_bytes")
PIXELS = np.kron(np.random.default_rng(3).integers(0, 256, (21, 17, 3), np.uint8), np.ones((5, 5, 1), np.uint8))


def encoded(**options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(PIXELS).save(out, "JPEG", quality=92, **options)
    return out.getvalue()


PLAIN, RESTARTS, PROGRESSIVE = encoded(), encoded(restart_marker_rows=1), encoded(progressive=True)


def scan_of(data: bytes) -> int:
    """Return the offset of the first scan's coded data."""
    at = data.index(b"\xff\xda")
    return at + 2 + int.from_bytes(data[at + 2 : at + 4])


def check(data: bytes, limit: int = 1 << 30) -> tuple[str, dict[str, int], int | None]:
    found = jpeg_check(data, limit)
    return found["status"], {k: found[k] for k in KINDS if found[k]}, found["offset"]


@pytest.mark.parametrize("data", [PLAIN, RESTARTS, PROGRESSIVE, encoded(optimize=True), encoded(subsampling=0)])
def test_good_files_have_no_findings(data: bytes) -> None:
    assert check(data) == ("ok", {}, None)
    assert check(data + b"bytes after the end are ignored") == ("ok", {}, None)


def test_photographs_are_good(jpegs: object) -> None:
    from tests.run.pipelines import files_of

    for file in files_of(jpegs):  # type: ignore[arg-type]
        with open(file, "rb") as opened:
            assert check(opened.read()) == ("ok", {}, None), file


@pytest.mark.parametrize("extra", [1, 2, 7, 100])
@pytest.mark.parametrize("data", [PLAIN, PROGRESSIVE])
def test_bytes_before_the_marker(extra: int, data: bytes) -> None:
    end = len(data) - 2
    assert check(data[:end] + b"\x5a" * extra + data[end:]) == ("ok", {"extra_bytes": extra}, end)


def test_bytes_before_a_restart_marker_and_stuffed_ones() -> None:
    marker = RESTARTS.index(b"\xff\xd1")
    damaged = RESTARTS[:marker] + b"\xff\x00\x11" + RESTARTS[marker:]
    assert check(damaged) == ("ok", {"extra_bytes": 2}, marker)


def test_bytes_between_the_headers_segments() -> None:
    table = PLAIN.index(b"\xff\xdb")
    assert check(PLAIN[:table] + b"abc" + PLAIN[table:]) == ("ok", {"extra_bytes": 3}, table)
    assert check(PLAIN[:table] + b"\xff\xff" + PLAIN[table:]) == ("ok", {}, None), "fill bytes are allowed"


def test_data_that_end_early() -> None:
    cut = (scan_of(PLAIN) + len(PLAIN)) // 2
    assert check(PLAIN[:cut] + b"\xff\xd9") == ("corrupt", {"early_ends": 1}, cut)
    first, second = (RESTARTS.index(b"\xff" + bytes([m])) for m in (0xD0, 0xD1))
    damaged = RESTARTS[: first + 12] + RESTARTS[second:]
    assert check(damaged) == ("corrupt", {"early_ends": 1}, first + 12)


def test_restart_markers_that_are_lost_or_out_of_turn() -> None:
    at = RESTARTS.index(b"\xff\xd2")
    status, kinds, offset = check(RESTARTS[:at] + RESTARTS[at + 2 :])
    assert status == "corrupt" and kinds["wrong_restarts"] == 1 and offset is not None and offset <= len(RESTARTS)
    assert kinds.get("extra_bytes") or kinds.get("wrong_codes") or kinds.get("early_ends")
    status, kinds, offset = check(RESTARTS[: at + 1] + b"\xd3" + RESTARTS[at + 2 :])
    assert status == "corrupt" and kinds["wrong_restarts"] >= 1 and offset == at


def test_bits_that_are_no_code() -> None:
    # All ones are never a code; 0xFF must be stuffed.
    begin = scan_of(PLAIN) + 40
    damaged = PLAIN[:begin] + b"\xff\x00" * 4 + PLAIN[begin + 8 :]
    _, kinds, offset = check(damaged)
    assert kinds["wrong_codes"] >= 1
    assert offset is not None and begin - 8 <= offset <= begin + 8


def test_the_end_of_the_file_is_where_it_is_damaged() -> None:
    for data in (PLAIN, PROGRESSIVE, RESTARTS):
        cut = data[: len(data) * 2 // 3]
        status, _, offset = check(cut)
        assert status == "truncated" and offset is not None and offset <= len(cut)
    assert check(PLAIN[: len(PLAIN) // 2])[2] == len(PLAIN) // 2


def test_headers() -> None:
    quantiser = PLAIN.index(b"\xff\xdb")
    damaged = bytearray(PLAIN)
    damaged[quantiser + 4] = 9  # no table has this number
    assert check(bytes(damaged)) == ("unsupported", {}, quantiser)
    assert check(PLAIN[:200]) == ("unsupported", {}, 200)
    assert check(b"hello") == ("unsupported", {}, None)
    assert check(PLAIN, PIXELS.shape[0] * PIXELS.shape[1] - 1) == ("unsupported", {}, None), "it is only parsed"


def test_random_damage() -> None:
    """The status is the decoder's, and every report has an offset."""
    rng = np.random.default_rng(5)
    silent = 0
    for n in range(300):
        data = bytearray((PLAIN, RESTARTS, PROGRESSIVE)[n % 3])
        at = int(rng.integers(scan_of(bytes(data)), len(data) - 2))
        data[at] ^= 1 << int(rng.integers(0, 8))
        status, kinds, offset = check(bytes(data))
        assert status == jpeg_decode(bytes(data))[1]
        assert status in ("ok", "corrupt", "truncated", "unsupported")
        assert (offset is not None and offset <= len(data)) or not (kinds or status == "truncated")
        if n % 3 < 2:  # with one scan
            assert (offset is None) == (status == "ok" and not kinds)
        silent += not kinds
    assert silent < 240, "single bits that are wrong often leave a trace"


def warned_of(data: bytes) -> bool:
    """Return whether libjpeg-turbo warns."""
    try:
        simplejpeg.decode_jpeg(data, strict=True)
    except ValueError:
        return True
    return False


def test_the_check_agrees_with_libjpeg() -> None:
    """Exceptions: libjpeg's fast loop reports neither wrong codes nor bytes that its bit buffer has already taken."""
    rng = np.random.default_rng(6)
    found, missed = 0, 0
    for n in range(900):
        data = bytearray((PLAIN, RESTARTS, PROGRESSIVE)[n % 3])
        at, count = int(rng.integers(scan_of(bytes(data)), len(data) - 2)), int(rng.integers(1, 20))
        if n % 2:
            del data[at : at + count]
        else:
            data[at:at] = rng.integers(0, 256, count, np.uint8).tobytes()
        status, kinds, _ = check(bytes(data))
        if warned_of(bytes(data)):
            found += 1
            missed += status == "ok" and not kinds
        else:
            assert set(kinds) <= {"wrong_codes", "extra_bytes"} and status in ("ok", "unsupported")
            assert kinds.get("extra_bytes", 0) <= 8
    assert found > 500
    assert missed <= found // 100
    assert not warned_of(PLAIN) and warned_of(PLAIN[:-2] + b"\x5a" * 40 + PLAIN[-2:])


def test_its_kinds_of_damage_are_those_of_the_command() -> None:
    from stoker.inspection.image_check import _WARNINGS

    assert tuple(_WARNINGS) == KINDS
    assert all(re.fullmatch(r"[a-z ]+", text) for text in _WARNINGS.values())


@pytest.mark.parametrize("data", [PLAIN, RESTARTS, PROGRESSIVE])
def test_unknown_markers(data: bytes) -> None:
    assert not has_unknown_marker(data)
    at = scan_of(data) + 20
    assert has_unknown_marker(data[:at] + b"\xff\xae" + data[at:])
    assert not has_unknown_marker(data[:at] + b"\xff\x00\xff\xd0" + data[at:]), "stuffed bytes and restarts are known"
    assert not has_unknown_marker(data + b"\xff\xae"), "after the end"
    comment = b"\xff\xfe\x00\x04\xff\xae"
    assert not has_unknown_marker(data[:2] + comment + data[2:]), "within a segment"
    for size in range(0, len(data), 97):
        assert not has_unknown_marker(data[:size])
