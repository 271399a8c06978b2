# SPDX-License-Identifier: Apache-2.0
"""``_told_file``: the bytes of a file that another process has told of."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType

_IDENTITY = struct.Struct("<3Qq")  # device, number, size, time of the last change in nanoseconds


class ToldFile(Operator, name="_told_file"):
    """Read a whole file. Input: what tells of it (``native/told_file.hpp``), uint8 with one axis, with any number of
    zeros behind the path. Output: its bytes, uint8 ``(N,)``.

    An error of the row, if it cannot be read, or is another file or has changed since it was told of.
    """

    kind = "general"
    hidden = True
    cases = ({},)

    def lower(self, c: Lowering, told: Value) -> Value:
        if told.dtype != DType.UINT8 or told.rank != 1:
            raise UnsupportedError(f"`_told_file`: expected uint8 with one axis, got {told.dtype}, {told.rank}")
        data = c.opaque(DType.UINT8, 1)
        c.emit("told_file", [told], [data], allocates=True)
        return data

    def reference(self, row: RowContext, told: Any) -> Any:
        """By Python's own calls."""
        text = told.tobytes()
        path = text[_IDENTITY.size :].split(b"\0")[0]
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) != _IDENTITY.unpack_from(text):
                raise ValueError(f"another file than {path!r} was")
            return np.frombuffer(file.read(), np.uint8)
