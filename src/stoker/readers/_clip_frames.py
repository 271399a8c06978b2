# SPDX-License-Identifier: Apache-2.0
"""Numbers and times of the frames of clips whose places are drawn when their rows run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column
from ..contract.errors import ArgumentError, DataError, UnsupportedError
from ..contract.lowering import Lowering
from ..contract.operator import Operator, RowContext, Spec
from ..contract.step import Value
from ..contract.storage import Bools
from ..contract.types import DType
from ..video.frame_index import Ints
from ._video import ClipStorage, share_of


def seconds_at(times: Mapping[int, npt.NDArray[np.float64]], file: int, frames: Ints) -> npt.NDArray[np.float64]:
    """Return the seconds of frames; -1 for constant ones, and for all of a file that has no times."""
    own = times.get(file)
    return -np.ones(len(frames)) if own is None else np.where(frames >= 0, own[frames], -1.0)


class ClipFrames(Operator, name="_clip_frames"):
    """Return the numbers or the times of the frames of random clips. Input: the number of the clip, int64. Output:
    int32 or float64 ``(F,)``.
    """

    hidden = True
    devices = ("cpu",)
    draws = 1
    storage = arg("object", doc="The clips.")
    kind = arg("str", choices=("scalar", "sequence", "timestamps"), doc="The first number, all numbers, or times.")
    times = arg("object", None, doc="Seconds of the frames of each file.")

    def infer(self, c: Any, number: Any) -> Spec:
        if c.const("kind") == "scalar":
            return Spec(DType.INT32, (1,))
        dtype = DType.FLOAT64 if c.const("kind") == "timestamps" else DType.INT32
        return Spec(dtype, (c.const("storage").rule.fixed_length,))

    def reference(self, row: RowContext, number: Any) -> Any:
        storage: ClipStorage = row["storage"]
        table, clip = storage.table, int(number)
        if not 0 <= clip < len(table):
            raise DataError(f"expected a sample below {len(table)} from the sampler, got {clip}")
        if clip in table.failures:
            raise DataError(table.failures[clip])
        frames = table.frames(clip, storage.rule, share_of(storage.rule, row))
        if row["kind"] == "timestamps":
            return seconds_at(row["times"], table.file(clip), frames)
        return frames.astype(np.int32)[: 1 if row["kind"] == "scalar" else None]


class ClipFramesColumn(Column):
    """Numbers or times of the frames of random clips.

    Args:
        storage: the clips.
        kind: "scalar", "sequence" or "timestamps".
        times: seconds of the frames of each file.
    """

    layout, optional, rank = "", False, 1

    def __init__(
        self, storage: ClipStorage, kind: str, times: Mapping[int, npt.NDArray[np.float64]] | None = None
    ) -> None:
        self._storage, self._kind, self._times = storage, kind, times
        self.name = "timestamps" if kind == "timestamps" else "frame_num"
        self.dtype = DType.FLOAT64 if kind == "timestamps" else DType.INT32

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> ClipStorage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        number = c.native("index", [], [(DType.INT64, (), "")], attrs=(reader,))[0]
        frames: Value = c.apply("_clip_frames", number, storage=self._storage, kind=self._kind, times=self._times)
        return frames

    def row(self, index: int) -> npt.NDArray[Any]:
        raise UnsupportedError("expected a clip whose place is fixed, got a random one, which a pipeline places")

    def joined(self, others: Sequence[Column]) -> ClipFramesColumn:
        same = [o for o in others if isinstance(o, ClipFramesColumn) and o._kind == self._kind]
        if len(same) < len(others):
            raise ArgumentError("expected parts that are random clips with the same outputs")
        parts = (self, *same)
        files = np.cumsum([0, *(len(p.storage.table.paths) for p in parts)])
        times = {
            file + int(files[i]): own for i, p in enumerate(parts) for file, own in (p._times or {}).items()
        } or None  # fmt: skip
        return ClipFramesColumn(self._storage.joined([o.storage for o in same]), self._kind, times)
