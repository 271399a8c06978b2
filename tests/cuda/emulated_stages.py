# SPDX-License-Identifier: Apache-2.0
"""Stages on the CPU and, with kernels compiled for the CPU, on the null device, for bitwise comparisons."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker.codecs.jpeg import codec, engines
from stoker.contract.expr import Expr
from stoker.contract.gpu import StageRows
from stoker.contract.types import DType
from stoker.device.compile import NATIVE, compile_kernels
from stoker.device.generate import StageSource, generate
from stoker.device.gpu import Gpu
from stoker.device.video_engines import KERNEL as VIDEO_KERNEL
from stoker.device.video_engines import SOURCE as VIDEO_SOURCE
from stoker.graph.scalar_code import Compiler
from stoker.native import _native
from stoker.ops.image.recipe import SOURCES as RECIPE_SOURCES
from stoker.ops.reductions.pooled import SOURCES as POOL_SOURCES
from tests.idle_clock import HANG_S

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1] / "src" / "stoker" / "native"
OPS = _native.pixel_ops()
PROJECTED = ("project_nearest", "project_linear", "project_cubic")
INTERPOLATORS = {"": 0, "resample": 1, "affine": 2, **{name: 3 + i for i, name in enumerate(PROJECTED)}}
JPEG_SOURCES = tuple(dict.fromkeys(s for dtype in codec.SUFFIXES for s in codec.sources_for(dtype)))
ENGINE_SOURCES = tuple(s for suffix in codec.SUFFIXES.values() for s in engines.sources_for(suffix))
JPEG = tuple(name for name, _ in JPEG_SOURCES)
ENGINES = tuple(name for name, _ in ENGINE_SOURCES)
LIBRARY = {  # macros that define kernels (frameworks/_torch_ops_cuda.py, _torch_padding.py)
    "STOKER_NMS": ("stoker_nms_mask", "stoker_nms_keep"),
    "STOKER_SOFT_NMS": ("stoker_soft_nms",),
    "STOKER_ROI": tuple(f"stoker_roi_{name}" for name in ("align", "align_backward", "pool", "pool_backward")),
    "STOKER_WARP_ROWS": ("stoker_warp_rows",),
    "STOKER_ADD_IN_ORDER": ("stoker_add_in_order",),
    "STOKER_PAD_ROWS": ("stoker_pad_rows",),
}
NAMESPACES = {
    "stoker::jpeg::gpu": JPEG,
    "stoker::nvjpeg": ENGINES,
    "stoker": (VIDEO_KERNEL,),
    "stoker::pool": ("stoker_pool_rows",),
}
RESAMPLED = ("stoker_resampled", "stoker_resampled_down", "stoker_words")  # of 8-bit images, both passes in one kernel
PLANAR = ("stoker_resampled_planar", "stoker_resampled_down_planar")  # the same for component planes
PAIRS = ("stoker_pairs",)  # of warped 8-bit images, two pixels at a time
SHIFTED = ("stoker_shifted",)  # of warps that store what they sample
ENTRIES = (
    "stoker_stage",
    "stoker_interpreted",
    "stoker_weights",
    "stoker_between",
    *RESAMPLED,
    *PLANAR,
    "stoker_walk",
    *SHIFTED,
    *PAIRS,
    *JPEG,
)
INPUT, OUTPUT = 3, 2  # storage of a value (native/plan/plan.hpp)
ON_CPU, ON_DEVICE = 0, 2  # kind of a segment


# `make test-gpu` must not pass without a GPU.
NEEDS_GPU = pytest.mark.skipif(
    not _native.gpu.count_cuda() and "REQUIRE_GPU" not in os.environ,
    reason="runs kernels on a GPU, and there is none: `make test-gpu`",
)


@dataclass
class Row:
    """One row: numbers (in the order of the stage's parameters), inputs, shapes of the outputs."""

    numbers: Sequence[float]
    inputs: Sequence[np.ndarray]
    shapes: Sequence[tuple[int, ...]]


@dataclass
class Stage:
    """Constants of a stage. A row's numbers: the interpolator's, the uniforms, and indices of view operations."""

    code: list[tuple[int, ...]]
    channels: int
    in_types: list[DType]
    out_types: list[DType]
    uniforms: int
    interpolator: str = ""
    pre: list[list[tuple[Any, ...]]] = field(default_factory=list)
    post: list[list[tuple[Any, ...]]] = field(default_factory=list)
    coordinates: list[int] = field(default_factory=list)  # their axes

    @property
    def interpolator_numbers(self) -> int:
        return {"": 0, "resample": 7, "affine": 9}.get(self.interpolator, 12)

    def source(self, *, planar: bool = False) -> StageSource:
        types = [int(t) for t in self.in_types], [int(t) for t in self.out_types]
        more = {"coordinates": len(self.coordinates), "rows": StageRows(planar=planar)}
        return generate(self.code, OPS, self.channels, *types, interpolator=self.interpolator, **more)

    def arguments(self) -> tuple[Any, ...]:
        n = self.interpolator_numbers
        return (
            INTERPOLATORS[self.interpolator], list(range(n)), self.code, self.channels, [int(t) for t in self.in_types],
            [int(t) for t in self.out_types], list(range(n, n + self.uniforms)),
            self.pre or [[] for _ in self.in_types], self.post or [[] for _ in self.out_types], self.coordinates,
        )  # fmt: skip


PREPARED = "prepared.hpp.gch"  # headers that most kernels include; large
MOST = ("device/own.cuh", "device/stage.cuh")
EMULATION = "emulation.o"  # compiled once, it halves the time of most kernels
_PREPARING = threading.Lock()
_BUILDING: dict[Path, threading.Lock] = {}
_KEPT = 3  # folders of kernels


def compiled(folder: Path, text: str) -> Path:
    """Compile kernels for the CPU, once per folder, which other processes may share, and return the library."""
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.cpp"
    library = path.with_suffix(".so")
    with _BUILDING.setdefault(library, threading.Lock()):  # threads of an abandoned plan continue
        if not library.exists():
            write_whole(path, lambda own: own.write_text(text))
            _build(path, library)
    return library


def kept_folder(parent: Path) -> Path:
    """Return the folder of kernels that this compiler makes from these headers; later test runs use it again.

    Its name covers all that a kernel's code depends on, except the kernel's own text, which names its file.
    """
    version = subprocess.run(["g++", "--version"], capture_output=True, check=True, timeout=HANG_S).stdout
    digest = hashlib.sha256(version + Path(__file__).read_bytes())  # with the compiler's options
    own = [path for folder in (HERE, HERE.parent / "native") for path in folder.glob("*.[hi]pp")]
    native = [path for folder in (CHECKOUT, NATIVE) for path in folder.rglob("*") if _is_header(path)]
    for path in sorted(own + native):
        digest.update(f"{path.relative_to(path.parents[1])} {path.stat().st_size}\n".encode() + path.read_bytes())
    folder = parent / digest.hexdigest()[:20]
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    others = sorted(parent.iterdir(), key=lambda p: p.stat().st_mtime)
    for old in others[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def _build(path: Path, library: Path) -> None:
    command: list[str | Path] = ["g++", "-std=c++20", "-O1", "-ffp-contract=off", "-w", "-fPIC", "-fno-gnu-unique"]
    with _PREPARING:
        headers = _headers(path.parent)
        command += [f"-I{folder}" for folder in (headers, HERE, HERE.parent / "native")]
        header, emulation = path.parent / PREPARED.removesuffix(".gch"), path.parent / EMULATION
        if not emulation.exists():
            source = emulation.with_suffix(".cpp")
            write_whole(source, lambda own: own.write_text('#include "emulated_launch.ipp"\n'))
            write_whole(emulation, lambda own: _run([*command, "-O2", "-c", source, "-o", own]))
        command.append('-DSTOKER_EMULATION="emulated_launch.hpp"')
        if not (path.parent / PREPARED).exists():
            write_whole(header, lambda own: own.write_text("".join(f'#include "{name}"\n' for name in MOST)))
            write_whole(path.parent / PREPARED, lambda own: _run([*command, "-x", "c++-header", header, "-o", own]))
    # Every library has its own emulation: a shared one would disappear with the first library that is unloaded.
    write_whole(library, lambda own: _run([*command, "-include", header, "-shared", path, emulation, "-o", own]))


def _headers(folder: Path) -> Path:
    """Collect all native headers in one folder.

    They are the headers that were installed with the native code. The checkout's may be newer, and kernels that read
    another layout than the native code writes produce wrong pixels. Headers that only the emulation includes are not
    installed, and come from the checkout.
    """
    found = folder / "headers"
    if not found.exists():
        own = folder / f"{os.getpid()}.headers"
        for source in (CHECKOUT, NATIVE):
            shutil.copytree(source, own, ignore=_others, dirs_exist_ok=True)
        try:
            own.rename(found)
        except OSError:  # another process was first
            shutil.rmtree(own)
    return found


def _others(folder: str, names: list[str]) -> list[str]:
    paths = [Path(folder, name) for name in names]
    return [path.name for path in paths if not path.is_dir() and not _is_header(path)]


def _is_header(path: Path) -> bool:
    """Return whether a file of the native code is a header; those of NVRTC's standard library have no suffix."""
    return path.suffix in {".hpp", ".cuh", ".ipp", ".h"} or path.parent.name == "std"


def _run(command: Sequence[str | Path]) -> None:
    subprocess.run(command, check=True, timeout=HANG_S)


def write_whole(path: Path, make: Callable[[Path], object]) -> None:
    """Write a file atomically: another process finds the whole file or none."""
    own = path.with_name(f"{os.getpid()}.{path.name}")
    make(own)
    own.replace(path)


class EmulatedGpu(Gpu):
    """Null device with kernels compiled for the CPU. All stages are compiled, however many a test has."""

    compiled_first = 1 << 40

    def __init__(self, folder: Path, memory_limit: int | None = None) -> None:
        super().__init__(_native.gpu.open_null(), memory_limit or 1 << 30)
        self.folder = folder

    def is_cached(self, source: str) -> bool:
        return False

    def compiled(self, source: str) -> bytes:
        names = entries_of(source)
        text = "".join(f"#define {n} {n}_body\n" for n in names) + source
        spaces = (n for n, known in NAMESPACES.items() if set(names) <= set(known))
        text += "".join(f"using namespace {n};\n" for n in spaces)
        text += "".join(f"#undef {n}\nSTOKER_EMULATED({n}, {n}_body)\n" for n in names)
        return str(compiled(self.folder, text)).encode()


class EmulatedStages(EmulatedGpu):
    """Null device with emulated stages. Its JPEG decoder does nothing, so the CPU decodes."""

    def compiled(self, source: str) -> bytes:
        return b"" if "jpeg" in source else super().compiled(source)


class IdleGpu(EmulatedGpu):
    """Null device on which every kernel exists and does nothing, for tests of memory and order."""

    def compiled(self, source: str) -> bytes:
        return b""


def entries_of(source: str) -> tuple[str, ...]:
    """Return the kernels in generated source."""
    if source == VIDEO_SOURCE:
        return (VIDEO_KERNEL,)
    for kernels in (JPEG_SOURCES, ENGINE_SOURCES, RECIPE_SOURCES, POOL_SOURCES):
        if any(text == source for _, text in kernels):
            return tuple(name for name, text in kernels if text == source)
    for macro, names in LIBRARY.items():
        if f"\n{macro}(" in source or f"\n{macro}\n" in source:
            return names
    passes = re.findall(r"STOKER_PASS\((\w+),", source)
    if passes:
        return tuple(passes)
    return tuple(name for name in ENTRIES if f"\n{name.upper()}(" in source or f"\n{name.upper()}\n" in source)


class Library:
    """Generated kernels of many stages, compiled for the CPU in one library."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = ""
        self.interpolators: dict[str, tuple[str, ...]] = {}
        self.functions: list[tuple[Stage, tuple[str, ...], StageSource]] = []
        self.device = _native.gpu.open_null()

    def _add(self, text: str, number: str, names: Sequence[str]) -> tuple[str, ...]:
        shown = tuple(f"{name}_{number}" for name in names)
        self.text += "".join(f"#define {n} {n}_{number}_body\n" for n in ENTRIES)
        self.text += text.replace("Program", f"Program{number}")
        self.text += "".join(f"#undef {n}\n" for n in ENTRIES)
        self.text += "".join(f"STOKER_EMULATED({n}, {n}_body)\n" for n in shown)
        return shown

    def add(self, stage: Stage) -> None:
        source = stage.source()
        names = self._add(source.stage, str(len(self.functions)), ["stoker_stage"])
        for name, text in source.interpolators:
            if text not in self.interpolators:
                self.interpolators[text] = self._add(text, f"interpolator{len(self.interpolators)}", [name])
            names += self.interpolators[text]
        self.functions.append((stage, names, source))

    def compile(self) -> None:
        self.module = self.device.load(str(compiled(self.folder, self.text)).encode())

    def kernels(self) -> list[tuple[Stage, Any]]:
        """Return every stage with its kernel on the null device."""
        found = []
        for stage, names, source in self.functions:
            functions = [self.module.function(n) for n in names]
            found += forms(stage, functions, source)
        return found


def forms(stage: Stage, functions: Sequence[Any], source: StageSource) -> list[tuple[Stage, Any]]:
    """Return the kernel of a stage, and the variant without combined resampling passes or pairs, if there are any."""
    shifted = any(name in SHIFTED for name, _ in source.interpolators)
    more = len(functions) - {"resample": 3, "affine": 2 + shifted}.get(stage.interpolator, 1)
    variants = [functions, functions[:-more]] if more else [functions]
    return [(stage, _native.gpu.stage(*stage.arguments(), f, list(source.uniforms))) for f in variants]


class CudaLibrary:
    """The same library on a GPU."""

    def __init__(self) -> None:
        self.gpu = Gpu.open(0)
        self.device = self.gpu.device
        self.stages: list[tuple[Stage, StageSource]] = []

    def add(self, stage: Stage) -> None:
        self.stages.append((stage, stage.source()))

    def compile(self) -> None:
        """Compile all kernels together, into the kernel cache."""
        sources = {text for _, source in self.stages for text in (source.stage, *(t for _, t in source.interpolators))}
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            list(pool.map(compile_kernels, sources, [self.device.architecture] * len(sources)))

    def kernels(self) -> list[tuple[Stage, Any]]:
        found = []
        for stage, source in self.stages:
            functions = [self.gpu.load(source.stage).function("stoker_stage")]
            functions += [self.gpu.load(text).function(name) for name, text in source.interpolators]
            found += forms(stage, functions, source)
        return found


def run(stage: Stage, kernel: Any, rows: Sequence[Row], device: Any = None) -> tuple[list[list[np.ndarray]], list[str]]:
    """Return outputs and errors ("" without an error) of every row."""
    numbers = len(rows[0].numbers)
    shapes = [s for shape in rows[0].shapes for s in shape]
    plan = _native.Plan()
    for t, x in zip(stage.in_types, rows[0].inputs, strict=True):
        plan.add_value(int(t), x.ndim, INPUT, 0)
    numbers_at = len(rows[0].inputs)
    plan.add_value(int(DType.FLOAT64), 1, INPUT, 0)
    values = range(numbers_at + 1, numbers_at + 1 + len(stage.out_types))
    for slot, (t, shape) in enumerate(zip(stage.out_types, rows[0].shapes, strict=True)):
        plan.add_value(int(t), len(shape), OUTPUT, slot)
    code = Compiler(lambda v: v)
    elements = [code.register(Expr("elem", numbers_at, i, 0)) for i in range(numbers + len(shapes))]
    rest = iter(elements[numbers:])
    extents = [[next(rest) for _ in shape] for shape in rows[0].shapes]
    plan.add_step(
        kernel, list(range(numbers_at)), list(values), code.code, code.consts, elements[:numbers], extents, [], [], -1,
        [0] * numbers_at, False,
    )  # fmt: skip
    plan.add_segment(ON_DEVICE if device else ON_CPU, [0], list(range(len(values))))
    for v, registers in zip(values, extents, strict=True):
        plan.add_output(v, False, bool(device), [], code.code, code.consts, registers)
    plan.finish(0, 0)
    engine = _native.Engine(plan, 1, device)
    keys = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int64)
    job = engine.acquire(*keys, 0, ())
    fed = []
    for r, row in enumerate(rows):
        row_numbers = np.array([*row.numbers, *(s for shape in row.shapes for s in shape)], np.float64)
        fed.append(row_numbers)
        for i, x in enumerate((*row.inputs, row_numbers)):
            job.feed(i, r, x)
    engine.begin(job)
    assert engine.advance(job) is None
    errors = [""] * len(rows)
    for r, *_, text in job.errors:
        errors[r] = text.decode()
    outputs = [rows_of(job.take_output(o), t) for o, t in enumerate(stage.out_types)]
    engine.release(job)
    engine.close()
    return [[o[r] for o in outputs] if not e else [] for r, e in enumerate(errors)], errors


def rows_of(output: Any, dtype: DType) -> Any:
    """Return the rows of an output as arrays, from host or device memory."""
    if isinstance(output, list):
        return [rows_of(row, dtype) for row in output]
    if isinstance(output, np.ndarray):
        return output.copy()
    return np.frombuffer(output.to_host(), dtype.numpy).reshape(output.shape)


def reference(stage: Stage, rows: Sequence[Row]) -> tuple[list[list[np.ndarray]], list[str]]:
    return run(stage, _native.kernels.stage(*stage.arguments()), rows)


def is_nan(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Return a mask of NaNs in an output; NumPy has the bits of bfloat16."""
    return (x & 0x7FFF) > 0x7F80 if dtype == DType.BFLOAT16 else np.isnan(x)


def assert_same(stage: Stage, kernel: Any, rows: Sequence[Row], device: Any) -> None:
    """Check that every output has equal bits, except the bits of a NaN."""
    want, want_errors = reference(stage, rows)
    got, errors = run(stage, kernel, rows, device)
    assert errors == want_errors
    for r, (a, b) in enumerate(zip(got, want, strict=True)):
        for x, y, dtype in zip(a, b, stage.out_types, strict=False):  # a failed row has no output
            assert x.dtype == y.dtype and x.shape == y.shape
            different = x.view(f"u{x.itemsize}") != y.view(f"u{y.itemsize}")
            if dtype.is_float:
                different &= ~(is_nan(x, dtype) & is_nan(y, dtype))
            assert not different.any(), (r, np.argwhere(different)[:3], x[different][:3], y[different][:3], stage)
