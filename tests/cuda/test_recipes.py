# SPDX-License-Identifier: Apache-2.0
"""Recipes on a GPU: the bits of the CPU's interpreter, step by step and in chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
from recipe_cases import BLUR, CASES, LEFT_OUT, OPS, Case, Steps, h, table, w

from stoker.contract.types import DType
from stoker.device.gpu import Gpu
from stoker.native import _native
from stoker.ops.image.recipe import SOURCES


@pytest.fixture(scope="module", params=["emulated", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def gpu(request: pytest.FixtureRequest, kernel_folder: Path) -> Gpu:
    if request.param == "cuda":
        return Gpu.open(0)
    return emulated_stages.EmulatedGpu(kernel_folder)


SIZES = (40_000, 1_000)
# Steps whose first numbers are the height and width of their image.
SIZED = ("Resize", "Affine", "Project", "TorchResize", "TorchResizeFloats", "TorchPick", "TorchWarp", "TorchGrid")


def run(kernel: Any, cases: Sequence[Case], device: Any) -> tuple[list[list[np.ndarray]], list[str]]:
    """Return outputs and errors of every row. Bytes that no kernel writes keep a fill value."""
    plan = _native.Plan()
    for dtype in (DType.UINT8, DType.FLOAT64, DType.UINT8):
        plan.add_value(int(dtype), 1, emulated_stages.INPUT, 0)
    for slot in range(len(SIZES)):
        plan.add_value(int(DType.UINT8), 1, emulated_stages.OUTPUT, slot)
    outs = [3 + i for i in range(len(SIZES))]
    consts = [float(size) for size in SIZES]
    from stoker.graph.scalar_code import Compiler

    code = Compiler(lambda v: v)
    extents = [[code.register(size)] for size in consts]
    plan.add_step(kernel, [0, 1, 2], outs, code.code, code.consts, [], extents, [], [], -1, [0] * 3, False)
    plan.add_segment(emulated_stages.ON_DEVICE if device else emulated_stages.ON_CPU, [0], list(range(len(SIZES))))
    for v, size in zip(outs, SIZES, strict=True):
        plan.add_output(v, True, bool(device), [size], code.code, code.consts, [])
    plan.finish(0, 0)
    engine = _native.Engine(plan, 1, device)
    rows = len(cases)
    job = engine.acquire(np.arange(rows, dtype=np.uint64), np.zeros(rows, np.int64), 0, ())
    fed = [(np.ascontiguousarray(c.pixels).reshape(-1), c.program(), c.blob()) for c in cases]
    for r, arrays in enumerate(fed):
        for i, x in enumerate(arrays):
            job.feed(i, r, x)
    engine.begin(job)
    assert engine.advance(job) is None
    errors = [""] * rows
    for r, *_, text in job.errors:
        errors[r] = text.decode()
    outputs = [emulated_stages.rows_of(job.take_output(o), DType.UINT8) for o in range(len(SIZES))]
    engine.release(job)
    engine.close()
    return [[o[r] for o in outputs] for r in range(rows)], errors


def written(case: Case) -> list[list[tuple[int, int]]]:
    """Return the bytes of each output that a case writes: (first, end)."""
    places: list[list[tuple[int, int]]] = [[] for _ in SIZES]
    sizes: list[tuple[int, int, int]] = [(h, w, case.channels)]
    for at, (name, *params) in enumerate(case.steps):
        source, p = at, params
        if params and isinstance(params[-1], list):
            source, p = params[0], params[-1]
        height, width, channels = sizes[source]
        if name in SIZED:
            height, width = p[:2]
        elif name in ("Pad", "PadEdges"):
            height, width = p[2:4]
        elif name == "Crop":
            height, width = p[3] - p[1], p[2] - p[0]
        elif name == "Transpose" and p[0] in (2, 4, 5, 6):
            height, width = width, height
        channels = {"Luma": 1, "TorchLuma": 1, "Spread": 3}.get(name, channels)
        sizes.append((height, width, channels))
        if name == "Store":
            item = case.tables[p[2]][1] if p[2] >= 0 else 1
            places[p[0]].append((p[1], p[1] + height * width * channels * item))
    return places


def different(cases: Sequence[Case], want: list[list[np.ndarray]], got: list[list[np.ndarray]]) -> list[str]:
    """Return the cases in which any written byte differs."""
    return [
        case.name
        for case, a, b in zip(cases, want, got, strict=True)
        if any(not np.array_equal(x[i:j], y[i:j]) for x, y, p in zip(a, b, written(case), strict=True) for i, j in p)
    ]


def test_the_bits_of_the_cpu(gpu: Gpu) -> None:
    functions = [gpu.load(source).function(name) for name, source in SOURCES]
    got, errors = run(_native.gpu.recipe(functions, len(SIZES)), CASES, gpu.device)  # first: memory has no results yet
    want, wrong = run(_native.kernels.recipe(len(SIZES)), CASES, None)
    assert wrong == errors == [""] * len(CASES)
    assert not different(CASES, want, got)


def rounded_mean(seed: int, lanes: int, threads: int, generation: int) -> Case:
    """Return a case whose exact mean is an integer, over many pixels. A sum that is rounded down gives one less."""
    enlarged, corner = ("Resize", 23 * h, 23 * w, 0, h, 0, w, 0, 0), ("Crop", 0, 0, 2, 2)
    contrast = ("TorchContrast", generation, 0.0, lanes, threads)
    case = Case(f"mean {seed} {lanes} {threads}", [enlarged, contrast, corner, ("Store", 0, 0, -1)], channels=1)
    random = np.random.default_rng(seed)
    values = random.integers(150, 250, h * w)
    missing = round(values.mean()) * h * w - int(values.sum())
    values[random.permutation(h * w)[: abs(missing)]] += np.sign(missing)
    case.pixels[2:, 1:-1, 0] = values.reshape(h, w)
    return case


def test_a_rounded_sum_is_rounded_alike(gpu: Gpu) -> None:
    orders = ((8, 1, 1), (8, 6, 2), (16, 2, 2))
    cases = [rounded_mean(seed, *order) for seed in range(6) for order in orders]
    functions = [gpu.load(source).function(name) for name, source in SOURCES]
    got, errors = run(_native.gpu.recipe(functions, len(SIZES)), cases, gpu.device)
    want, wrong = run(_native.kernels.recipe(len(SIZES)), cases, None)
    assert wrong == errors == [""] * len(cases)
    assert [int(a[0][0]) for a in got] == [int(b[0][0]) for b in want]
    exact = [round(float(case.pixels[2:, 1:-1].mean())) for case in cases]
    assert {int(b[0][0]) - e for b, e in zip(want, exact, strict=True)} == {0, -1}


def test_all_steps_are_compared() -> None:
    from stoker.frontends.torchvision.gpu.grouping import GPU_STEPS

    assert {OPS[name] for case in CASES for name, *_ in case.steps} | {OPS[n] for n in LEFT_OUT} == GPU_STEPS


def bad(steps: Steps, *tables: tuple[np.ndarray, int], change: Callable[[Any], Any] = lambda numbers: numbers) -> Case:
    case = Case("bad", steps, *tables)
    program = change(case.program())
    case.program = lambda: program  # type: ignore[method-assign]
    return case


def test_invalid_recipes_are_refused(gpu: Gpu) -> None:
    store = ("Store", 0, 0, -1)
    cases = [
        bad([("Crop", 0, 0, w + 1, 2), store]),
        bad([("Map", 3), store], table(1)),
        bad([("Map", 0), store], table(1, 1, "float32")),
        bad([("Store", 0, 39_000, -1)]),
        bad([("Store", 2, 0, -1)]),
        bad([("Store", 0, -4, -1)]),
        bad([("Hue", 5, [3]), store]),
        bad([("Resize", 0, 4, 0, h, 0, w, 1, 0), store]),
        bad([("Affine", 5, 5, float("nan"), 0, 0, 0, 1, 0, 0, 0, 0, 0), store]),
        bad([("Correlate", 7, 3, 3, *BLUR), store]),
        bad([("TorchGrid", 50, 50, 1, 0, 0, 0, 0, 0), store], table(1)),
        bad([("Store", 0, 0, 0), ("Patch", 0, 0, 4, h, w, 0, 3, 0, h + 1, 0, w, 1, 0)], table(1, 1, "float32")),
        bad([("Store", 0, 0, 0), ("Patch", 0, 0, 4, h, w, 0, 3, 0, h, 0, w, 0, 0)], table(1, 1, "float32")),
        bad([store], change=lambda numbers: numbers[:-1]),
        bad([store], change=lambda numbers: np.concatenate([[9.0], numbers[1:]])),
        bad([store], table(1), change=lambda numbers: np.concatenate([numbers[:1], [4096.0], numbers[2:]])),
        bad([("Mix", 3, 0, 1, 0), store], table(1)),
        bad([("Blend", 3, 0.5), store]),
        bad([("Resize", 300, 300, 0, h, 0, w, 0, 0), ("TorchContrast", 2, 0.5, 0, 1), ("Crop", 0, 0, 9, 9), store]),
        bad([("Resize", 300, 300, 0, h, 0, w, 0, 0), ("TorchContrast", 2, 0.5, 8, 0), ("Crop", 0, 0, 9, 9), store]),
        bad([("TorchHue", 1, 0.6), store]),
        bad([("TorchResize", 9, 9, 2, 0), store]),
        bad([("TorchResizeFloats", 9, 9, 2, 0), store]),
        bad([("TorchResizeFloats", 9, 9, 1, 2), store]),
        bad([("TorchResizeFloats", 9, 9, 0, 4), store]),
        bad([("Crop", 0, 0, 9, 9), ("Blend", 0, [1, 0.5]), store]),
        bad([("Blur", 9999, 1, 1, 0), store]),
        bad([store], change=lambda numbers: np.array([])),
        Case("good", [store]),
    ]
    functions = [gpu.load(source).function(name) for name, source in SOURCES]
    _, wrong = run(_native.kernels.recipe(len(SIZES)), cases, None)
    _, errors = run(_native.gpu.recipe(functions, len(SIZES)), cases, gpu.device)
    assert errors[-1] == wrong[-1] == ""
    assert all(errors[:-1]) and all(wrong[:-1]), (errors, wrong)


def test_a_planted_difference_is_detected() -> None:
    """The comparison finds a difference in any byte that a case writes, and in no other."""
    want, _ = run(_native.kernels.recipe(len(SIZES)), CASES, None)
    for case, outputs in zip(CASES, want, strict=True):
        places = [(o, at) for o, parts in enumerate(written(case)) for i, j in parts for at in (i, j - 1)]
        assert places, case.name
        for o, at in places:
            changed = [output.copy() for output in outputs]
            changed[o][at] ^= 1
            assert different([case], [outputs], [changed]) == [case.name]
    ends = [max((j for _, j in parts), default=0) for parts in written(CASES[0])]
    changed = [output.copy() for output in want[0]]
    for output, end in zip(changed, ends, strict=True):
        output[end:] ^= 1
    assert not different(CASES[:1], want[:1], [changed])
