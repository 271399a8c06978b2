# SPDX-License-Identifier: Apache-2.0
"""Partial reads: of files in a codec's index, only the bytes that a window needs are read.

The pass uses traits alone (``contract.step.FileAccess``). It splits a step that outputs a file (``gives_file``) if the
file's only readers are steps that read the header (``header_only``) and one GPU step that accepts parts (``in_parts``).
That step's codec makes the kernels of both halves. The first half returns the header, from which sizes, draws and
windows follow. The second half runs before the decoder and returns the part that its window needs. For a file that is
not in the index, the first half returns the whole file, and the second passes it on.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from ...contract.expr import Expr
from ...contract.step import ALLOCATES, Native, OutputMemory, Step, StepList, Value
from ...contract.types import DType
from ..lower import reads


def read_parts(steps: StepList, indexed_codecs: Set[str]) -> StepList:
    """Split the steps that read files, where possible.

    Args:
        indexed_codecs: codecs that keep an index of files.
    """
    values = dict(steps.values)
    before: dict[int, Step] = {}  # by the position of the decoder
    changed: dict[int, Step] = {}
    for at, step in enumerate(steps.steps):
        if not isinstance(step.body, Native) or not step.body.file.gives_file:
            continue
        decoder = _sole_decoder(steps, step.outputs[0], indexed_codecs)
        if decoder is not None:
            known = _new(values, DType.INT64, 2)
            body = _header_body(step.body, steps.steps[decoder])
            changed[at] = replace(step, body=body, outputs=(*step.outputs, known))
            before[decoder], changed[decoder] = _window(steps.steps[decoder], step, known, values)
    result: list[Step] = []
    for at, step in enumerate(steps.steps):
        result += [before[at]] if at in before else []
        result.append(changed.get(at, step))
    return StepList(result, values, steps.outputs, steps.fed, steps.readers)


def _sole_decoder(steps: StepList, data: int, indexed_codecs: Set[str]) -> int | None:
    """Return the only step that reads more of a file than its header, if a part of the file suffices for it."""
    found: list[int] = []
    for at, step in enumerate(steps.steps):
        if data not in reads(step, steps):
            continue
        body = step.body
        if not isinstance(body, Native) or step.inputs != (data,) or step.frames is not None:
            return None
        if not body.file.header_only:
            found.append(at)
            if not body.file.in_parts or body.codec not in indexed_codecs or not step.on_gpu or body.window is None:
                return None
    return found[0] if len(found) == 1 and data not in steps.outputs else None


def _new(values: dict[int, Value], dtype: DType, extent: int | None) -> int:
    number = len(values)
    values[number] = Value(number, dtype, (Expr("dim", number, 0) if extent is None else extent,))
    return number


def _header_body(read: Native, decoder: Step) -> Native:
    body = decoder.body
    assert isinstance(body, Native) and body.file.in_parts
    return Native(body.file.in_parts[0], read.attrs, codec=body.codec, memory=ALLOCATES)


def _window(decoder: Step, read: Step, known: int, values: dict[int, Value]) -> tuple[Step, Step]:
    """Return the step that reads the decoder's window, and the decoder that reads from that step."""
    body, source = decoder.body, read.body
    assert isinstance(body, Native) and isinstance(source, Native) and body.window and body.file.in_parts
    data, part = _new(values, DType.UINT8, None), _new(values, DType.INT64, 4)
    corner: Sequence[object] = [body.params[i] for i in body.window]
    size = values[decoder.outputs[0]].shape[:2]
    window = Native(
        body.file.in_parts[1], (*source.attrs, *body.attrs), (*corner, *size),  # type: ignore[arg-type]
        codec=body.codec, memory=OutputMemory(allocates=True, passes_on=True),
    )  # fmt: skip
    reading = Step(window, (read.outputs[0], known), (data, part), read.node, decoder.checks, decoder.guards)
    taking = replace(body, attrs=(*body.attrs, *source.attrs))
    return reading, replace(decoder, body=taking, inputs=(data, part), checks=())
