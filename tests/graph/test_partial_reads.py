# SPDX-License-Identifier: Apache-2.0
"""Partial reads follow from traits: the kernels of any codec may read parts of files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.contract.expr import Expr
from stoker.contract.step import ALLOCATES, FileAccess, GpuForm, Native, Step, StepList, Value
from stoker.contract.types import DType
from stoker.graph.passes.partial_reads import read_parts
from stoker.graph.verify import verify_steps

CODEC = "test.clips"
READ = Native("any_read", ("storage", 0), memory=ALLOCATES, file=FileAccess(gives_file=True))
LOOK = Native("any_look", codec=CODEC, file=FileAccess(header_only=True))
DECODE = Native(
    "any_decode", (7,), (3, 4), window=(0, 1), codec=CODEC, gpu=GpuForm(), file=FileAccess(in_parts=("head", "rest"))
)


def steps(decode: Native = DECODE, *, on_gpu: bool = True, outputs: tuple[int, ...] = (2,)) -> StepList:
    """Return the steps for a file, the numbers of its header, and a window of its image."""
    file = Value(0, DType.UINT8, (Expr("dim", 0, 0),))
    header = Value(1, DType.INT64, (2,))
    image = Value(2, DType.UINT8, (5, 6, 3))
    listed = [
        Step(READ, (), (0,), 0),
        Step(LOOK, (0,), (1,), 1),
        Step(decode, (0,), (2,), 1, on_gpu=on_gpu),
    ]
    return StepList(listed, {0: file, 1: header, 2: image}, list(outputs))


def test_two_steps_of_the_codec_read_a_file() -> None:
    out = read_parts(steps(), {CODEC})
    verify_steps(out)
    head, look, rest, decode = (step.body for step in out.steps)
    assert isinstance(head, Native) and isinstance(rest, Native) and isinstance(decode, Native) and look is LOOK
    assert (head.kernel, head.codec, head.attrs) == ("head", CODEC, ("storage", 0))
    assert (rest.kernel, rest.codec, rest.attrs, rest.params) == ("rest", CODEC, ("storage", 0, 7), (3, 4, 5, 6))
    assert (decode.kernel, decode.codec, decode.attrs) == ("any_decode", CODEC, (7, "storage", 0))
    assert out.steps[2].inputs == out.steps[0].outputs and out.steps[3].inputs == out.steps[2].outputs
    assert [step.on_gpu for step in out.steps] == [False, False, False, True]


@pytest.mark.parametrize(
    "listed",
    [
        steps(on_gpu=False),
        steps(replace(DECODE, file=FileAccess())),
        steps(replace(DECODE, window=None)),
        steps(outputs=(2, 0)),
    ],
    ids=["on the CPU", "wants files whole", "without a window", "the file is an output"],
)
def test_a_file_is_read_whole(listed: StepList) -> None:
    assert read_parts(listed, {CODEC}).steps == listed.steps


def test_another_codecs_index_is_none() -> None:
    assert read_parts(steps(), {"test.stills"}).steps[0].body is READ
