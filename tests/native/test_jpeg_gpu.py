# SPDX-License-Identifier: Apache-2.0
"""The GPU JPEG decoder without a GPU.

Its kernels run on emulated threads in random order, under sanitizers. They must produce the pixels of the CPU decoder,
or leave the row to it.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jpeg_writer as jw
import numpy as np
import pytest
from jpeg_gpu_cases import ELEMENTS, FORMATS, SPOILT, Batch, Row, build_emulator, pack
from PIL import Image
from test_jpeg import FACTORS, RESTARTS, SIZES, beyond_16_bits, encode, picture, scan_start

from tests.complete import sample

LEFT = {"truncated": "left: 1", "filled": "left: 2", "restart": "left: 4", "slow": "left: 8"}


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program that runs cases, once for all tests."""
    return build_emulator(tmp_path_factory.mktemp("jpeg_gpu"))


@pytest.fixture(params=[0, 1000], ids=["a block decodes a row", "several blocks write a row"])
def run(request, emulator: Path, tmp_path: Path):
    """Run batches, check that every row is correct, and return a line per row."""

    def run(*batches: Batch) -> list[str]:
        cases = tmp_path / "cases"
        cases.write_bytes(pack([replace(b, spread_rows=request.param) for b in batches]))
        done = subprocess.run([emulator, cases], capture_output=True, text=True, timeout=300)
        lines = done.stdout.splitlines()
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        assert len(lines) == sum(len(b.rows) for b in batches)
        return lines

    return run


def all_equal(lines: list[str]) -> bool:
    return set(lines) == {"equal"}


def windows(data: bytes, size: tuple[int, int], rng: np.random.Generator, count: int) -> list[Row]:
    width, height = size
    rows = [Row(data)]
    for _ in range(count):
        y0, x0 = int(rng.integers(height)), int(rng.integers(width))
        rows.append(Row(data, (y0, x0, int(rng.integers(1, height - y0 + 1)), int(rng.integers(1, width - x0 + 1)))))
    return rows


def test_sizes_and_samplings(run):
    rng = np.random.default_rng(20)
    rows = []
    for size in SIZES:
        for subsampling in (0, 1, 2):
            data = encode(picture(rng, *size), subsampling=subsampling, quality=int(rng.choice([5, 50, 95])))
            rows += windows(data, size, rng, 2)
        rows += windows(encode(picture(rng, *size, 1)), size, rng, 1)
    assert all_equal(run(Batch(rows)))


@pytest.mark.parametrize("format", FORMATS)
def test_formats(run, format):
    rng = np.random.default_rng(21)
    rows = []
    for subsampling in (0, 1, 2):
        rows += windows(encode(picture(rng, 61, 43), subsampling=subsampling), (61, 43), rng, 2)
    rows += windows(encode(picture(rng, 61, 43, 1)), (61, 43), rng, 1)
    for ids, app in [((82, 71, 66), b""), ((1, 2, 3), jw.adobe(0)), ((1, 2, 3), jw.adobe(1)), ((5, 6, 7), b"")]:
        rows += windows(jw.random_file(rng, 40, 40, FACTORS[-2], ids=ids, app=app), (40, 40), rng, 1)
    assert all_equal(run(Batch(rows, format=format)))


@pytest.mark.parametrize(("element", "format"), sample([*itertools.product(ELEMENTS[1:], FORMATS)], 5))
def test_elements(run, element, format):
    """Also with an orientation, and with rows that do not begin at a multiple of four elements."""
    rng = np.random.default_rng(40)
    rows = []
    for subsampling in (0, 1, 2):
        for size in ((61, 43), (14, 9), (15, 6), (3, 2)):
            rows += windows(encode(picture(rng, *size), subsampling=subsampling), size, rng, 2)
    rows += windows(encode(picture(rng, 61, 43, 1)), (61, 43), rng, 1)
    rows += windows(jw.random_file(rng, 40, 40, FACTORS[-2], ids=(82, 71, 66)), (40, 40), rng, 1)
    rows += [Row(jw.random_file(rng, 30, 21, [(2, 1), (1, 1), (1, 1)], app=jw.exif(value))) for value in (3, 6)]
    batch = Batch(rows, format=format, element=element, adjust=True)
    smaller = replace(batch, rows=[Row(row.data) for row in rows], scale_log2=1)
    assert all_equal(run(batch, replace(batch, seed=2), smaller))


