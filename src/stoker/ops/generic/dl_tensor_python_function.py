# SPDX-License-Identifier: Apache-2.0
"""``dl_tensor_python_function``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.types import DType
from ...native import _native
from .python_function import PythonFunction


class DLTensorPythonFunction(PythonFunction, name="dl_tensor_python_function"):
    """Call a Python function with the inputs as DLPack capsules. The function returns DLPack capsules.

    By default the function is called once per batch: with a list of capsules for each input, one for each row. It
    returns a list for each output, and a tuple of lists for several outputs. With ``batch_processing=False`` it is
    called for each row, with one capsule for each input.

    A capsule (``dltensor``) can be read once, for example by ``torch.utils.dlpack.from_dlpack``. It holds a copy of the
    row in host memory, contiguous, which the function may change and keep. Results may also be all that
    ``python_function`` takes: arrays, tensors with ``__dlpack__``, numbers or bytes. Order, draws (``rng``), errors and
    ``isolate=True`` are as of ``python_function``. Source: DALI's operator of this name.
    """

    batch_processing = arg("bool", True, doc="Call it once for all rows of a batch.")
    synchronize_stream = arg("bool", True, doc="Of a GPU; without effect on the CPU.")
    result_neutral = ("synchronize_stream",)

    def validate(self, args: Mapping[str, Any]) -> None:
        if args.get("device") not in (None, "cpu"):
            raise UnsupportedError(
                "expected the device cpu, got gpu: a GPU's memory for outputs is taken before the function runs, and "
                "this function decides on their shapes. Use `fn.gpu_function` with the library dlpack, which passes "
                "capsules of a GPU's memory and takes `output_shapes`"
            )
        super().validate(args)

    @staticmethod
    def passed(array: Any) -> Any:
        return _native.exchange(array, int(DType.of(array.dtype))).__dlpack__()
