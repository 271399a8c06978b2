# SPDX-License-Identifier: Apache-2.0
"""``io.file.read``."""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.page_cache import refuse_direct_io
from ...contract.types import DType
from ...remote.addresses import is_remote
from ...remote.store import read_object


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for the cases, which is deleted with the process."""
    return tempfile.TemporaryDirectory()


class FileRead(Operator, name="io.file.read"):
    """Read whole files, or whole objects. Input: a path, or an address (s3://, gs://, az://, https://), as bytes, uint8
    (N,); zeros at its end are ignored. Output: the file's bytes, uint8 (N,).

    A file or object that cannot be read is an error of its row. An object is asked for when its row runs; readers ask
    for objects ahead of the rows.
    """

    devices = ("cpu",)
    dont_use_mmap = arg("bool", False, doc="Accepted; has no effect: files are read, never mapped.")
    use_o_direct = arg("bool", False, doc="Only False: files are read through the page cache.")
    cases = ({},)

    def validate(self, args: Mapping[str, Any]) -> None:
        refuse_direct_io(args)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, size in enumerate((0, 5000)):
            path = Path(_folder().name, f"{i}.bin")
            path.write_bytes(np.random.default_rng(i).bytes(size))
            rows.append((np.frombuffer(str(path).encode() + b"\0" * (3 * i), np.uint8),))
        return rows

    def infer(self, c: Lowering, path: Any) -> Spec:
        c.expect(path.dtype == DType.UINT8 and path.rank == 1, f"expected a path of uint8 (N,), got {path.dtype}")
        return Spec(DType.UINT8, (None,))

    def reference(self, row: RowContext, path: Any) -> Any:
        name = bytes(path).rstrip(b"\0")
        if b"\0" in name or not name:
            raise ValueError(f"expected the path of a file, got {name!r}")
        address = os.fsdecode(name)
        if is_remote(address):
            return np.frombuffer(read_object(address), np.uint8)
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError(f"expected a regular file, got {name!r}, a pipe, device or folder")
        except BaseException:
            os.close(descriptor)
            raise
        with os.fdopen(descriptor, "rb") as file:
            return np.frombuffer(file.read(), np.uint8)
