# SPDX-License-Identifier: Apache-2.0
"""``_numba_gpu_function``: a function that Numba compiles for a GPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from ...contract.argument import arg
from ...contract.errors import ArgumentError, ResourceError, UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import CalledOnHost, GpuForm, Value
from ...contract.text import reason_of
from ...contract.types import DType
from .numba_function import MOST_TENSORS, declared_outputs

_MOST_THREADS = 1024  # of a block
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)  # of a grid along each axis


def cuda_module() -> Any:
    """Return Numba's module for CUDA.

    Raises:
        ResourceError: it is not installed.
    """
    try:
        return importlib.import_module("numba.cuda")
    except ImportError as error:
        text = f"`numba_function`: expected numba-cuda, got: {error}. Install it: `pip install numba-cuda[cu13]`"
        raise ResourceError(text) from error


def require_grid(blocks: Any, threads: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the extents of a grid and of its blocks, three numbers each.

    Raises:
        ArgumentError: no GPU has such a grid.
    """
    found = []
    for name, value in (("blocks", blocks), ("threads_per_block", threads)):
        good = isinstance(value, (list, tuple)) and len(value) == 3 and all(type(n) is int and n > 0 for n in value)
        if not good:
            raise ArgumentError(f"`numba_function`: expected `{name}` of three numbers above 0 on a GPU, got {value!r}")
        found.append(tuple(value))
    grid, block = found
    if any(n > most for n, most in zip(grid, _MOST_BLOCKS, strict=True)):
        raise ArgumentError(f"`numba_function`: expected `blocks` up to {_MOST_BLOCKS}, got {grid}")
    if block[0] * block[1] * block[2] > _MOST_THREADS or block[2] > 64:
        raise ArgumentError(
            f"`numba_function`: expected `threads_per_block` with at most {_MOST_THREADS} threads, and 64 along the "
            f"last axis, got {block}"
        )
    return grid, block


class NumbaGpuFunction(Operator, name="_numba_gpu_function"):
    """Launch a kernel that Numba compiles for each row of a batch on a GPU, on the batch's stream.

    ``run_fn(out0, ..., in0, ...)`` is the kernel. ``setup_fn(outs, ins)`` sets the shapes of the outputs, as for
    ``_numba_function``.
    """

    hidden = True
    devices = ("gpu",)
    inputs = (1, MOST_TENSORS)
    run_fn = arg("object", doc="The kernel.")
    setup_fn = arg("object", None, doc="Function that sets the shapes of the outputs; by default those of the inputs.")
    in_types = arg("dtype", many=True, doc="Element types of the inputs.")
    ins_ndim = arg("int", many=True, doc="Numbers of axes of the inputs.")
    out_types = arg("dtype", many=True, doc="Element types of the outputs.")
    outs_ndim = arg("int", many=True, doc="Numbers of axes of the outputs.")
    blocks = arg("int", many=True, doc="Extents of the grid.")
    threads_per_block = arg("int", many=True, doc="Extents of a block.")
    cases = ()

    def count_outputs(self, args: Any) -> int:
        return len(args["out_types"])

    def lower(self, c: Lowering, *inputs: Value) -> tuple[Value, ...]:
        outputs = declared_outputs(c, inputs)
        types = (*c.const("in_types"), *c.const("out_types"))
        c.expect(DType.BFLOAT16 not in types, "expected types that Numba has, got bfloat16; cast the data")
        call = NumbaKernel(c.const("run_fn"), tuple(c.const("blocks")), tuple(c.const("threads_per_block")))
        return c.native(self.name, inputs, outputs, gpu=GpuForm(CalledOnHost(call)))

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        raise UnsupportedError('`numba_function`: with `device="gpu"` it runs on a GPU only')


class NumbaKernel:
    """Kernel of Numba, as the engine calls it (``contract.step.CalledOnHost``). The first batch compiles it.

    Args:
        kernel: a function, or one that ``numba.cuda.jit`` returned.
        blocks: extents of the grid.
        threads: extents of a block.

    Raises:
        ResourceError: Numba has no CUDA.
    """

    def __init__(self, kernel: Callable[..., Any], blocks: tuple[int, ...], threads: tuple[int, ...]) -> None:
        self._cuda = cuda_module()
        self._kernel: Any = kernel if hasattr(kernel, "py_func") else self._cuda.jit(kernel)
        self._blocks, self._threads = blocks, threads

    def __call__(self, stream: int, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]], _: Any) -> str | None:
        """Issue the work of a batch. Return the text of an error, or None."""
        cuda = self._cuda
        try:
            with cuda.gpus[max(rows[0][1][0].device_id, 0)]:
                launch = self._kernel[self._blocks, self._threads, cuda.external_stream(stream)]
                for outputs, inputs in rows:
                    # The arrays have no stream of their own, so that Numba does not wait for one.
                    launch(*(cuda.as_cuda_array(x, sync=False) for x in (*outputs, *inputs)))
        except Exception as error:  # noqa: BLE001 - Numba refuses kernels in many ways; the batch carries it
            return f"`numba_function`: the kernel failed: {reason_of(error)}"
        return None
