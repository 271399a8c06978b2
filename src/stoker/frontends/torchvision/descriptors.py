# SPDX-License-Identifier: Apache-2.0
"""File descriptors on their way from a loader's workers to the main process.

Python passes a descriptor with a question and an answer between the processes, for which the worker's recording has to
pause several times: milliseconds per batch, for each of which the main process waits. Here a worker sends it, unasked,
before the message that belongs to it.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
from collections.abc import Sequence

from ...contract.errors import StateError

_NUMBER = struct.Struct("<q")
_tokens = itertools.count()
_receivers: dict[int, Receiver] = {}


class Receiver:
    """The main process's end for one worker, whose end is ``sender`` until the worker has started."""

    def __init__(self) -> None:
        self._socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)  # `recv_fds` passes no flags on
        self.sender = Sender(next(_tokens), end)
        self._lock = threading.Lock()
        self._come: dict[int, int] = {}
        _receivers[self.sender.token] = self

    def take(self, number: int) -> int:
        """The descriptor that was sent with this number; it has come already, as its message came later.

        Raises:
            StateError: it has not.
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
        """Close it, and what has come and was not taken; idempotent."""
        _receivers.pop(self.sender.token, None)
        self.sender.close()
        with self._lock:
            self._socket.close()
            while self._come:
                os.close(self._come.popitem()[1])


class Sender:
    """A worker's end. Travels to a worker that is started, however that is."""

    def __init__(self, token: int, end: socket.socket) -> None:
        self.token = token
        self._socket = end
        self._sent = 0

    def send(self, fd: int) -> tuple[int, int]:
        """Send a descriptor; what :func:`take` takes.

        Raises:
            OSError: too many are under way, or the other side has gone.
        """
        self._sent += 1
        socket.send_fds(self._socket, [_NUMBER.pack(self._sent)], [fd], socket.MSG_DONTWAIT)
        return self.token, self._sent

    def close(self) -> None:
        """Close this process's copy."""
        self._socket.close()


def take(token: int, number: int) -> int:
    """The descriptor that a worker sent.

    Raises:
        StateError: this is not the process that the worker works for.
    """
    receiver = _receivers.get(token)
    if receiver is None:
        raise StateError("a batch of recorded images can be read by the process alone whose loader fetched it")
    return receiver.take(number)


def close(receivers: Sequence[Receiver]) -> None:
    """Close them all."""
    for receiver in receivers:
        receiver.close()
