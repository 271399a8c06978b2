# SPDX-License-Identifier: Apache-2.0
"""Messages and arrays that processes exchange."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from stoker.executor.channel import Channel, ChannelClosed, Message, lay_out, read, write


def test_messages_arrive_whole_and_in_order_in_any_pieces() -> None:
    import socket

    a, b = socket.socketpair()
    sender, receiver = Channel(a), Channel(b)
    wanted = [("x" * 70_000, 1), (None, 2), (list(range(1000)), 3)]
    got: list[Any] = []
    for content in wanted:
        sender.send(Message(content))
        while len(got) < wanted.index(content) + 1:
            receiver.receive()
            messages = receiver.messages()
            assert receiver.messages() == messages  # a message stays readable until it is forgotten
            got += [m for m, _ in messages]
            receiver.forget()
    assert got == wanted
    sender.close()
    with pytest.raises(ChannelClosed):
        receiver.receive()
    receiver.close()


def test_arrays_of_every_kind_go_through_shared_memory() -> None:
    data: Any = (
        [np.arange(5, dtype=np.uint8), np.zeros((0, 3), np.float16)],
        (np.float64(2.5), 7, np.array(3)),
        "text",
    )
    arrays: list[tuple[int, Any]] = []
    described, size = lay_out(data, arrays)
    block = np.zeros(size, np.uint8)
    write(block, arrays)
    received = read(pickle.loads(pickle.dumps(described)), block)
    assert (
        received[0][0].tolist() == [0, 1, 2, 3, 4]
        and received[0][1].shape == (0, 3)
        and received[0][1].dtype == np.float16
    )
    assert received[1] == (2.5, 7, 3) and received[1][2].shape == () and received[2] == "text"
