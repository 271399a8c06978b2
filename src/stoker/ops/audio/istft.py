# SPDX-License-Identifier: Apache-2.0
"""``istft``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import RowContext, Spec
from ...contract.samples import Rows, each
from ...contract.step import Value
from ...contract.streaming import StreamRule
from ._signals import signals
from ._transforms import PAIR, FrameArguments, Framing, PlainFrames, as_complex, as_pairs, expect_spectra


class Istft(FrameArguments, name="istft"):
    """Compute the signal with the given spectra: the inverse of `stft`. Input: float32 ``(nfft // 2 + 1, frames, 2)``.
    Output: ``(length,)``.

    The inverse transforms of the frames are multiplied by the window and added; the sum is divided by the sum of the
    windows' squares. If the spectra are those of a signal, this is the signal. Otherwise it is the signal whose spectra
    have the smallest squared distance from them. Samples that no window covers are 0. Values are those of
    ``torch.istft`` and ``librosa.istft``.
    """

    exactness = "within float32 rounding"
    center_windows = arg("bool", True, doc="The frames have their centres at multiples of the step (`stft`).")
    length = arg("int", None, per_row=True, doc="Samples of the output; by default those that the frames cover.")
    cases = (
        {"window_length": 64, "window_step": 20},
        {"nfft": 100, "window_length": 80, "window_step": 33, "length": 500},
        {"nfft": 74, "window_length": 50, "window_step": 25, "center_windows": False},
        {"nfft": 45, "window_length": 45, "window_step": 20, "window_fn": tuple([0.25] * 45)},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        row = RowContext({"nfft": None, "window_fn": None, **case})
        return each(*(as_pairs(PlainFrames(row).forward(x)) for (x,) in signals(case)))

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_spectra(c, x)
        framing, center = Framing(c), c.const("center_windows")
        text = "expected {1} bins (`nfft` // 2 + 1), got {0}"
        c.require(ex.equal(x.shape[0], framing.bins), text, x.shape[0], framing.bins)
        length = framing.whole_length(x.shape[1], center)
        if c.given("length"):
            length = c.scalar("length")
            c.require(ex.both(length >= 0, length <= 1 << 40), "expected `length` from 0 to 2**40, got {0}", length)
        return framing.inverse(c, x, center, length)

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        if args["length"] is not None:
            raise UnsupportedError("expected no `length`: a stream has the samples that its frames cover")
        if axis != PAIR.index("t"):
            raise UnsupportedError(f"expected the frames along axis 1, got them along axis {axis}")
        step, points = args["window_step"], args["nfft"] or args["window_length"]
        before = points // 2 if args["center_windows"] else 0

        def covered(frames: int) -> int:
            return max((frames - 1) * step + points - 2 * before, 0) if frames else 0

        def start(o: int, last: bool) -> tuple[int, int]:
            first = max(-(-(o + before - points + 1) // step), 0)  # the first frame that covers the sample
            return first, o - first * step

        return StreamRule(0, lambda n: min(max(n * step - before, 0), covered(n)), covered, start)

    def reference(self, row: RowContext, x: Any) -> Any:
        length = None if row["length"] is None else int(row.number("length"))
        return PlainFrames(row).inverse(as_complex(x), length, row["center_windows"]).astype(np.float32)
