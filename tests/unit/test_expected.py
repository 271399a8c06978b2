# SPDX-License-Identifier: Apache-2.0
"""Comparison of outputs with their declarations, in `stoker.pipeline_def` and in the Loader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, fn, pipeline_def, types
from stoker.torch import Loader


@pipeline_def(batch_size=2, num_threads=1, seed=1)
def numbers(declared: bool = True) -> Any:
    declaration = {"dtype": types.FLOAT, "ndim": 2} if declared else {}
    x = fn.external_source(source=lambda i: np.zeros((2, 3, 4), np.float32) if i < 3 else None, **declaration)
    return fn.copy(x), fn.random.coin_flip()


@pytest.mark.parametrize("declared", [True, False])
def test_outputs_that_fit_are_delivered(declared: bool) -> None:
    expected = {"output_dtype": [types.FLOAT, types.INT32], "output_ndim": [2, 0], "output_layout": ""}
    with numbers(declared, **expected) as pipe:
        assert [x.dtype for x in pipe.run()] == [types.FLOAT, types.INT32]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("expected", "text"), [
    ({"output_dtype": types.FLOAT}, "expected output 1 with `output_dtype` float32, got int32"),
    ({"output_dtype": [None, types.FLOAT]}, "expected output 1 with `output_dtype` float32, got int32"),
    ({"output_ndim": [3, None]}, "expected output 0 with `output_ndim` 3, got 2"),
    ({"output_layout": ["HW", ""]}, "expected output 0 with `output_layout` 'HW', got "),
    ({"output_ndim": [2]}, "expected 2 of `output_ndim`, got 1"),
], ids=str)  # fmt: skip
def test_others_are_refused_every_time(declared: bool, expected: dict[str, Any], text: str) -> None:
    with numbers(declared, **expected) as pipe:
        for _ in range(2):
            with pytest.raises(ArgumentError, match=text):
                pipe.run()
    pipe = numbers(declared, **expected)
    with pytest.raises(ArgumentError, match=text):
        next(iter(Loader(pipe, size=1)))
    pipe.close()


def test_outputs_have_the_names_of_their_nodes() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def named() -> Any:
        return fn.random.uniform(name="here"), fn.random.uniform()

    with named() as pipe:
        assert pipe.output_names == ("here", None) and pipe.num_outputs == 2