def test_layouts(run):
    rng = np.random.default_rng(22)
    rows = []
    for factors in FACTORS:
        for size in ((33, 21), (5, 3), (70, 45)):
            data = jw.random_file(rng, *size, factors)
            rows += windows(data, size, rng, 1)
    assert all_equal(run(Batch(rows)))


def test_wide_quantisers_and_overflow(run):
    rng = np.random.default_rng(23)
    rows = []
    for value in (255, 4000, 65535):
        for factors in (FACTORS[-1], [(2, 2), (1, 1), (1, 1)]):
            q = {0: np.full((8, 8), value)}
            rows.append(Row(jw.random_file(rng, 48, 40, factors, quantisers=q, wide=True, size=400)))
    rows.append(Row(jw.random_file(rng, 48, 40, FACTORS[-1], keep=1.0, size=2000)))  # no zero, codes of 16 bits
    rows.append(Row(jw.random_file(rng, 48, 40, FACTORS[-1], keep=0.02, size=4)))  # almost only zeros
    assert all_equal(run(Batch(rows)))


@pytest.mark.parametrize("scale_log2", [0, 1, 2, 3])
def test_overflow_at_smaller_scales(run, scale_log2):
    rng = np.random.default_rng(35)
    rows = []
    for factors in ([(1, 1)] * 3, [(2, 2), (1, 1), (1, 1)]):
        for idle_runs in (False, True):
            rows += [Row(beyond_16_bits(rng, factors, idle_runs=idle_runs)) for _ in range(3)]
    assert all_equal(run(Batch(rows, scale_log2=scale_log2)))


def with_restarts(rng, height, width):
    """Return windows of images with restart markers."""
    rows = []
    for restart in RESTARTS:
        for subsampling in (0, 2):
            data = encode(picture(rng, height, width), subsampling=subsampling, **restart)
            rows += windows(data, (height, width), rng, 2)
    return rows


def test_restart_intervals(run):
    rng = np.random.default_rng(24)
    rows = with_restarts(rng, 130, 70)
    for interval in (1, 7, 8, 30, 1000):  # 30 MCUs: the last two are almost empty
        rows += windows(jw.random_file(rng, 41, 37, FACTORS[-1], restart=interval), (41, 37), rng, 1)
    batch = Batch(rows)
    assert all_equal(run(batch, replace(batch, entropy_threads=32, min_bits=32, seed=5)))


def test_orientation(run):
    rng = np.random.default_rng(25)
    rows = []
    for value in range(10):
        data = jw.random_file(rng, 30, 21, [(2, 1), (1, 1), (1, 1)], app=jw.exif(value))
        rows += [Row(data), Row(data, (3, 2, 11, 17))]
    upright = run(Batch(rows, adjust=True))
    assert all_equal(upright + run(Batch(rows), Batch(rows, adjust=True, format="GRAY")))


@pytest.mark.parametrize("scale_log2", [1, 2, 3])
def test_smaller_scales(run, scale_log2):
    """Also for components with larger blocks than others, or with blocks outside the image."""
    rng = np.random.default_rng(32)
    rows = []
    for size in ((1, 1), (9, 17), (64, 48), (75, 50)):
        shown = tuple(-(-n >> scale_log2) for n in size)
        for factors in FACTORS:
            data = jw.random_file(rng, *size, factors, keep=float(rng.choice([0, 0.05, 0.5])))
            rows += windows(data, shown, rng, 1)
        for subsampling in (0, 1, 2):
            rows += windows(encode(picture(rng, *size), subsampling=subsampling), shown, rng, 1)
    overflow = {0: np.full((8, 8), 65535)}
    rows.append(Row(jw.random_file(rng, 48, 40, FACTORS[-1], quantisers=overflow, wide=True, size=400)))
    rows.append(Row(jw.random_file(rng, 48, 40, FACTORS[-1], quantisers=overflow, wide=True, size=400, keep=0)))
    assert all_equal(run(Batch(rows, scale_log2=scale_log2)))
    turned = [Row(jw.random_file(rng, 30, 21, [(2, 2), (1, 1), (1, 1)], app=jw.exif(v))) for v in range(1, 9)]
    assert all_equal(run(Batch(turned, scale_log2=scale_log2, adjust=True, format="YCbCr")))


