# SPDX-License-Identifier: Apache-2.0
"""Functions of other libraries on rows in a GPU's memory, on the stream of their batch."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...contract.errors import ArgumentError, ResourceError
from ...contract.feed import is_capsule, is_contiguous
from ...contract.lowering import Lowering
from ...contract.step import Value
from ...contract.text import brief, reason_of
from ...contract.types import MAX_RANK, DType
from ...native import _native


class _Torch:
    """Tensors of PyTorch."""

    def __init__(self) -> None:
        self._torch = importlib.import_module("torch")

    def on_stream(self, device: int, stream: int) -> contextlib.AbstractContextManager[Any]:
        """Make a stream the current one."""
        cuda = self._torch.cuda
        return cuda.stream(cuda.ExternalStream(stream, device=device))  # type: ignore[no-any-return]

    def array(self, x: Any) -> Any:
        """Return a tensor of the same memory."""
        return self._torch.from_dlpack(x)

    def copy(self, to: Any, result: Any) -> None:
        """Copy a result of the same shape; its elements are converted."""
        to.copy_(result.detach())


# CuPy's objects for streams of the engine, by device and stream. They are never dropped: CuPy 14.0 destroys a stream of
# others with its own object.
_cupy_streams: dict[tuple[int, int], Any] = {}


@dataclass(frozen=True)
class _Stream:
    """Stream by the CUDA stream protocol."""

    address: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


class _CuPy:
    """Arrays of CuPy."""

    def __init__(self) -> None:
        self._cupy = importlib.import_module("cupy")

    @contextlib.contextmanager
    def on_stream(self, device: int, stream: int) -> Any:
        """Make a stream the current one."""
        cuda = self._cupy.cuda
        with cuda.Device(device):
            if (device, stream) not in _cupy_streams:
                is_new = hasattr(cuda.Stream, "from_external")  # since CuPy 14, which warns of the other one
                made = cuda.Stream.from_external(_Stream(stream)) if is_new else cuda.ExternalStream(stream, device)
                _cupy_streams[device, stream] = made
            with _cupy_streams[device, stream]:
                yield

    def array(self, x: Any) -> Any:
        """Return an array of the same memory."""
        return self._cupy.from_dlpack(x)

    def copy(self, to: Any, result: Any) -> None:
        """Copy a result of the same shape; its elements are converted."""
        to[...] = result


_LEGACY_STREAM = 1


class _Capsules:
    """DLPack capsules, for any library.

    A capsule has no stream, and the library of the function is unknown. So the batch's work is done before the function
    runs, and what the function has issued to the legacy default stream is done before its results are read.
    """

    def on_stream(self, device: int, stream: int) -> contextlib.AbstractContextManager[Any]:
        """Change nothing: the function's library is unknown."""
        return contextlib.nullcontext()

    def array(self, x: Any) -> Any:
        """Return a capsule of the same memory."""
        return x.__dlpack__()


# How arrays are made, and the package to install.
LIBRARIES: dict[str, tuple[Callable[[], Any], str]] = {
    "torch": (_Torch, "torch"),
    "cupy": (_CuPy, "cupy-cuda13x"),
    "dlpack": (_Capsules, ""),
}


