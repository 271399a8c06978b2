# SPDX-License-Identifier: Apache-2.0
"""Model and data that the tests of trainers share. The model records the rows that it is trained on."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import torch

from stoker.torch import Loader
from tests.run.pipelines import ROOT, environment, training

COLUMNS = ("pixel_values", "labels")  # names of Hugging Face


def make_loader(files: list[str], **options: Any) -> Loader:
    """Return a loader of batches of five rows, in another order every epoch. ``options`` are the reader's."""
    names = options.pop("names", None)
    policy = options.pop("last_batch_policy", "even")
    return Loader(training(files, **options), names, last_batch_policy=policy)


class Recording(torch.nn.Module):
    """Linear model of images that records the labels it sees, and their count in its state."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3 * 16 * 16, 1)
        self.seen: list[int] = []

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        self.seen += labels.tolist()
        out = self.layer(pixel_values.flatten(1))
        return {"loss": out.mean(), "logits": out}


def run_ranks(program: str, *arguments: str) -> None:
    """Run a module in two processes that torchrun starts; each must succeed."""
    _run("torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", program, *arguments)


def run_alone(program: str, *arguments: str) -> None:
    """Run a module in one process, which may start others; it must succeed."""
    _run(program, *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT,
        env=environment() | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
