# SPDX-License-Identifier: Apache-2.0
"""Steps: the result of lowering operators, and the input of the passes.

A step's body says what the step does. Its name is for people only: no code depends on an operator's name.

View     geometry without moving data: window, flip, transpose, reshape
Stage    views -> at most one interpolating sample -> pixel program -> store through views
Native   any other native kernel
PyCall   Python code, in a segment of its own
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .expr import Expr, Scalar
from .pixel import Px, describe, scalars
from .types import DType

Sources = Sequence[tuple[str, str]]  # (kernel name, CUDA C++ source) pairs


MAX_SHARED_BYTES = 227 * 1024  # of a block on any GPU: compute capability 9.0
MAX_PORTS = 8  # inputs and coordinates of a stage, as kMaxPorts in native/pixel/pixel.hpp; also its outputs


@dataclass(frozen=True, eq=False, slots=True)
class Counted:
    """A first extent that is known only after the kernel has run.

    Attributes:
        max_output: upper bound of the extent; memory is reserved for it.
        count: the value that the kernel writes the extent to: INT32, without axes. It is another output of the kernel.
    """

    max_output: Scalar
    count: int


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """Tensor of each row. ``shape`` is symbolic; ``layout`` names the axes ("" if they have no names)."""

    id: int
    dtype: DType
    shape: tuple[Scalar, ...]
    layout: str = ""
    per_frame: bool = False  # as an argument, axis 0 runs along the frames of the operator's input
    counted: Counted | None = None  # how the first extent becomes known, if only the kernel computes it

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def reserved(self) -> tuple[Scalar, ...]:
        """Extents for which memory is reserved."""
        return self.shape if self.counted is None else (self.counted.max_output, *self.shape[1:])


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class ViewOp:
    """View operation: slice(axis, start, step, extent), permute(list), insert(axis), drop(axis), reshape(list of
    extents).
    """

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
        """Return the inverse operation of a view that loses no element."""
        if self.kind == "permute":
            return ViewOp("permute", list=tuple(self.list.index(i) for i in range(len(self.list))))
        return self if self.kind == "slice" and self.bijective else None


VIEW_KINDS = {"slice": 0, "permute": 1, "insert": 2, "drop": 3, "reshape": 4}


class _Numbers:
    """Base class of bodies: their expressions, found once, because a body never changes and many passes ask."""

    def _scalars(self) -> Iterable[object]:
        """Return the body's numbers, among them all expressions."""
        return ()

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions that the run loop computes for the body."""
        return tuple(x for x in self._scalars() if isinstance(x, Expr))

    @cached_property
    def reads(self) -> frozenset[int]:
        """Ids of the values that the expressions depend on."""
        return frozenset[int]().union(*(x.reads for x in self.expressions))


@dataclass(frozen=True, eq=False, repr=False)
class View(_Numbers):
    """Other extents and strides over the same memory. Operations apply from left to right."""

    ops: tuple[ViewOp, ...]
    may_copy: bool = False  # a reshape copies data that are not contiguous

    def _scalars(self) -> Iterable[object]:
        return _chain_scalars([self.ops])

    def __repr__(self) -> str:
        return "view[" + ", ".join(map(repr, self.ops)) + "]"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Interpolator:
    """Interpolation of a stage's first input, by kind and parameters.

    ``resample``: y0 y1 x0 x1 filter_y filter_x antialias; ``affine``: m0..m5 linear has_fill fill; ``project_nearest``,
    ``project_linear``, ``project_cubic``: m0..m7, a fill for each of four channels.
    """

    kind: str
    params: tuple[Scalar, ...]

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.params))})"


@dataclass(frozen=True, eq=False, repr=False)
class Stage(_Numbers):
    """Pixel program with views on its inputs and outputs.

    ``program[port]`` is one expression (flat, ``channels`` 0) or one per channel (channels run along the last axis).
    ``pre[i]`` maps input i to the iteration space, ``post[o]`` maps the memory of output o to it.
    """

    program: tuple[tuple[Px, ...], ...]
    pre: tuple[tuple[ViewOp, ...], ...]
    post: tuple[tuple[ViewOp, ...], ...]
    channels: int = 0
    interpolator: Interpolator | None = None

    @property
    def reshapes(self) -> bool:
        """Whether an output has other extents than the iteration space: its memory must be contiguous."""
        return any(op.kind == "reshape" for ops in self.post for op in ops)

    def _scalars(self) -> Iterable[object]:
        uniforms = scalars([x for port in self.program for x in port])
        params = self.interpolator.params if self.interpolator else ()
        return [*_chain_scalars([*self.pre, *self.post]), *uniforms, *params]

    def __repr__(self) -> str:
        parts = [repr(self.interpolator)] if self.interpolator else []
        parts += ["; ".join(", ".join(map(describe, p)) for p in self.program)]
        views = [f"in{i}:{list(v)}" for i, v in enumerate(self.pre) if v]
        views += [f"out{o}:{list(v)}" for o, v in enumerate(self.post) if v]
        return f"stage[{' -> '.join(parts + views)}]"


Twin = Callable[[Sequence[Any], Sequence[float], Sequence[Any]], None]  # inputs, numbers, outputs that it fills


@dataclass(frozen=True, slots=True)
class CompiledPass:
    """Pass of an operator's own GPU kernel, as it is compiled.

    Attributes:
        name: name of the function.
        threads: threads of a block.
        max_shared_bytes: maximum of dynamic shared memory of a block over all rows; 0: none.
        resident_threads: threads of a multiprocessor that must have registers, by which the compiler limits them.
    """

    name: str
    threads: int = 256
    max_shared_bytes: int = 0
    resident_threads: int = 512

    @property
    def resident_blocks(self) -> int:
        """Blocks of a multiprocessor that must have registers."""
        return max(self.resident_threads // self.threads, 1)


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """Operator's own GPU kernel: ``stoker::own::Name`` in ``native/device/own_name.cuh``, compiled at run time.

    The kernel is a class template, ``Name<Types<inputs..., outputs...>, constants...>``. Each pass is a static function
    of the class, ``void pass(const Row&, uint32_t block)``, and one launch for the whole batch, in this order. The
    step's last numbers are the blocks of each pass for a row, the bytes of dynamic shared memory of passes that use
    some, and the bytes of device memory that the row needs between the passes.

    A user's operator brings its own ``source`` instead, CUDA C++ for ``native/device/stoker/op.cuh``. Its constants
    are, for each pass, the index of the number with the count of threads, or -1 for a pass of whole blocks.

    A kernel with a ``fault`` may fail a row (``Row::fail``), with this text.
    """

    name: str
    passes: tuple[CompiledPass, ...]
    constants: tuple[int, ...] = ()
    source: str = ""
    fault: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class InlinedProgram:
    """Pixel program that computes the last inputs of an operator's own GPU kernel in registers; see :class:`Inlining`.

    The program's inputs take the place of the inputs that it computes. The program is the last argument of the kernel's
    class template.

    Attributes:
        program: an expression for each input that it computes. Port 0 is the first input of the program.
        pre: for each input of the program, the view that takes it to the iteration space.
        shape: extents of the iteration space, which are those of the inputs that it computes.
    """

    program: tuple[tuple[Px, ...], ...]
    pre: tuple[tuple[ViewOp, ...], ...]
    shape: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Inlining:
    """Ability of an operator's own GPU kernel to compute its last inputs by a pixel program, so that they are never in
    memory (``native/device/inlined_program.cuh``). The pass for inlining reads it.

    Attributes:
        count: number of these inputs. They are FLOAT of two or three axes and have one shape, which the operator's
            checks ensure.
    """

    count: int


@dataclass(frozen=True, slots=True)
class LaunchPass:
    """Launch of a pass for a row. Needed only if blocks of 256 threads without dynamic shared memory do not fit.

    Attributes:
        blocks: number of blocks for the row.
        threads: threads of a block: a multiple of 32, at most 1024.
        shared_bytes: dynamic shared memory of a block (``gpu::dynamic_shared``). All blocks of a launch get the amount
            of the batch's largest row.
        max_shared_bytes: maximum over all rows; a row that needs more is an error. GPUs have at least 48 KiB for a
            block, data-center GPUs up to 227 KiB.
        resident_threads: threads of a multiprocessor that must have registers, at most 2048. More threads hide the
            latency of memory better, and have fewer registers each.
    """

    blocks: Scalar
    threads: int = 256
    shared_bytes: Scalar = 0
    max_shared_bytes: int = 0
    resident_threads: int = 512

    def __post_init__(self) -> None:
        if self.threads % 32 or not 32 <= self.threads <= 1024:
            raise ValueError(f"expected threads of a block to be a multiple of 32, at most 1024, got {self.threads}")
        if not 32 <= self.resident_threads <= 2048:
            raise ValueError(f"expected resident_threads to be 32 to 2048, got {self.resident_threads}")
        if not 0 <= self.max_shared_bytes <= MAX_SHARED_BYTES:
            raise ValueError(f"expected max_shared_bytes to be 0 to {MAX_SHARED_BYTES}, got {self.max_shared_bytes}")
        if not self.max_shared_bytes and not (isinstance(self.shared_bytes, int) and self.shared_bytes == 0):
            raise ValueError("expected max_shared_bytes for a pass with shared_bytes")


@dataclass(frozen=True, slots=True)
class Launches:
    """Launch description of an operator's own kernel, built while the operator is lowered.

    Attributes:
        name: name of the class.
        passes: blocks per row (or a :class:`LaunchPass`) of each pass, in order.
        scratch_bytes: device memory of a row in which passes leave results for later ones. It is not cleared.
        constants: numbers that the code is compiled with. Keep their number of values small: each is a separate kernel.
        source: code of a user's operator.
        fault: error of rows that the kernel fails (``Row::fail``); empty if it fails none.
    """

    name: str
    passes: Mapping[str, Scalar | LaunchPass]
    scratch_bytes: Scalar = 0
    constants: tuple[int, ...] = ()
    source: str = ""
    fault: str = ""

    def kernel(self) -> OwnKernel:
        """Return the part of the description that kernels are compiled from."""
        passes = tuple(
            CompiledPass(name, p.threads, p.max_shared_bytes, p.resident_threads) for name, p in self._passes().items()
        )
        return OwnKernel(self.name, passes, self.constants, self.source, self.fault)

    def numbers(self) -> tuple[Scalar, ...]:
        """Return the numbers that follow the step's own numbers."""
        passes = self._passes().values()
        shared = (p.shared_bytes for p in passes if p.max_shared_bytes)
        return (*(p.blocks for p in passes), *shared, self.scratch_bytes)

    def _passes(self) -> dict[str, LaunchPass]:
        return {name: p if isinstance(p, LaunchPass) else LaunchPass(p) for name, p in self.passes.items()}


