# SPDX-License-Identifier: Apache-2.0
"""Interpreter of stages on a GPU: one kernel that runs any program without an interpolator, which it gets as data.

It computes the bits of the stage's own kernel (``generate.py``) and needs no compilation of its own, but several times
the time. ``Gpu.stage`` chooses.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..contract.pixel import Instruction
from ..contract.step import Stage

INTERPRETER = ("stoker_interpreted", '#include "device/stage_interpreted.cuh"\n\nSTOKER_INTERPRETED\n')
_STEPS = 96  # kInterpretedSteps of native/shared/interpreted_program.hpp


def is_interpretable(body: Stage, code: Sequence[Instruction]) -> bool:
    """Whether the interpreter can run a stage with this program."""
    return body.interpolator is None and len(code) <= _STEPS
