# SPDX-License-Identifier: Apache-2.0
"""``spectrogram``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar, is_static
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.samples import Rows
from ...contract.step import Joint, Launches, LaunchPass, Value
from ...contract.streaming import StreamRule, framed
from ...contract.types import DType
from ...native import _native
from ._signals import (
    MAX_NFFT,
    MOST_FRAMES,
    SPECTRA,
    at_least,
    blocks_of_frames,
    complex_points,
    expect_floats,
    fft_table,
    in_tiles,
    mono,
    signals,
    without_factors,
)  # fmt: skip


class Spectrogram(Operator, name="spectrogram"):
    """Compute the power of the spectrum of overlapping frames (a short-time Fourier transform). Input: a signal of one
    channel, float32 ``(n,)`` or ``(n, 1)``. Output: float32 ``(nfft // 2 + 1, frames)``, layout ft, or tf.

    With ``center_windows`` frame t has its centre at sample ``t * window_step``, and there are ``n // window_step + 1``
    frames. Otherwise frame t begins there, and only frames within the signal count; a signal that is less than one step
    too short for a window is filled up with zeros. Any ``nfft`` works; products of 2, 3 and 5 are fast. The largest
    error is about 4e-7 of a frame's largest value. Bits depend neither on the machine nor on the other frames.

    Source: DALI's operator. Its Hann window is ``0.5 (1 - cos(2 pi (n + 1/2) / N))``, half a sample from the periodic
    window of librosa and torchaudio, which can be given as ``window_fn``.
    """

    exactness = "within float32 rounding"
    nfft = arg("int", None, doc="Points of the transform; by default `window_length`. Larger: zeros around the frame.")
    window_length = arg("int", 512, doc="Samples of a frame.")
    window_step = arg("int", 256, doc="Samples from one frame to the next.")
    window_fn = arg("float", None, many=True, doc="Factors of the samples of a frame; by default a Hann window.")
    power = arg("int", 2, choices=(1, 2), doc="Exponent of the magnitude: 2 for the power, 1 for the magnitude.")
    center_windows = arg(
        "bool", True, doc="Extend the signal, so that frames have their centres at multiples of the step."
    )
    reflect_padding = arg("bool", True, doc="Extend by mirroring the signal (dcb|abcd|cba), else by zeros.")
    layout = arg("str", "ft", choices=("ft", "tf"), doc='Axes of the output: "ft" or "tf".')
    cases = (
        {"window_length": 64, "window_step": 20},
        {"nfft": 100, "window_length": 80, "window_step": 33, "layout": "tf", "power": 1, "reflect_padding": False},
        {"nfft": 74, "window_length": 50, "window_step": 25, "center_windows": False},
        {"nfft": 45, "window_length": 45, "window_step": 45, "window_fn": tuple([0.25] * 45)},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return signals(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        x = mono(c, x)
        length, step = at_least(c, "window_length", 1), at_least(c, "window_step", 1)
        nfft = length if c.const("nfft") is None else at_least(c, "nfft", 1)
        c.expect(
            length <= nfft <= MAX_NFFT, f"expected `nfft` from {length} (`window_length`) to {MAX_NFFT}, got {nfft}"
        )
        window = window_of(c.const("window_fn"), length)
        c.expect(bool(np.isfinite(window).all()), "expected finite numbers as `window_fn`, which float32 can hold")
        c.expect(
            len(window) == length, f"expected {length} numbers as `window_fn` (`window_length`), got {len(window)}"
        )
        n, center = x.shape[0], c.const("center_windows")
        if center:
            c.require(n > 0, "expected a signal with samples, got none")
            frames, start = n // step + 1, -(length // 2)
        else:
            text = "expected a signal of more than {1} samples (`window_length` - `window_step`), got {0}"
            c.require(ex.both(n > 0, n > length - step), text, n, max(length - step, 0))
            frames, start = ex.maximum(n - length, 0) // step + 1, 0
        by_time = c.const("layout") == "tf"
        bins = nfft // 2 + 1
        shape = (frames, bins) if by_time else (bins, frames)
        table = fft_table(c, nfft)
        attrs = (nfft, step, center and c.const("reflect_padding"), c.const("power") == 1, by_time)
        own, numbers = _launches(nfft, frames)
        joint = Joint(SPECTRA, partial(_short_launches, nfft, frames)) if not numbers else None
        return c.native(
            "spectrogram", [x, c.constant(window), table], [(DType.FLOAT, shape, c.const("layout"))], attrs=attrs,
            params=(frames, start, *map(int, attrs), *numbers), own=own,
            tiles=in_tiles("samples", "columns", 0 if by_time else 1), joint=joint,
        )[0]  # fmt: skip

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        length, step = args["window_length"], args["window_step"]
        time = args["layout"].index("t")
        if args["center_windows"]:
            return framed(time, length, step, lambda n: n // step + 1, before=length // 2)
        return framed(time, length, step, lambda n: max(n - length, 0) // step + 1)

    def reference(self, row: RowContext, x: Any) -> Any:
        x, length, step = x.reshape(-1).astype(np.float64), row["window_length"], row["window_step"]
        nfft = row["nfft"] or length
        if row["center_windows"]:
            before = length // 2
            mode = "reflect" if row["reflect_padding"] else "constant"
            frames = len(x) // step + 1
        else:
            before, mode, frames = 0, "constant", max(len(x) - length, 0) // step + 1
        after = max((frames - 1) * step + length - before - len(x), 0)
        padded = np.pad(x, (before, after), mode=mode)  # type: ignore[call-overload]
        cut = np.stack([padded[t * step : t * step + length] for t in range(frames)])
        cut = cut * window_of(row["window_fn"], length).astype(np.float64)
        offset = (nfft - length) // 2
        spectrum = np.abs(np.fft.rfft(np.pad(cut, ((0, 0), (offset, nfft - length - offset))), axis=1))
        result = (spectrum ** row["power"]).astype(np.float32)
        return result if row["layout"] == "tf" else result.T


def window_of(given: Any, length: int) -> Any:
    """Return the window as float32: the given one, or DALI's Hann window."""
    if given is not None:
        with np.errstate(over="ignore"):
            return np.asarray(given, np.float64).astype(np.float32)
    turns = _native.xmath("cos_pi", 2 * (np.arange(length) + 0.5) / length)
    return (0.5 * (1 - turns)).astype(np.float32)


_BLOCK_POINTS = 4096  # of all frames of a block that transforms them in registers, 16 for each of its 256 threads
_SHARED_TABLE = 2048  # points of the longest transform with its factors in shared memory, fewer than two floats a point


def _launches(nfft: int, frames: Scalar) -> tuple[Launches, tuple[Scalar, ...]]:
    """Return the form for GPUs, and its numbers."""
    length = complex_points(nfft)
    if 1 < length <= _BLOCK_POINTS and without_factors(length) == 1:
        return _short_launches(nfft, frames), ()
    block = blocks_of_frames(nfft)
    one = block.launch((frames + block.frames - 1) // block.frames)
    return Launches("Spectrogram", {"frames": one}, frames * block.device_bytes), block.numbers


def _short_launches(nfft: int, frames: Scalar, filters: bool = False, sums: Scalar = 0) -> Launches:
    """Return the form for transforms in registers, compiled for their points (native/device/own_shortspectrogram.cuh).

    Args:
        nfft: points of the transform.
        frames: frames of the row.
        filters: filter the signal first.
        sums: rows of weights of sums over the bins; 0: return the bins themselves.
    """
    length = complex_points(nfft)
    count = 1 << min(_BLOCK_POINTS // length, 2 * MOST_FRAMES).bit_length() - 1
    points = length + (length - 1) // 16 | 1  # of a frame, with unused ones
    projects = not (is_static(sums) and sums == 0)
    shared = 8 * (count * points + (length if length <= _SHARED_TABLE else 0))
    one = LaunchPass((frames + count - 1) // count, 256, shared, shared, resident_threads=1024)
    return Launches("ShortSpectrogram", {"frames": one}, constants=(nfft, count, int(filters), int(projects)))
