# SPDX-License-Identifier: Apache-2.0
"""The JPEG decoder on a GPU: the pixels of the CPU decoder, for every division of the work.

With ``-s``, it prints the time of each kernel. Files are those of ``STOKER_DATA``, if set, cropped and encoded again,
so that many differ; otherwise synthetic images.
"""

from __future__ import annotations

import io
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from idle_clock import HANG_S
from jpeg_gpu_cases import GPU_SOURCES, Batch, Row, pack
from PIL import Image, JpegImagePlugin
from test_jpeg import encode, picture

from native_layers import list_sources
from stoker.device.compile import compile_kernels
from stoker.native import _native

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"
TUNED = {"unstuff_threads": 512, "entropy_threads": 512, "pixel_threads": 256, "min_bits": 256, "max_rounds": 192}
ROWS = 256


@pytest.fixture(scope="module")
def device(tmp_path_factory) -> list[str]:
    """Build the program that runs cases on the GPU, and its kernels."""
    folder = tmp_path_factory.mktemp("jpeg_gpu")
    program, kernels = folder / "device", folder / "jpeg.cubin"
    flags = ["-std=c++20", "-O2", "-ffp-contract=off", f"-I{NATIVE}", f"-I{HERE.parent / 'native'}"]
    compiler = os.environ.get("CXX", "g++")

    def compiled(source: Path) -> str:
        out = str(folder / f"{source.parent.name}_{source.stem}.o")
        subprocess.run([compiler, *flags, "-c", str(source), "-o", out], check=True, timeout=HANG_S)
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sources = [
            HERE / "jpeg_gpu_device.cpp",
            *list_sources(["jpeg", "plan"]),
            *(NATIVE / "gpu_kernels" / s for s in GPU_SOURCES),
        ]
        objects = list(pool.map(compiled, sources))
    subprocess.run([compiler, *objects, "-ldl", "-o", str(program)], check=True, timeout=HANG_S)
    kernels.write_bytes(compile_kernels('#include "device/jpeg.cuh"\n', _native.gpu.open_cuda(0).architecture))
    return [str(program), str(kernels)]


def window(rng: np.random.Generator, width: int, height: int) -> tuple[int, int, int, int]:
    """Return (y0, x0, height, width) of a random resized crop."""
    for _ in range(10):
        area, ratio = width * height * rng.uniform(0.08, 1), np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1)), h, w
    return 0, 0, height, width