@dataclass(frozen=True, slots=True)
class Compiled:
    """GPU kernel with the same name and constants as the CPU kernel, built from compiled CUDA kernels."""

    kernels: Sources


@dataclass(frozen=True, slots=True)
class OnEngines:
    """GPU kernel that shares rows with fixed-function engines, whose results differ.

    Attributes:
        part: share of the rows (chosen by their keys) for the engines, if the engines support them: 0 to 1.
        smooth: use the engines' better and slower form.
    """

    part: float
    smooth: bool


@dataclass(frozen=True, slots=True)
class CalledOnHost:
    """GPU kernel whose work a function in Python issues, for a whole batch and on its stream. There is no CPU kernel.

    Attributes:
        function: ``function(stream, rows, exchange)``; see ``_native.gpu.HostCall``.
    """

    function: Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class GpuForm:
    """Form of a native kernel for GPUs. Placement, storage and the CPU/GPU split read it.

    Attributes:
        kernel: the kernel; None: the codec makes it.
        balanced: the kernel leaves a share of the rows to the CPU, with the same results. The share may change between
            batches.
        in_planes: the kernel can leave its image in component planes for the stage that reads them.
        takes_bound: the kernel accepts an input whose first extent only the GPU knows (``Counted``), with the upper
            bound as that extent. The kernel reads the count from another input.
        follows: number of an input whose first extent is the outputs'. If only the GPU knows that extent, the kernel
            makes elements up to the upper bound, and the outputs share the input's count. The step's own numbers,
            such as those of launches, are computed from the bound.
    """

    kernel: OwnKernel | Compiled | OnEngines | CalledOnHost | None = None
    balanced: bool = False
    in_planes: bool = False
    takes_bound: bool = False
    follows: int | None = None


