# SPDX-License-Identifier: Apache-2.0
"""Pipelines with a source in worker processes, and their outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker import Pipeline, fn, types

ROWS = 23


def pipeline(
    count: int = 2, method: str = "fork", batch_size: int = 4, parallel: bool = True, outputs: int | None = None,
    settings: dict[str, Any] | None = None, **source: Any,
) -> Pipeline:  # fmt: skip
    pipe = Pipeline(batch_size, 2, seed=1, py_num_workers=count, py_start_method=method, **(settings or {}))
    with pipe:
        out = fn.external_source(parallel=parallel, num_outputs=outputs, **source)
    pipe.set_outputs(*(out if isinstance(out, tuple) else (out,)))
    return pipe


# At module level, so that "spawn" finds it too.
def row(info: types.SampleInfo) -> Any:
    if info.idx_in_epoch >= ROWS:
        raise StopIteration
    return np.full((info.idx_in_epoch % 3, 2), info.idx_in_epoch + 100 * info.epoch_idx, np.float32)