@pytest.mark.parametrize("scale_log2", [0, 1, 2, 3])
def test_several_scans(run, scale_log2):
    """The host decodes coefficients, only for the blocks of the window."""
    rng = np.random.default_rng(33)
    rows = []
    for size in ((1, 1), (70, 45), (33, 90)):
        shown = tuple(-(-n >> scale_log2) for n in size)
        for options in ({"subsampling": 0}, {"subsampling": 2}, {"subsampling": 1, "restart_marker_blocks": 2}):
            rows += windows(encode(picture(rng, *size), progressive=True, **options), shown, rng, 2)
        rows += windows(encode(picture(rng, *size, 1), progressive=True), shown, rng, 1)
        for scans in ([(0,), (1,), (2,)], [(2,), (0, 1)]):
            data = jw.random_file(rng, *size, [(2, 2), (1, 1), (1, 1)], scans=scans)
            rows += windows(data, shown, rng, 1)
    rows += windows(encode(picture(rng, 64, 48)), tuple(-(-n >> scale_log2) for n in (64, 48)), rng, 1)
    wide = {0: np.full((8, 8), 65535)}
    rows.append(Row(jw.random_file(rng, 48, 40, FACTORS[-1], quantisers=wide, wide=True, scans=[(0,), (1,), (2,)])))
    batch = Batch(rows, scale_log2=scale_log2)
    gray = Batch([*rows[:3], rows[-2]], format="GRAY", memory=1 << 12, scale_log2=scale_log2)
    only = Batch(rows[:1], scale_log2=scale_log2)  # no work for the entropy decoder
    assert all_equal(run(batch, gray, only))


def indexed(rows: list[Row], **options) -> Batch:
    return Batch(rows, passes=2, index_bytes=1 << 20, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"min_bits": 32, "entropy_threads": 96, "seed": 4}, {"scale_log2": 1}, {"piece_bytes": 900}],
    ids=str,
)
def test_files_of_later_epochs(run, options):
    """The second pass guesses nothing, and skips the data above, below and beside the window."""
    rng = np.random.default_rng(34)
    rows = []
    for size in ((9, 5), (70, 45), (33, 120)):
        shown = tuple(-(-n >> options.get("scale_log2", 0)) for n in size)
        for factors in FACTORS:
            rows += windows(jw.random_file(rng, *size, factors), shown, rng, 3)
        for subsampling in (0, 2):
            rows += windows(encode(picture(rng, *size), subsampling=subsampling, quality=96), shown, rng, 4)
    assert set(run(indexed(rows, **options))) == {"equal, known"}
    progressive = Row(encode(picture(rng, 70, 45), progressive=True))
    assert all_equal(run(indexed([progressive])))


def test_windows_that_hold_most_of_the_data(run):
    """The number of CTAs follows from the size of the windows, so each takes several turns."""
    pixels = np.full((40, 320, 3), 128, np.uint8)
    pixels[:, :64] = np.random.default_rng(39).integers(0, 256, (40, 64, 3))
    data = encode(Image.fromarray(pixels), quality=98, subsampling=0)
    rows = [Row(data, (0, 0, 40, 60)), Row(data, (9, 20, 25, 40)), Row(data, (0, 200, 40, 100)), Row(data)]
    options = {"entropy_threads": 32, "min_bits": 32, "piece_bytes": 2000}
    assert set(run(indexed(rows, **options))) == {"equal, known"}
    assert set(run(indexed(rows, parts=1, **options))) == {"equal, in part"}


@pytest.mark.parametrize(
    "options",
    [{}, {"min_bits": 32, "entropy_threads": 96, "seed": 4, "scale_log2": 1}, {"piece_bytes": 500, "min_bits": 256}],
    ids=str,
)
def test_files_that_are_read_in_part(run, options):
    """Only the header and the chunks with the window are read. Checksums detect changed chunks."""
    rng = np.random.default_rng(36)
    rows = []
    for size in ((9, 5), (33, 210)):
        shown = tuple(-(-n >> options.get("scale_log2", 0)) for n in size)
        for factors in FACTORS[::2]:
            rows += windows(jw.random_file(rng, *size, factors), shown, rng, 2)
        for subsampling in (0, 2):
            rows += windows(encode(picture(rng, *size), subsampling=subsampling, quality=96), shown, rng, 3)
    assert set(run(indexed(rows, parts=1, **options))) == {"equal, in part"}
    some = rows[::7]
    assert all(line.startswith("left: ") for line in run(indexed(some, parts=2, **options)))


def test_parts_of_rotated_pictures_and_of_files_without_parts(run):
    rng = np.random.default_rng(38)
    of = [(2, 2), (1, 1), (1, 1)]
    turned = [Row(jw.random_file(rng, 30, 190, of, app=jw.exif(v)), (0, 5, 20, 9)) for v in (1, 3, 6)]
    assert set(run(indexed(turned, parts=1, adjust=True))) == {"equal, in part"}
    restarts = [Row(encode(picture(rng, 70, 45), restart_marker_blocks=2)), Row(encode(picture(rng, 70, 45)))]
    assert run(indexed(restarts, parts=1)) == ["equal, known", "equal, in part"]


