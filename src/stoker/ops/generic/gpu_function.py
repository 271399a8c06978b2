# SPDX-License-Identifier: Apache-2.0
"""``gpu_function``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...contract.argument import arg
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.lowering import MAX_RANK, Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import CalledOnHost, GpuForm, Value
from ...contract.text import brief
from ._gpu_arrays import LIBRARIES, FunctionOnGpu

_WAY_OUT = "On the CPU call it with `fn.python_function`"


class GpuFunction(Operator, name="gpu_function"):
    """Call a function of CuPy, PyTorch or Triton with the rows of a batch on a GPU, between operators there.

    The function gets a list of arrays for each input, one array for each row, and returns a list of arrays for each
    output, a tuple of lists for several. With ``fills=True`` it gets the lists of the outputs first, and fills them:
    that saves a copy, and is the form for kernels of Triton and CuPy. Arrays are the engine's memory, by DLPack, and
    only the function's until it returns.

    The batch's stream is the library's current one, so work that the function issues is in order with the operators
    before and after it, and needs no synchronization. The function runs in a thread of the pipeline and holds Python's
    lock; batches come one at a time. An exception fails the batch. Shapes of outputs are computed before the function
    runs.
    """

    devices = ("gpu",)
    inputs = (1, 16)
    function = arg("object", doc="The function.")
    library = arg("str", "torch", doc='Library of the arrays: "torch" or "cupy".')
    fills = arg("bool", False, doc="The function fills the outputs, which are its first arguments, and returns None.")
    num_outputs = arg("int", 1, doc="Number of outputs.")
    output_dtypes = arg("dtype", None, many=True, doc="Element types of the outputs; by default those of the inputs.")
    output_shapes = arg(
        "object", None, doc="Function of the inputs' shapes that returns the shape of the output, a list of shapes for "
        "several outputs. It is called once, with symbols for extents. By default outputs have the inputs' shapes.",
    )  # fmt: skip
    output_layouts = arg("str", None, many=True, doc="Names of the outputs' axes, one string for each output.")
    cases = ()

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        for name in ("function", "output_shapes"):
            if not callable(args[name]) and not (name == "output_shapes" and args[name] is None):
                raise ArgumentError(f"expected a function as `{name}`, got {brief(args[name])}")
        if args["library"] not in LIBRARIES:
            raise ArgumentError(f"expected a `library` of {', '.join(LIBRARIES)}, got {brief(args['library'])}")
        if not 1 <= args["num_outputs"] <= 16:
            raise ArgumentError(f"expected `num_outputs` from 1 to 16, got {args['num_outputs']}")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["num_outputs"])

    def lower(self, c: Lowering, *inputs: Value) -> tuple[Value, ...]:
        count = c.const("num_outputs")
        shapes = _shapes(c.const("output_shapes"), [x.shape for x in inputs], count)
        dtypes, layouts = c.const("output_dtypes"), c.const("output_layouts") or ()
        c.expect(dtypes is None or len(dtypes) in (1, count), "expected an element of `output_dtypes` for each output")
        outputs = []
        for i, shape in enumerate(shapes):
            like = inputs[i] if i < len(inputs) else inputs[0]
            for n in shape:
                c.require(n >= 0, "expected extents of at least 0 from `output_shapes`, got {0}", n)
            layout = layouts[i] if i < len(layouts) else like.layout if len(shape) == like.rank else ""
            c.expect(not layout or len(layout) == len(shape), f"expected a layout of {len(shape)} axes, got {layout!r}")
            dtype = like.dtype if dtypes is None else dtypes[i] if len(dtypes) > 1 else dtypes[0]
            outputs.append((dtype, shape, layout))
        call = FunctionOnGpu(c.const("function"), c.const("library"), fills=c.const("fills"))
        return c.native(self.name, inputs, outputs, gpu=GpuForm(CalledOnHost(call)))

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        raise UnsupportedError(f"`gpu_function`: it runs on a GPU only. {_WAY_OUT}")


def _shapes(function: Callable[..., Any] | None, inputs: Sequence[Sequence[Any]], count: int) -> list[tuple[Any, ...]]:
    """Return the shapes of the outputs."""
    if function is None:
        return [tuple(inputs[i] if i < len(inputs) else inputs[0]) for i in range(count)]
    try:
        found = function(*(tuple(shape) for shape in inputs))
    except Exception as error:
        raise ArgumentError(
            f"`output_shapes` failed: {type(error).__name__}: {error}. It is called once with symbols for the extents "
            "of a row, so it may compute with them but not branch on them"
        ) from error
    shapes = [found] if count == 1 and not isinstance(found, list) else list(found)
    if len(shapes) != count or not all(isinstance(s, (tuple, list)) and len(s) <= MAX_RANK for s in shapes):
        raise ArgumentError(
            f"expected `output_shapes` to return a tuple of extents for each of {count} outputs, got {brief(found)}"
        )
    return [tuple(shape) for shape in shapes]