@dataclass(frozen=True, slots=True)
class FileAccess:
    """File access of a native kernel. The pass for partial reads uses it.

    Attributes:
        header_only: the kernel reads only the header of its input, a file.
        in_parts: the two kernels of the codec that read a file in parts, for a GPU kernel that can work with the part
            of the file that its window needs. They require a codec with an index. The first returns the header if the
            index knows the file, with the file's number in the index. The second returns the part that the window
            needs.
        gives_file: the output is a file. The kernel's constants say where the files are and which index column names
            them, so that a codec's kernels can read the file instead.
    """

    header_only: bool = False
    in_parts: tuple[str, str] | None = None
    gives_file: bool = False


@dataclass(frozen=True, slots=True)
class OutputMemory:
    """Memory of a native kernel's outputs, if it is not a buffer of the declared extents. Storage assignment reads it.

    Attributes:
        aliases: outputs are views of the inputs' memory.
        allocates: the kernel allocates its first output, whose extents only the kernel knows.
        passes_on: the first output may be the first input.
    """

    aliases: bool = False
    allocates: bool = False
    passes_on: bool = False


@dataclass(frozen=True, slots=True)
class Tiles:
    """Ability of a native kernel to work on parts that stay in the cache (``native/kernels/tiled.hpp``). The pass for
    tiles reads it.

    Attributes:
        chain: the kernel that runs a chain of kernels with this trait.
        takes: kind of the parts that the kernel can take of its first input. "samples": any range of a signal of one
            axis. "columns": some positions along one axis of a matrix, with all elements of the other. "": the whole.
        gives: kind of the parts of its only output that the kernel can compute. "": the whole, in the memory of all
            columns that it takes.
        axis: axis of the positions in a matrix; None: the matrix has no order, each axis will do.
    """

    chain: str
    takes: str
    gives: str
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """Ability of an operator's own GPU kernel to share a launch with its neighbours in a chain of :class:`Tiles`. The
    pass for joints reads it.

    Attributes:
        name: name of the joint, which neighbours have in common.
        launches: of the kernel that can do the others' work as well: return the launches of all, for whether there is a
            step before, and the elements per position that the step after computes, 0 if there is none. None: the
            kernel is such a neighbour.
    """

    name: str
    launches: Callable[[bool, Scalar], Launches] | None = None


