# SPDX-License-Identifier: Apache-2.0
"""Descriptors from workers are taken once and never leak; small tensors travel inside messages."""

from __future__ import annotations

import os
import pickle

import pytest
import torch

from stoker import StateError
from stoker.frontends.torchvision.loader.loader import reduce_small
from stoker.frontends.torchvision.transport import descriptors, segment
from stoker.frontends.torchvision.transport.descriptors import Receiver
from stoker.frontends.torchvision.transport.source import Source


def a_file(text: bytes) -> int:
    fd = os.memfd_create("test")
    os.write(fd, text)
    return fd


def test_in_any_order() -> None:
    receiver = Receiver()
    sent = []
    for text in (b"one", b"two", b"three"):
        fd = a_file(text)
        sent.append(receiver.sender.send(fd))
        os.close(fd)
    for (token, number), text in [(sent[2], b"three"), (sent[0], b"one")]:
        taken = descriptors.take(token, number)
        assert os.pread(taken, 9, 0) == text
        os.close(taken)
    receiver.close()  # closes "two" with it
    receiver.close()
    with pytest.raises(StateError, match="by the process alone"):
        descriptors.take(*sent[1])


def test_a_descriptor_that_was_not_sent() -> None:
    receiver = Receiver()
    with pytest.raises(StateError, match="got none"):
        receiver.take(1)
    receiver.close()


def test_a_worker_that_has_ended() -> None:
    receiver = Receiver()
    receiver.sender.close()
    with pytest.raises(StateError, match="got an end"):
        receiver.take(1)
    receiver.close()


def test_a_segment_is_sent_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = Receiver()
    monkeypatch.setattr(segment, "_in_worker", True)
    monkeypatch.setattr(segment, "_sender", receiver.sender)
    segment.begin_batch()
    source = Source.from_bytes(b"a file's bytes")
    segment.end_batch()
    segment._thread.earlier.clear()
    assert pickle.loads(pickle.dumps(source)).data.tobytes() == b"a file's bytes"
    receiver.close()


@pytest.mark.parametrize("dtype", [torch.int64, torch.bfloat16, torch.bool])
def test_small_tensors_are_sent_in_the_message(dtype: torch.dtype) -> None:
    def original(tensor: torch.Tensor) -> str:
        return "as ever"

    for tensor in (torch.ones(3, 4, dtype=dtype).t(), torch.zeros((), dtype=dtype)):
        rebuild, arguments = reduce_small(original, tensor)
        again = rebuild(*pickle.loads(pickle.dumps(arguments)))
        assert again.dtype == dtype and torch.equal(again, tensor)
    for other in (torch.zeros(5000), torch.zeros(0), torch.zeros(2, requires_grad=True), torch.zeros(2).to_sparse()):
        assert reduce_small(original, other) == "as ever"
    assert reduce_small(original, torch.nn.Parameter(torch.zeros(2), requires_grad=False)) == "as ever"