def test_files_with_restart_markers_of_later_epochs(run):
    rng = np.random.default_rng(37)
    rows = with_restarts(rng, 90, 110)
    for interval in (1, 7, 30, 1000):
        rows += windows(jw.random_file(rng, 41, 97, FACTORS[-1], restart=interval), (41, 97), rng, 2)
    assert set(run(indexed(rows), indexed(rows, entropy_threads=32, min_bits=32))) == {"equal, known"}
    many = Row(jw.random_file(rng, 150, 150, [(1, 1)] * 3, restart=1))  # more segments than an entry has room for
    assert all_equal(run(indexed([many])))
    for how in SPOILT_ENTRIES:
        spoilt = run(indexed(rows, spoil=SPOILT.index(how), entropy_threads=32, min_bits=32))
        assert set(spoilt) == {"equal, entry of another"}


SPOILT_ENTRIES = [how for how in SPOILT if how not in ("nothing", "packed", "forged")]


@pytest.mark.parametrize("how", SPOILT_ENTRIES)
def test_index_entries_that_are_wrong(run, how):
    """An entry with any changed byte is not used, because decoding could reach a wrong state by chance."""
    rng = np.random.default_rng(35)
    files = [encode(picture(rng, 90, 70), subsampling=s, quality=q) for s in (0, 2) for q in (30, 95)]
    rows = [row for data in files for row in windows(data, (90, 70), rng, 3)]
    options = {"spoil": SPOILT.index(how), "entropy_threads": 32, "min_bits": 32}
    if how != "exchanged":  # among entries of one size
        options["piece_bytes"] = 1500
    assert set(run(*(indexed(rows, seed=seed, **options) for seed in range(3)))) == {"equal, entry of another"}
    assert set(run(indexed(rows, parts=1, **options))) == {"left: 16"}


def test_forged_index_entries(run):
    """A changed folder with valid digests: every access stays in bounds, and entries without a seal are not used."""
    rng = np.random.default_rng(36)
    files = [encode(picture(rng, 90, 70), subsampling=s, quality=q) for s in (0, 2) for q in (30, 95)]
    rows = [row for data in files for row in windows(data, (90, 70), rng, 3)]
    options = {"entropy_threads": 32, "min_bits": 32}
    for parts in (0, 1):
        batches = [indexed(rows, parts=parts, spoil=SPOILT.index("packed"), seed=i, **options) for i in range(8)]
        packed = Counter(run(*batches))
        assert set(packed) <= {"equal", "equal, known", "equal, in part", "equal, entry of another", "left: 16"}
        assert len(packed) >= 3
        forged = Counter(run(indexed(rows, parts=parts, spoil=SPOILT.index("forged"), **options)))
        assert set(forged) <= {"left: 16", "other pixels"} and forged["left: 16"] > len(rows) // 2


