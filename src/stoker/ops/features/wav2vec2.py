# SPDX-License-Identifier: Apache-2.0
"""``features.wav2vec2``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import load
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.types import DType
from ..audio._signals import at_least, is_finite
from ._front_end import signal_of, speech


class Wav2Vec2(Operator, name="features.wav2vec2"):
    """Normalize a signal for Wav2Vec2, HuBERT and WavLM: mean 0 and variance 1. Input: float32 ``(n,)`` or ``(n, 1)``.
    Output: ``(n,)``, or ``(max_length,)`` with padding.

    The values are ``(x - mean) / sqrt(variance + 1e-7)``, those of Hugging Face's ``Wav2Vec2FeatureExtractor``, within
    float32 rounding. Batches of different lengths are padded by ``Loader(ragged="padded")``, which returns the lengths.
    """

    exactness = "within float32 rounding"
    do_normalize = arg("bool", True, doc="Normalize; else only cut and pad.")
    max_length = arg("int", None, doc="Cut longer signals to this many samples.")
    padding = arg(
        "str", "do_not_pad", choices=("do_not_pad", "max_length"), doc='"max_length": fill up signals to `max_length`.'
    )
    padding_value = arg("float", 0.0, doc="Sample that fills up signals.")
    mask_padding = arg(
        "bool", False, doc="Normalize by the signal alone and keep padding at `padding_value`, as Hugging Face does "
        "with `return_attention_mask=True`; else the padding counts, and is normalized.",
    )  # fmt: skip
    cases = (
        {},
        {"max_length": 2000, "padding": "max_length", "padding_value": 0.5},
        {"max_length": 2000, "padding": "max_length", "padding_value": 0.5, "mask_padding": True},
        {"do_normalize": False, "max_length": 1800},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return speech(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        x = signal_of(c, x)
        c.require(x.shape[0] > 0, "expected a signal with samples, got none")
        size, pads = c.const("max_length"), c.const("padding") == "max_length"
        c.expect(size is not None or not pads, 'expected `max_length` with `padding="max_length"`, got none')
        if size is not None:
            size = at_least(c, "max_length", 1)
            x = c.slice(x, {0: (0, ex.minimum(x.shape[0], size))})
        x = c.pointwise([x], load(DType.FLOAT))  # the step that has the check
        filler = float(c.const("padding_value"))
        c.expect(is_finite(filler), f"expected a finite `padding_value`, got {filler:g}")
        steps: list[tuple[str, dict[str, Any]]] = [("normalize", {"epsilon": 1e-7})] if c.const("do_normalize") else []
        if pads:
            fill = ("pad", {"axes": (0,), "shape": (size,), "fill_value": filler})
            steps.insert(len(steps) if c.const("mask_padding") else 0, fill)
        for name, settings in steps:
            x = c.apply(name, x, **settings)
        return x

    def reference(self, row: RowContext, x: Any) -> Any:
        part, size = x.reshape(-1).astype(np.float64)[: row["max_length"]], row["max_length"]

        def padded(y: Any) -> Any:
            alone = row["padding"] == "do_not_pad"
            return y if alone else np.pad(y, (0, size - len(y)), constant_values=row["padding_value"])

        part = part if row["mask_padding"] else padded(part)
        if row["do_normalize"]:
            part = (part - part.mean()) / np.sqrt(part.var() + 1e-7)
        return (padded(part) if row["mask_padding"] else part).astype(np.float32)
