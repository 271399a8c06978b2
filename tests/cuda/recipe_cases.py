# SPDX-License-Identifier: Apache-2.0
"""Recipes with every variant of every step, and chains of them: pixels, steps and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stoker.native import _native

OPS = {name: number for number, (name, *_) in enumerate(_native.recipe.OPS)}
LEFT_OUT = {"Decode", "Pixels", "Store"}  # in every case
H, W = 21, 34

Steps = list[tuple[Any, ...]]  # (name, parameters...), or (name, number of the image, [parameters])


class Case:
    """One row: pixels, steps (each on the previous one), tables as (array, bytes of a value)."""

    def __init__(self, name: str, steps: Steps, *tables: tuple[np.ndarray, int], channels: int = 3, flat: bool = False):
        self.name, self.steps, self.tables, self.channels = name, steps, tables, channels
        random = np.random.default_rng(sum(map(ord, name)))
        if flat:
            self.pixels = np.full((H, W, channels), 77, np.uint8)
        else:  # some structure, all values, a few saturated
            ramp = np.add.outer(np.arange(H) * 5, np.arange(W) * 4)[..., None] + np.arange(channels) * 40
            self.pixels = (ramp + random.integers(-60, 60, (H, W, channels))).clip(0, 255).astype(np.uint8)

    def program(self) -> np.ndarray:
        numbers: list[float] = [len(self.tables)]
        first = 0
        for data, item in self.tables:
            numbers += [first, item, data.size // (256 * item)]
            first += -(-data.size // 16) * 16
        numbers += [OPS["Pixels"], -1, H, W, self.channels, 0, 1, 2, W - 1, H]
        for at, (name, *params) in enumerate(self.steps):
            source, arguments = at, params
            if params and isinstance(params[-1], list):
                source, arguments = params[0], params[-1]
            numbers += [OPS[name], source, *arguments]
        return np.array(numbers, np.float64)

    def blob(self) -> np.ndarray:
        parts = [np.zeros(-(-data.size // 16) * 16, np.uint8) for data, _ in self.tables]
        for part, (data, _) in zip(parts, self.tables, strict=True):
            part[: data.size] = data
        return np.concatenate(parts) if parts else np.zeros(16, np.uint8)


def table(seed: int, channels: int = 1, dtype: Any = np.uint8) -> tuple[np.ndarray, int]:
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "u":
        values = random.integers(0, 256, 256 * channels).astype(dtype)
    else:
        values = random.normal(0, 90, 256 * channels).astype(dtype)
    return values.view(np.uint8), dtype.itemsize


h, w = H - 2, W - 2  # windows that Pixels cuts out
RESIZE = [("Resize", 12, 20, 0, h, 0, w, f, older) for f in (0, 1, 2, 3, 6, 7) for older in (0, 1)] + [
    ("Resize", 40, 9, 2.5, 15.0, 1, 30, 1, 0),
    ("Resize", h, 12, 0, h, 0, w, 2, 0),
    ("Resize", 3, 40, 0, h, 0, w, 1, 0),
]
TURN = [0.9, 0.2, 1.5, -0.3, 1.1, 2.0]
BLUR = [1 / 9] * 9


def geometry() -> Iterator[Case]:
    """Yield every variant of the steps that only move pixels."""
    for i, step in enumerate(RESIZE):
        yield Case(f"resize {i}", [step, ("Store", 0, 0, -1)])
    for kind in range(7):
        yield Case(f"transpose {kind}", [("Transpose", kind), ("Store", 0, 0, -1)])
    affine = [
        (TURN, 0),
        (TURN, 1),
        ([1.2, 0, -1, 0, 0.7, 3], 0),
        ([1e5, 0.1, 0, 0.3, 9e4, 0], 0),
        ([1, 0, 40000, 0, 1, 0.5], 1),
    ]
    for i, (m, linear) in enumerate(affine):
        yield Case(f"affine {i}", [("Affine", 17, 23, *m, linear, 9, 90, 200), ("Store", 0, 0, -1)])
    for projective in (0, 1):
        for sampling in range(1 - projective, 3):
            step = ("Project", 17, 23, *TURN, 0.004, -0.003, projective, sampling, 9, 90, 200)
            yield Case(f"project {projective} {sampling}", [step, ("Store", 0, 0, -1)])
    yield Case("pad", [("Pad", 3, 2, h + 6, w + 4, 1, 2, 3), ("Store", 0, 0, -1)])
    for border in range(4):
        yield Case(f"edges {border}", [("PadEdges", 4, 3, h + 9, w + 5, border), ("Store", 0, 0, -1)])


def colors() -> Iterator[Case]:
    """Yield every variant of the steps that only change colours."""
    yield Case("map", [("Map", 0), ("Store", 0, 0, -1)], table(1))
    yield Case("map by channel", [("Map", 1), ("Store", 0, 0, -1)], table(1), table(2, 3))
    yield Case("luma, spread", [("Luma",), ("Spread",), ("Store", 0, 0, -1)])
    for factor in (0.0, 0.37, 1.0, 1.8):
        for name in ("Contrast", "Saturate", "Sharpen"):
            yield Case(f"{name} {factor}", [(name, factor), ("Store", 0, 0, -1)])
        for generation in (1, 2):
            for name in ("TorchSaturate", "TorchSharpen"):
                yield Case(f"{name} {generation} {factor}", [(name, generation, factor), ("Store", 0, 0, -1)])
            step = ("TorchContrast", generation, factor, 0, 1)
            yield Case(f"torch contrast {generation} {factor}", [step, ("Store", 0, 0, -1)])
    for lanes, threads, channels in ((8, 1, 3), (16, 6, 3), (4, 11, 1)):
        large, window = ("Resize", 301, 417, 0, h, 0, w, 1, 0), ("Crop", 5, 6, 40, 50)
        step = ("TorchContrast", 1 + lanes // 16, 0.3, lanes, threads)
        name = f"torch contrast of many {lanes} {threads}"
        yield Case(name, [large, step, window, ("Store", 0, 0, -1)], channels=channels)
    yield Case("contrast of gray", [("Contrast", 0.6), ("Store", 0, 0, -1)], channels=1)
    yield Case("sharpness of gray", [("Sharpen", 1.6), ("Store", 0, 0, -1)], channels=1)
    for shift in (0, 17, 128, 255):
        yield Case(f"hue {shift}", [("Hue", shift), ("Store", 0, 0, -1)])
    for shift in (-0.5, -0.1, 0.0, 0.23, 0.5):
        for generation in (1, 2):
            yield Case(f"torch hue {generation} {shift}", [("TorchHue", generation, shift), ("Store", 0, 0, -1)])
    for flat in (False, True):
        for name in ("Autocontrast", "Equalize", "TorchEqualize"):
            yield Case(f"{name} {flat}", [(name,), ("Store", 0, 0, -1)], flat=flat)
        for generation in (1, 2):
            yield Case(
                f"stretch {generation} {flat}", [("TorchAutocontrast", generation), ("Store", 0, 0, -1)], flat=flat
            )
    for generation in (1, 2):
        yield Case(f"torch luma {generation}", [("TorchLuma", generation), ("Store", 0, 0, -1)])


def as_torch() -> Iterator[Case]:
    """Yield filters, and steps with torch's arithmetic."""
    yield Case("correlate", [("Correlate", 11, 3, 3, *BLUR), ("Store", 0, 0, -1)])
    yield Case("correlate wide", [("Correlate", 12, 2, 5, *np.linspace(-0.2, 0.5, 10)), ("Store", 0, 0, -1)])
    for f in range(3):
        for size in ((12, 50), (h, 40), (9, w), (h, w), (60, 7)):
            for smooth in (0, 1) if f < 2 else (1,):
                step = ("TorchResize", *size, f, smooth)
                yield Case(f"torch resize {f} {smooth} {size}", [step, ("Store", 0, 0, -1)])
            for way in ((0, 1, 2, 3), (0, 1, 3), ())[f]:
                step = ("TorchResizeFloats", *size, f, way)
                for channels in (1, 3):
                    name = f"torch resize by floats {f} {way} {size} {channels}"
                    yield Case(name, [step, ("Store", 0, 0, -1)], channels=channels)
    for exact in (0, 1):
        for size in ((12, 50), (2 * h, w), (h, w)):
            yield Case(f"pick {exact} {size}", [("TorchPick", *size, exact), ("Store", 0, 0, -1)])
    grid = [0.06, 0.01, 0.1, -0.012, 0.09, -0.05, 0.001, -0.002]
    for projective in (0, 1):
        for linear in (0, 1):
            for fills in (0, 1, 2):
                step = ("TorchWarp", 17, 23, *grid, projective, linear, fills, 9, 90.5, 200)
                yield Case(f"torch warp {projective} {linear} {fills}", [step, ("Store", 0, 0, -1)])
    points = np.random.default_rng(5).uniform(-1.2, 1.2, 11 * 13 * 2).astype(np.float32).view(np.uint8)
    memory = np.zeros(2048, np.uint8)
    memory[: points.size] = points
    for linear in (0, 1):
        step = ("TorchGrid", 11, 13, linear, 1, 5, 6, 7, 0)
        yield Case(f"grid {linear}", [step, ("Store", 0, 0, -1)], (memory, 1))
    yield Case("channels", [("Channels", 2, 0, 1), ("Store", 0, 0, -1)])
    for radius in ((0, 0, 3, 1), (1.3, 0.4, 3, 1), (0, 2.5, 1, 0), (6, 5, 2, 0)):
        yield Case(f"blur {radius}", [("Blur", *radius), ("Store", 0, 0, -1)])
    yield Case(
        "mix",
        [("Map", 0), ("Hue", 0, [30]), ("Mix", 1, [5, 1, 2, 2, 0, 1]), ("Store", 0, 0, -1)],
        table(1), table(3, 1, np.float32), table(4, 3, np.float32),
    )  # fmt: skip

    for factor in (-0.4, 0.0, 0.3, 1.0, 2.2):
        other: Steps = [("Map", 0), ("Transpose", 0, [3]), ("Blend", 1, [2, factor]), ("Store", 0, 0, -1)]
        yield Case(f"blend {factor}", other, table(1))
    yield Case("blend of views", [("Transpose", 0), ("Blend", 0, [1, 0.4]), ("Hue", 9), ("Store", 0, 0, -1)])


