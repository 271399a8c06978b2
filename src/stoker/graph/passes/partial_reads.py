# SPDX-License-Identifier: Apache-2.0
"""Partial reads: of files that a GPU's decoders know, only what a window needs is read.

Asks traits alone. A step that can read in two (``Native.partial``), whose file nobody wants but steps that look at the
header (``header_only``) and one on the GPU that can do with parts (``in_parts``), becomes two: one gives the header,
so that sizes, draws and windows follow from it, and one stands before the decoder and gives what its window needs. Of
files that are not known, the first gives all, and the second passes it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...contract.expr import Expr
from ...contract.step import Native, Step, StepList, Value
from ...contract.types import DType
from ..lower import reads


def read_parts(steps: StepList) -> StepList:
    """Cut the reading steps in two where that can be done."""
    values = dict(steps.values)
    before: dict[int, Step] = {}  # by the position of the decoder
    changed: dict[int, Step] = {}
    for at, step in enumerate(steps.steps):
        if not isinstance(step.body, Native) or step.body.partial is None:
            continue
        decoder = _sole_decoder(steps, step.outputs[0])
        if decoder is not None:
            known = _new(values, DType.INT64, 2)
            changed[at] = replace(step, body=_header_body(step.body), outputs=(*step.outputs, known))
            before[decoder], changed[decoder] = _window(steps.steps[decoder], step, known, values)
    result: list[Step] = []
    for at, step in enumerate(steps.steps):
        result += [before[at]] if at in before else []
        result.append(changed.get(at, step))
    return StepList(result, values, steps.outputs, steps.fed, steps.readers)


def _sole_decoder(steps: StepList, data: int) -> int | None:
    """Where the one step is that wants more of a file than its header, if a part of it will do."""
    found: list[int] = []
    for at, step in enumerate(steps.steps):
        if data not in reads(step, steps):
            continue
        body = step.body
        if not isinstance(body, Native) or step.inputs != (data,) or step.frames is not None:
            return None
        if not body.header_only:
            found.append(at)
            if not body.in_parts or not step.on_gpu or body.window is None:
                return None
    return found[0] if len(found) == 1 and data not in steps.outputs else None


def _new(values: dict[int, Value], dtype: DType, extent: int | None) -> int:
    number = len(values)
    values[number] = Value(number, dtype, (Expr("dim", number, 0) if extent is None else extent,))
    return number


def _header_body(read: Native) -> Native:
    assert read.partial is not None
    return Native(read.partial[0], read.attrs, allocates=True, beside_gpu=True)


def _window(decoder: Step, read: Step, known: int, values: dict[int, Value]) -> tuple[Step, Step]:
    """The step that reads the decoder's window, and the decoder that takes what it gives."""
    body, source = decoder.body, read.body
    assert isinstance(body, Native) and isinstance(source, Native) and body.window and source.partial
    data, part = _new(values, DType.UINT8, None), _new(values, DType.INT64, 4)
    corner: Sequence[object] = [body.params[i] for i in body.window]
    size = values[decoder.outputs[0]].shape[:2]
    window = Native(
        source.partial[1], (*source.attrs, *body.attrs), (*corner, *size),  # type: ignore[arg-type]
        allocates=True, beside_gpu=True, passes_on=True,
    )  # fmt: skip
    reading = Step(window, (read.outputs[0], known), (data, part), read.node, decoder.checks, decoder.guards)
    taking = replace(body, attrs=(*body.attrs, *source.attrs))
    return reading, replace(decoder, body=taking, inputs=(data, part), checks=())
