# SPDX-License-Identifier: Apache-2.0
"""``stft``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext, Spec
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.streaming import StreamRule, framed
from ._signals import expect_floats, mono, signals
from ._transforms import PAIR, FrameArguments, Framing, PlainFrames, as_pairs


class Stft(FrameArguments, name="stft"):
    """Compute the complex spectra of overlapping frames (short-time Fourier transform). Input: one channel, float32
    ``(n,)`` or ``(n, 1)``. Output: float32 ``(nfft // 2 + 1, frames, 2)``, layout ftC: real and imaginary parts.

    With ``center_windows`` frame t has its centre at sample ``t * window_step``, and there are ``n // window_step + 1``
    frames (for an even ``nfft``). Otherwise frame t begins there, and only frames within the signal count. Values are
    those of ``torch.stft`` and ``librosa.stft``, whose complex results are ``torch.view_as_complex(output)`` and
    ``output.view(numpy.complex64)[..., 0]``. The largest error is about 4e-7 of a frame's largest value.
    """

    exactness = "within float32 rounding"
    center_windows = arg(
        "bool", True, doc="Extend the signal, so that frames have their centres at multiples of the step."
    )
    reflect_padding = arg("bool", True, doc="Extend by mirroring the signal (dcb|abcd|cba), else by zeros.")
    cases = (
        {"window_length": 64, "window_step": 20},
        {"nfft": 100, "window_length": 80, "window_step": 33, "reflect_padding": False},
        {"nfft": 74, "window_length": 50, "window_step": 25, "center_windows": False},
        {"nfft": 45, "window_length": 45, "window_step": 45, "window_fn": tuple([0.25] * 45)},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return signals(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        return Framing(c).forward(c, mono(c, x), c.const("center_windows"), c.const("reflect_padding"))

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        step, points = args["window_step"], args["nfft"] or args["window_length"]
        before = points // 2 if args["center_windows"] else 0
        return framed(
            PAIR.index("t"), points, step, lambda n: max(n + 2 * before - points, 0) // step + 1, before=before
        )

    def reference(self, row: RowContext, x: Any) -> Any:
        return as_pairs(PlainFrames(row).forward(x.reshape(-1), row["center_windows"], row["reflect_padding"]))
