# SPDX-License-Identifier: Apache-2.0
"""Audio of clips: the samples from the beginning of the first frame to the end of the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from ..settings import default_threads
from ..video.clip_audio import read_span
from ..video.samples import converted
from ._columns import Values
from ._video import ClipStorage, share_of


class ClipAudio(Operator, name="_clip_audio"):
    """Return the audio of clips. Inputs: the number of the clip, int64; the sampling rate of its file in Hz. Output:
    float32 ``(samples, channels)``, or ``(samples,)`` with `downmix`.
    """

    hidden = True
    devices = ("cpu",)
    inputs = (2, 2)
    draws = 1
    storage = arg("object", doc="The clips.")
    downmix = arg("bool", False, doc="Return the mean over the channels, without their axis.")

    def infer(self, c: Any, number: Any, rate: Any) -> Spec:
        return Spec(DType.FLOAT, (None,) if c.const("downmix") else (None, None))

    def runs_batches(self, args: Mapping[str, Any]) -> bool:
        return True

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        def read(row: RowContext, values: tuple[Any, ...]) -> Any:
            try:
                return self.reference(row, *values)
            except Exception as error:  # noqa: BLE001 - whatever a decoder raises fails the row
                return error

        threads = rows[0].threads or default_threads() if rows else 1
        with ThreadPoolExecutor(min(max(len(rows), 1), threads), thread_name_prefix="stoker-video") as pool:
            return list(pool.map(read, rows, inputs))

    def reference(self, row: RowContext, number: Any, rate: Any) -> Any:
        storage: ClipStorage = row["storage"]
        clip = int(number)
        if not 0 <= clip < len(storage):
            raise DataError(f"expected a sample below {len(storage)} from the sampler, got {clip}")
        begin, end = storage.span(clip, share_of(storage.rule, row))
        path = storage.table.paths[storage.table.file(clip)]
        return converted(read_span(path, begin, end, int(rate)), DType.FLOAT, row["downmix"])


class ClipAudioColumn(Column):
    """Audio of clips.

    Args:
        storage: the clips.
        rates: sampling rates of their files in Hz.
        sample_rate: rate to resample to; 0: the file's.
        downmix: mean over the channels.
    """

    name, layout, optional, dtype = "audio", "", False, DType.FLOAT

    def __init__(self, storage: ClipStorage, rates: Column, sample_rate: float, *, downmix: bool) -> None:
        self._storage, self._rates, self._sample_rate, self._downmix = storage, rates, sample_rate, downmix
        self.rank = 1 if downmix else 2

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> ClipStorage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        number = c.native("index", [], [(DType.INT64, (), "")], attrs=(reader,))[0]
        rate = self._rates.lower(c, reader)
        samples: Value = c.apply("_clip_audio", number, rate, storage=self._storage, downmix=self._downmix)
        if not self._sample_rate:
            return samples
        resampled: Value = c.apply("audio_resample", samples, in_rate=rate, out_rate=self._sample_rate, filter="exact")
        return resampled

    def row(self, index: int) -> npt.NDArray[Any]:
        if self._storage.rule.random or self._sample_rate:
            raise UnsupportedError("expected a clip at a fixed place and the file's rate: pipelines draw and resample")
        begin, end = self._storage.span(index, 0.0)
        path = self._storage.table.paths[self._storage.table.file(index)]
        samples: npt.NDArray[Any] = read_span(path, begin, end, int(self._rates.row(index)))
        return np.asarray(converted(samples, DType.FLOAT, self._downmix))

    def joined(self, others: Sequence[Column]) -> ClipAudioColumn:
        same = [o for o in others if isinstance(o, ClipAudioColumn)]
        mine = (self._sample_rate, self._downmix)
        if len(same) < len(others) or any((o._sample_rate, o._downmix) != mine for o in same):
            raise ArgumentError("expected parts that are audio of clips with the same arguments")
        return ClipAudioColumn(
            self._storage.joined([o.storage for o in same]), self._rates.joined([o._rates for o in same]),
            self._sample_rate, downmix=self._downmix,
        )  # fmt: skip


def audio_columns(storage: ClipStorage, rates: npt.NDArray[np.float32], args: Mapping[str, Any]) -> list[Column]:
    """Return the columns of samples and rates.

    Args:
        storage: the clips.
        rates: sampling rate of each clip's file in Hz.
        args: the reader's arguments.
    """
    wanted = args["sample_rate"] or 0.0
    own = Values("audio_rate", rates)
    shown = Values("audio_rate", np.full_like(rates, wanted)) if wanted else own
    return [ClipAudioColumn(storage, own, wanted, downmix=args["downmix"]), shown]
