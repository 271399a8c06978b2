# SPDX-License-Identifier: Apache-2.0
"""Pipelines over container files, and their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker import Pipeline


def pipeline(define: Callable[[], Any], **settings: Any) -> Pipeline:
    """Return a pipeline whose outputs ``define`` returns, as nodes, a list or a dict."""
    pipe = Pipeline(**{"batch_size": 4, "num_threads": 2, "seed": 3, "device_id": None, **settings})
    with pipe:
        found = define()
        outputs = found.values() if isinstance(found, dict) else found if isinstance(found, (list, tuple)) else [found]
        pipe.set_outputs(*outputs)
    return pipe


def epoch(pipe: Pipeline) -> list[tuple[Any, ...]]:
    """Return the rows of an epoch, each a tuple of arrays."""
    found: list[Any] = []
    while (delivered := pipe.next()) is not None:
        found += [tuple(map(np.array, row)) for row in zip(*pipe.execution.batches(delivered), strict=True)]
    return found


def rows(define: Callable[[], Any], **settings: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the first epoch of a pipeline."""
    with pipeline(define, **settings) as pipe:
        return epoch(pipe)


def plain(row: tuple[Any, ...]) -> list[Any]:
    """Return a row with bytes as bytes, and other arrays as (type, shape, list)."""
    return [x.tobytes() if x.dtype == np.uint8 and x.ndim == 1 else (str(x.dtype), x.shape, x.tolist()) for x in row]
