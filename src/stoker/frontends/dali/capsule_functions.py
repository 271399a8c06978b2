# SPDX-License-Identifier: Apache-2.0
"""``dl_tensor_python_function`` on a GPU, and functions of rows as functions of batches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import fn

_ARGUMENTS = {"function", "num_outputs", "batch_processing", "output_layouts", "output_dtypes", "output_shapes",
              "synchronize_stream"}  # fmt: skip


class EachRow:
    """Function on lists of arrays that calls a function for each row."""

    def __init__(self, call: Callable[..., Any], num_outputs: int) -> None:
        self._call, self._num_outputs = call, num_outputs

    def __call__(self, *columns: Any) -> Any:
        results = [self._call(*row) for row in zip(*columns, strict=True)]
        if self._num_outputs == 1:
            return results
        return tuple(map(list, zip(*results, strict=True)))


def also_on_gpu(on_cpu: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``dl_tensor_python_function`` with a form for GPUs, which is ``fn.gpu_function(library="dlpack")``."""

    @functools.wraps(on_cpu)
    def call(*inputs: Any, **arguments: Any) -> Any:
        if arguments.get("device") != "gpu":
            return on_cpu(*inputs, **arguments)
        given = {k: v for k, v in arguments.items() if k in _ARGUMENTS}
        more = {k: v for k, v in arguments.items() if k not in _ARGUMENTS}
        given.pop("synchronize_stream", None)  # the batch's stream is done before the function runs in any case
        function, count = given.get("function"), given.get("num_outputs", 1)
        if not given.pop("batch_processing", True) and callable(function):
            given["function"] = EachRow(function, count)
        return fn._make_function("gpu_function")(*inputs, library="dlpack", **given, **more)

    return call
