# SPDX-License-Identifier: Apache-2.0
"""``gpu_function``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract.argument import arg
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import CalledOnHost, GpuForm, Value
from ...contract.text import brief
from ._gpu_arrays import LIBRARIES, FunctionOnGpu, check_arguments, declared_outputs

_WAY_OUT = "On the CPU call it with `fn.python_function`"


class GpuFunction(Operator, name="gpu_function"):
    """Call a function of CuPy, PyTorch or Triton with the rows of a batch on a GPU, between operators there.

    The function gets a list of arrays for each input, one array for each row, and returns a list of arrays for each
    output, a tuple of lists for several. With ``fills=True`` it gets the lists of the outputs first, and fills them:
    that saves a copy, and is the form for kernels of Triton and CuPy. Arrays are the engine's memory, by DLPack, and
    only the function's until it returns.

    With ``library="dlpack"`` arrays are DLPack capsules, which any library reads, and so may be results. A capsule has
    no stream: the batch's work so far is done before the function runs, and its results are read after what it has
    issued to the legacy default stream. So the host waits twice for each batch.

    Otherwise the batch's stream is the library's current one, so work that the function issues is in order with the
    operators before and after it, and needs no synchronization. The function runs in a thread of the pipeline and
    holds Python's lock; batches come one at a time. An exception fails the batch. Shapes of outputs are computed before
    the function runs.
    """

    devices = ("gpu",)
    inputs = (1, 16)
    function = arg("object", doc="The function.")
    library = arg("str", "torch", doc='Library of the arrays: "torch", "cupy", or "dlpack" for capsules.')
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
        check_arguments(args)
        if args["library"] not in LIBRARIES:
            raise ArgumentError(f"expected a `library` of {', '.join(LIBRARIES)}, got {brief(args['library'])}")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["num_outputs"])

    def lower(self, c: Lowering, *inputs: Value) -> tuple[Value, ...]:
        outputs = declared_outputs(c, inputs)
        call = FunctionOnGpu(c.const("function"), c.const("library"), fills=c.const("fills"))
        return c.native(self.name, inputs, outputs, gpu=GpuForm(CalledOnHost(call)))

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        raise UnsupportedError(f"`gpu_function`: it runs on a GPU only. {_WAY_OUT}")
