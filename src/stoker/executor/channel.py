# SPDX-License-Identifier: Apache-2.0
"""Messages between this process and a worker process, and arrays in shared memory.

Shared memory is anonymous, and its descriptor travels over the socket. Other programs see no name, and the
system frees the memory however a process ends.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import struct
from collections import deque
from typing import Any

import numpy as np

_HEADER = struct.Struct("<q")
_READ = 1 << 16
_ANCILLARY = socket.CMSG_SPACE(16 * np.dtype(np.int32).itemsize)
_ALIGNMENT = 64
_PAGE = mmap.PAGESIZE


class ChannelClosed(Exception):
    """The process at the other end has closed the channel or ended."""


class Message:
    """Outgoing message. After Ctrl-C, :meth:`Channel.send` continues where it was interrupted.

    Args:
        content: the content; its last element is WITH_DESCRIPTOR if a descriptor goes with it.
        fd: this descriptor, which the message owns.
    """

    __slots__ = ("data", "fd", "sent")

    def __init__(self, content: Any, fd: int | None = None) -> None:
        body = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
        self.data = _HEADER.pack(len(body)) + body
        self.sent: list[int] = []
        self.fd = fd

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)


class Channel:
    """One end of a socket. Ctrl-C at any point neither loses nor repeats a message."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._raw: list[Any] = []  # received data that are not parsed yet: (bytes, descriptors, ...)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
        for *_, ancillary in ((r[0], r[1]) for r in self._raw):
            for fd in _descriptors(ancillary):
                os.close(fd)
        self._raw.clear()

    def send(self, message: Message, fd: int | None = None) -> None:
        """Send the part of the message that has not been sent yet. ``fd`` goes with the first byte."""
        while (done := sum(message.sent)) < len(message.data):
            rest = message.data[done:]
            try:
                # `extend` and `map` are one call: no signal handler runs between sending and noting that it was sent.
                if fd is not None and not done:
                    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, np.int32(fd).tobytes())]
                    message.sent.extend(map(self._socket.sendmsg, ([rest],), (ancillary,)))
                else:
                    message.sent.extend(map(self._socket.send, (rest,)))
            except OSError as error:
                raise ChannelClosed from error

    def receive(self) -> None:
        """Wait for bytes and receive all that are available.

        Raises:
            ChannelClosed: the other end is closed.
        """
        try:
            self._raw.extend(map(self._socket.recvmsg, (_READ,), (_ANCILLARY,)))
        except OSError as error:
            raise ChannelClosed from error
        if not self._raw[-1][0] and not self._raw[-1][1]:
            self._raw.pop()
            raise ChannelClosed

    def messages(self) -> list[tuple[Any, Any]]:
        """Return the complete messages, each with its descriptor.

        Repeated calls return the same until :meth:`forget`.
        """
        return self._parse()[0] if self._raw else []

    def forget(self) -> None:
        """Drop the messages that :meth:`messages` returned, after the caller has handled them."""
        _, rest, ancillary = self._parse()
        self._raw[:] = [(rest, ancillary)] if rest or ancillary else []

    def _parse(self) -> tuple[list[tuple[Any, Any]], bytes, list[Any]]:
        data = b"".join(r[0] for r in self._raw)
        fds = deque(fd for r in self._raw for fd in _descriptors(r[1]))
        messages, at = [], 0
        while len(data) - at >= _HEADER.size:
            (size,) = _HEADER.unpack_from(data, at)
            if len(data) - at - _HEADER.size < size:
                break
            content = pickle.loads(data[at + _HEADER.size : at + _HEADER.size + size])
            carries = isinstance(content, tuple) and bool(content) and content[-1] is WITH_DESCRIPTOR
            messages.append((content, fds.popleft() if carries else None))
            at += _HEADER.size + size
        rest = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, np.array(fds, np.int32).tobytes())] if fds else []
        return messages, data[at:], rest


