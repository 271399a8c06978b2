# SPDX-License-Identifier: Apache-2.0
"""Run-time compilation: all kernels compile without spills, and the cache of compiled kernels."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import emulated_stages as st
import kept_reports
import pytest
from kept_reports import report_of
from test_stages import compiled

from stoker import settings
from stoker.contract import pixel as px
from stoker.contract.expr import Expr
from stoker.contract.step import CompiledPass, OwnKernel
from stoker.contract.types import DType
from stoker.device import compile as compiling
from stoker.device.generate import ProgramSource, generate_inlined
from stoker.device.own import own_sources
from stoker.ops.reductions.pooled import SOURCES as POOL_SOURCES
from tests.complete import COMPLETE
from tests.idle_clock import HANG_S

ARCHITECTURES = (80, 90, 100)
SMALL = '#include "shared/device.cuh"\nSTOKER_KERNEL f(double* p) { p[0] = p[1] * p[2] + p[0]; }\n'

U8, F32 = DType.UINT8, DType.FLOAT

# Sources with other code or other launch bounds on other architectures, and stages that need all their registers.
# `make test-complete` compiles all for all.
DIFFERENT = {f"stoker_{name}" for name in ("between", "resampled", "resampled_down", "resampled_planar",
                                           "resampled_down_planar", "pairs")} | {
    "colours", "table", "table and channels", "two outputs", "moves UINT8"}  # fmt: skip


def own(name: str, passes: list[str], constants: tuple[int, ...] = ()) -> OwnKernel:
    return OwnKernel(name, tuple(map(CompiledPass, passes)), constants)


def filtering(size: tuple[int, int]) -> OwnKernel:
    return OwnKernel("Filter", (CompiledPass("correlate", 256, 47 << 10, 1024), CompiledPass("unstaged")), size)


def resampling() -> OwnKernel:
    return OwnKernel("AudioResample", (CompiledPass("outputs"), CompiledPass("tiles", 256, 47 << 10, 1024)))


def sampling(constants: tuple[int, int], resident_threads: int) -> OwnKernel:
    return OwnKernel("Map", (CompiledPass("sample", resident_threads=resident_threads),), constants)


def inlined(places: list[px.Px], inputs: int) -> ProgramSource:
    """Return the program of a sampling kernel in which axis 0 is H, with ``inputs`` of float32."""
    code = px.compile_program([[p] for p in places], st.OPS, inputs)
    return generate_inlined(code.code, st.OPS, [int(F32)] * inputs, 2, [axis + 1 for axis in code.coordinates])


def programs() -> dict[str, tuple[ProgramSource, int]]:
    """Return programs of random numbers, of broadcast values and of a lens, with their numbers of inputs."""
    y, x = (px.coordinate(axis).cast(F32) for axis in (0, 1))
    name = [px.uniform(Expr("elem", 0, i, 0), DType.INT32) for i in range(4)]
    element = px.coordinate(0) * px.uniform(Expr("dim", 0, 1), DType.INT32) + px.coordinate(1)
    draws = [px.random(element, *name[i : i + 2]).cast(F32) for i in (0, 2)]
    number = [px.uniform(Expr("elem", 0, i, 0)) for i in range(8)]
    down, across = (y - number[0]) / number[1], (x - number[2]) / number[3]
    square = down * down + across * across
    factor = (number[4] * square + number[5]) * square + px.unary("sqrt", square)
    lens = [down * factor * number[6] + across, across * factor * number[7] + down]
    loads = [px.load(F32, i) for i in (0, 1)]
    return {
        "draws": (inlined([y + draws[0], x + draws[1]], 0), 0),
        "broadcast": (inlined([y + number[0] * loads[1], x + number[1] * loads[0]], 2), 2),
        "lens": (inlined(lens, 0), 0),
    }


# Operators with custom kernels: the passes, constants and types that photographs need, and some others.
OWN = (
    (own("Equalize", ["count", "tabulate", "apply"]), [U8], [U8]),
    (OwnKernel("Inflate", (CompiledPass("decode", 32),)), [U8, DType.INT64], [DType.FLOAT]),
    *((own("Blur", ["weigh", "across", "down"]), [t], [t]) for t in (U8, DType.FLOAT16)),
    *(
        (filtering(size), [t, F32], [F32])
        for t, size in ((DType.INT16, (0, 0)), (U8, (5, 5)), (DType.FLOAT16, (1, 25)))
    ),
    (own("JpegDistortion", ["transform", "pixels"]), [U8], [U8]),
    (own("Debayer", ["gradients"]), [U8], [U8]),
    (own("Spectrogram", ["frames"]), [F32, F32, F32], [F32]),
    (own("ShortSpectrogram", ["frames"], (400, 16, 0, 0)), [F32, F32, F32], [F32]),
    (own("ShortSpectrogram", ["frames"], (512, 16, 1, 1)), [F32, F32, F32, F32], [F32]),
    (own("Stft", ["frames"]), [F32, F32, F32], [F32]),
    (own("Istft", ["frames", "join"]), [F32, F32, F32], [F32]),
    (own("Phased", ["apply"]), [F32, F32, F32], [F32]),
    (own("PhaseVocoder", ["bins"]), [F32], [F32]),
    (own("PowerSpectrum", ["lines"], (1,)), [F32, F32], [F32]),
    (own("PowerSpectrum", ["factors", "filter", "lines"], (0,)), [F32], [F32]),
    (own("Convolve", ["factors", "response", "blocks"]), [F32, F32], [F32]),
    (resampling(), [F32, F32], [F32]),
    (own("ResampleRow", ["values", "weights", "outputs"]), [F32], [F32]),
    (own("Shot", ["table", "draw"]), [U8], [U8]),
    (own("Nonsilent", ["sums", "region"]), [F32], [DType.INT32, DType.INT32]),
    (own("Trim", ["copy"]), [DType.INT16, DType.INT32, DType.INT32], [DType.INT16, DType.INT32]),
    (own("Loudness", ["segments", "mean"]), [F32], [DType.FLOAT64]),
    (own("Project", ["sums"]), [F32, F32], [F32]),
    (own("Decibels", ["convert"]), [F32, F32], [F32]),
    (own("Preemphasis", ["filter"]), [F32], [F32]),
    (own("Normalize", ["whole", "sums", "joined_sums", "squares", "joined_squares", "result"], (2, 2)), [F32], [F32]),
    (own("Reduce", ["partial", "finish"], (3, 3, 3)), [U8], [F32]),
    (own("Reduce", ["partial", "finish"], (6, 7, 3)), [F32, F32], [F32]),
    (own("Reduce", ["partial", "finish"], (1, 1, 7)), [DType.FLOAT64], [DType.FLOAT64]),
    (own("Reduce", ["partial", "finish"], (2, 3, 2)), [DType.UINT64], [DType.UINT64]),
    (own("Reduce", ["partial", "finish"], (3, 3, 3)), [DType.BFLOAT16], [DType.BFLOAT16]),
    (own("Reduce", ["partial", "finish"], (0, 7, 3)), [DType.FLOAT16], [DType.FLOAT16]),
    (own("Draw", ["draw"], (0,)), [], [F32]),
    (own("Draw", ["draw"], (0,)), [], [DType.FLOAT16]),
    (own("Draw", ["draw"], (1,)), [], [F32]),
    (own("Draw", ["draw"], (2,)), [], [U8]),
    (own("Draw", ["draw"], (3,)), [DType.FLOAT64], [DType.INT64]),
    (own("Nms", ["order", "compare", "keep"], (0,)), [F32, F32], [DType.INT64, DType.INT32]),
    (own("SoftNms", ["select"], (1,)), [F32, F32], [DType.INT64, F32, DType.INT32]),
    *((sampling(c, 768), [U8, F32, F32], [U8]) for c in ((0, 4), (0, 3), (1, 4))),
    *((sampling(c, 512), [U8, F32, F32], [U8]) for c in ((2, 4), (0, 1), (1, 0))),
    (own("Map", ["sample"], (1, 4)), [DType.INT32, F32, F32], [DType.INT32]),
    (own("BoxIou", ["pairs"], (3,)), [F32, F32], [F32]),
    (own("RoiAlign", ["regions"], (1, 0, 0, 2)), [F32, F32], [F32]),
)


def entry(x: px.Px) -> px.Px:
    """Return the byte that another byte chooses from a table."""
    return px.lookup(DType.UINT8, 1, x.cast(DType.INT32), 256)


def of_coordinates() -> dict[str, str]:
    """Return the sources of programs of coordinates: two that compute terms once for a pixel, and one of points."""
    sources = {}
    place = px.coordinate(0) * 500 + px.coordinate(1)
    drawn = px.random(place, *(px.uniform(n, DType.INT32) for n in (7, 8)))
    salt = px.uniform(255, DType.FLOAT64).cast(DType.UINT8)
    noisy = px.select(px.binary("lt", drawn, 99), salt, px.load(DType.UINT8))
    sources["drawn pixels"] = compiled([[noisy]], [DType.UINT8]).source().stage
    across, down = (px.coordinate(axis).cast(F32) for axis in (1, 0))
    places = [across * px.uniform(a) + down * px.uniform(b) - px.uniform(c) for a, b, c in ((1, 2, 3), (4, 5, 6))]
    kept = [px.binary("ge", v - px.unary("floor", v), px.uniform(0.5)) for v in places]
    masked = px.select(px.binary("or", *kept), px.load(DType.UINT8), px.uniform(0, DType.UINT8))
    sources["masked pixels"] = compiled([[masked]], [DType.UINT8]).source().stage
    moved = px.select(px.binary("eq", px.coordinate(1), 0), px.unary("neg", px.load(F32)), px.load(F32))
    sources["points"] = compiled([[moved]], [F32]).source().stage
    assert ["kShared = 2" in text for text in sources.values()] == [True, True, False]
    return sources


def representative() -> dict[str, str]:
    """Return the sources of a training chain's kernels, and of long arithmetic in double."""
    x = [px.load(DType.UINT8, 0, c) for c in range(3)]
    normal = [((v.cast(DType.FLOAT) - 1.0 - c) * 0.5).cast(DType.FLOAT16) for c, v in enumerate(x)]
    functions = px.load(DType.FLOAT)
    for name in ("exp", "sin", "log", "tanh", "atan", "cbrt"):
        functions = px.unary(name, functions)
    sources = {}
    for interpolator in ("", "resample", "affine", *st.PROJECTED):
        stage = compiled([normal], [DType.UINT8], 3, interpolator=interpolator).source(
            planar=interpolator == "resample"
        )
        sources[f"normalise {interpolator}"] = stage.stage
        sources.update(stage.interpolators)
    mixed = [x[0].cast(DType.FLOAT) * (1.0 + c) + x[1].cast(DType.FLOAT) * (2.0 + c) for c in range(3)]
    twisted = [((m.cast(DType.UINT8).cast(DType.FLOAT) - 1.0) * 0.5).cast(DType.FLOAT16) for m in mixed]
    twist = compiled([twisted], [DType.UINT8], 3, interpolator="affine").source()
    sources["twist affine"] = twist.stage
    sources["twist affine in pairs"] = dict(twist.interpolators)["stoker_pairs"]
    whole = compiled([[px.load(DType.INT16)]], [DType.INT16], interpolator="resample")
    sources.update((f"{name} in double", text) for name, text in whole.source().interpolators)
    shifting = compiled([[px.load(DType.UINT8)]], [DType.UINT8], interpolator="affine").source()
    sources["stoker_shifted"] = dict(shifting.interpolators)["stoker_shifted"]
    sources["flat resample"] = compiled([[px.load(DType.UINT8)]], [DType.UINT8], interpolator="resample").source().stage
    sources.update(of_coordinates())
    colours = [m.cast(DType.UINT8) for m in mixed]
    sources["colours"] = compiled([colours], [DType.UINT8], 3).source().stage
    sources["two outputs"] = compiled([colours, normal], [DType.UINT8], 3).source().stage
    sources["table"] = compiled([[entry(x[0])]], [DType.UINT8, DType.UINT8]).source().stage
    sources["table and channels"] = compiled([[entry(v) for v in x]], [DType.UINT8, DType.UINT8], 3).source().stage
    for dtype in (DType.UINT8, DType.UINT16, DType.FLOAT, DType.FLOAT64):
        sources[f"moves {dtype.name}"] = compiled([[px.load(dtype)]], [dtype]).source().stage
    sources["functions"] = compiled([[functions]], [DType.FLOAT]).source().stage
    for kernel, *types in OWN:
        sources.update((f"{kernel} {types} {name}", text) for name, text in own_sources(kernel, *types))
    samplings = ((0, 4), (0, 3), (1, 4))
    for (title, (program, inputs)), constants in itertools.product(programs().items(), samplings):
        if title == "draws" and constants != (0, 3):
            continue  # no operator has it
        own_texts = own_sources(sampling(constants, 768), [U8, *[F32] * inputs], [U8], program)
        sources.update((f"{title} {constants} {name}", text) for name, text in own_texts)
    sources.update(POOL_SOURCES)
    return sources


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_compile_without_spills(architecture):
    sources = representative()
    assert sources.keys() >= DIFFERENT
    for name, source in sources.items():
        if architecture != 90 and name not in DIFFERENT and not COMPLETE:
            continue
        report = report_of(source, architecture)
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill", report)]
        assert len(spills) >= 1 and not any(spills), (name, report)
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", report)]
        assert registers and max(registers) <= 128, (name, report)


