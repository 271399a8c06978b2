# SPDX-License-Identifier: Apache-2.0
"""What a worker process does: make what it is asked for, and put it into memory that its parent sees."""

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

from .channel import WITH_DESCRIPTOR, Channel, Closed, Message, lay_out, make_block, write

_LOOK_S = 0.5  # how often a worker looks whether its parent lives


class Descriptor:
    """A file descriptor that goes to a child process, however that is started."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _arrived, (reduction.DupFd(self.number),)  # type: ignore[attr-defined, unused-ignore]


def _arrived(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


class Failure:
    """An exception on its way to the parent: itself if it can be pickled, and its traceback as text."""

    def __init__(self, error: BaseException) -> None:
        self.name = type(error).__name__
        self.text = str(error)
        self.traceback = "".join(traceback.format_exception(error))
        self.pickled: bytes | None = None
        with contextlib.suppress(Exception):  # whatever a user's exception does when it is pickled, the text is there
            data = pickle.dumps(error)
            pickle.loads(data)
            self.pickled = data


def work(
    end: socket.socket, producers: Sequence[bytes | Callable[[Any], Any]], loads: Callable[[bytes], Any],
    faults: Descriptor, parent: int, others: Sequence[socket.socket],
) -> None:  # fmt: skip
    """The life of a worker process.

    Args:
        end: its end of the socket.
        producers: what makes data: callables, or pickled ones.
        loads: takes the pickled ones apart.
        faults: file that a crash of the interpreter is described in.
        parent: the parent's process id.
        others: sockets of the parent and of other workers, which this process has only because it was forked.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable(file=faults.number, all_threads=False)
    for other in others:
        other.close()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    channel = Channel(end)
    blocks: dict[int, np.ndarray[Any, Any]] = {}
    made: list[Any] = []
    failed: BaseException | None = None
    try:
        made = [loads(p) if isinstance(p, bytes) else p for p in producers]
    except Exception as error:  # noqa: BLE001 - pickled code may raise anything; every request is answered with it
        failed = error
    with contextlib.suppress(Closed):
        while True:
            channel.receive()
            for request, _ in channel.messages():
                if request is None:
                    return
                _answer(channel, made, failed, blocks, *request)
            channel.forget()


def _watch(parent: int) -> None:
    """End with the parent, also if that was killed while this process is in the user's code."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _answer(
    channel: Channel, producers: list[Any], failed: BaseException | None, blocks: dict[int, Any], task: int,
    producer: int, request: Any, block: int | None,
) -> None:  # fmt: skip
    """Send (task, succeeded, what was made, its block, a block that was dropped [, WITH_DESCRIPTOR])."""
    arrays: list[tuple[int, Any]] = []
    try:
        if failed is not None:
            raise failed
        made, size = lay_out(producers[producer](request), arrays)
        good = True
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, SystemExit too: its batch does
        made, size, good = Failure(error), 0, False
        arrays.clear()
    dropped, fd = None, None
    if size and (block is None or size > blocks[block].size):
        dropped, block = block, max(blocks, default=-1) + 1
        fd, blocks[block] = make_block(size)
        if dropped is not None:
            del blocks[dropped]
    if arrays and block is not None:
        write(blocks[block], arrays)
    content = (task, good, made, block, dropped)
    try:
        message = Message(content if fd is None else (*content, WITH_DESCRIPTOR))
    except Exception as error:  # noqa: BLE001 - something in the result that is no array and cannot be pickled
        message = Message((task, False, Failure(error), block, dropped) + (() if fd is None else (WITH_DESCRIPTOR,)))
    channel.send(message, fd)
    if fd is not None:
        os.close(fd)
