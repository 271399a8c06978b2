# SPDX-License-Identifier: Apache-2.0
"""Delivery on devices of torch other than CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import stoker.torchvision
from stoker import ArgumentError, DeviceError
from stoker.frontends.torchvision.loader import delivery
from tests.complete import sample
from tests.forked import ForkServer

WAYS = [(0, "pageable"), (0, "page-locked"), (2, "pageable"), (2, "page-locked")]


@pytest.mark.parametrize(("workers", "memory"), sample(WAYS, 2))
def test_batches_arrive_on_a_registered_device(files: Path, workers: int, memory: str, forked: ForkServer) -> None:
    if not hasattr(torch._C, "_acc"):
        pytest.skip("this torch cannot register a device in Python (torch._C._acc), which the test needs")
    program = Path(__file__).with_name("other_device.py")
    done = forked.run(program, files, str(workers), memory)
    assert done.stdout.endswith("equal\n"), done.stderr


@pytest.mark.parametrize("device", ["mps", "xpu", "xpu:7"])
def test_a_missing_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = getattr(torch, device.split(":")[0])
    monkeypatch.setattr(module, "is_available", lambda: False)
    with pytest.raises(DeviceError, match=device):
        stoker.torchvision.enable(device)
    with pytest.warns(Warning, match=device), stoker.torchvision.enabled(device, without_gpu="cpu"):
        assert not delivery.is_copying() and not delivery.is_on_gpu()


def test_a_device_whose_package_is_not_imported() -> None:
    if hasattr(torch, "npu"):
        pytest.skip("torch_npu is imported here, and the test needs a process without it")
    with pytest.raises(ArgumentError, match=r"got 'npu'.* need the import of their package"):
        stoker.torchvision.enable("npu")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_steps_on_a_device_that_stokers_own_code_serves(device: str) -> None:
    with pytest.raises(ArgumentError, match=f"expected `device_steps=True` with one of mps, .*got it with '{device}'"):
        stoker.torchvision.enable(device, device_steps=True)
    assert not stoker.torchvision.is_enabled()


def test_the_cpu_copies_nothing() -> None:
    x = torch.zeros(3)
    with stoker.torchvision.enabled():
        assert delivery.to_device(x) is x and not delivery.pins_host_memory()