def test_reports_are_cached_by_all_that_changes_code(tmp_path, monkeypatch, compiles):
    monkeypatch.setattr(kept_reports, "_FOLDER", tmp_path / "reports")
    first = report_of(SMALL, 90)
    assert "0 bytes spill" in first and report_of(SMALL, 90) == first and len(compiles) == 1
    report_of(SMALL, 80)
    report_of(SMALL + "\n", 90)
    assert len(compiles) == 3
    monkeypatch.setattr(compiling, "_headers_of", lambda includes: {"shared/device.cuh": "changed"})
    compiling._digest_before.cache_clear()
    report_of(SMALL, 90)
    assert len(compiles) == 4
    monkeypatch.setattr(kept_reports, "_KEPT", 1)
    report_of(SMALL, 100)
    assert len([*(tmp_path / "reports").iterdir()]) == 1


def test_no_operations_are_contracted():
    """The planted error: with contraction allowed, the same source has a fused multiply-add."""
    from cuda.bindings import nvrtc

    def fused(options) -> bool:
        _, program = nvrtc.nvrtcCreateProgram(SMALL.encode(), b"", 0, [], [])
        options = [*options, "--gpu-architecture=compute_90", *(f"--include-path={p}" for p in compiling.INCLUDE)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        assert not int(status)
        return b"fma" in compiling._fetch(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)

    assert not fused(compiling.OPTIONS)
    assert fused([o for o in compiling.OPTIONS if o != "--fmad=false"])


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture
def compiles(monkeypatch) -> list[str]:
    """Record the sources that the compiler receives."""
    sources: list[str] = []
    real = compiling._compile
    monkeypatch.setattr(compiling, "_compile", lambda source, *rest: sources.append(source) or real(source, *rest))
    return sources


def test_a_kernel_is_compiled_once(cache, compiles):
    first = compiling.compile_kernels(SMALL, 90)
    assert compiling.compile_kernels(SMALL, 90) == first and len(compiles) == 1
    assert compiling.compile_kernels(SMALL, 80) != first and len(compiles) == 2
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:99] + bytes([b[99] ^ 1]) + b[100:]])
def test_a_damaged_file_is_compiled_again(cache, compiles, damage):
    first = compiling.compile_kernels(SMALL, 90)
    (path,) = cache.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert compiling.compile_kernels(SMALL, 90) == first and len(compiles) == 2
    assert compiling.compile_kernels(SMALL, 90) == first and len(compiles) == 2


