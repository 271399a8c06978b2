# SPDX-License-Identifier: Apache-2.0
"""File descriptors that a loader's workers send to the main process.

Python's own way to pass a descriptor is a request and an answer. The worker's recording would have to pause for each
answer, which costs milliseconds per batch while the main process waits. Here the worker sends the descriptor before the
message that belongs to it.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
from collections.abc import Sequence

from ....contract.errors import StateError

_NUMBER = struct.Struct("<q")
_tokens = itertools.count()
_receivers: dict[int, Receiver] = {}


class Receiver:
    """Main process's end of the socket of one worker. The worker's end is ``sender``, until the worker has started."""

    def __init__(self) -> None:
        self._socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)  # `recv_fds` takes no flags such as MSG_DONTWAIT
        self.sender = Sender(next(_tokens), end)
        self._lock = threading.Lock()
        self._come: dict[int, int] = {}
        _receivers[self.sender.token] = self

    def take(self, number: int) -> int:
        """Return the descriptor that was sent with this number. It precedes its message, so it has arrived already.

        Raises:
            StateError: the worker has not sent this descriptor.
        """
        with self._lock:
            while number not in self._come:
                try:
                    message, fds, _, _ = socket.recv_fds(self._socket, _NUMBER.size, 1)
                except BlockingIOError as error:
                    raise StateError(f"expected a worker's descriptor {number}, got none: it was not sent") from error
                if not fds:
                    raise StateError("expected a worker's descriptor, got an end: the loader was stopped")
                self._come[_NUMBER.unpack(message)[0]] = fds[0]
            return self._come.pop(number)

    def close(self) -> None:
        """Close the socket and all descriptors that were received and not taken. Idempotent."""
        _receivers.pop(self.sender.token, None)
        self.sender.close()
        with self._lock:
            self._socket.close()
            while self._come:
                os.close(self._come.popitem()[1])


class Sender:
    """Worker's end of the socket. It is passed to the worker with any start method."""

    def __init__(self, token: int, end: socket.socket) -> None:
        self.token = token
        self._socket = end
        self._sent = 0

    def send(self, fd: int) -> tuple[int, int]:
        """Send a descriptor, and return the arguments for :func:`take`.

        Raises:
            OSError: too many descriptors are in flight, or the main process has closed its end.
        """
        self._sent += 1
        socket.send_fds(self._socket, [_NUMBER.pack(self._sent)], [fd], socket.MSG_DONTWAIT)
        return self.token, self._sent

    def close(self) -> None:
        """Close this process's copy of the socket."""
        self._socket.close()


def take(token: int, number: int) -> int:
    """Return the descriptor that a worker sent.

    Raises:
        StateError: the worker belongs to another process.
    """
    receiver = _receivers.get(token)
    if receiver is None:
        raise StateError("a batch of recorded images can be read by the process alone whose loader fetched it")
    return receiver.take(number)


def close_all(receivers: Sequence[Receiver]) -> None:
    """Close all ``receivers``."""
    for receiver in receivers:
        receiver.close()
