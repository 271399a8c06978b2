# SPDX-License-Identifier: Apache-2.0
"""``enable("cuda")`` and ``--device cuda`` on machines without a GPU: refused, or run by the CPU if requested."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

import stoker.torchvision
from stoker import ArgumentError, DeviceError, UnsupportedError
from tests.forked import PATHS, ForkServer
from tests.takeover.scripts import classification, run


def test_without_a_gpu(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # also on machines with one
    with pytest.raises(DeviceError, match=r"expected a GPU for 'cuda'.*without_gpu"):
        stoker.torchvision.enable("cuda")
    assert not stoker.torchvision.is_enabled()
    with pytest.raises(ArgumentError, match="expected `device`"):
        stoker.torchvision.enable("tpu")
    with pytest.raises(ArgumentError, match="expected `without_gpu`"):
        stoker.torchvision.enable("cuda", without_gpu="maybe")
    untouched = run(classification(str(files), 0))
    with pytest.warns(RuntimeWarning, match="on the CPU"), stoker.torchvision.enabled("cuda", without_gpu="cpu"):
        ours = run(classification(str(files), 0))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(untouched, ours, strict=True))
    monkeypatch.setenv("STOKER_WITHOUT_GPU", "cpu")
    with pytest.warns(RuntimeWarning, match="on the CPU"), stoker.torchvision.enabled("cuda"):
        pass


def test_the_module_takes_a_device(tmp_path: Path, forked: ForkServer) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys; print(sys.argv)")
    launch = "import runpy; runpy.run_module('stoker.torchvision', run_name='__main__', alter_sys=True)"
    path = os.pathsep.join(filter(None, [*PATHS, os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
    refused = forked.run("-c", launch, "--device", "cuda", script, "--device", "x", env=env)
    assert refused.returncode and "expected a GPU for 'cuda'" in refused.stderr
    ran = forked.run("-c", launch, "--device", "cpu", script, "--device", "x", env=env)
    assert ran.returncode == 0 and "'--device', 'x']" in ran.stdout, ran.stderr
    refused = forked.run("-c", launch, "--device", "cpu", "--device-steps", script, env=env)
    assert refused.returncode and "`device_steps=True` with one of" in refused.stderr


def test_refused_without_the_gil(monkeypatch: pytest.MonkeyPatch) -> None:
    """A free-threaded Python: the take-over has not been tried there."""
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(UnsupportedError, match="expected a Python with the GIL"):
        stoker.torchvision.enable()
    assert not stoker.torchvision.is_enabled()
