# SPDX-License-Identifier: Apache-2.0
"""``decoders.numpy``."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from ...contract.argument import arg
from ...contract.errors import DataError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.text import reason_of
from ...contract.types import DType
from .cast import cast_array


class DecodeNumpy(Operator, name="decoders.numpy"):
    """Decode arrays in the form of .npy files (versions 1 to 3). Input: uint8 (N,). Output: the array.

    The first batch decides the type and the number of axes; other arrays must have the same. Arrays in Fortran order
    and big-endian ones become contiguous arrays in the order of C, little-endian. With `dtype` the numbers are
    converted: rounded half to even, and limited to the range of the type. Arrays of objects, texts and complex numbers
    are errors of their rows, and so are bytes after the array.
    """

    devices = ("cpu",)
    dtype = arg("dtype", None, doc="Type of the output; by default that of the arrays.")
    cases = ()  # the types of the outputs are known only after the first batch

    def infer(self, c: Lowering, data: Any) -> None:
        """Check the input. The types are those of the first batch."""
        c.expect(data.dtype == DType.UINT8 and data.rank == 1, f"expected bytes, uint8 (N,), got {data.dtype}")

    def reference(self, row: RowContext, data: Any) -> Any:
        array = read_npy(bytes(data))
        return array if row["dtype"] is None else cast_array(array, DType.of(row["dtype"]))


def read_npy(content: bytes) -> npt.NDArray[Any]:
    """Return the array of an .npy file, contiguous and in native byte order.

    Raises:
        DataError: the content is no such file, or has an array that is no array of numbers.
    """
    file = io.BytesIO(content)
    try:
        if content[:6] != b"\x93NUMPY":
            raise ValueError(f"it begins with {content[:6]!r}")
        array = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, MemoryError, OverflowError) as error:
        raise DataError(f"expected an .npy file, got {len(content)} bytes: {reason_of(error)}") from None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise DataError(f"expected an array of numbers, got {array.dtype}")
    rest = len(content) - file.tell()
    if rest:
        raise DataError(f"expected an .npy file that ends with its array, got {rest} bytes after it")
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(array.shape)
