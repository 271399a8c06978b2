# SPDX-License-Identifier: Apache-2.0
"""``_numba_function``: a function that Numba compiles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import ArgumentError, ResourceError, UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import MAX_RANK, DType

MOST_TENSORS = 6  # inputs, and outputs, as in DALI
_compiled: dict[Any, Any] = {}  # threads may still run a function, so all stay
_COMPILING = threading.Lock()


def numba_module() -> Any:
    """Return Numba.

    Raises:
        ResourceError: it is not installed.
    """
    try:
        import numba
    except ImportError as error:
        raise ResourceError(f"expected Numba, got: {error}. It is the extra `numba`: `pip install numba`") from error
    return numba


class NumbaFunction(Operator, name="_numba_function"):
    """Run a function that Numba compiles, without Python's lock, on the worker threads.

    ``run_fn(out0, ..., in0, ...)`` fills the outputs of a row. ``setup_fn(outs, ins)`` sets their shapes: it gets
    lists, by output or input and row, of shapes. It is called when the pipeline is planned, with symbols for extents.
    """

    hidden = True
    devices = ("cpu",)
    inputs = (1, MOST_TENSORS)
    run_fn = arg("object", doc="The function.")
    setup_fn = arg("object", None, doc="Function that sets the shapes of the outputs; by default those of the inputs.")
    in_types = arg("dtype", many=True, doc="Element types of the inputs.")
    ins_ndim = arg("int", many=True, doc="Numbers of axes of the inputs.")
    out_types = arg("dtype", many=True, doc="Element types of the outputs.")
    outs_ndim = arg("int", many=True, doc="Numbers of axes of the outputs.")
    cases = ()

    def count_outputs(self, args: Any) -> int:
        return len(args["out_types"])

    def lower(self, c: Lowering, *inputs: Value) -> tuple[Value, ...]:
        outputs = declared_outputs(c, inputs)
        kinds, ranks = c.const("in_types"), c.const("ins_ndim")
        out_kinds, out_ranks = c.const("out_types"), c.const("outs_ndim")
        address = _address(c.const("run_fn"), tuple(kinds), tuple(ranks), tuple(out_kinds), tuple(out_ranks))
        ports = tuple((1 << int(kind), rank, rank, -1) for kind, rank in zip(kinds, ranks, strict=True))
        out_ports = tuple((1 << int(kind), rank, rank, -1) for kind, rank in zip(out_kinds, out_ranks, strict=True))
        return c.native("user_function", inputs, outputs, attrs=(address, ports, out_ports))

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        shapes = shapes_of(row["setup_fn"], [x.shape for x in inputs], row["outs_ndim"])
        outputs = tuple(np.zeros(s, t.numpy) for s, t in zip(shapes, row["out_types"], strict=True))
        plain_function(row["run_fn"])(*outputs, *(np.asarray(x, order="C") for x in inputs))
        return outputs


def declared_outputs(c: Lowering, inputs: Sequence[Value]) -> list[tuple[DType, Any, str]]:
    """Check the inputs of a compiled function. Return types, shapes and layouts of its outputs."""
    kinds, ranks = c.const("in_types"), c.const("ins_ndim")
    out_kinds, out_ranks = c.const("out_types"), c.const("outs_ndim")
    c.expect(len(inputs) == len(kinds), f"expected {len(kinds)} inputs as in `in_types`, got {len(inputs)}")
    for i, (x, kind, rank) in enumerate(zip(inputs, kinds, ranks, strict=True)):
        c.expect(x.dtype == kind, f"expected input {i} of type {kind} as in `in_types`, got {x.dtype}")
        c.expect(x.rank == rank, f"expected input {i} with {rank} axes as in `ins_ndim`, got {x.rank}")
    shapes = shapes_of(c.const("setup_fn"), [x.shape for x in inputs], out_ranks)
    outputs = []
    for i, (kind, shape) in enumerate(zip(out_kinds, shapes, strict=True)):
        for n in shape:
            c.require(n >= 0, "expected extents of at least 0 from `setup_fn`, got {0}", n)
        same = i < len(inputs) and c.const("setup_fn") is None
        outputs.append((kind, shape, inputs[i].layout if same else ""))
    return outputs


def plain_function(function: Any) -> Callable[..., Any]:
    """Return the Python function of one that Numba may have compiled."""
    return getattr(function, "py_func", function)  # type: ignore[no-any-return]


def shapes_of(setup: Any, inputs: Sequence[Sequence[Any]], ranks: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the shapes of one row's outputs.

    Args:
        setup: ``setup_fn``, or None: shapes of the inputs.
        inputs: the shapes of the inputs; their extents are numbers or expressions.
        ranks: numbers of axes of the outputs.

    Raises:
        ArgumentError: the function fails, or leaves an extent out.
    """
    if setup is None:
        if any(i >= len(inputs) or rank != len(inputs[i]) for i, rank in enumerate(ranks)):
            raise ArgumentError("`numba_function`: expected `setup_fn`, because the outputs lack the inputs' shapes")
        return [tuple(shape) for shape, _ in zip(inputs, ranks, strict=False)]
    outs = [[[None] * rank] for rank in ranks]
    try:
        plain_function(setup)(outs, [[tuple(shape)] for shape in inputs])
    except Exception as error:
        raise ArgumentError(
            f"`numba_function`: `setup_fn` failed: {type(error).__name__}: {error}. It is called once with symbols "
            "for the extents of a row, so it may compute with them but not branch on them"
        ) from error
    shapes = [tuple(rows[0]) for rows in outs]
    if any(n is None for shape in shapes for n in shape) or [len(s) for s in shapes] != list(ranks):
        raise ArgumentError("`numba_function`: expected `setup_fn` to set all extents of `outs[i][sample]`")
    return shapes