def test_index_entries_of_other_data(run):
    """Entries for other data are not used, and memory is bounded."""
    rng = np.random.default_rng(35)
    files = [encode(picture(rng, 90, 70), subsampling=s, quality=q) for s in (0, 2) for q in (30, 95)]
    rows = [row for data in files for row in windows(data, (90, 70), rng, 2)]
    small = run(Batch(rows, passes=3, index_bytes=2 * 6700))
    assert small.count("equal, known") == 6 and small.count("equal") == 6
    data = files[0]
    start = scan_start(data)
    other = bytearray(data)
    for at in range(start, len(data) - 2):
        if other[at] not in (0, 255) and other[at - 1] != 255:
            other[at] ^= 1
    lines = run(indexed([Row(data[: (start + len(data)) // 2] + b"\xff\xd9"), Row(bytes(other)), Row(data)]))
    assert lines[0] == LEFT["truncated"] and lines[2] == "equal, known"


CUTS = [(32, 32), (32, 96), (96, 32), (64, 1 << 20), (64, 2048)]


def test_results_do_not_depend_on_the_division_of_work(run):
    """Results do not depend on threads, bits per subsequence, memory for a group of rows, or the order of threads."""
    rng = np.random.default_rng(26)
    noise = rng.integers(0, 256, (40, 56, 3)).astype(np.uint8)
    flat = np.full((120, 200, 3), 77, np.uint8)
    images = [picture(rng, 90, 60), Image.fromarray(noise), Image.fromarray(flat)]
    rows = [Row(encode(i, subsampling=s, quality=q)) for i in images for s, q in ((0, 97), (2, 30))]
    batches = [
        Batch(rows, entropy_threads=threads, min_bits=bits, unstuff_threads=32 * (1 + i), pixel_threads=32 << i % 4,
              seed=i, memory=1 << (12 + 3 * i))
        for i, (threads, bits) in enumerate(CUTS)
    ]  # fmt: skip
    batches.append(Batch(rows[:1], entropy_threads=1024, min_bits=32, unstuff_threads=512, pixel_threads=256))
    assert all_equal(run(*batches))


def test_streams_that_do_not_synchronise(run):
    """Codes of one length never synchronize by chance. The result is right, or the GPU gives up within the budget."""
    rng = np.random.default_rng(27)
    table = jw.Table([0] * 7 + [255] + [0] * 8, [*range(1, 255), 0])  # every AC code has 8 bits
    components, layout = jw.random_components(rng, 160, 96, FACTORS[-1], ac=table, keep=0.5, size=30)
    for c in components:
        c.blocks[:, :, :, :] = np.where(np.abs(c.blocks) > 200, 0, c.blocks)
        c.blocks[:, :, 2, 2] = 1  # keeps runs short: this table has no symbol for 16 zeros
        c.blocks[:, :, 5, 5] = 1
    batch = Batch([Row(jw.write(components, layout))])
    assert all_equal(run(batch))
    assert run(replace(batch, max_rounds=1)) == [LEFT["slow"]]
    assert run(replace(batch, max_rounds=0)) == [LEFT["slow"]]


def test_streams_that_are_slow_on_purpose(run):
    """Every thread needs the result of the previous one. The GPU needs as many rounds, or the CPU decodes the row."""
    rng = np.random.default_rng(41)
    small, large = Row(jw.unsynchronised(rng, 64, 64)), Row(jw.unsynchronised(rng, 320, 408))
    batch = Batch([small], entropy_threads=32, min_bits=256)
    assert all_equal(run(batch))
    assert run(replace(batch, max_rounds=24)) == [LEFT["slow"]]
    assert run(Batch([large], entropy_threads=512, min_bits=256, max_rounds=192)) == [LEFT["slow"]]


@pytest.mark.parametrize("run", [1000], indirect=True, ids=["several blocks write a row"])
def test_dense_streams_need_few_rounds(run):
    """Blocks without an end-of-block code keep a wrong position for long, so that several candidates are continued."""
    data = encode(picture(np.random.default_rng(7), 256, 192), quality=96, subsampling=2)
    batch = Batch([Row(data)], entropy_threads=256, min_bits=256, lead_bits=256)
    assert all_equal(run(replace(batch, max_rounds=13)))  # 11 rounds; with one more candidate instead of six, 16
    assert run(replace(batch, max_rounds=4)) == [LEFT["slow"]]


def test_scans_without_values_for_the_other_components(run):
    """The header of a file with several scans may contain values that are invalid in a single scan."""
    rng = np.random.default_rng(39)
    crowded = jw.random_file(rng, 70, 50, [(4, 2), (4, 4), (4, 4)], scans=[(0,), (1,), (2,)])  # 40 blocks in an MCU
    components, layout = jw.random_components(rng, 24, 24, [(1, 1)] * 3, scans=[(0,), (1,), (2,)])
    components[1] = replace(components[1], quantiser=255)
    rows = [Row(crowded), Row(jw.write(components, layout), (0, 0, 8, 8))]
    expected = ["equal", "refused: damaged data in several scans"]
    assert run(Batch(rows)) == expected
    assert run(Batch(rows, passes=2, index_bytes=1 << 20)) == expected


def test_memory_for_pictures_that_are_larger_than_their_windows(run):
    """Groups are bounded by the total memory of their rows. Sizes that a few bytes only claim take no memory."""
    rng = np.random.default_rng(40)
    components, layout = jw.random_components(rng, 2000, 400, [(1, 1)] * 3, keep=0)
    corner = Row(jw.write(components, layout), (390, 1990, 8, 8))
    assert run(Batch([corner], memory=1, scratch_kb=400)) == ["equal"]
    assert run(Batch([corner] * 4, memory=1 << 18, scratch_kb=400)) == ["equal"] * 4
    claims = bytearray(jw.random_file(rng, 30, 30, [(1, 1)] * 3))
    frame = claims.index(b"\xff\xc0") + 5
    claims[frame : frame + 4] = (65000).to_bytes(2, "big") * 2
    rows = [Row(bytes(claims), (64000, 64000, 8, 8)), Row(bytes(claims), (0, 0, 8, 8))]
    refused = "refused: data that end before the picture does"
    assert run(Batch(rows, scratch_kb=400, passes=2, index_bytes=1 << 20)) == [refused] * 2


def test_files_that_are_left_to_the_cpu(run):
    rng = np.random.default_rng(28)
    image = picture(rng, 60, 44)
    good = encode(image)
    start = scan_start(good)
    files = {
        "damaged data in several scans": encode(image, progressive=True)[:-600] + b"\xff\xd9",
        "four components": encode(image.convert("CMYK")),
        "no Huffman tables": jw.random_file(rng, 40, 40, FACTORS[-1], write_tables=False),
        "impossible Huffman tables": good.replace(b"\xff\xc4\0\x1f\0\0\1\5", b"\xff\xc4\0\x1f\0\3\0\3", 1),
        "arithmetic coding": good.replace(b"\xff\xc0", b"\xff\xc9", 1),
        "not a JPEG file": b"\x89PNG" + bytes(60),
    }
    whole = (0, 0, 8, 8)
    assert run(Batch([Row(data, whole) for data in files.values()])) == [f"refused: {r}" for r in files]
    outside = [(0, 0, 44, 61), (-1, 0, 5, 5), (40, 0, 5, 5)]
    assert run(Batch([Row(good, w) for w in outside])) == ["refused: a window that leaves the image"] * 3
    middle = (start + len(good)) // 2
    filled = good[:middle] + b"\xff\xff\x00" + good[middle:]
    restarts = encode(image, restart_marker_blocks=2)
    lost = restarts.replace(b"\xff\xd3", b"\xff\xd4", 1)
    missing = restarts.replace(b"\xff\xd3", b"\x12\x34", 1)
    # A neighbouring row is unaffected.
    rows = [Row(d) for d in (good, good[:middle], good[:-2], filled, good, lost, missing, good[:start], restarts)]
    expected = ["equal", *[LEFT["truncated"]] * 2, LEFT["filled"], "equal", *[LEFT["restart"]] * 2,
                "refused: data that end before the picture does", "equal"]  # fmt: skip
    lines = run(Batch(rows))
    assert [a if a == b else b for a, b in zip(expected, lines, strict=True)] == expected


@pytest.mark.parametrize("options", [{"subsampling": 0}, {"subsampling": 2}, {"subsampling": 2, "quality": 98},
                                     {"subsampling": 1, "restart_marker_blocks": 3}], ids=str)  # fmt: skip
def test_damaged_data(run, options):
    """The GPU decodes without an error exactly the files that the CPU decodes without an error."""
    rng = np.random.default_rng(29)
    data = encode(picture(rng, 61, 45), **options)
    start = scan_start(data)
    rows = []
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 6)):
            damaged[rng.integers(start, len(data) - 2)] = rng.integers(256)
        rows.append(Row(bytes(damaged)))
    rows += [Row(data[: rng.integers(start, len(data))] + bytes([255, 217])) for _ in range(20)]
    lines = run(Batch(rows))
    assert lines.count("equal") > 5
    assert any(line.startswith("left") for line in lines)
    inside = [replace(row, window=(11, 7, 20, 30)) for row in rows]
    again = run(Batch(inside, passes=2, index_bytes=1 << 20))
    assert any(line.startswith("left") for line in again)
    assert again.count("equal, known") > 5


def test_empty_window_and_empty_batch(run):
    data = encode(picture(np.random.default_rng(30), 20, 20))
    assert run(Batch([])) == []
    assert run(Batch([Row(data, (3, 3, 5, 0)), Row(data)])) == ["equal", "equal"]


@pytest.mark.skipif("STOKER_DATA" not in os.environ, reason="STOKER_DATA: a folder of JPEG files")
def test_photographs(run):
    rng = np.random.default_rng(31)
    paths = [p for p in sorted(Path(os.environ["STOKER_DATA"]).rglob("*")) if p.suffix.lower() in (".jpg", ".jpeg")]
    rows = [Row(paths[i].read_bytes()) for i in rng.choice(len(paths), min(4, len(paths)), replace=False)]
    assert all_equal(run(Batch(rows, entropy_threads=128, min_bits=256, unstuff_threads=128, pixel_threads=256)))
