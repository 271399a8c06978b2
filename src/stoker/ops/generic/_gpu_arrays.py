# SPDX-License-Identifier: Apache-2.0
"""Functions of other libraries on rows in a GPU's memory, on the stream of their batch."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...contract.errors import ResourceError
from ...contract.text import reason_of


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


LIBRARIES: dict[str, tuple[Callable[[], Any], str]] = {"torch": (_Torch, "torch"), "cupy": (_CuPy, "cupy-cuda13x")}


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

    def __call__(self, stream: int, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> str | None:
        """Issue the work of a batch. Return the text of an error, or None."""
        try:
            device = rows[0][1][0].device_id
            is_emulated = device < 0
            current = contextlib.nullcontext() if is_emulated else self._library.on_stream(device, stream)
            with current:
                self._issue(rows)
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything; the batch carries it
            return f"`gpu_function`: the function failed: {reason_of(error)}"
        return None

    def _issue(self, rows: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> None:
        array = self._library.array
        outputs = [[array(x) for x in column] for column in zip(*(outs for outs, _ in rows), strict=True)]
        inputs = [[array(x) for x in column] for column in zip(*(ins for _, ins in rows), strict=True)]
        if self._fills:
            result = self._function(*outputs, *inputs)
            if result is not None:
                raise TypeError(f"expected None from a function that fills its outputs, got {type(result).__name__}")
            return
        result = self._function(*inputs)
        columns = result if isinstance(result, tuple) else (result,)
        if len(columns) != len(outputs):
            raise ValueError(f"expected {len(outputs)} outputs, got {len(columns)}")
        for column, targets in zip(columns, outputs, strict=True):
            if len(column) != len(targets):
                raise ValueError(f"expected one result for each of {len(targets)} rows, got {len(column)}")
            for found, to in zip(column, targets, strict=True):
                if tuple(found.shape) != tuple(to.shape):
                    raise ValueError(f"expected a result of shape {tuple(to.shape)}, got {tuple(found.shape)}")
                self._library.copy(to, found)
