# SPDX-License-Identifier: Apache-2.0
"""Outputs of pipelines with sources that end."""

from __future__ import annotations

from typing import Any

from stoker import Pipeline


def read_batches(pipe: Pipeline, count: int = 100) -> list[list[Any]]:
    """Return at most ``count`` batches: for each, the rows of every output as lists."""
    out: list[list[Any]] = []
    while len(out) < count:
        try:
            out.append([[x.tolist() for x in output] for output in pipe.run()])
        except StopIteration:
            break
    return out
