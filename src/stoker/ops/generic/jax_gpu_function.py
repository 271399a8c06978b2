# SPDX-License-Identifier: Apache-2.0
"""``_jax_gpu_function``: a function on JAX arrays on a GPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...contract.argument import arg
from ...contract.errors import ResourceError, UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import CalledOnHost, GpuForm, Value
from ...contract.text import reason_of
from ...contract.types import DType
from ._gpu_arrays import check_arguments, columns_of, declared_outputs

_WIDE = (DType.INT64, DType.UINT64, DType.FLOAT64)


def jax_module() -> Any:
    """Return JAX.

    Raises:
        ResourceError: it is not installed.
    """
    try:
        return importlib.import_module("jax")
    except ImportError as error:
        text = f"`jax_function`: expected jax, got: {error}. It is the extra `jax`: `pip install jax`"
        raise ResourceError(text) from error


class JaxGpuFunction(Operator, name="_jax_gpu_function"):
    """Call a function of JAX with a batch on a GPU, between operators there.

    The function gets one array of all rows for each input, ``(N, ...)``, and returns such an array for each output.
    Rows have one shape.
    """

    hidden = True
    devices = ("gpu",)
    inputs = (1, 16)
    function = arg("object", doc="The function.")
    num_outputs = arg("int", 1, doc="Number of outputs.")
    output_dtypes = arg("dtype", None, many=True, doc="Element types of the outputs; by default those of the inputs.")
    output_shapes = arg("object", None, doc="Function of a row's input shapes that returns those of its outputs.")
    output_layouts = arg("str", None, many=True, doc="Names of the outputs' axes, one string for each output.")
    cases = ()

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        check_arguments(args)

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["num_outputs"])

    def lower(self, c: Lowering, *inputs: Value) -> tuple[Value, ...]:
        outputs = declared_outputs(c, inputs)
        jax = jax_module()
        wide = {t for t in (*(x.dtype for x in inputs), *(t for t, *_ in outputs)) if t in _WIDE}
        names = ", ".join(sorted(map(str, wide)))
        c.expect(
            not wide or jax.config.jax_enable_x64,
            f"expected types that JAX has without `jax_enable_x64`, got {names}. Cast the inputs, name "
            '`output_dtypes`, or call `jax.config.update("jax_enable_x64", True)`',
        )
        call = JaxFunctionOnGpu(c.const("function"))
        return c.native(self.name, inputs, outputs, gpu=GpuForm(CalledOnHost(call)))

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        raise UnsupportedError('`jax_function`: with `device="gpu"` it runs on a GPU only')


class _Ordered:
    """Array of a batch whose reader's stream waits for the batch's stream."""

    def __init__(self, array: Any, stream: int, exchange: Any) -> None:
        self._array, self._stream, self._exchange = array, stream, exchange

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()  # type: ignore[no-any-return]

    def __dlpack__(self, *, stream: int | None = None, **keywords: Any) -> Any:
        if stream is not None:
            self._exchange.order(self._stream, stream)
        return self._array.__dlpack__(stream=stream, **keywords)


class JaxFunctionOnGpu:
    """Function on JAX arrays, as the engine calls it (``contract.step.CalledOnHost``).

    JAX has streams of its own, and no current stream. Its reads of the inputs, which are copies, wait for the batch's
    stream, and the batch's stream waits for the results before it copies them to the engine's memory.

    Args:
        function: the user's function.

    Raises:
        ResourceError: JAX is not installed.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._jax = function, jax_module()

    def __call__(self, stream: int, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]], exchange: Any) -> str | None:
        """Issue the work of a batch. Return the text of an error, or None."""
        try:
            self._issue(stream, rows, exchange)
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything; the batch carries it
            return f"`jax_function`: the function failed: {reason_of(error)}"
        return None

    def _issue(self, stream: int, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]], exchange: Any) -> None:
        jax = self._jax
        outputs = list(zip(*(outs for outs, _ in rows), strict=True))
        inputs = [self._array(column, stream, exchange) for column in zip(*(ins for _, ins in rows), strict=True)]
        (device,) = inputs[0].devices()
        with jax.default_device(device):
            results = columns_of(self._function(*inputs), len(outputs))
            for result, targets in zip(results, outputs, strict=True):
                shape = (len(targets), *targets[0].shape)
                if any(t.shape != targets[0].shape for t in targets):
                    raise ValueError("expected `output_shapes` to give all samples one shape")
                found = jax.device_put(jax.numpy.asarray(result), device)
                if found.shape != shape:
                    raise ValueError(f"expected a result of shape {shape}, got {found.shape}")
                found = found.astype(_in_jax(jax, DType(targets[0].dtype)))
                if targets[0].device_id >= 0:
                    exported = found.__dlpack__(stream=stream)
                else:  # the null device, in host memory
                    exported = found.block_until_ready().__dlpack__()
                exchange.split(stream, exported, targets)

    def _array(self, column: Sequence[Any], stream: int, exchange: Any) -> Any:
        shapes = {x.shape for x in column}
        if len(shapes) > 1:
            raise ValueError(f"expected samples of one shape, got {sorted(shapes)}")
        return self._jax.dlpack.from_dlpack(_Ordered(exchange.stack(stream, column), stream, exchange))


def _in_jax(jax: Any, dtype: DType) -> Any:
    """Return JAX's element type."""
    return jax.numpy.bfloat16 if dtype == DType.BFLOAT16 else dtype.numpy