_SOURCE = """\
def call(data, extents):
    try:
        run({arguments})
    except Exception:
        return 2
    return 1
"""


def _address(run: Any, in_types: Any, in_ranks: Any, out_types: Any, out_ranks: Any) -> int:
    """Compile the function for tensors of these types and return its address."""
    key = (run, in_types, in_ranks, out_types, out_ranks)
    with _COMPILING:
        if key not in _compiled:
            _compiled[key] = _compile(run, [*in_types, *out_types], [*in_ranks, *out_ranks], len(in_types))
        return int(_compiled[key].address)


def _compile(run: Any, kinds: Sequence[DType], ranks: Sequence[int], inputs: int) -> Any:
    """Compile a function ``call(data, extents)`` that makes arrays of addresses and extents (native/kernels)."""
    numba = numba_module()
    if any(kind in (DType.FLOAT16, DType.BFLOAT16) for kind in kinds):
        raise UnsupportedError("`numba_function`: Numba has no float16 and bfloat16 on CPUs. Cast the data")
    if any(not 0 <= rank <= MAX_RANK for rank in ranks):
        raise ArgumentError(f"`numba_function`: expected 0 to {MAX_RANK} axes, got {max(ranks)}")
    pointer = _pointer(numba)
    scope: dict[str, Any] = {
        "carray": numba.carray, "pointer": pointer, "run": run if hasattr(run, "py_func") else numba.njit(run)
    }  # fmt: skip
    parts, at = [], 0
    for i, (kind, rank) in enumerate(zip(kinds, ranks, strict=True)):
        scope[f"dtype{i}"] = kind.numpy.type
        shape = "".join(f"extents[{at + k}], " for k in range(rank))
        parts.append(f"carray(pointer(data[{i}]), ({shape}), dtype{i})")
        at += rank
    exec(_SOURCE.format(arguments=", ".join([*parts[inputs:], *parts[:inputs]])), scope)
    integers = numba.types.CPointer(numba.types.int64)
    try:
        return numba.cfunc(numba.types.int32(integers, integers), nopython=True)(scope["call"])
    except numba.core.errors.NumbaError as error:
        text = str(error).strip().splitlines()
        raise ArgumentError(f"`numba_function`: Numba refused the function: {' '.join(text[:4])}") from error


def _pointer(numba: Any) -> Any:
    """Return a function for compiled code that turns a number into a pointer."""

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def pointer(typing: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(numba.types.voidptr))

        return numba.types.voidptr(number), generate

    return pointer