class _WithDescriptor:
    """Marker at the end of a message that carries a descriptor."""

    def __reduce__(self) -> str:
        return "WITH_DESCRIPTOR"


WITH_DESCRIPTOR = _WithDescriptor()


def _descriptors(ancillary: Any) -> list[int]:
    return [int(fd) for _, _, data in ancillary for fd in np.frombuffer(data[: len(data) // 4 * 4], np.int32)]


# ---- arrays in shared memory ----


class SharedRequest:
    """Request whose arrays lie in memory shared with the worker.

    Args:
        data: the request, with an :class:`ArraySlot` in place of each array.
    """

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return SharedRequest, (self.data,)


class ArraySlot:
    """Position of an array in a shared block."""

    __slots__ = ("dtype", "offset", "shape")

    def __init__(self, dtype: str, shape: tuple[int, ...], offset: int) -> None:
        self.dtype, self.shape, self.offset = dtype, shape, offset

    def __reduce__(self) -> Any:
        return ArraySlot, (self.dtype, self.shape, self.offset)


def lay_out(data: Any, arrays: list[tuple[int, Any]], at: int = 0) -> tuple[Any, int]:
    """Replace every array in ``data``, which consists of lists, tuples and other objects, by an :class:`ArraySlot`.

    Returns:
        The data with slots, and the bytes of shared memory that the arrays need.
    """
    if isinstance(data, np.ndarray):
        arrays.append((at, data))
        return ArraySlot(data.dtype.str, data.shape, at), -(-(at + data.nbytes) // _ALIGNMENT) * _ALIGNMENT
    if isinstance(data, (list, tuple)):
        replaced = []
        for item in data:
            one, at = lay_out(item, arrays, at)
            replaced.append(one)
        return (tuple(replaced) if isinstance(data, tuple) else replaced), at
    return data, at


def write(block: np.ndarray[Any, Any], arrays: list[tuple[int, Any]]) -> None:
    """Write the arrays to the positions that :func:`lay_out` chose."""
    for at, array in arrays:
        if array.nbytes:
            block[at : at + array.nbytes].view(array.dtype).reshape(array.shape)[...] = array


def read(data: Any, base: np.ndarray[Any, Any] | None) -> Any:
    """Replace every :class:`ArraySlot` by its array, without a copy.

    The arrays keep ``base``, the block's bytes, alive.
    """
    if isinstance(data, ArraySlot):
        dtype = np.dtype(data.dtype)
        if base is None:  # all arrays are empty
            return np.empty(data.shape, dtype)
        size = int(np.prod(data.shape, dtype=np.int64)) * dtype.itemsize
        return base[data.offset : data.offset + size].view(dtype).reshape(data.shape)
    if isinstance(data, (list, tuple)):
        replaced = [read(x, base) for x in data]
        return tuple(replaced) if isinstance(data, tuple) else replaced
    return data


def make_block(size: int) -> tuple[int, np.ndarray[Any, Any]]:
    """Allocate shared memory of at least ``size`` bytes.

    Return its descriptor, which may be sent to another process, and its bytes.
    """
    size = -(-max(size + size // 4, _PAGE) // _PAGE) * _PAGE  # room to grow: rows differ in size
    fd = os.memfd_create("stoker-rows", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
        return fd, map_block(fd)
    except BaseException:
        os.close(fd)
        raise


def map_block(fd: int) -> np.ndarray[Any, Any]:
    """Map the memory of a descriptor and return its bytes. The descriptor may be closed afterwards."""
    return np.frombuffer(mmap.mmap(fd, 0), np.uint8)


class BlockLease:
    """Base object of all arrays in a shared block. When it is garbage-collected, the block is free again."""

    __slots__ = ("__array_interface__", "__weakref__", "_base")

    def __init__(self, base: np.ndarray[Any, Any]) -> None:
        self._base = base
        self.__array_interface__ = base.__array_interface__
