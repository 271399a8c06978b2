# SPDX-License-Identifier: Apache-2.0
"""Pipelines that the tests of all frameworks' loaders share."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import fn, pipeline_def, types
from tests.photographs import write_photographs

ROOT = Path(__file__).resolve().parents[2]

DTYPES = [
    types.BOOL, types.UINT8, types.UINT16, types.UINT32, types.UINT64, types.INT8, types.INT16, types.INT32,
    types.INT64, types.FLOAT16, types.FLOAT, types.FLOAT64, types.BFLOAT16,
]  # fmt: skip


def values(dtype: Any) -> Any:
    """Return float32 ``[4, 3, 5]`` with values that every type holds."""
    return (np.arange(60, dtype=np.float32) % (2 if dtype == types.BOOL else 100)).reshape(4, 3, 5)


@pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=7)
def typed(dtype: Any) -> Any:
    """Return the rows of :func:`values` as ``dtype``."""
    rows = fn.reshape(fn.external_source(source=lambda: values(dtype), batch=True), shape=[3, 5])
    return fn.cast(rows, dtype=dtype)


def expected(dtype: Any) -> Any:
    """Return :func:`values` as NumPy has the type; bfloat16 as float32, which holds these values exactly."""
    return values(dtype) if dtype == types.BFLOAT16 else values(dtype).astype(dtype.numpy)


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=7)
def ragged(rank: int = 3) -> Any:
    """Return rows whose shapes differ, and their sums."""

    def source() -> Any:
        shapes = [(2, 3, 4), (1, 5, 4), (3, 1, 4)]
        for _ in range(2):
            rows = [np.arange(np.prod(s[-rank:]), dtype=np.float32).reshape(s[-rank:]) for s in shapes]
            yield rows if rank > 1 else [r[: n + 1] for n, r in enumerate(rows)]

    return fn.external_source(source=source, dtype=types.FLOAT, ndim=rank)


def run_page(package: str, data_dir: Path) -> None:
    """Run the blocks of the guide on frameworks that need no package, or ``package``, as one program."""
    page = ROOT / "docs" / "guides" / "frameworks.md"
    found = re.findall(r"^(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    code = [text for needs, text in found if needs in ("", package)]
    assert any(needs == package for needs, _ in found)
    exec(compile("\n".join(code), str(page), "exec"), {"data_dir": str(data_dir), "__name__": "page"})


def check_same_training(framework: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the example's training in a framework with the one in NumPy: equal batches, losses but for rounding."""
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "frameworks"))
    spec = importlib.util.spec_from_file_location("same_training", ROOT / "examples" / "frameworks" / "train.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, example)
    spec.loader.exec_module(example)
    photographs = str(write_photographs(folder / "photographs"))
    want, got = (example.train(name, photographs, epochs=3) for name in ("numpy", framework))
    assert got.checksum == want.checksum
    assert len(got.losses) == len(want.losses) == 9
    np.testing.assert_allclose(got.losses, want.losses, rtol=2e-5)
    monkeypatch.setattr(example.models, "LEARNING_RATE", 1.01 * example.models.LEARNING_RATE)
    other = example.train("numpy", photographs, epochs=3)
    assert other.checksum == want.checksum
    assert not np.allclose(other.losses, want.losses, rtol=2e-5, atol=0), "the tolerance notices no change"
