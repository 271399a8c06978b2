# SPDX-License-Identifier: Apache-2.0
"""How a graph runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..graph.plan import PASSES
from .failures import OnError
from .run import OpenGpu
from .workers import WorkerSettings


@dataclass(frozen=True)
class Settings:
    """How a graph runs.

    ``depth`` batches are made ahead; with 0 every one runs on the caller's thread when it is asked for. Of those made
    ahead, ``gpu_depth`` at most are on the GPU or have memory there for it; None: all may.
    """

    batch_size: int
    threads: int
    seed: int
    depth: int = 2
    passes: frozenset[str] = frozenset(PASSES)
    gpu: OpenGpu | Literal[False] | None = None  # False: what is placed on a GPU runs on the CPU
    gpu_load: float | None = None  # the part of the rows that the GPU decodes; None: by measured speed
    gpu_utilization: float = 1.0
    on_error: OnError = field(default_factory=OnError)
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    gpu_depth: int | None = None
    launcher: frozenset[str] = frozenset()  # of "shard" and "gpu", those that the launcher's environment decided
