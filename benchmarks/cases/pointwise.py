# SPDX-License-Identifier: Apache-2.0
"""Five pointwise operators compared with one: the cost of each pass over memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, consume, load

ORDER = 40
BATCH = 64


def run_pipeline(data: Data, *, library: str, operators: int) -> Loop:
    """Compute arithmetic on uint8 RGB images, stored as uint8."""
    images = np.random.default_rng(0).integers(0, 256, (BATCH, 224, 224, 3), np.uint8)
    lib = load(library)
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def chain() -> Any:
        x = fn.external_source(source=lambda: images, batch=True, no_copy=True, layout="HWC")
        x = x * 1.1
        if operators == 5:
            x = x - 8.0
            x = x * 0.9
            x = x + 5.0
            x = x * 1.05
        return fn.cast(x, dtype=types.UINT8)

    pipeline = chain()
    pipeline.build()
    return Loop(lambda: (BATCH, consume(pipeline.run())))


def _contender(name: str, library: str, operators: int) -> Contender:
    text = "five" if operators == 5 else "one"
    environment = "stoker" if library == STOKER else "peers"
    return Contender(f"{name}, {text}", "run_pipeline", {"library": library, "operators": operators}, environment, 1)


CASES = (
    Case(
        "pointwise",
        "Five pointwise operators against one, one core",
        MS_PER_IMAGE,
        (
            _contender("stoker", STOKER, 1),
            _contender("stoker", STOKER, 5),
            _contender("DALI", DALI, 1),
            _contender("DALI", DALI, 5),
        ),
        (
            Bar("time of five over time of one", "stoker, five", ("stoker, one",), at_most=1.3),
            Bar("time of five, per image", "stoker, five", at_most=0.05),
        ),
        note="224x224 uint8 RGB, batch 64: one or five multiplications and additions of constants, then a cast to "
        "uint8 (the same cast in both). Warm: the 9 MiB of input stay the same.",
    ),
)
