# SPDX-License-Identifier: Apache-2.0
"""``features.wav2vec2``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import load
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.types import DType
from ._front_end import signal_of, speech


class Wav2Vec2(Operator, name="features.wav2vec2"):
    """Normalize a signal for Wav2Vec2, HuBERT and WavLM: mean 0 and variance 1. Input: float32 ``(n,)`` or ``(n, 1)``.
    Output: ``(n,)``.

    The values are ``(x - mean) / sqrt(variance + 1e-7)``, those of Hugging Face's ``Wav2Vec2FeatureExtractor`` with
    ``do_normalize``, within float32 rounding.
    """

    exactness = "within float32 rounding"
    cases = ({},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return speech(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        x = signal_of(c, x)
        c.require(x.shape[0] > 0, "expected a signal with samples, got none")
        x = c.pointwise([x], load(DType.FLOAT))  # the step that has the check
        y: Value = c.apply("normalize", x, epsilon=1e-7)
        return y

    def reference(self, row: RowContext, x: Any) -> Any:
        wide = x.reshape(-1).astype(np.float64)
        return ((wide - wide.mean()) / np.sqrt(wide.var() + 1e-7)).astype(np.float32)