ALIASES = OutputMemory(aliases=True)
ALLOCATES = OutputMemory(allocates=True)


@dataclass(frozen=True, eq=False, repr=False)
class Native(_Numbers):
    """Native kernel, by its constructor's name and constants. It has no effects: equal steps are merged.

    Attributes:
        params: numbers per row.
        window: indices in ``params`` of the window's first row and column, if the kernel can compute only a window of
            its output. The output's first two extents are the window's.
        twin: Python implementation for rows that the kernel hands over. ``twin(inputs, params, outputs)`` fills
            ``outputs``.
        codec: name of the codec that makes the kernels (``contract.codec``); "": the kernel is found by its name.
        gpu: form for GPUs; None: there is none.
        file: use of files.
        memory: memory of the outputs.
        tiles: form in which the kernel can join a chain that runs part by part.
        joint: form in which the kernel can share a launch on a GPU.
        inlining: form in which the kernel on a GPU can compute some of its inputs.
        inlined: the program that computes them.
        other_rows_of: input of which the kernel reads other rows than its own. All rows must have arrived before. A
            kernel whose output shows another row's value receives that value's number after its constants. Any other
            kernel gets the input of all rows in one call before its own rows run (``Kernel::combine``).
    """

    kernel: str
    attrs: tuple[Any, ...] = ()
    params: tuple[Scalar, ...] = ()
    window: tuple[int, int] | None = None
    twin: Twin | None = None
    codec: str = ""
    gpu: GpuForm | None = None
    file: FileAccess = FileAccess()
    memory: OutputMemory = OutputMemory()
    tiles: Tiles | None = None
    joint: Joint | None = None
    inlining: Inlining | None = None
    inlined: InlinedProgram | None = None
    other_rows_of: int | None = None

    def _scalars(self) -> Iterable[object]:
        if self.inlined is None:
            return self.params
        uniforms = scalars([x for port in self.inlined.program for x in port])
        return [*self.params, *self.inlined.shape, *uniforms, *_chain_scalars(self.inlined.pre)]

    def __repr__(self) -> str:
        attrs = [a if isinstance(a, (int, float, str)) else f"<{type(a).__name__} {id(a)}>" for a in self.attrs]
        text = f"{self.kernel}({', '.join(map(str, attrs))}; {', '.join(map(repr, self.params))})"
        if self.inlined is not None:
            text += f" at [{'; '.join(', '.join(map(describe, p)) for p in self.inlined.program)}]"
        engines = self.gpu.kernel if self.gpu else None
        return f"{text} with {engines}" if isinstance(engines, OnEngines) else text


