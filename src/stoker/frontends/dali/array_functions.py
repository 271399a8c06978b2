# SPDX-License-Identifier: Apache-2.0
"""Functions of other libraries as operators, with DALI's names: ``numba_function``, ``torch_python_function`` and
``jax_function``. They run on the CPU and on a GPU.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...contract.errors import ArgumentError, ResourceError, UnsupportedError
from ...contract.text import brief
from ...contract.types import DType
from ...ops.generic.numba_function import MOST_TENSORS, numba_module, plain_function, shapes_of
from ...ops.generic.numba_gpu_function import require_grid
from .. import fn
from .capsule_functions import EachRow
from .functions import _also_outside, function
from .sharded_functions import ShardedFunction


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _on_cpu(name: str, device: Any, way_out: str) -> None:
    if device not in (None, "cpu"):
        raise UnsupportedError(f"`{name}`: expected the device cpu, got {brief(device)}. {way_out}")


def numba_function(
    *inputs: Any,
    run_fn: Callable[..., Any],
    out_types: Sequence[Any],
    in_types: Sequence[Any],
    outs_ndim: Sequence[int],
    ins_ndim: Sequence[int],
    setup_fn: Callable[..., Any] | None = None,
    batch_processing: bool = False,
    blocks: Any = None,
    threads_per_block: Any = None,
    device: str | None = None,
    **more: Any,
) -> Any:
    """Run a function that Numba compiles on each row, without Python's lock, on the worker threads.

    On a GPU ``run_fn`` is a kernel, which Numba compiles for it, by PTX. It is launched for each row, between the
    operators before and after it.

    Args:
        *inputs: nodes, one to six.
        run_fn: ``run_fn(out0, ..., in0, ...)`` fills the outputs. It gets arrays of a row, or with ``batch_processing``
            lists of arrays of a batch. Numba compiles it in nopython mode. On a GPU each thread calls it:
            ``numba.cuda.grid(3)`` returns the thread's place.
        out_types: element types of the outputs.
        in_types: element types of the inputs.
        outs_ndim: numbers of axes of the outputs.
        ins_ndim: numbers of axes of the inputs.
        setup_fn: ``setup_fn(outs, ins)`` sets the shapes of the outputs, ``outs[i][sample]``, from ``ins[i][sample]``.
            By default outputs have the shapes of the inputs. It is called once with one sample whose extents are
            symbols; with ``batch_processing`` for each batch.
        batch_processing: call ``run_fn`` once for a batch. Then it runs under Python's lock. Not on a GPU.
        blocks: on a GPU, extents of the grid of blocks, three numbers.
        threads_per_block: on a GPU, extents of a block, three numbers.
        device: "cpu" or "gpu".
        **more: ``name``, ``preserve`` and other arguments of every operator.

    Raises:
        ResourceError: Numba is not installed; on a GPU also: numba-cuda.
        ArgumentError: Numba refused the function, or types and axes do not fit.
    """
    on_gpu = device == "gpu"
    if not on_gpu:
        _on_cpu("numba_function", device, "The other device is gpu")
        if blocks is not None or threads_per_block is not None:
            raise UnsupportedError('`numba_function`: `blocks` and `threads_per_block` need `device="gpu"`')
    elif batch_processing:
        raise UnsupportedError("`numba_function`: on a GPU a kernel has one row; remove `batch_processing`")
    numba_module()
    kinds = {"in_types": _tuple(in_types), "out_types": _tuple(out_types)}
    ranks = {"ins_ndim": _tuple(ins_ndim), "outs_ndim": _tuple(outs_ndim)}
    for (name, types), (axes_name, axes) in zip(kinds.items(), ranks.items(), strict=True):
        if len(types) != len(axes) or not 1 <= len(types) <= MOST_TENSORS:
            raise ArgumentError(
                f"`numba_function`: expected `{name}` and `{axes_name}` with one element for each of 1 to "
                f"{MOST_TENSORS} tensors, got {len(types)} and {len(axes)}"
            )
    if len(inputs) != len(kinds["in_types"]):
        count = len(kinds["in_types"])
        raise ArgumentError(f"`numba_function`: expected {count} inputs as in `in_types`, got {len(inputs)}")
    if not callable(run_fn):
        raise ArgumentError(f"`numba_function`: expected a function as `run_fn`, got {brief(run_fn)}")
    if on_gpu:
        grid, block = require_grid(blocks, threads_per_block)
        return _also_outside(fn._make_function("_numba_gpu_function"))(
            *inputs, run_fn=run_fn, setup_fn=setup_fn, **kinds, **ranks, blocks=grid, threads_per_block=block,
            device="gpu", **more,
        )  # fmt: skip
    if not batch_processing:
        call: Any = _also_outside(fn._make_function("_numba_function"))
        return call(*inputs, run_fn=run_fn, setup_fn=setup_fn, **kinds, **ranks, **more)
    batches = _NumbaBatch(run_fn, setup_fn, [DType.of(t) for t in kinds["out_types"]], ranks["outs_ndim"])
    return function("python_function")(
        *inputs, function=batches, batch_processing=True, num_outputs=len(kinds["out_types"]),
        output_dtypes=kinds["out_types"], output_ndims=ranks["outs_ndim"], **more,
    )  # fmt: skip


class _NumbaBatch:
    """Function on batches that calls a compiled function with lists of arrays."""

    def __init__(self, run: Any, setup: Any, types: Sequence[DType], ranks: Sequence[int]) -> None:
        self._run, self._setup, self._types, self._ranks = run, setup, types, ranks
        self._compiled: Any = None

    def __call__(self, *columns: Any) -> Any:
        numba = numba_module()
        if self._compiled is None:
            self._compiled = self._run if hasattr(self._run, "py_func") else numba.njit(self._run)
        inputs = [[np.asarray(x, order="C") for x in column] for column in columns]
        shapes = self._shapes(inputs)
        outputs = [[np.zeros(s, t.numpy) for s in rows] for rows, t in zip(shapes, self._types, strict=True)]
        self._compiled(*(numba.typed.List(column) for column in (*outputs, *inputs)))
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def _shapes(self, inputs: Any) -> list[list[tuple[int, ...]]]:
        """Return the shapes of all outputs and rows."""
        count = len(inputs[0])
        if self._setup is None:
            rows = [shapes_of(None, [column[r].shape for column in inputs], self._ranks) for r in range(count)]
            return [[shapes[i] for shapes in rows] for i in range(len(self._ranks))]
        outs = [[[0] * rank for _ in range(count)] for rank in self._ranks]
        plain_function(self._setup)(outs, [[x.shape for x in column] for column in inputs])
        return [[tuple(map(int, shape)) for shape in shapes] for shapes in outs]


# ---- torch and JAX ----


class _OfLibrary:
    """Function on arrays of a library, as one on NumPy arrays: the memory is shared by DLPack."""

    def __init__(self, call: Callable[..., Any], library: str, batches: bool, stacked: bool) -> None:
        self._call, self._library, self._batches, self._stacked = call, library, batches, stacked
        functools.update_wrapper(self, call, updated=())
        vars(self).pop("__wrapped__", None)  # its parameter `rng` is not this one's

    def __call__(self, *inputs: Any) -> Any:
        module = importlib.import_module(self._library)
        if not self._batches:
            return self._back(self._call(*(module.from_dlpack(_writable(x)) for x in inputs)))
        columns = [[_writable(x) for x in column] for column in inputs]
        if self._stacked:
            return self._back(self._call(*(module.from_dlpack(_stacked(column)) for column in columns)))
        result = self._call(*([module.from_dlpack(x) for x in column] for column in columns))
        return self._back(result)

    def _back(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(self._back, result))
        if isinstance(result, list):
            return [self._back(x) for x in result]
        return result.detach() if hasattr(result, "detach") else np.asarray(result)


def _writable(x: Any) -> Any:
    """Return a copy of an array: the function may write to it, and rows share the pipeline's memory."""
    return np.array(x, order="C")


