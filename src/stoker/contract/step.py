# SPDX-License-Identifier: Apache-2.0
"""Steps: what operators are lowered to and what the passes rewrite. A step's body says what it is; no step has the
name of an operator that anything but a person reads.

    View     geometry without moving data: window, flip, transpose, reshape
    Stage    views -> at most one interpolating sample -> pixel program -> store through views
    Native   any other native kernel
    PyCall   Python code, in a segment of its own
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .expr import Scalar
from .pixel import Px, describe
from .types import DType


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """One tensor per row. ``shape`` is symbolic; ``layout`` names the axes ("" if they have no names)."""

    id: int
    dtype: DType
    shape: tuple[Scalar, ...]
    layout: str = ""
    per_frame: bool = False  # axis 0 runs along the frames of the operators that take it as an argument

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class ViewOp:
    """slice(axis, start, step, extent), permute(list), insert(axis), drop(axis), reshape(list of extents)."""

    kind: str
    axis: int = 0
    start: Scalar = 0
    step: Scalar = 1
    extent: Scalar = 0
    list: tuple[Any, ...] = ()
    bijective: bool = False  # a slice that keeps every element: a flip

    def __repr__(self) -> str:
        if self.kind == "slice":
            return f"slice(axis={self.axis}, start={self.start!r}, step={self.step!r}, extent={self.extent!r})"
        return f"{self.kind}({list(self.list) if self.list else self.axis})"

    def inverse(self) -> ViewOp | None:
        """The view that undoes this one, if it loses nothing."""
        if self.kind == "permute":
            return ViewOp("permute", list=tuple(self.list.index(i) for i in range(len(self.list))))
        return self if self.kind == "slice" and self.bijective else None


VIEW_KINDS = {"slice": 0, "permute": 1, "insert": 2, "drop": 3, "reshape": 4}


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class View:
    """Other extents and strides over the same memory: the operations apply from left to right."""

    ops: tuple[ViewOp, ...]
    may_copy: bool = False  # a reshape of something that is not contiguous copies it

    def __repr__(self) -> str:
        return "view[" + ", ".join(map(repr, self.ops)) + "]"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Sampler:
    """``resample``: y0 y1 x0 x1 filter_y filter_x antialias; ``affine``: m0..m5 linear has_fill fill;
    ``project_nearest``, ``project_linear``, ``project_cubic``: m0..m7, a fill for each of four channels.
    """

    kind: str
    params: tuple[Scalar, ...]

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.params))})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Stage:
    """``program[port]`` is one expression (flat, ``channels`` 0) or one per channel (channels run along the last axis).

    ``pre[i]`` takes input i to the iteration space, ``post[o]`` takes output o's memory there.
    """

    program: tuple[tuple[Px, ...], ...]
    pre: tuple[tuple[ViewOp, ...], ...]
    post: tuple[tuple[ViewOp, ...], ...]
    channels: int = 0
    sampler: Sampler | None = None

    def __repr__(self) -> str:
        parts = [repr(self.sampler)] if self.sampler else []
        parts += ["; ".join(", ".join(map(describe, p)) for p in self.program)]
        views = [f"in{i}:{list(v)}" for i, v in enumerate(self.pre) if v]
        views += [f"out{o}:{list(v)}" for o, v in enumerate(self.post) if v]
        return f"stage[{' -> '.join(parts + views)}]"


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """An operator's own kernel on a GPU: ``stoker::own::Name`` in ``native/cuda/own_name.cuh``, compiled at run time.

    It is a class template: ``Name<Types<inputs..., outputs...>, constants...>``. Each pass is a static function of it,
    ``void pass(const Row&, uint32_t block)``, and one launch for the whole batch, in this order. How many blocks of 256
    threads a pass has for a row, and how many bytes of memory the row needs between them, are the step's last numbers.
    """

    name: str
    passes: tuple[str, ...]
    constants: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Launches:
    """What an operator says of its own kernel while it is lowered.

    Attributes:
        name: the class.
        blocks: the passes in order, and the blocks of each for a row.
        scratch_bytes: memory of a row that passes leave results in for the next ones. It is not cleared.
        constants: numbers that the code is compiled with. Few different ones: each is a kernel of its own.
    """

    name: str
    blocks: Mapping[str, Scalar]
    scratch_bytes: Scalar = 0
    constants: tuple[int, ...] = ()

    def kernel(self) -> OwnKernel:
        return OwnKernel(self.name, tuple(self.blocks), self.constants)

    def numbers(self) -> tuple[Scalar, ...]:
        """What follows the step's own numbers."""
        return (*self.blocks.values(), self.scratch_bytes)


