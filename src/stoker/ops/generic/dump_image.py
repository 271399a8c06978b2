# SPDX-License-Identifier: Apache-2.0
"""``dump_image``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.text import brief
from ...contract.types import DType


class DumpImage(Operator, name="dump_image"):
    """Write images to files in the current folder, for a look at them. Input: uint8, HWC with 1 or 3 channels. Output:
    the input.

    The file of a batch's row 5 is ``5-suffix-0.ppm``, in the text form of PPM or PGM. The next batch overwrites it.
    """

    devices = ("cpu",)
    pure = False
    suffix = arg("str", "", doc="Part of the files' names, without slashes.")
    input_layout = arg("str", "HWC", doc="Accepted: HWC.", choices=("HWC",))

    def validate(self, args: Mapping[str, Any]) -> None:
        # A name in another folder would let a graph file overwrite any file of the user.
        if any(mark in args["suffix"] for mark in ("/", "\\", "\0")):
            raise ArgumentError(
                f"`dump_image`: expected a `suffix` without slashes and NUL, got {brief(args['suffix'])}"
            )

    def infer(self, c: Lowering, x: Any) -> Spec:
        if x.dtype != DType.UINT8 or x.rank != 3 or x.layout not in ("", "HWC"):
            raise UnsupportedError(
                f"`dump_image`: expected uint8 HWC, got {x.dtype} {x.layout or f'of {x.rank} axes'}. Convert it first"
            )
        return Spec(x.dtype, tuple(n if isinstance(n, int) else None for n in x.shape), x.layout)

    def reference(self, row: RowContext, x: Any) -> Any:
        height, width, channels = x.shape
        if channels not in (1, 3):
            raise ValueError(f"expected 1 or 3 channels, got {channels}")
        kind = "P3" if channels == 3 else "P2"
        lines = [" ".join(map(str, line)) for line in np.asarray(x).reshape(height, -1).tolist()]
        name = f"{row.batch_position[0]}-{row['suffix']}-0.ppm"
        Path(name).write_text(f"{kind}\n{width} {height}\n255\n" + "\n".join(lines) + "\n", encoding="ascii")
        return x