def test_the_key_covers_everything_that_changes_code(monkeypatch, tmp_path):
    key = compiling.key_of(SMALL, 90, (13, 0))
    assert key == compiling.key_of(SMALL, 90, (13, 0))
    others = [compiling.key_of(SMALL + " ", 90, (13, 0)), compiling.key_of(SMALL, 100, (13, 0)),
              compiling.key_of(SMALL, 90, (13, 1))]  # fmt: skip
    monkeypatch.setattr(compiling, "OPTIONS", compiling.OPTIONS[1:])
    others.append(compiling.key_of(SMALL, 90, (13, 0)))
    monkeypatch.undo()
    found = compiling.headers(compiled([[px.load(DType.UINT8)]], [DType.UINT8]).source().stage)
    wanted = "shared/device.cuh device/stage.cuh shared/xmath_more.hpp shared/half.hpp device/std/cstdint"
    assert set(wanted.split()) <= set(found)
    monkeypatch.setattr(compiling, "_headers_of", lambda includes: {"shared/device.cuh": "changed"})
    compiling._digest_before.cache_clear()
    others.append(compiling.key_of(SMALL, 90, (13, 0)))
    compiling._digest_before.cache_clear()
    assert len({key, *others}) == 6


def test_values_are_not_in_the_source():
    def chain(mean):
        return compiled([[((px.load(DType.UINT8).cast(DType.FLOAT) - mean) * 0.5).cast(DType.FLOAT16)]], [DType.UINT8])

    assert chain(3.25).source().stage == chain(99.0).source().stage
    assert "3.25" not in chain(3.25).source().stage


