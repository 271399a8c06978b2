# SPDX-License-Identifier: Apache-2.0
"""Rules by which operators compute a signal in parts, with the bits of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StreamRule:
    """Rule by which an operator computes outputs from a part of its input along the axis of time.

    A call on the inputs from ``start(o)[0]`` on gives ``start(o)[1]`` outputs to drop, and then the outputs from ``o``
    on, with the bits of a call on the whole signal.

    Attributes:
        axis: the axis of time of the output.
        ready: number of outputs that no later input changes, after a number of inputs.
        total: number of outputs of a signal with a number of inputs.
        start: first input of a call for the outputs from one on, and the outputs of this call to drop. The second
            argument is True for the call at the end of the signal, which may need more inputs.
    """

    axis: int
    ready: Callable[[int], int]
    total: Callable[[int], int]
    start: Callable[[int, bool], tuple[int, int]]


def elementwise(axis: int) -> StreamRule:
    """Return the rule of operators whose output at a time depends on the input at this time alone.

    Args:
        axis: the axis of time of the output.
    """
    return StreamRule(axis, lambda n: n, lambda n: n, lambda o, last: (o, 0))


def framed(
    axis: int, length: int, step: int, total: Callable[[int], int], *, before: int = 0, least: int = 1
) -> StreamRule:
    """Return the rule of operators on frames. Frame t has the inputs from ``t * step - before`` on.

    Args:
        axis: the axis of time of the output.
        length: inputs of a frame.
        step: inputs from one frame to the next.
        total: number of frames of a signal.
        before: inputs of the first frame before the beginning. If there are such, the signal is extended at both ends,
            by nothing that is further away than two frames.
        least: number of inputs that a call needs.
    """

    def ready(n: int) -> int:
        return 0 if n < max(least, before + 1) else max((n + before - length) // step + 1, 0)

    def start(o: int, last: bool) -> tuple[int, int]:
        lead = -(-(2 * length if last else before) // step) if before else 0
        first = max(o - lead, 0)
        return first * step, o - first

    return StreamRule(axis, ready, total, start)
