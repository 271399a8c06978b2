# SPDX-License-Identifier: Apache-2.0
"""Common interface of Stoker and DALI, so that both run literally the same pipeline definitions.

The module is imported in both environments, which both have NumPy.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

DALI = "nvidia.dali"
STOKER = "stoker"

# A prime stride spreads the samples over all columns, rows and channels; it touches each half page of a batch.
_STRIDE = 509


@dataclass(frozen=True)
class Library:
    """Modules of a library that a pipeline definition uses."""

    name: str
    fn: Any
    types: Any
    pipeline_def: Any


def load(name: str) -> Library:
    """Import Stoker or DALI; ``from name import fn, types`` works for both."""
    package = importlib.import_module(name)

    def member(part: str) -> Any:
        return getattr(package, part, None) or importlib.import_module(f"{name}.{part}")

    return Library(name, member("fn"), member("types"), package.pipeline_def)


def consume(outputs: Sequence[Any]) -> float:
    """Read a sample of every output of a batch and sum it, in place of a consumer that reads all of it."""
    return float(sum(_sum(output) for output in outputs))


def _sum(output: Any) -> float:
    array = dense(output).reshape(-1)
    return float(np.add.reduce(array[::_STRIDE] if array.size > _STRIDE else array, dtype=np.float64))


def dense(output: Any) -> np.ndarray:
    """Return an output of equal shapes as one array, without a copy."""
    return np.asarray(output.as_tensor() if hasattr(output, "as_tensor") else output.as_array())