def _stacked(column: Sequence[Any]) -> Any:
    shapes = {x.shape for x in column}
    if len(shapes) > 1:
        raise ArgumentError(f"`jax_function`: expected samples of one shape, got {sorted(shapes)}")
    return np.stack(column)


def _require(library: str, extra: str, name: str) -> None:
    try:
        importlib.import_module(library)
    except ImportError as error:
        text = f"`{name}`: expected {extra}, got: {error}. It is the extra `{extra}`: `pip install {extra}`"
        raise ResourceError(text) from error


def torch_python_function(
    *inputs: Any,
    function: Callable[..., Any],
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: Any = None,
    device: str | None = None,
    output_dtypes: Any = None,
    output_shapes: Callable[..., Any] | None = None,
    **more: Any,
) -> Any:
    """Call a Python function with the inputs of each row as torch tensors. The function returns tensors.

    On a GPU it is ``fn.gpu_function``: outputs have the inputs' shapes and types unless they are declared.

    Args:
        *inputs: nodes.
        function: the function; with ``batch_processing`` it gets and returns lists of tensors.
        num_outputs: number of outputs.
        batch_processing: call it once for all rows of a batch.
        output_layouts: names of the outputs' axes.
        device: "cpu" or "gpu".
        output_dtypes: on a GPU, element types of the outputs.
        output_shapes: on a GPU, function of the inputs' shapes that returns those of the outputs.
        **more: other arguments of ``python_function``, or of ``gpu_function``.

    Raises:
        ResourceError: torch is not installed.
    """
    _require("torch", "torch", "torch_python_function")
    if device == "gpu":
        call = function if batch_processing or not callable(function) else EachRow(function, num_outputs)
        return _also_outside(fn._make_function("gpu_function"))(
            *inputs, function=call, num_outputs=num_outputs, output_dtypes=output_dtypes, output_shapes=output_shapes,
            output_layouts=output_layouts, device="gpu", **more,
        )  # fmt: skip
    _on_cpu("torch_python_function", device, "The other device is gpu")
    if output_shapes is not None:
        raise ArgumentError("`torch_python_function`: `output_shapes` is for the device gpu; on the CPU remove it")
    if output_dtypes is not None:
        more["output_dtypes"] = output_dtypes
    return _python_function(function, "torch", batch_processing, False)(
        *inputs, num_outputs=num_outputs, batch_processing=batch_processing, output_layouts=output_layouts, **more
    )


