# SPDX-License-Identifier: Apache-2.0
"""Rules of steps: a valid step of each body, and steps that each rule refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stoker import GraphError, Operator
from stoker.contract.expr import Expr
from stoker.contract.operator import Spec
from stoker.contract.pixel import Px, coordinate, load, lookup, random, uniform
from stoker.contract.step import (
    ALIASES,
    CompiledPass,
    Counted,
    FileAccess,
    GpuForm,
    Interpolator,
    Native,
    OutputMemory,
    OwnKernel,
    PyCall,
    Stage,
    Step,
    StepList,
    Value,
    View,
    ViewOp,
)
from stoker.contract.types import DType
from stoker.graph.verify import verify_steps

U8, F32 = DType.UINT8, DType.FLOAT
IMAGE, OTHER, OUTPUT = 0, 1, 2


class Plain(Operator, name="testing.plain"):
    """Identity: the output is the input."""

    def infer(self, c: Any, x: Any) -> Spec:
        return Spec(x.dtype, (None,) * x.rank)

    def reference(self, row: Any, x: Any) -> Any:
        return x


def listed(step: Step, **values: Value) -> StepList:
    """Return a list of one step. Value 0 is an image of 4 x 5 x 3 bytes, 1 is float32 of 5 x 3, 2 is the output."""
    known = {
        IMAGE: Value(IMAGE, U8, (4, 5, 3), "HWC"),
        OTHER: Value(OTHER, F32, (5, 3)),
        OUTPUT: Value(OUTPUT, U8, (4, 5, 3), "HWC"),
        **{int(name[1:]): value for name, value in values.items()},
    }
    return StepList([step], known, [OUTPUT], {(0, 0): IMAGE, (1, 0): OTHER})


def view(*ops: ViewOp, out: Value | None = None, inputs: tuple[int, ...] = (IMAGE,), **more: Any) -> StepList:
    return listed(Step(View(ops), inputs, (OUTPUT,), 0, **more), **({"v2": out} if out else {}))


def output(dtype: DType, *shape: Any, layout: str = "") -> Value:
    return Value(OUTPUT, dtype, shape, layout)


SUM = load(F32) + load(U8, 1).cast(F32)
GOOD_STAGE = Stage(((load(U8),),), ((),), ((),))
NAME = uniform(7, DType.INT32)
LOOKED_UP = Stage(((lookup(F32, 1, load(U8).cast(DType.INT32), 256),),), ((), ()), ((),))


def stage(
    body: Stage = GOOD_STAGE, inputs: tuple[int, ...] = (IMAGE,), v2: Value | None = None,
    fed: Value | None = None, **more: Any
) -> StepList:  # fmt: skip
    values = {f"v{v.id}": v for v in (v2, fed) if v is not None}
    return listed(Step(body, inputs, (OUTPUT,), 0, **more), **values)


def of(*program: Px, **more: Any) -> Stage:
    return replace(GOOD_STAGE, program=(program,), **more)


def resampling(params: int, kind: str = "resample") -> Stage:
    return replace(GOOD_STAGE, interpolator=Interpolator(kind, (0.0,) * params))


def native(
    v2: Value | None = None, inputs: tuple[int, ...] = (IMAGE,), on_gpu: bool = False, **traits: Any
) -> StepList:
    return listed(Step(Native("any", **traits), inputs, (OUTPUT,), 0, on_gpu=on_gpu), **({"v2": v2} if v2 else {}))


def counting(
    count: Value | None = None, bound: Any = 4, body: Any = None, outputs: tuple[int, ...] = (OUTPUT, 3), **traits: Any
) -> StepList:
    """A kernel with at most 4 rows of 5 x 3 bytes, whose count is value 3."""
    placed = {name: traits.pop(name) for name in ("on_gpu", "frames") if name in traits}
    value = Value(OUTPUT, U8, (Expr("dim", OUTPUT, 0), 5, 3), counted=Counted(bound, 3))
    step = Step(body or Native("any", **traits), (IMAGE,), outputs, 0, **placed)
    return listed(step, v2=value, v3=count or Value(3, DType.INT32, ()))


def python(layouts: tuple[str, ...] = ("HWC",), edges: tuple[str, ...] = (), **more: Any) -> StepList:
    body = PyCall(Plain, {}, edges, layouts, 0, 0, True)
    return listed(Step(body, (IMAGE,), (OUTPUT,), 0, **more))


def flip(axis: int, extent: int) -> ViewOp:
    return ViewOp("slice", axis, extent - 1, -1, extent, bijective=True)


OWN = OwnKernel("Any", (CompiledPass("first"), CompiledPass("second", 256, 1024)))
CHW = ViewOp("permute", list=(2, 0, 1))
HWC = ViewOp("permute", list=(1, 2, 0))
GOOD: dict[str, StepList] = {
    "a counted output": counting(),
    "a counted output with a bound per row": counting(bound=Expr("dim", IMAGE, 0)),
    "a counted output on a GPU": counting(gpu=GpuForm(OWN), params=(1, 1, 0, 0), on_gpu=True),
    "a view of nothing": view(),
    "a window": view(ViewOp("slice", 0, 1, 1, 2), out=output(U8, 2, 5, 3)),
    "a window with a size per row": view(
        ViewOp("slice", 0, Expr("elem", OTHER, 0, 0), 1, 2), out=output(U8, 2, 5, 3)
    ),
    "a transposition": view(CHW, out=output(U8, 3, 4, 5)),
    "an axis more": view(ViewOp("insert", 3), out=output(U8, 4, 5, 3, 1)),
    "an axis less": view(ViewOp("slice", 0, 1, 1, 1), ViewOp("drop", 0), out=output(U8, 5, 3)),
    "another shape": view(ViewOp("reshape", list=(60,)), out=output(U8, 60)),
    "a copy": stage(),
    "a sum that spreads": stage(
        Stage(((SUM,),), ((), ()), ((),)), (OTHER, IMAGE), output(F32, 4, 5, 3)
    ),
    "channels": stage(of(*(load(U8, 0, c) for c in (2, 1, 0)), channels=3)),
    "more channels": stage(of(*(load(U8, 0, c) for c in (0, 1, 2, 2)), channels=4), v2=output(U8, 4, 5, 4)),
    "coordinates": stage(of(coordinate(2)), v2=output(DType.INT32, 4, 5, 3)),
    "random bits": stage(of(random(coordinate(2), NAME, NAME)), v2=output(DType.INT32, 4, 5, 3)),
    "a table": stage(LOOKED_UP, (IMAGE, OTHER), output(F32, 4, 5, 3), fed=Value(OTHER, F32, (256,))),
    "a size": stage(resampling(7), v2=output(U8, 8, 9, 3)),
    "frames": stage(frames=4, framed=(True,)),
    "a kernel": native(output(U8, 9)),
    "a kernel with a window": native(params=(0, 0), window=(0, 1)),
    "a kernel on a GPU": native(gpu=GpuForm(OWN), params=(1, 1, 0, 0), on_gpu=True),
    "a selection": native(memory=ALIASES, inputs=(OTHER, IMAGE)),
    "Python": python(),
}  # fmt: skip
BROKEN: dict[str, tuple[StepList, str]] = {
    "no output": (listed(Step(View(()), (IMAGE,), (), 0)), "at least one output"),
    "a layout of too many names": (stage(v2=output(U8, 4, 5, 3, layout="HW")), "layout 'HW' does not name 3 axes"),
    "a negative extent": (native(output(U8, -1)), "whole numbers, got"),
    "half an element": (native(output(U8, 2.5)), "whole numbers, got"),
    # views
    "a view of two": (view(inputs=(IMAGE, OTHER)), "one input and one output"),
    "a view of another type": (view(out=output(F32, 4, 5, 3)), "a view of uint8, got one as float"),
    "a view of one frame": (view(frames=4), "all frames together"),
    "a view operation of no kind": (view(ViewOp("turn")), "is no view operation"),
    "a window of no axis": (view(ViewOp("slice", 3, 0, 1, 1)), "names none of 3 axes"),
    "a window outside": (view(ViewOp("slice", 0, 3, 1, 2), out=output(U8, 2, 5, 3)), "leaves an axis of 4 elements"),
    "a window that begins outside": (
        view(ViewOp("slice", 0, -1, 1, 2), out=output(U8, 2, 5, 3)), "leaves an axis of 4 elements",
    ),
    "a flip of a part": (view(flip(1, 4), out=output(U8, 4, 4, 3)), "keeps all of 5 elements"),
    "an order with an axis twice": (view(ViewOp("permute", list=(0, 0, 1))), "no order of 3 axes"),
    "an order of too few": (view(ViewOp("permute", list=(1, 0))), "no order of 3 axes"),
    "an axis beyond the end": (view(ViewOp("insert", 4), out=output(U8, 4, 5, 3, 1)), "names none of 4 axes"),
    "an axis of several dropped": (view(ViewOp("drop", 2), out=output(U8, 4, 5)), "drops an axis of 3 elements"),
    "a shape of more": (view(ViewOp("reshape", list=(61,)), out=output(U8, 61)), "makes 61 elements of 60"),
    "another extent": (view(out=output(U8, 4, 6, 3)), r"gives \[4, 5, 3\], its value has \[4, 6, 3\]"),
    "another rank": (view(out=output(U8, 4, 15)), r"its value has \[4, 15\]"),
    # stages
    "an input without views": (stage(inputs=(IMAGE, OTHER)), "views for 2 inputs, got 1"),
    "two programs": (stage(replace(GOOD_STAGE, program=((load(U8),),) * 2)), "for 1 outputs, got 1 and 2"),
    "no mark of frames": (stage(frames=4), "marks of framed inputs"),
    "a load of no input": (stage(of(load(U8, 1))), "loads from input 1 of 1"),
    "a load of another type": (stage(of(load(F32).cast(U8))), "loads float32 from input 0 of uint8|loads float"),
    "a program of another type": (stage(of(load(U8).cast(F32))), "a program of uint8, got float"),
    "two flat expressions": (stage(of(load(U8), load(U8))), "expected one expression per output, got 2"),
    "too many expressions": (
        stage(of(*(load(U8, 0, c) for c in (0, 1, 0)), channels=2)), "1 to 2 expressions per output, got 3",
    ),
    "a channel of a flat program": (stage(of(load(U8, 0, 1))), "loads channel 1, of 0 channels"),
    "a channel that is none": (stage(of(*(load(U8, 0, 3),) * 3, channels=3)), "loads channel 3, of 3 channels"),
    "an element's own channel": (stage(of(*(load(U8),) * 3, channels=3)), "loads channel -1, of 3 channels"),
    "a coordinate of no axis": (stage(of(coordinate(3).cast(U8))), r"coordinates of \[3\] in 3 axes"),
    "a coordinate of the channels' axis": (
        stage(of(*(coordinate(2).cast(U8) + load(U8, 0, c) for c in range(3)), channels=3)), "coordinates of",
    ),
    "a coordinate of a frame's axes": (
        stage(of(coordinate(2).cast(U8)), frames=4, framed=(True,)), r"coordinates of \[2\] in 2 axes",
    ),
    "a table of two axes": (stage(LOOKED_UP, (IMAGE, OTHER), output(F32, 4, 5, 3)), "is a table of 2 axes"),
    "a table of another type": (
        stage(LOOKED_UP, (IMAGE, OTHER), output(F32, 4, 5, 3), fed=Value(OTHER, U8, (256,))), "loads float",
    ),
    "a table and an image": (
        stage(
            Stage(((LOOKED_UP.program[0][0] + load(F32, 1),),), ((), ()), ((),)), (IMAGE, OTHER), output(F32, 4, 5, 3),
            fed=Value(OTHER, F32, (256,)),
        ), "is a table and an image",
    ),
    "a table that is sampled": (
        stage(
            Stage(((lookup(U8, 0, NAME, 4),),), ((),), ((),), 0, Interpolator("resample", (0.0,) * 7)),
            fed=Value(IMAGE, U8, (4,)),
        ), "an image to sample, got a table",
    ),
    "an input that does not spread": (stage(v2=output(U8, 4, 6, 3)), r"does not spread over \[4, 6, 3\]"),
    "an input of more axes": (stage(v2=output(U8, 5, 3)), "has 3 axes in a space of 2"),
    "a store that does not fit": (
        stage(replace(GOOD_STAGE, post=((HWC,),)), v2=output(U8, 4, 5, 3)), "does not spread over",
    ),
    "no interpolator": (stage(resampling(7, "guess")), "is no interpolator"),
    "an interpolator's numbers": (stage(resampling(6)), "expected 7 numbers of resample, got 6"),
    "a sample of rows": (
        stage(resampling(7), v2=output(U8, 4, 5)), "height, width and channels where resample samples",
    ),
    "a sample of nothing": (
        stage(Stage(((uniform(0, U8),),), (), ((),), 0, Interpolator("resample", (0.0,) * 7)), ()),
        "an input that is sampled",
    ),
    # kernels
    "a window of no number": (native(params=(0,), window=(0, 1)), r"window \(0, 1\) names no numbers"),
    "a window of a row": (native(output(U8, 9), params=(0, 0), window=(0, 1)), "in the first two axes"),
    "other rows of no input": (native(other_rows_of=1), "an input for other rows, got 1"),
    "memory of two kinds": (native(memory=OutputMemory(aliases=True, allocates=True)), "memory of its own"),
    "a selection of another type": (native(output(F32, 4, 5, 3), memory=ALIASES), "shows one of"),
    "nothing to pass on": (native(inputs=(), memory=OutputMemory(passes_on=True)), "an input to pass on"),
    "a file of two axes": (native(file=FileAccess(gives_file=True)), "the bytes of a file, got 3 axes"),
    "a kernel that no GPU has": (native(on_gpu=True), "a kernel with a form for GPUs"),
    "a pass without its numbers": (
        native(gpu=GpuForm(OWN), params=(1, 1, 0), on_gpu=True), "expected 4 numbers for passes and memory, got 3",
    ),
    # counted outputs
    "a count of another type": (counting(Value(3, DType.INT64, ())), "a count of type int32 without axes"),
    "a count with an axis": (counting(Value(3, DType.INT32, (1,))), "a count of type int32 without axes"),
    "half a bound": (counting(bound=2.5), "max_output to be a whole number, got 2.5"),
    "a negative bound": (counting(bound=-1), "max_output to be a whole number, got -1"),
    "a count of no kernel": (counting(outputs=(OUTPUT,)), "its own first extent on the CPU, got the count of another"),
    "a stage that counts": (counting(body=GOOD_STAGE), "a native kernel that writes the count"),
    "a window that is counted": (counting(params=(0, 0), window=(0, 1)), "whole rows into memory reserved"),
    "memory of its own that is counted": (counting(memory=OutputMemory(allocates=True)), "memory reserved for it"),
    "a count by a twin": (counting(twin=print), "reserved for it, without a twin"),
    "a count frame by frame": (counting(frames=4), "whole rows into memory reserved"),
    "a codec that counts": (counting(codec="other"), "a form of its own for GPUs, or none"),
    "a count on engines": (counting(gpu=GpuForm(None)), "a form of its own for GPUs, or none"),
    # Python
    "an input of Python too many": (python(layouts=()), "expected 0 inputs of a Python operator, got 1"),
    "an argument of Python too few": (python(edges=("angle",)), "expected 2 inputs of a Python operator, got 1"),
    "Python on a GPU": (python(on_gpu=True), "Python on the CPU"),
    "Python frame by frame": (python(frames=4), "Python on the CPU"),
    "a layout of other axes": (python(layouts=("HW",)), "does not name the 3 axes"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_valid_steps_are_accepted(name: str) -> None:
    verify_steps(GOOD[name])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_step_is_refused(name: str) -> None:
    steps, text = BROKEN[name]
    with pytest.raises(GraphError, match=text):
        verify_steps(steps)
