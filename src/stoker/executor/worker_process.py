# SPDX-License-Identifier: Apache-2.0
"""Main function of a worker process: compute requested rows and write them to memory shared with the parent."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import reduction
from typing import Any

import numpy as np

from ..contract.text import reason_of
from .channel import (
    WITH_DESCRIPTOR,
    Channel,
    ChannelClosed,
    Message,
    SharedRequest,
    lay_out,
    make_block,
    map_block,
    read,
    write,
)

_PARENT_POLL_S = 0.5  # interval at which a worker checks that its parent lives


class Descriptor:
    """File descriptor that can be passed to a child process with any start method."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _arrived, (reduction.DupFd(self.number),)  # type: ignore[attr-defined, unused-ignore]


def _arrived(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


class RemoteException:
    """Exception on its way to the parent: pickled if possible, and its traceback as text."""

    def __init__(self, error: BaseException) -> None:
        self.name = type(error).__name__
        self.text = reason_of(error)
        self.traceback = "".join(traceback.format_exception(error))
        self.pickled: bytes | None = None
        with contextlib.suppress(Exception):  # pickling a user's exception may fail in any way; the text remains
            data = pickle.dumps(error)
            pickle.loads(data)
            self.pickled = data


def run_worker(
    end: socket.socket, producers: Sequence[bytes | Callable[[Any], Any]], loads: Callable[[bytes], Any],
    crash_log: Descriptor, parent: int, others: Sequence[socket.socket],
) -> None:  # fmt: skip
    """Run a worker process until its channel closes.

    Args:
        end: the worker's end of the socket.
        producers: callables that produce data, or their pickled form.
        loads: function that unpickles producers.
        crash_log: file for the interpreter's report of a crash.
        parent: process id of the parent.
        others: sockets of the parent and of other workers, inherited through fork. The worker closes them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable(file=crash_log.number, all_threads=False)
    for other in others:
        other.close()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    channel = Channel(end)
    blocks: dict[int, np.ndarray[Any, Any]] = {}
    shared: np.ndarray[Any, Any] | None = None  # memory of requests with arrays
    loaded: list[Any] = []
    failed: BaseException | None = None
    try:
        loaded = [loads(p) if isinstance(p, bytes) else p for p in producers]
    except Exception as error:  # noqa: BLE001 - pickled code may raise anything; every request is answered with it
        failed = error
    with contextlib.suppress(ChannelClosed):
        while True:
            channel.receive()
            for request, fd in channel.messages():
                if request is None:
                    return
                if fd is not None:
                    shared = map_block(fd)
                    os.close(fd)
                task, producer, content, block, *_ = request
                if isinstance(content, SharedRequest):
                    content = read(content.data, shared)
                _answer(channel, loaded, failed, blocks, task, producer, content, block)
            channel.forget()


def _watch(parent: int) -> None:
    """End the process when its parent has ended, even while the user's code runs."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os._exit(1)


def _answer(
    channel: Channel, producers: list[Any], failed: BaseException | None, blocks: dict[int, Any], task: int,
    producer: int, request: Any, block: int | None,
) -> None:  # fmt: skip
    """Send (task, succeeded, result, its block, a dropped block [, WITH_DESCRIPTOR])."""
    arrays: list[tuple[int, Any]] = []
    try:
        if failed is not None:
            raise failed
        answer, size = lay_out(producers[producer](request), arrays)
        good = True
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, SystemExit too: its batch does
        answer, size, good = RemoteException(error), 0, False
        arrays.clear()
    dropped, fd = None, None
    if size and (block is None or size > blocks[block].size):
        dropped, block = block, max(blocks, default=-1) + 1
        fd, blocks[block] = make_block(size)
        if dropped is not None:
            del blocks[dropped]
    if arrays and block is not None:
        write(blocks[block], arrays)
    content = (task, good, answer, block, dropped)
    try:
        message = Message(content if fd is None else (*content, WITH_DESCRIPTOR))
    except Exception as error:  # noqa: BLE001 - something in the result that is no array and cannot be pickled
        message = Message(
            (task, False, RemoteException(error), block, dropped) + (() if fd is None else (WITH_DESCRIPTOR,))
        )
    channel.send(message, fd)
    if fd is not None:
        os.close(fd)