@dataclass(frozen=True, slots=True)
class OnEngines:
    """The kernel for GPUs, beside engines of fixed function, whose results differ.

    Attributes:
        part: of the rows, chosen by their keys, that are the engines' where they can do them: 0 to 1.
        smooth: their better and slower form.
    """

    part: float
    smooth: bool


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Native:
    """A native kernel by its constructor's name and constants.

    Attributes:
        params: numbers per row.
        window: if the kernel can make just a window of its output: the indices in ``params`` of the window's first
            row and column. The output's first two extents are the window's.
        twin: the same in Python, for rows that the kernel hands over: ``twin(inputs, params, outputs)`` fills
            ``outputs``.
        gpu: whether there is a kernel of this name and these constants for GPUs, or which one, or what besides.
        header_only: of its input, a file, it looks at the header alone.
        in_planes: its kernel for GPUs can leave the image that it makes in component planes, for whoever reads those.
        in_parts: its kernel for GPUs can do with the part of its input, a file, that its window needs.
        partial: the kernels by which a file can be read in two steps instead: one that gives the header where the GPU
            knows the file, with what it is known as, and one that gives what a window needs.
        beside_gpu: it runs on the CPU, and shares what the GPU's kernels know.
        passes_on: its first output may be its first input.
        rows_of: which of its inputs it takes other rows of; the kernel is told that value's number after its constants.
    """

    kernel: str
    attrs: tuple[Any, ...] = ()
    params: tuple[Scalar, ...] = ()
    window: tuple[int, int] | None = None
    twin: Callable[..., None] | None = None
    pure: bool = True
    batch_scope: bool = False
    aliases: bool = False
    allocates: bool = False
    gpu: bool | OwnKernel | OnEngines = False
    header_only: bool = False
    in_planes: bool = False
    in_parts: bool = False
    partial: tuple[str, str] | None = None
    beside_gpu: bool = False
    passes_on: bool = False
    rows_of: int | None = None

    def __repr__(self) -> str:
        attrs = [a if isinstance(a, (int, float, str)) else f"<{type(a).__name__} {id(a)}>" for a in self.attrs]
        made = f"{self.kernel}({', '.join(map(str, attrs))}; {', '.join(map(repr, self.params))})"
        return f"{made} with {self.gpu}" if isinstance(self.gpu, OnEngines) else made


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class PyCall:
    """An operator that runs in Python, over all active rows of a batch.

    The step's inputs are the operator's inputs, then its per-row arguments in the order of ``edges``.
    """

    operator: Any
    args: Any
    edges: tuple[str, ...]
    layouts: tuple[str, ...]
    draw: int
    node: int
    pure: bool

    def __repr__(self) -> str:
        return f"python({self.operator.name})"


Body = View | Stage | Native | PyCall


@dataclass(frozen=True, slots=True)
class Check:
    """``condition`` must hold for a row; else the row fails with ``text``, whose {0}, {1}.. are ``values``.

    ``node`` is the graph node that demands it, wherever a pass moves the check.
    """

    condition: Scalar
    text: str
    values: tuple[Scalar, ...] = ()
    node: int = field(default=-1, repr=False)  # not in the text by which equal steps are found


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of the planned program: its body, and the values that it reads and makes."""

    body: Body
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    node: int  # the graph node it comes from
    checks: tuple[Check, ...] = ()
    guards: tuple[tuple[int, bool], ...] = ()  # (value, wanted): all must hold for the step to run
    frames: Scalar | None = None
    framed: tuple[bool, ...] = ()
    on_gpu: bool = False  # it reads and makes values in a GPU's memory


@dataclass(slots=True)
class StepList:
    """All steps of a graph in order, their values, and which values leave the pipeline."""

    steps: list[Step] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    fed: dict[tuple[int, int], int] = field(default_factory=dict)  # (graph node, output) -> value the caller feeds
    readers: list[int] = field(default_factory=list)  # graph nodes, in the order of their index columns