def outputs() -> Iterator[Case]:
    """Yield the kinds of outputs and stores."""
    yield Case("crop", [("Crop", 3, 2, 20, 11), ("Store", 0, 0, -1)])
    for dtype in ("uint16", "float32", "float64", "uint8"):
        yield Case(f"stored {dtype}", [("Store", 0, 0, 0)], table(6, 3, dtype))
    noise = np.random.default_rng(8).normal(0, 1, 3 * 4 * 5).astype(np.float32).view(np.uint8)
    values = np.zeros(256, np.uint8)
    values[: noise.size] = noise
    patch = [0, 0, 4, h, w, 0, 3, 2, 6, 7, 12, 0, 1]
    one = [0, 0, 4, h, w, 1, 3, 3, 9, 0, 7, 1, 1]
    tables = (table(6, 3, "float32"), (values, 1))
    yield Case("patched", [("Store", 0, 0, 0), ("Patch", 1, patch), ("Patch", 1, one)], *tables)


def chains() -> Iterator[Case]:
    """Yield steps on results of other steps, reused memory, several outputs of a file."""
    random = np.random.default_rng(11)
    plain: Steps = [
        ("Contrast", 1.4), ("Saturate", 0.3), ("Hue", 40), ("Sharpen", 1.7), ("Equalize",), ("Autocontrast",),
        ("Transpose", 0), ("Transpose", 3), ("TorchHue", 2, 0.2), ("TorchContrast", 2, 0.5, 0, 1),
        ("TorchSharpen", 2, 1.5), ("Blur", 0.8, 0.8, 3, 1), ("Channels", 1, 2, 0), ("Map", 0), ("Crop", 1, 1, 15, 12),
        ("Pad", 2, 1, 30, 40, 5, 6, 7), ("Resize", 19, 16, 0, 12, 0, 14, 1, 0),
        ("TorchResize", 13, 20, 1, 1), ("Affine", 15, 18, *TURN, 1, 0, 0, 0),
        ("Luma",), ("Spread",),
    ]  # fmt: skip
    moved = [("Crop", 1, 1, 15, 12), ("Resize", 24, 28, 0, 11, 0, 14, 1, 0)]
    for i in range(12):
        some = [plain[k] for k in random.permutation(14)[: 3 + i % 5]]
        name = f"chain {i}"
        yield Case(name, [*some, *moved, *some[::-1], ("Store", 0, 0, 1)], table(1), table(2, 3, np.float32))
    yield Case(
        "views of a file",
        [
            ("Hue", 0, [9]), ("Transpose", 1, [2]), ("Resize", 0, [8, 9, 0, h, 0, w, 1, 0]), ("Luma", 3, []),
            ("Store", 2, [0, 0, -1]), ("Spread", 4, []), ("Store", 6, [0, 3 * h * w, 0]), ("Store", 3, [1, 64, -1]),
        ],
        table(2, 3),
    )  # fmt: skip


CASES = [*geometry(), *colors(), *as_torch(), *outputs(), *chains()]