def jax_function(
    function: Callable[..., Any] | None = None,
    *,
    num_outputs: int = 1,
    output_layouts: Any = None,
    sharding: Any = None,
    device: str | None = None,
    preserve: bool = True,
    output_dtypes: Any = None,
    output_shapes: Callable[..., Any] | None = None,
) -> Any:
    """Make an operator of a function on JAX arrays; also a decorator.

    The function gets, for each input, one array of all samples, with the batch as its first axis, and returns such
    arrays. Samples of a batch have one shape.

    On a GPU the arrays lie there, and the operator runs between others on that GPU. The work of JAX is in order with
    theirs, without waiting on the host. The function may keep the arrays. Outputs have the inputs' shapes and types
    unless they are declared. Elements of results are converted to the outputs' types.

    Args:
        function: the function.
        num_outputs: number of outputs.
        output_layouts: names of the outputs' axes.
        sharding: a ``jax.sharding.Sharding`` over processes with one device each, on the CPU only. The function gets
            global arrays, which have the samples of all processes, and returns such arrays, of which each process gets
            its part. All processes must compute the same batches, also those ahead, with as many samples:
            others wait for a batch that a process lacks.
        device: "cpu" or "gpu".
        preserve: keep the node if nothing uses its outputs.
        output_dtypes: on a GPU, element types of the outputs.
        output_shapes: on a GPU, function of the shapes of a sample's inputs that returns the shape of its output, or a
            list of shapes for several outputs.

    Raises:
        ResourceError: JAX is not installed.
        UnsupportedError: the sharding has several devices of this process, or the device is a GPU.
    """
    both = {"num_outputs": num_outputs, "output_layouts": output_layouts, "preserve": preserve}
    on_gpu = {"output_dtypes": output_dtypes, "output_shapes": output_shapes, "device": device}
    if function is None:
        return functools.partial(jax_function, sharding=sharding, **both, **on_gpu)
    if sharding is not None and device == "gpu":
        raise UnsupportedError(
            f"`jax_function`: expected no `sharding` on a GPU, got {brief(sharding)}: all processes must launch the "
            "programs of a GPU that exchange data in one order, and a pipeline calls the function ahead of the "
            "training loop. Deliver sharded batches with `stoker.jax.Loader(pipeline, sharding=...)`, and call the "
            "function on these"
        )
    if device != "gpu":
        _on_cpu("jax_function", device, "The other device is gpu")
        if output_shapes is not None or output_dtypes is not None:
            raise ArgumentError(
                "`jax_function`: `output_shapes` and `output_dtypes` are for the device gpu; on the CPU remove them"
            )
    _require("jax.numpy", "jax", "jax_function")
    if device == "gpu":
        if not callable(function):
            raise ArgumentError(f"`jax_function`: expected a function, got {brief(function)}")
        make = _also_outside(fn._make_function("_jax_gpu_function"))
        call = functools.partial(make, function=function, **on_gpu)
    else:
        local = function if sharding is None else ShardedFunction(function, sharding)
        call = functools.partial(_python_function(local, "jax.numpy", True, True), batch_processing=True)

    @functools.wraps(function)
    def operator(*inputs: Any) -> Any:
        return call(*inputs, **both)

    return operator


def _python_function(call: Any, library: str, batches: bool, stacked: bool) -> Callable[..., Any]:
    """Return ``python_function`` of a function on a library's arrays."""
    if not callable(call):
        raise ArgumentError(f"expected a function as `function`, got {brief(call)}")
    return functools.partial(function("python_function"), function=_OfLibrary(call, library, batches, stacked))