class FunctionOnGpu:
    """Function on arrays of a library, as the engine calls it (``contract.step.CalledOnHost``).

    Args:
        function: the user's function.
        library: a name in ``LIBRARIES``.
        fills: the function fills the outputs that it gets.

    Raises:
        ResourceError: the library is not installed.
    """

    def __init__(self, function: Callable[..., Any], library: str, *, fills: bool) -> None:
        self._function, self._fills = function, fills
        make, package = LIBRARIES[library]
        try:
            self._library = make()
        except ImportError as error:
            text = f"`gpu_function`: expected {library}, got: {error}. Install it: `pip install {package}`"
            raise ResourceError(text) from error

    def __call__(self, stream: int, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]], _: Any) -> str | None:
        """Issue the work of a batch. Return the text of an error, or None."""
        try:
            device = rows[0][1][0].device_id
            is_emulated = device < 0
            current = contextlib.nullcontext() if is_emulated else self._library.on_stream(device, stream)
            with current:
                if isinstance(self._library, _Capsules):
                    self._issue_capsules(stream, rows)
                else:
                    self._issue(rows)
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything; the batch carries it
            return f"`gpu_function`: the function failed: {reason_of(error)}"
        return None

    def _issue(self, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> None:
        array = self._library.array
        outputs = [[array(x) for x in column] for column in zip(*(outs for outs, _ in rows), strict=True)]
        inputs = [[array(x) for x in column] for column in zip(*(ins for _, ins in rows), strict=True)]
        result = self._function(*(outputs if self._fills else ()), *inputs)
        for column, targets in zip(self._columns(result, outputs), outputs, strict=False):
            for found, to in zip(column, targets, strict=True):
                if tuple(found.shape) != tuple(to.shape):
                    raise ValueError(f"expected a result of shape {tuple(to.shape)}, got {tuple(found.shape)}")
                self._library.copy(to, found)

    def _columns(self, result: Any, outputs: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        """Return the results for each output, which are none for a function that fills its outputs."""
        if self._fills:
            if result is not None:
                raise TypeError(f"expected None from a function that fills its outputs, got {type(result).__name__}")
            return ()
        columns = columns_of(result, len(outputs))
        for column, targets in zip(columns, outputs, strict=True):
            if len(column) != len(targets):
                raise ValueError(f"expected one result for each of {len(targets)} rows, got {len(column)}")
        return columns

    def _issue_capsules(self, stream: int, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> None:
        device = rows[0][1][0].device
        _native.gpu.wait_for(device, stream)
        outputs = [list(column) for column in zip(*(outs for outs, _ in rows), strict=True)]
        inputs = [[x.__dlpack__() for x in column] for column in zip(*(ins for _, ins in rows), strict=True)]
        filled = [[x.__dlpack__() for x in column] for column in outputs] if self._fills else []
        result = self._function(*filled, *inputs)
        _native.gpu.wait_for(device, _LEGACY_STREAM)
        for column, targets in zip(self._columns(result, outputs), outputs, strict=False):
            for to, found in zip(targets, column, strict=True):
                _read_result(found, to).copy_to(to.pointer, stream, True)


def _read_result(result: Any, to: Any) -> Any:
    """Return the memory of a capsule, or of a tensor with DLPack, for a copy to an output."""
    capsule = result if is_capsule(result) else result.__dlpack__()
    address, shape, strides, kind, number, owner = _native.gpu.read_dlpack(capsule)
    if tuple(shape) != tuple(to.shape) or kind != to.dtype:
        found = f"{DType(kind)} {tuple(shape)}" if kind >= 0 else "another type"
        raise ValueError(f"expected a result of {DType(to.dtype)} {tuple(to.shape)}, got {found}")
    if number != max(to.device_id, 0):
        raise ValueError(f"expected a result on GPU {to.device_id}, got one on {number}")
    if not is_contiguous(shape, strides, DType(kind).size):
        raise ValueError("expected a result of contiguous elements; make a copy")
    return _native.gpu.wrap(to.device, address, kind, shape, owner, None)


def columns_of(result: Any, count: int) -> tuple[Any, ...]:
    """Return what a function returned as one element for each of ``count`` outputs."""
    columns = result if isinstance(result, tuple) else (result,)
    if len(columns) != count:
        raise ValueError(f"expected {count} outputs, got {len(columns)}")
    return columns


def declared_outputs(c: Lowering, inputs: Sequence[Value]) -> list[tuple[DType, tuple[Any, ...], str]]:
    """Return types, shapes and layouts of a function's outputs, by its arguments.

    They are `num_outputs`, `output_dtypes`, `output_shapes` and `output_layouts`, of which all but the first may be
    missing: the outputs are then like the inputs.
    """
    count = c.const("num_outputs")
    shapes = _shapes(c.const("output_shapes"), [x.shape for x in inputs], count)
    dtypes, layouts = _tuple(c.const("output_dtypes")), _tuple(c.const("output_layouts")) or ()
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
    return outputs


def _tuple(value: Any) -> tuple[Any, ...] | None:
    """Return an argument of one value or several as a tuple; None stays."""
    return None if value is None else tuple(value) if isinstance(value, (list, tuple)) else (value,)


def check_arguments(args: Mapping[str, Any]) -> None:
    """Check `function`, `output_shapes` and `num_outputs`."""
    for name in ("function", "output_shapes"):
        if not callable(args[name]) and not (name == "output_shapes" and args[name] is None):
            raise ArgumentError(f"expected a function as `{name}`, got {brief(args[name])}")
    if not 1 <= args["num_outputs"] <= 16:
        raise ArgumentError(f"expected `num_outputs` from 1 to 16, got {args['num_outputs']}")


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
