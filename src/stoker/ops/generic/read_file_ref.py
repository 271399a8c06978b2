# SPDX-License-Identifier: Apache-2.0
"""``_read_file_ref``: reads a file by the reference that another process passed."""

from __future__ import annotations

import functools
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import ALLOCATES, Value
from ...contract.types import DType
from ...native import _native

_IDENTITY = struct.Struct("<3Qq")  # device, inode, size, modification time in nanoseconds


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for the cases, which is deleted with the process."""
    return tempfile.TemporaryDirectory()


class ReadFileRef(Operator, name="_read_file_ref"):
    """Read a whole file. Input: a file reference (``native/io/file_ref.hpp``), uint8 with one axis, whose path may be
    followed by zeros. Output: the file's bytes, uint8 ``(N,)``.

    The row fails if the file cannot be read, or if it was changed or replaced after the reference was created.
    """

    hidden = True
    cases = ({},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        """Return files with an end marker. The second reference is padded with zeros, as in rows of one length."""
        rows: samples.Rows = []
        for i, size in enumerate((64, 5000)):
            path = Path(_folder().name, f"{i}.jpg")
            path.write_bytes(np.random.default_rng(i).bytes(size - 2) + b"\xff\xd9")
            with open(path, "rb") as file:
                ref = _native.recipe.make_file_ref(file.fileno(), os.fsencode(path), -1.0)
            assert ref is not None
            rows.append((np.frombuffer(ref + bytes(3 * i), np.uint8),))
        return rows

    def lower(self, c: Lowering, ref: Value) -> Value:
        if ref.dtype != DType.UINT8 or ref.rank != 1:
            raise UnsupportedError(f"`_read_file_ref`: expected uint8 with one axis, got {ref.dtype}, {ref.rank}")
        data = c.opaque(DType.UINT8, 1)
        c.emit("read_file_ref", [ref], [data], memory=ALLOCATES)
        return data

    def reference(self, row: RowContext, ref: Any) -> Any:
        """Read the file with Python's own calls."""
        text = ref.tobytes()
        path = text[_IDENTITY.size :].split(b"\0")[0]
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) != _IDENTITY.unpack_from(text):
                raise ValueError(f"another file than {path!r} was")
            return np.frombuffer(file.read(), np.uint8)
