# SPDX-License-Identifier: Apache-2.0
"""Shared code of operators on complex spectra: their arguments, and their meaning in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType
from ...native import _native
from ._signals import MAX_NFFT, at_least, blocks_of_frames, fft_table

PAIR = "ftC"  # layout of complex spectra; C: real and imaginary part
_SAMPLES = 1024  # of a GPU block that adds frames (native/device/own_istft.cuh)


class FrameArguments(Operator):
    """Arguments of short-time Fourier transforms."""

    nfft = arg("int", None, doc="Points of the transform; by default `window_length`. Larger: zeros around the frame.")
    window_length = arg("int", 512, doc="Samples of a frame.")
    window_step = arg("int", 256, doc="Samples from one frame to the next.")
    window_fn = arg("float", None, many=True, doc="Factors of a frame's samples; by default a periodic Hann window.")


def periodic_hann(length: int) -> Any:
    """Return ``0.5 (1 - cos(2 pi n / N))`` as float32, the default window of librosa and SciPy."""
    turns = _native.xmath("cos_pi", 2.0 * np.arange(length) / length)
    return (0.5 * (1 - turns)).astype(np.float32)


def window_of(given: Any, length: int) -> Any:
    """Return the window as float32."""
    if given is None:
        return periodic_hann(length)
    with np.errstate(over="ignore"):
        return np.asarray(given, np.float64).astype(np.float32)


class Framing:
    """Checked arguments of frames: points, window, step, and the first sample of the first frame's window."""

    def __init__(self, c: Lowering) -> None:
        length, self.step = at_least(c, "window_length", 1), at_least(c, "window_step", 1)
        self.nfft = length if c.const("nfft") is None else at_least(c, "nfft", 1)
        c.expect(
            length <= self.nfft <= MAX_NFFT,
            f"expected `nfft` from {length} (`window_length`) to {MAX_NFFT}, got {self.nfft}",
        )
        self.window = window_of(c.const("window_fn"), length)
        c.expect(
            len(self.window) == length,
            f"expected {length} numbers as `window_fn` (`window_length`), got {len(self.window)}",
        )
        c.expect(bool(np.isfinite(self.window).all()), "expected finite numbers as `window_fn`, which float32 can hold")
        self.bins = self.nfft // 2 + 1

    def start(self, center: bool) -> int:
        """Return the first sample of the first window."""
        return (self.nfft - len(self.window)) // 2 - (self.nfft // 2 if center else 0)

    def forward(self, c: Lowering, x: Value, center: bool, reflect: bool) -> Value:
        """Return the spectra of a signal, `(bins, frames, 2)`."""
        n = x.shape[0]
        if center:
            c.require(n > 0, "expected a signal with samples, got none")
            frames: Scalar = (n + 2 * (self.nfft // 2) - self.nfft) // self.step + 1
        else:
            c.require(n >= self.nfft, "expected a signal of at least {1} samples (`nfft`), got {0}", n, self.nfft)
            frames = ex.maximum(n - self.nfft, 0) // self.step + 1
        shape = (self.bins, frames, 2)
        block, start = blocks_of_frames(self.nfft), self.start(center)
        own = Launches("Stft", {"frames": self._launch(frames)}, frames * block.device_bytes)
        reflect = center and reflect
        return c.native(
            "stft", [x, c.constant(self.window), fft_table(c, self.nfft)], [(DType.FLOAT, shape, PAIR)],
            attrs=(self.nfft, self.step, reflect), own=own,
            params=(frames, start, self.nfft, self.step, int(reflect), 0, 0, *block.numbers),
        )[0]  # fmt: skip

    def _launch(self, frames: Scalar) -> LaunchPass:
        block = blocks_of_frames(self.nfft)
        return block.launch((frames + block.frames - 1) // block.frames)

    def whole_length(self, frames: Scalar, center: bool) -> Scalar:
        """Return the samples that frames cover, without the extension of a centred signal."""
        length = (frames - 1) * self.step + self.nfft - (2 * (self.nfft // 2) if center else 0)
        covered: Scalar = ex.where(frames > 0, ex.maximum(length, 0), 0)
        return covered

    def inverse(self, c: Lowering, x: Value, center: bool, length: Scalar) -> Value:
        """Return the signal with these spectra."""
        frames, block = x.shape[1], blocks_of_frames(self.nfft)
        passes = {"frames": self._launch(frames), "join": (length + _SAMPLES - 1) // _SAMPLES}
        own = Launches("Istft", passes, frames * (4 * self.nfft + block.device_bytes))
        return c.native(
            "istft", [x, c.constant(self.window), fft_table(c, self.nfft)], [(DType.FLOAT, (length,), "")],
            attrs=(self.nfft, self.step), params=(self.start(center), self.nfft, self.step, *block.numbers),
            own=own,
        )[0]  # fmt: skip


def expect_spectra(c: Lowering, x: Value) -> None:
    """Require complex spectra, as `stft` gives them."""
    c.expect(
        x.dtype == DType.FLOAT and x.rank == 3,
        f"expected complex spectra as `stft` gives, float32 (bins, frames, 2), got {x.dtype} with {x.rank} axes",
    )
    text = "expected real and imaginary parts along the last axis, got {0} numbers"
    c.require(ex.equal(x.shape[2], 2), text, x.shape[2])


class PlainFrames:
    """The same in NumPy, in double."""

    def __init__(self, row: RowContext) -> None:
        length = row["window_length"]
        self.step, self.nfft = row["window_step"], row["nfft"] or length
        offset = (self.nfft - length) // 2
        window = window_of(row["window_fn"], length).astype(np.float64)
        self.window = np.pad(window, (offset, self.nfft - length - offset))

    def forward(self, x: Any, center: bool = True, reflect: bool = True) -> Any:
        """Return complex spectra of a signal."""
        half = self.nfft // 2 if center else 0
        padded = np.pad(x.astype(np.float64), half, mode="reflect" if reflect else "constant")
        starts = range(0, len(padded) - self.nfft + 1, self.step)
        cut = np.stack([padded[s : s + self.nfft] for s in starts]) * self.window
        return np.fft.rfft(cut, axis=1).T

    def inverse(self, spectra: Any, length: int | None = None, center: bool = True) -> Any:
        """Return the signal of complex spectra."""
        half = self.nfft // 2 if center else 0
        frames = np.fft.irfft(spectra.T, self.nfft, axis=1) * self.window
        whole = np.zeros(max((len(frames) - 1) * self.step + self.nfft, 0))
        weights = np.zeros_like(whole)
        for t, frame in enumerate(frames):
            whole[t * self.step : t * self.step + self.nfft] += frame
            weights[t * self.step : t * self.step + self.nfft] += self.window**2
        whole = np.divide(whole, weights, out=whole, where=weights > 1e-11)
        end = len(whole) - half if length is None else half + length
        return np.pad(whole, (0, max(end - len(whole), 0)))[half:end]


def as_pairs(spectra: Any) -> Any:
    """Return complex numbers as float32 with a last axis of two."""
    return np.stack([spectra.real, spectra.imag], -1).astype(np.float32)


def as_complex(pairs: Any) -> Any:
    """Return :func:`as_pairs` as complex numbers in double."""
    return pairs[..., 0].astype(np.float64) + 1j * pairs[..., 1]