def test_the_cache_stays_within_its_limit(cache, compiles, monkeypatch):
    code = compiling.compile_kernels(SMALL, 90)
    (first,) = cache.iterdir()
    os.utime(first, (1, 1))
    compiling._write(cache / "other.cubin", code, len(code) + 200)
    assert not first.exists() and (cache / "other.cubin").exists()
    monkeypatch.setenv("STOKER_KERNEL_CACHE_MIB", "3")
    assert settings.kernel_cache() == (cache, 3 << 20)


def test_a_cache_that_cannot_be_written_warns(tmp_path, monkeypatch, compiles):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path / "file" / "kernels"))
    with pytest.warns(RuntimeWarning, match="compiled kernels are not kept"):
        compiling.compile_kernels(SMALL, 90)
    monkeypatch.setenv("STOKER_KERNEL_CACHE", "off")
    compiling.compile_kernels(SMALL, 90)
    assert len(compiles) == 2


def test_processes_share_the_cache(cache):
    """Several processes that start together all get the same code, and leave no partial file."""
    program = (
        "import hashlib; from stoker.device.compile import compile_kernels\n"
        f"print(hashlib.sha256(compile_kernels({SMALL!r}, 90)).hexdigest())"
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({p.communicate(timeout=HANG_S)[0] for p in running}) == 1 and not any(p.returncode for p in running)
    assert [p.suffix for p in cache.iterdir()] == [".cubin"]


def test_without_the_compiler(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(compiling.UnsupportedError, match=r"extra `cuda13`: `pip install .*nvidia-cuda-nvrtc"):
        compiling.compile_kernels(SMALL, 90)


def test_source_that_the_compiler_refuses(cache):
    with pytest.raises(RuntimeError, match=r"(?s)sm_90.*nonsense"):
        compiling.compile_kernels("nonsense", 90)


def test_sources(request):
    """Snapshots of generated text: a change in them changes every cached kernel."""
    folder = Path(__file__).parent / "snapshots"
    x = [px.load(DType.UINT8, 0, c) for c in range(3)]
    normal = [((v.cast(DType.FLOAT) - 1.0 - c) * 0.5).cast(DType.FLOAT16) for c, v in enumerate(x)]
    ratio = px.binary("idiv", px.load(DType.INT32, 0), px.load(DType.INT32, 1))
    chosen = px.select(px.binary("lt", ratio, 7), ratio, px.load(DType.INT32, 1))
    stages = {
        "normalise": compiled([normal], [DType.UINT8], 3, interpolator="resample"),
        "divide": compiled([[chosen], [ratio.cast(DType.UINT8)]], [DType.INT32, DType.INT32]),
    }
    for name, stage in stages.items():
        path, text = folder / f"{name}.cu", stage.source().stage
        if os.environ.get("STOKER_SNAPSHOTS") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text, f"STOKER_SNAPSHOTS=write renews {path}"
    assert st.OPS["IDiv"] in {i[0] for i in stages["divide"].code}