def coded_again(path: str | None, seed: int) -> Row:
    """Return a random part of a photograph with its quantizers, or a synthetic image, and a window of it."""
    rng = np.random.default_rng(seed)
    out = io.BytesIO()
    if path is None:
        image = picture(rng, int(rng.integers(200, 600)), int(rng.integers(200, 500)))
        image.save(out, "JPEG", quality=int(rng.integers(70, 97)), subsampling=int(rng.choice([0, 0, 0, 2])))
    else:
        whole = Image.open(path)
        width, height = whole.size
        corner = int(rng.integers(1 + width // 10)), int(rng.integers(1 + height // 10))
        end = width - int(rng.integers(1 + width // 20)), height - int(rng.integers(1 + height // 20))
        image = whole.crop((*corner, *end)).convert("L" if whole.mode == "L" else "RGB")
        sampling = max(JpegImagePlugin.get_sampling(whole), 0)
        image.save(out, "JPEG", qtables=whole.quantization, subsampling=sampling, optimize=bool(rng.integers(2)))
    return Row(out.getvalue(), window(rng, *image.size))


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    folder = os.environ.get("STOKER_DATA")
    found = sorted(Path(folder).rglob("*")) if folder else []
    paths = [str(p) for p in found if p.suffix.lower() in (".jpg", ".jpeg")] or [None]
    with ProcessPoolExecutor() as pool:
        numbers = range(4 * ROWS)
        rows = list(pool.map(coded_again, (paths[i % len(paths)] for i in numbers), numbers, chunksize=16))
    return [Batch(rows[i : i + ROWS], **TUNED) for i in range(0, len(rows), ROWS)]


def run(device: list[str], folder: Path, batches: list[Batch], *more: str, under: tuple[str, ...] = ()) -> str:
    cases = folder / "cases"
    cases.write_bytes(pack(batches))
    done = subprocess.run([*under, *device, str(cases), *more], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def test_windows_and_times(device, batches, tmp_path):
    out = run(device, tmp_path, batches, "10")
    print("\n" + out)
    assert f"{4 * ROWS} rows decoded" in out and " 0 rows wrong" in out


def test_whole_pictures(device, batches, tmp_path):
    whole = [replace(b, rows=[Row(r.data) for r in b.rows]) for b in batches[:1]]
    for format in ("RGB", "YCbCr", "GRAY"):
        assert f"{ROWS} rows decoded" in run(device, tmp_path, [replace(b, format=format) for b in whole])


def test_smaller_scales(device, batches, tmp_path):
    rows = [Row(r.data) for r in batches[0].rows[:64]]
    scaled = [replace(batches[0], rows=rows, scale_log2=scale) for scale in (1, 2, 3)]
    assert "192 rows decoded" in run(device, tmp_path, scaled)


def progressive(data: bytes) -> bytes:
    out = io.BytesIO()
    Image.open(io.BytesIO(data)).save(out, "JPEG", quality=90, progressive=True)
    return out.getvalue()


def test_progressive_files(device, batches, tmp_path):
    rows = [replace(row, data=progressive(row.data)) for row in batches[1].rows[:64]]
    assert "64 rows decoded" in run(device, tmp_path, [replace(batches[1], rows=rows)])


def test_files_of_later_epochs(device, batches, tmp_path):
    known = [replace(b, passes=2, index_bytes=1 << 22) for b in batches]
    out = run(device, tmp_path, known, "10")
    print("\nfiles that are known\n" + out)
    assert f"{4 * ROWS} rows decoded as known" in out and " 0 rows wrong" in out


def test_files_that_are_read_in_part(device, batches, tmp_path):
    known = [replace(b, passes=2, index_bytes=1 << 22, parts=1) for b in batches]
    out = run(device, tmp_path, known, "10")
    print("\nfiles that are known, read in part\n" + out)
    assert f"{4 * ROWS} rows decoded in part" in out and " 0 rows wrong" in out
    out = run(device, tmp_path, [replace(batches[0], passes=2, index_bytes=1 << 22, parts=2)])
    assert "rows decoded" not in out and " 0 rows wrong" in out  # a byte of each has changed: all fall back


def test_results_do_not_depend_on_the_division_of_work(device, batches, tmp_path):
    cuts = [(32, 32, 32, 32, 30), (128, 1024, 64, 32, 22), (512, 128, 256, 4096, 20), (256, 256, 256, 3200000, 30)]
    names = ("unstuff_threads", "entropy_threads", "pixel_threads", "min_bits", "memory")
    varied = []
    for k, cut in enumerate(cuts):
        chosen = dict(zip(names, (*cut[:4], 1 << cut[4]), strict=True))
        varied.append(replace(batches[0], rows=batches[0].rows[30 * k : 30 * k + 30], **chosen))
    assert "120 rows decoded" in run(device, tmp_path, varied)


def small_files() -> Iterator[bytes]:
    """Yield small files for slow tools: every sampling, gray, progressive, with restarts."""
    rng = np.random.default_rng(3)
    sizes = itertools.cycle([(67, 41), (40, 93), (130, 50), (33, 24), (8, 9)])
    ways = ({}, {"progressive": True}, {"restart_marker_blocks": 3}, {"restart_marker_rows": 1, "optimize": True})
    for subsampling in (0, 1, 2):
        for how in ways:
            yield encode(picture(rng, *next(sizes)), quality=93, subsampling=subsampling, **how)
    yield encode(picture(rng, 70, 31, 1), quality=90)
    yield encode(picture(rng, 70, 31, 1), progressive=True, restart_marker_rows=2)


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_sanitizer_reports_no_fault(device, tmp_path, tool):
    """Decode windows and whole images: first pass, known and read in part, at smaller scales, in other color spaces."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    rng, whole = np.random.default_rng(4), [Row(data) for data in small_files()]
    rows = [replace(row, window=window(rng, *Image.open(io.BytesIO(row.data)).size)) for row in whole]
    twice = Batch(rows, **TUNED, passes=2, index_bytes=1 << 20)
    cases = [twice, replace(twice, parts=1)]
    cases += [Batch(whole[scale % 2 :: 2], **TUNED, scale_log2=scale) for scale in (1, 2, 3)]
    cases += [Batch(whole[i::2], **TUNED, format=format) for i, format in enumerate(("YCbCr", "GRAY"))]
    cases.append(Batch(whole[::3], unstuff_threads=32, entropy_threads=32, pixel_threads=32, min_bits=64))
    out = run(device, tmp_path, cases, under=(sanitizer, "--tool", tool, "--error-exitcode", "9"))
    assert " 0 rows wrong" in out
