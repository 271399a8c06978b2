# SPDX-License-Identifier: Apache-2.0
"""Builder for lowering operators: from arguments and symbolic values to steps. Nothing runs here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import expr as ex
from .errors import ArgumentError, ResourceError, UnsupportedError
from .expr import Expr, Scalar, is_static
from .operator import Operator, Spec
from .pixel import (
    Px,
    channel_count,
    coordinate,
    coordinates_of,
    load,
    on_axes,
    scalars,
    tables_of,
    uniform,
    uniform_count,
)
from .scope import Scope, Scoped
from .step import (
    ALIASES,
    MAX_PORTS,
    Counted,
    GpuForm,
    Interpolator,
    Launches,
    Native,
    PyCall,
    Stage,
    Step,
    StepList,
    Value,
    View,
    ViewOp,
)
from .text import brief
from .types import MAX_RANK, DType

MAX_UNIFORMS = 256  # as kMaxUniforms in native/kernels/stage.hpp
SMALL = 16  # constants up to this many elements are known as numbers while planning


class Lowering(Scoped):
    """Builder of the steps of a graph.

    Operators use the methods of :class:`.scope.Scoped` and those below ``---- for operators ----``.
    """

    def __init__(
        self,
        find: Callable[[str], type[Operator]],
        discovered: Mapping[int, tuple[Spec, ...]],
        sources: Mapping[int, Any],
    ) -> None:
        super().__init__()
        self.list = StepList()
        self._find = find
        self._discovered = discovered
        self._sources = sources
        self._seen: dict[int, tuple[int | None, ...]] = {}  # extents of the first batch, by value
        self._found_by_run: dict[int, int] = {}  # nodes whose first batch determines extents, by value
        self._numbers_below: dict[int, Scalar] = {}

    def lower(self, scope: Scope, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Lower one node and return its outputs."""
        outer, self._scope = self._scope, scope
        try:
            op = scope.operator
            self._require_axes(scope)
            if outer is None:
                inputs = self._with_axis_names(scope, inputs)
            if op.is_composite():
                result = op.compose(self, *inputs)
            elif op.is_python():
                result = self._python_node(op, inputs)
            else:
                result = op.lower(self, *inputs)
            outputs = result if isinstance(result, tuple) else (result,)
            # An operator may return its input, whose own names stay as they are.
            return tuple(x if x.layout == self.list.values[x.id].layout else self.relabel(x, x.layout) for x in outputs)
        finally:
            self._scope = outer

    @staticmethod
    def _with_axis_names(scope: Scope, inputs: Sequence[Value]) -> Sequence[Value]:
        """Return the inputs of a node. The first one gets the operator's default axis names if it has none."""
        if not inputs or inputs[0].layout:
            return inputs
        framed = any(x.per_frame for x in scope.edges.values())
        layout = scope.operator.default_layout(inputs[0].rank, per_frame=framed)
        return [replace(inputs[0], layout=layout), *inputs[1:]] if layout else inputs

    def _require_axes(self, scope: Scope) -> None:
        """Raise ArgumentError if a node that lists axes has more numbers than a tensor has axes, in the first batch."""
        known = scope.operator.all_arguments()
        for name, edge in scope.edges.items():
            if not known[name].per_axis:
                continue
            extents = edge.shape[1:] if edge.per_frame else edge.shape
            count = ex.product([ex.substitute(e, self._seen_extent) for e in extents])
            try:
                known[name].require_axes(count or 0)
            except ValueError as error:
                raise ArgumentError(f"`{scope.operator.name}`: argument `{name}`: {error}") from None

    def _python_node(self, op: Operator, inputs: Sequence[Value]) -> tuple[Value, ...]:
        inferred = op.infer(self, *inputs)
        specs = (
            self.discovered_types() if inferred is None else inferred if isinstance(inferred, tuple) else (inferred,)
        )
        return self.python(specs, list(inputs) + list(self.scope.edges.values()))

    def new_value(self, dtype: DType, shape: Iterable[Scalar], layout: str = "", per_frame: bool = False) -> Value:
        # So that passes can compare extents.
        extents = tuple(int(e) if isinstance(e, float) and e.is_integer() else e for e in shape)
        value = Value(len(self.list.values), dtype, extents, layout, per_frame)
        if any(self.differs_by_frame(n) for n in value.shape):
            raise ArgumentError(f"`{self.scope.operator.name}`: all frames of a video have one size, got one per frame")
        if value.rank > MAX_RANK:
            raise UnsupportedError(f"`{self.scope.operator.name}`: expected at most {MAX_RANK} axes, got {value.rank}")
        wide = next((e for e in extents if is_static(e) and not -(1 << 63) <= e < 1 << 63), None)
        if wide is not None:
            text = f"expected extents below 2**63, got {brief(wide)}"
            raise ArgumentError(f"`{self.scope.operator.name}`: {text}")
        if layout and len(layout) != value.rank:
            raise ArgumentError(f"`{self.scope.operator.name}`: layout {layout!r} does not name {value.rank} axes")
        self.list.values[value.id] = value
        return value

    def opaque(self, dtype: DType, rank: int, layout: str = "", known: Sequence[Any] = ()) -> Value:
        """Add a value whose extents are known only at run time, except for the axes in ``known``."""
        number = len(self.list.values)
        shape = [Expr("dim", number, i) for i in range(rank)]
        return self.new_value(
            dtype, [k if k is not None else s for k, s in zip([*known, *[None] * rank], shape, strict=False)], layout
        )

    def _add(self, body: Any, inputs: Sequence[int], outputs: Sequence[int], **more: Any) -> None:
        scope = self.scope
        checks, scope.checks = tuple(scope.checks), []
        self.list.steps.append(
            Step(body, tuple(inputs), tuple(outputs), scope.node, checks=checks, guards=scope.guards, **more)
        )

    # ---- for operators ----

    def apply(self, name: str, *inputs: Value, **args: Any) -> Any:
        """Lower another operator in place of this one. Constants and values are given by argument name."""
        op_class = self._find_for(self.scope.operator, name)
        edges = {k: v for k, v in args.items() if isinstance(v, Value)}
        given = {k: v for k, v in args.items() if not isinstance(v, Value) and v is not None}
        outer = self.scope
        given.setdefault("seed", outer.args.get("seed")) if op_class.draws else None
        consts = op_class.fill_defaults(op_class.bind(given), edges)
        scope = Scope(op_class(), consts, edges, outer.node, outer.draw, outer.guards, outer.device)
        scope.checks, outer.checks = outer.checks, []  # a composite has no step of its own that could carry them
        result = self.lower(scope, inputs)
        return result[0] if len(result) == 1 else result

    def _find_for(self, caller: Operator, name: str) -> type[Operator]:
        """Return the operator that ``caller`` means: a built-in one never means a user's of the same name."""
        found = self._find(name)
        return self._find(f"stoker.{name}") if caller.is_built_in() and not found.is_built_in() else found

    def axis(self, x: Value, name: str) -> int:
        """Return the axis called ``name``. Unnamed images of rank 3 are HWC, of rank 2 HW."""
        layout = self.layout(x)
        if name not in layout:
            raise ArgumentError(
                f"`{self.scope.operator.name}`: expected an image with an axis {name!r}, got layout {layout!r}"
            )
        return layout.index(name)

    def layout(self, x: Value) -> str:
        return x.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(x.rank, "")

    def extent(self, x: Value, name: str) -> Scalar:
        return x.shape[self.axis(x, name)]

    def relabel(self, x: Value, layout: str) -> Value:
        """Return the same data with other axis names."""
        return self.view(x, (), layout=layout)

    def view(self, x: Value, ops: Sequence[ViewOp], layout: str | None = None, *, may_copy: bool = False) -> Value:
        shape, names = list(x.shape), x.layout
        for op in ops:
            if op.kind == "slice":
                shape[op.axis] = op.extent
            elif op.kind == "permute":
                shape = [shape[i] for i in op.list]
                names = "".join(names[i] for i in op.list) if names else ""
            elif op.kind == "insert":
                shape.insert(op.axis, 1)
                names = ""
            elif op.kind == "drop":
                del shape[op.axis]
                names = names[: op.axis] + names[op.axis + 1 :] if names else ""
            else:
                shape, names = list(op.list), ""
        names = names if layout is None else layout
        if any(self.differs_by_frame(n) for op in ops for n in (op.start, op.step, op.extent)):
            return self._frames_viewed(x, ops, shape, names)
        out = self.new_value(x.dtype, shape, names, x.per_frame)
        self._add(View(tuple(ops), may_copy), [x.id], [out.id])
        return out

    def _frames_viewed(self, x: Value, ops: Sequence[ViewOp], shape: Sequence[Scalar], layout: str) -> Value:
        """Copy slices whose start or direction differs from frame to frame, which strides cannot express."""
        if self.layout(x)[:1] != "F":
            raise ArgumentError(f"`{self.scope.operator.name}`: a per-frame argument needs a video (a leading F axis)")
        if any(op.kind != "slice" or op.axis == 0 for op in ops):
            raise ArgumentError(
                f"`{self.scope.operator.name}`: expected an argument for the whole video, got one per frame"
            )
        own = [replace(op, axis=op.axis - 1) for op in ops]
        return self.stage(
            [x], [(x.dtype, shape, layout)], [[load(x.dtype)]], pre=[own], frames=shape[0], framed=[True]
        )[0]  # fmt: skip

    def slice(self, x: Value, windows: Mapping[int, tuple[Scalar, Scalar]]) -> Value:
        """Take the window ``{axis: (start, extent)}``."""
        ops = []
        for axis, (start, extent) in windows.items():
            self.require(
                ex.both(ex.both(start >= 0, extent >= 0), start + extent <= x.shape[axis]),
                "expected a window inside the input, got start {0} and extent {1} in an axis of {2} elements",
                start,
                extent,
                x.shape[axis],
            )
            ops.append(ViewOp("slice", axis, start, 1, extent))
        return self.view(x, ops)

    def flip(self, x: Value, axis: int, flag: Scalar) -> Value:
        """Reverse an axis where ``flag`` is not zero."""
        n = x.shape[axis]
        start, step = ex.where(flag, n - 1, 0), ex.where(flag, -1, 1)
        if ex.is_static(step) and step == 1:
            return x
        start = ex.maximum(start, 0)
        return self.view(x, [ViewOp("slice", axis, start, step, n, bijective=True)])

    def permute(self, x: Value, order: Sequence[int], layout: str | None = None) -> Value:
        if list(order) == list(range(x.rank)) and layout is None:
            return x
        return self.view(x, [ViewOp("permute", list=tuple(order))], layout)

    def stage(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[tuple[DType, Sequence[Scalar], str]],
        program: Sequence[Sequence[Px]],
        *,
        pre: Sequence[Sequence[ViewOp]] = (),
        post: Sequence[Sequence[ViewOp]] = (),
        channels: int = 0,
        interpolator: Interpolator | None = None,
        frames: Scalar | None = None,
        framed: Sequence[bool] = (),
    ) -> tuple[Value, ...]:
        """Emit a stage; see :class:`Stage`."""
        count = uniform_count([x for p in program for x in p])
        self.expect(
            count <= MAX_UNIFORMS,
            "expected at most {0} different numbers in the computation of an element, got {1}; call the operator "
            "several times with fewer",
            MAX_UNIFORMS, count,
        )  # fmt: skip
        ports = len(inputs) + len(coordinates_of([x for p in program for x in p]))
        self.expect(
            ports <= MAX_PORTS,
            "expected at most {0} inputs and axes whose positions the computation of an element reads, got {1}; "
            "join axes with `reshape` first",
            MAX_PORTS, ports,
        )  # fmt: skip
        outs = tuple(self.new_value(dtype, shape, layout) for dtype, shape, layout in outputs)
        body = Stage(
            tuple(tuple(p) for p in program),
            tuple(tuple(p) for p in pre) or ((),) * len(inputs),
            tuple(tuple(p) for p in post) or ((),) * len(outs),
            channels,
            interpolator,
        )
        framing = {"frames": frames, "framed": tuple(framed)} if frames is not None else {}
        self._add(body, [x.id for x in inputs], [o.id for o in outs], **framing)
        return outs

    def pointwise(self, inputs: Sequence[Value], program: Px, shape: Sequence[Scalar] | None = None,
                  layout: str | None = None) -> Value:  # fmt: skip
        """Emit a flat stage: one expression over all elements (inputs broadcast).

        ``per_frame`` numbers make the stage run frame by frame.
        """
        shape = inputs[0].shape if shape is None else shape
        layout = inputs[0].layout if layout is None else layout
        frames, framed = self._framing([program], inputs, shape)
        if frames is not None:
            program = on_axes(program, _of_a_frame(len(shape)))
        return self.stage(
            inputs, [(program.dtype, shape, layout)], [[program]], frames=frames, framed=framed
        )[0]  # fmt: skip

    def channelled(self, x: Value, program: Sequence[Px], axis: int, more: Sequence[Value] = ()) -> Value:
        """Emit a stage with one expression per channel. Channels run along ``axis`` and stay there.

        Coordinates are those of the axes of ``x``. ``more`` are further inputs: of the same axes, and tables.
        """
        if not program:
            raise ArgumentError(f"`{self.scope.operator.name}`: expected at least one channel, got none")
        inputs, tables = [x, *more], tables_of(program)
        frames, framed = self._framing(program, inputs, x.shape)
        lead = 1 if frames is not None else 0
        rank, at = x.rank - lead, axis - lead
        order = [i for i in range(rank) if i != at] + [at]
        program = [_of_a_channel(p, k, lead, order) for k, p in enumerate(program)]
        view = [] if at == rank - 1 else [ViewOp("permute", list=tuple(order))]
        shape = list(x.shape)
        shape[axis] = len(program)
        return self.stage(
            inputs, [(program[0].dtype, shape, x.layout)], [program],
            pre=[[] if i in tables else view for i in range(len(inputs))], post=[view],
            channels=channel_count(program),
            frames=frames, framed=framed,
        )[0]  # fmt: skip

    def coordinate(self, x: Value, name: str) -> Px:
        """Return an element's index along the axis called ``name``, INT32, for :meth:`pointwise` and
        :meth:`channelled`.

        The output has the axes of ``x``.
        """
        return coordinate(self.axis(x, name))

    def _framing(self, program: Sequence[Px], inputs: Sequence[Value], shape: Sequence[Scalar]) -> tuple[Any, Any]:
        if not any(self.differs_by_frame(u) for u in scalars(list(program))):
            return None, ()
        tables = tables_of(program)
        return shape[0], [x.rank == len(shape) and i not in tables for i, x in enumerate(inputs)]

    def differs_by_frame(self, x: Any) -> bool:
        """Return whether a number depends on the frame."""
        return isinstance(x, Expr) and x.by_frame

    def sample(self, x: Value, interpolator: Interpolator, height: Scalar, width: Scalar) -> Value:
        """Resample or warp the H and W axes. The other axes may be C (anywhere) and a leading F."""
        layout = self.layout(x)
        if "F" in layout[1:]:
            order = [layout.index("F"), *(i for i, name in enumerate(layout) if name != "F")]
            moved = self.sample(self.permute(x, order), interpolator, height, width)
            return self.permute(moved, [order.index(i) for i in range(x.rank)], x.layout)
        if layout not in ("HWC", "CHW", "HW", "FHWC", "FCHW", "FHW"):
            raise UnsupportedError(
                f"`{self.scope.operator.name}`: expected layout HWC, CHW, HW or these with a leading F, got {layout!r}"
            )
        frames = layout[0] == "F"
        if not frames and any(self.differs_by_frame(p) for p in (*interpolator.params, height, width)):
            raise ArgumentError(f"`{self.scope.operator.name}`: a per-frame argument needs a video (a leading F axis)")
        if any(self.differs_by_frame(p) for p in (height, width)):
            raise ArgumentError(f"`{self.scope.operator.name}`: all frames of a video have one size, got one per frame")
        inner = layout[1:] if frames else layout
        shape = list(x.shape)
        shape[layout.index("H")], shape[layout.index("W")] = height, width
        to_hwc = [ViewOp("permute", list=(1, 2, 0))] if inner == "CHW" else []
        if inner == "HW":
            to_hwc = [ViewOp("insert", 2)]
        return self.stage(
            [x], [(x.dtype, shape, x.layout)], [[load(x.dtype)]], pre=[to_hwc], post=[to_hwc],
            interpolator=interpolator,
            frames=shape[0] if frames else None, framed=[True] if frames else (),
        )[0]  # fmt: skip

    def cast(self, x: Value, dtype: DType) -> Value:
        if x.dtype == dtype:
            return x
        out = self.pointwise([x], load(x.dtype).cast(dtype))
        return self.with_properties(out, per_frame=True) if x.per_frame else out

    def note_numbers(self, x: Value, below: Scalar) -> None:
        """Note that the elements of ``x`` are whole numbers from 0 to ``below`` - 1, whatever the data are."""
        self._numbers_below[x.id] = below

    def numbers_below(self, x: Value) -> Scalar | None:
        """Return the bound that :meth:`note_numbers` has noted, or None."""
        return self._numbers_below.get(x.id)

    def native(
        self,
        kernel: str,
        inputs: Sequence[Value],
        outputs: Sequence[tuple[DType, Sequence[Any], str]],
        *,
        attrs: tuple[Any, ...] = (),
        params: Sequence[Scalar] = (),
        max_output: Scalar | None = None,
        **traits: Any,
    ) -> tuple[Value, ...]:
        """Emit a native kernel; see :class:`Native` for the traits.

        Args:
            max_output: upper bound of the outputs' first extent, where only the kernel knows the extent itself. That
                extent is None in ``outputs``. The kernel has one more output, the count, which is returned last
                (:class:`Counted`).
        """
        if max_output is None:
            outs = tuple(self.new_value(dtype, shape, layout) for dtype, shape, layout in outputs)
        else:
            outs = self._counted(outputs, max_output)
        self.emit(kernel, inputs, outs, attrs=attrs, params=params, **traits)
        return outs

    def _counted(
        self, outputs: Sequence[tuple[DType, Sequence[Scalar | None], str]], max_output: Scalar
    ) -> tuple[Value, ...]:
        """Declare outputs whose first extent the kernel writes to one more output, the last one."""
        count = self.new_value(DType.INT32, ())
        outs = []
        for dtype, shape, layout in outputs:
            value = self.opaque(dtype, len(shape), layout, shape)
            if shape and shape[0] is None:
                value = self.list.values[value.id] = replace(value, counted=Counted(max_output, count.id))
            outs.append(value)
        return (*outs, count)

    def emit(self, kernel: str, inputs: Sequence[Value], outputs: Sequence[Value], *, attrs: tuple[Any, ...] = (),
             params: Sequence[Scalar] = (), own: Launches | None = None, frames: Scalar | None = None,
             framed: Sequence[bool] = (), **traits: Any) -> None:  # fmt: skip
        """Emit a native kernel that writes values declared by the caller (whose extents only the kernel knows).

        Args:
            kernel: name of the kernel.
            inputs: values that it reads.
            outputs: values that it writes.
            attrs: its constants.
            params: its numbers per row, or per frame.
            own: its form for GPUs.
            frames: number of frames, if the kernel runs once for each: the outputs and the inputs that ``framed`` marks
                are cut along their first axis.
            framed: for each input, whether it is cut.
            traits: see :class:`Native`.
        """
        if own is not None:
            params, traits = (*params, *own.numbers()), {**traits, "gpu": GpuForm(own.kernel())}
        if frames is None and any(self.differs_by_frame(p) for p in params):
            raise ArgumentError(
                f"`{self.scope.operator.name}`: expected arguments for the whole row, got one per frame"
            )
        framing = {} if frames is None else {"frames": frames, "framed": tuple(framed)}
        body = Native(kernel, attrs, tuple(params), **traits)
        self._add(body, [x.id for x in inputs], [o.id for o in outputs], **framing)

    def constant(self, array: Any, layout: str = "") -> Value:
        """Add a tensor that is the same for every row."""
        try:
            array = np.asarray(array, order="C")
            attrs = (array.tobytes(), array.shape)
        except (MemoryError, ValueError):  # NumPy's ValueError: more bytes than an address has
            text = f"expected a constant that fits into memory, got {array.dtype} of shape {array.shape}"
            raise ResourceError(f"`{self.scope.operator.name}`: {text}") from None
        if array.dtype.kind not in "biuf":
            raise ArgumentError(f"`{self.scope.operator.name}`: expected a constant of numbers, got {array.dtype}")
        value = self.native(
            "constant", [], [(DType.of(array.dtype), array.shape, layout)], attrs=attrs, memory=ALIASES
        )[0]
        numbers = array.reshape(-1).tolist() if array.size <= SMALL else [2**53 + 1]
        if all(abs(x) <= 2**53 for x in numbers if isinstance(x, int)):  # a double represents only these exactly
            self._numbers[value.id] = numbers
        return value

    def numbers(self, values: Sequence[Scalar], dtype: DType, shape: Sequence[int] | None = None) -> Value:
        """Add a small tensor of scalars."""
        shape = (len(values),) if shape is None else shape
        return self.native("scalars", [], [(dtype, shape, "")], params=values)[0]

    def python(self, specs: Sequence[Spec], inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Add a Python segment that runs this node's operator, with outputs as ``specs`` say."""
        scope = self.scope
        outs = tuple(self.opaque(s.dtype, len(s.shape), s.layout, s.shape) for s in specs)
        self._remember(specs, outs)
        ordered = scope.operator.stateful or not scope.operator.pure
        plain = len(inputs) - len(scope.edges)
        body = PyCall(
            scope.operator, scope.args, tuple(scope.edges), tuple(x.layout for x in inputs[:plain]), scope.draw,
            scope.node, not ordered,
        )  # fmt: skip
        self._add(body, [x.id for x in inputs], [o.id for o in outs])
        return outs

    def discovered_types(self) -> tuple[Spec, ...]:
        """Return the outputs' types from the first run; raise UndeclaredTypes before it."""
        specs = self._discovered.get(self.scope.node)
        if specs is None:
            raise UndeclaredTypes(self.scope.node)
        return specs

    def known_types(self) -> tuple[Spec, ...] | None:
        """Return the outputs' types from the first run; None before it."""
        return self._discovered.get(self.scope.node)

    def _remember(self, specs: Sequence[Spec], values: Sequence[Value]) -> None:
        """Remember the extents that the first batch of an output had."""
        for spec, value in zip(specs, values, strict=True):
            if spec.seen:
                self._seen[value.id] = spec.seen

    def fixed_length(self, name: str) -> int:
        """Return the length of a numeric argument (per frame, if it is per frame), like :meth:`fixed_count`."""
        edge = self.scope.edges.get(name)
        return (self.length(name) or 0) if edge is None else self.fixed_count(edge, name)

    def fixed_count(self, value: Value, name: str) -> int:
        """Return the size of a small tensor (per frame, if it is per frame).

        If it is known only at run time, it is the first batch's, and all rows are required to have the same one.

        Raises:
            UndeclaredTypes: the first batch has not run yet.
        """
        known = ex.product(value.shape[1:] if value.per_frame else value.shape)
        if known is not None:
            return known
        extents = value.shape[1:] if value.per_frame else value.shape
        count = ex.product([self._fixed_extent(e, name) for e in extents])
        assert count is not None
        actual: Any = Expr("count", value.id)
        if value.per_frame:
            actual = 1
            for e in extents:
                actual = actual * e
        text = f"expected {{0}} numbers as `{name}` in every row, as in the first batch, got {{1}}"
        self.require(ex.equal(actual, count), text, count, actual)
        self._fixed[value.id] = count
        return count

    def fixed_extent(self, x: Value, axis: int, name: str) -> int:
        """Return an extent. If it is known only at run time, it is the first batch's, which all rows must have.

        Raises:
            UndeclaredTypes: the first batch has not run yet.
        """
        actual = x.shape[axis]
        extent = self._fixed_extent(actual, name)
        if not is_static(actual):
            text = f"expected {{0}} {name} in every row, as in the first batch, got {{1}}"
            self.require(ex.equal(actual, extent), text, extent, actual)
        return extent

    def likely_extent(self, x: Value, axis: int, usual: int) -> int:
        """Return an extent: the known one, or that of the first batch if it has run, or ``usual``.

        The caller requires the extent of all rows.
        """
        actual = x.shape[axis]
        found = ex.substitute(actual, self._seen_extent)
        return int(found) if is_static(found) else usual

    def _seen_extent(self, leaf: Expr) -> int | None:
        """Return the extent of a value in the first batch."""
        extents = self._seen.get(leaf.args[0]) if leaf.op == "dim" else None
        return None if extents is None else extents[leaf.args[1]]

    def _fixed_extent(self, extent: Scalar, name: str) -> int:
        """Return an extent in the first batch."""
        found = ex.substitute(extent, self._seen_extent)
        if is_static(found):
            return int(found)
        node = next((self._found_by_run[v] for v in sorted(found.reads) if v in self._found_by_run), None)
        if node is not None and node not in self._discovered:
            raise UndeclaredTypes(node)
        raise ArgumentError(
            f"`{self.scope.operator.name}`: expected `{name}` with a number of elements that is the same for all rows"
        )

    @property
    def source(self) -> Any:
        """Return the opened data set of this node, which must be a reader."""
        return self._sources[self.scope.node]

    def fed(self, spec: Spec, output: int = 0, *, is_discovered: bool = False) -> Value:
        """Add a value that the caller supplies for every row. ``is_discovered``: the first run reveals its type."""
        value = self.opaque(spec.dtype, len(spec.shape), spec.layout, spec.shape)
        self._remember((spec,), (value,))
        self.list.fed[self.scope.node, output] = value.id
        if is_discovered:
            self._found_by_run[value.id] = self.scope.node
        return value

    def reader(self) -> int:
        """Return the index column of this node, which must be a reader."""
        self.list.readers.append(self.scope.node)
        return len(self.list.readers) - 1

    def with_properties(self, x: Value, **changes: Any) -> Value:
        """Return the same data with other plan-time properties (per_frame, layout)."""
        out = self.new_value(x.dtype, x.shape, changes.get("layout", x.layout), changes.get("per_frame", x.per_frame))
        self._add(View(()), [x.id], [out.id])
        self.list.values[out.id] = replace(out, **changes)
        return self.list.values[out.id]


def _of_a_frame(rank: int) -> list[Px]:
    """Return the coordinates of a video of ``rank`` axes in terms of one frame's coordinates."""
    return [uniform(Expr("frame"), DType.INT32), *map(coordinate, range(rank - 1))]


def _of_a_channel(x: Px, channel: int, lead: int, order: Sequence[int]) -> Px:
    """Return an expression over a tensor's axes in terms of one channel's. ``order`` lists the axes after ``lead``."""
    space = [uniform(channel, DType.INT32) if k == len(order) - 1 else coordinate(k) for k in range(len(order))]
    axes = [space[order.index(i)] for i in range(len(order))]
    return on_axes(x, [uniform(Expr("frame"), DType.INT32), *axes] if lead else axes)


class UndeclaredTypes(Exception):
    """Output types of a Python node are known only after its first run."""

    def __init__(self, node: int) -> None:
        super().__init__(node)
        self.node = node
