# SPDX-License-Identifier: Apache-2.0
"""CUDA streams of the imperative mode.

Operators complete before they return, so every stream may read their results. The current stream matters for data that
an operator reads in the memory of a GPU: work that other libraries have issued to the stream before is waited for.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ....contract.errors import ArgumentError
from ....contract.text import brief
from ....native import _native
from ...eager_gpu import GPUS
from ..errors import error_class
from .devices import Device

_defaults: dict[int, Stream] = {}


class Stream:
    """CUDA stream: a new one, or that of another library. Use `stream`.

    Attributes:
        handle: the stream's handle of CUDA, as a number.
        device_id: number of its GPU.
    """

    create_new: ClassVar[Any] = object()

    def __init__(self, *, stream: Any = create_new, device_id: int | None = None) -> None:
        """Create a stream, or take one.

        Args:
            stream: `Stream.create_new`; a stream, an object with ``__cuda_stream__``, a stream of PyTorch's or CuPy's,
                or a handle.
            device_id: number of the GPU; by default that of the stream, or the current GPU.
        """
        if stream is None:
            raise error_class(ArgumentError)("`Stream`: expected a stream, got None. Omit it for a new one")
        own = None if stream is Stream.create_new else _device_of(stream)
        if own is not None and device_id is not None and own != device_id:
            text = f"`Stream`: expected a stream of GPU {device_id}, got one of GPU {own}"
            raise error_class(ArgumentError)(text)
        number = device_id if own is None else own
        self.device_id = Device("gpu", number).device_id
        assert self.device_id is not None
        self._device = GPUS.of(self.device_id).device
        self._owner = _native.gpu.Stream(self._device) if stream is Stream.create_new else stream
        self.handle: int = _handle(self._owner)

    def synchronize(self) -> None:
        """Wait until all work that has been issued to the stream is done."""
        _native.gpu.wait_for(self._device, self.handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        try:
            return self.handle == _handle(other) and _device_of(other) in (None, self.device_id)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash((self.handle, self.device_id))

    def __str__(self) -> str:
        return f"CUDA stream {self.handle}, device_id={self.device_id}"

    def __repr__(self) -> str:
        return f"Stream(stream={self.handle}, device_id={self.device_id})"


def _handle(stream: Any) -> int:
    """Return the handle of a stream of any library."""
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("handle", "cuda_stream", "ptr", "value"):  # torch's, CuPy's and ctypes'
        if hasattr(stream, name):
            return int(getattr(stream, name) or 0)
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    raise TypeError(f"expected a CUDA stream, an object with `__cuda_stream__` or a handle, got {brief(stream)}")


def _device_of(stream: Any) -> int | None:
    """Return the number of a stream's GPU; None if the stream does not know it."""
    _handle(stream)
    for holder in (stream, getattr(stream, "device", None)):
        for name in ("device_id", "index", "id"):
            number = getattr(holder, name, None)
            if isinstance(number, int) and not isinstance(number, bool):
                return number
    return None


def stream(*, stream: Any = Stream.create_new, device_id: int | None = None) -> Stream | None:
    """Create a stream, or wrap one. None stays None.

    Args:
        stream: as for `Stream`.
        device_id: number of the GPU.
    """
    if stream is None or (isinstance(stream, Stream) and device_id in (None, stream.device_id)):
        return stream
    return Stream(stream=stream, device_id=device_id)


def set_default_stream(cuda_stream: Any, /, device_id: int | None = None) -> None:
    """Set the stream of all threads that have set none.

    Args:
        cuda_stream: the stream; None: none.
        device_id: number of the GPU; by default that of the stream, or the current GPU.
    """
    chosen = stream(stream=cuda_stream, device_id=device_id)
    number = Device("gpu", device_id).device_id if chosen is None else chosen.device_id
    assert number is not None
    _defaults.pop(number, None)
    if chosen is not None:
        _defaults[number] = chosen


def get_default_stream(device_id: int | None = None) -> Stream | None:
    """Return the stream of all threads that have set none; None without one.

    Args:
        device_id: number of the GPU; by default the current GPU.
    """
    if not _defaults:
        return None
    number = Device("gpu", device_id).device_id
    assert number is not None
    return _defaults.get(number)
