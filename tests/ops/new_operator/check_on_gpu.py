# SPDX-License-Identifier: Apache-2.0
"""Comparison of the throw-away operators' GPU kernels with their CPU kernels; dry_run.sh runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parents[2] / name) for name in ("cuda", "native")]
from test_own_kernels import compare_rows, gpu  # noqa: E402, F401

from stoker import fn  # noqa: E402


@pytest.fixture(scope="session")
def folder(kernel_folder: Path) -> Path:
    """Return the folder of compiled kernels."""
    return kernel_folder


def test_a_gpu_gives_the_cpus_bits() -> None:
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 256, shape, np.uint8) for shape in ((5, 7, 3), (0, 2, 1), (90, 80, 3))]
    compare_rows([rows], ["HWC"], fn.throwaway_reverse_bits)
    compare_rows([rows], ["HWC"], lambda x: fn.throwaway_reverse_bits(fn.flip(x, horizontal=1)))


def test_a_gpu_counts_as_the_cpu_does() -> None:
    rng = np.random.default_rng(2)
    rows = [rng.normal(0, 1, n).astype(np.float32) for n in (700, 0, 3, 128)]
    limits = [np.float32(limit) for limit in (0.5, 0, 9, -9)]
    want = compare_rows([rows, limits], ["", ""], lambda x, limit: fn.throwaway_keep_above(x, threshold=limit))
    assert [x.tolist() for x in want[0]] == [x[x > limit].tolist() for x, limit in zip(rows, limits, strict=True)]
    assert [int(n) for n in want[1]] == [int((x > limit).sum()) for x, limit in zip(rows, limits, strict=True)]