@dataclass(frozen=True, eq=False, repr=False)
class PyCall(_Numbers):
    """Operator that runs in Python, over all active rows of a batch.

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


def _chain_scalars(chains: Sequence[Sequence[ViewOp]]) -> list[object]:
    """Return the numbers of view operations."""
    found: list[object] = []
    for ops in chains:
        for op in ops:
            found += (op.start, op.step, op.extent)
            if op.kind == "reshape":
                found += op.list
    return found


@dataclass(frozen=True, slots=True)
class Check:
    """Condition that must hold for a row. Otherwise the row fails with ``text``, in which {0}, {1}.. are ``values``.

    ``node`` is the graph node that demands the check, even if a pass moves the check to another step.
    """

    condition: Scalar
    text: str
    values: tuple[Scalar, ...] = ()
    node: int = field(default=-1, repr=False)  # not part of the text that finds equal steps


@dataclass(frozen=True, slots=True)
class Step:
    """Operation of the planned program: its body, and the values that it reads and writes."""

    body: Body
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    node: int  # the graph node that the step was lowered from; for joined steps, that of the last one
    checks: tuple[Check, ...] = ()
    guards: tuple[tuple[int, bool], ...] = ()  # (value, wanted): all must hold for the step to run
    frames: Scalar | None = None
    framed: tuple[bool, ...] = ()
    on_gpu: bool = False  # the step reads and writes a GPU's memory


def counts_of(step: Step, values: Mapping[int, Value]) -> frozenset[int]:
    """Return the outputs of ``step`` to which its kernel writes the first extent of other ones."""
    counted = (values[v].counted for v in step.outputs)
    return frozenset(c.count for c in counted if c is not None).intersection(step.outputs)


@dataclass(slots=True)
class StepList:
    """All steps of a graph in order, their values, and the values that leave the pipeline."""

    steps: list[Step] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    fed: dict[tuple[int, int], int] = field(default_factory=dict)  # (graph node, output) -> value the caller feeds
    readers: list[int] = field(default_factory=list)  # graph nodes, in the order of their index columns
    # Outputs whose extents are known when a row has run -> the value whose kernel may allocate in the output's memory.
    placed: dict[int, int] = field(default_factory=dict)
